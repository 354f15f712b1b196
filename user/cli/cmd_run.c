/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap run: start a program, trace it from its first allocation, report at its end. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/cli/attach.h"
#include "user/cli/commands.h"
#include "user/cli/line_start.h"
#include "user/cli/options.h"
#include "user/cli/run_as.h"
#include "user/session/control.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/signal_name.h"
#include "user/lib/status.h"
#include "user/cli/tracees.h"
#include "user/cli/tracing.h"
#include "user/session/code_choice.h"
#include "user/session/cost_limit.h"
#include "user/source/perturb.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/top/status_line.h"

enum { POLL_MS = 20, DEAR_MS = 5 /* with --max-cost */, ERROR_EXITCODE = 99, CHILD_NS = 2 * 1000 * 1000 };
static const u64 price_after_ns = 3000000000;
/* timeout(1) sends its signal twice at once, and who has read the message may hesitate. */
static const u64 again_min_ns = 1000000000, again_max_ns = 10000000000;

struct run {
	const struct options *options;
	struct tracees tracees; /* its launch is owned */
	struct launch_options launching;
	char **env; /* owned; of the program; NULL = ours */
	char *user; /* owned; who runs the program; NULL = as we are */
	struct code_choice choice;
	struct cost_limit limit;
	bool is_unwritten; /* a report could not be written, which was logged */
	int ignored;	   /* signal that the program ignores; 0 = none came */
	u64 ignored_ns;	   /* when that was told */
};

/* Are other processes traced, while the program runs? */
static bool cmd_run_attaches(const struct run *r)
{
	return !IS_AGENT && r->options->targets.nr;
}

static void cmd_run_scan(struct run *r, bool is_last)
{
	session_scan(r->tracees.session, tracees_stopper(&r->tracees), is_last);
}

/* The end of tracing, if not of the program: the last report. */
static void cmd_run_finish(struct run *r)
{
	if (r->tracees.is_finished || !r->tracees.is_attached)
		return;
	r->tracees.is_finished = true;
	log_status(NULL);
	if (!IS_AGENT && (!r->options->quiet || !r->options->outputs.nr))
		line_start(STDERR_FILENO);
	/* The ends of children that were left for another tracer: the second look is believed. */
	if (session_running(r->tracees.session) && !session_running(r->tracees.session))
		debug("run: no process is left");
	if (r->options->scan != SCAN_NEVER)
		cmd_run_scan(r, true);
	session_stop(r->tracees.session);
	session_has_no_allocator(r->tracees.session);
	if (!IS_AGENT && r->options->perturb && !session_has_kind(r->tracees.session, "glibc"))
		warn("run: --perturb: no effect: no glibc in the program");
	r->is_unwritten = session_report(r->tracees.session);
	if (!r->is_unwritten && session_has_losses(r->tracees.session))
		warn("run: events were lost (\"lost\" in the report), so its numbers are not exact%s",
		     options_have_rule(r->options)
			     ? ""
			     : "; the exit status is that of the program and does not show it");
}

static void cmd_run_report(struct run *r)
{
	if (r->tracees.is_finished || !r->tracees.is_attached)
		return;
	if (r->options->scan == SCAN_ALWAYS)
		cmd_run_scan(r, false);
	if (session_report(r->tracees.session))
		debug("run: report not written");
}

static void cmd_run_answer(struct run *r, struct control *c)
{
	struct tracees *t = &r->tracees;

	if (!IS_AGENT)
		session_answer(t->is_attached && !t->is_finished ? t->session : NULL, tracees_stopper(t),
			       control_questions(c));
}

/* The program has got signal @sig. One that it ignores, and does not wait for, is for heaptap where it comes again. */
static void cmd_run_ignored(struct run *r, struct control *c, int sig)
{
	pid_t pid = launch_pid(r->tracees.launch);
	u64 now = clock_now_ns(), since = r->ignored == sig ? now - r->ignored_ns : UINT64_MAX;
	struct proc_status status;

	if (r->tracees.is_finished || !r->tracees.is_attached || since < again_min_ns || sig == SIGUSR2 ||
	    proc_read_status(&status, pid) ||
	    !((status.signals_ignored & ~status.signals_blocked) >> (sig - 1) & 1))
		return;
	if (since <= again_max_ns) {
		info("run: tracing ends; %s (pid %d) runs on", r->options->args[0], (int)pid);
		control_stop_soon(c);
		return;
	}
	r->ignored = sig;
	r->ignored_ns = now;
	info("run: %s (pid %d) ignores SIG%s; the same once more, within 10 seconds, ends tracing with its report",
	     r->options->args[0], (int)pid, signal_name(sig));
}

static void cmd_run_handle(struct run *r, struct control *c, enum control_event event, int sig)
{
	switch (event) {
	case CONTROL_REPORT:
		cmd_run_report(r);
		break;
	case CONTROL_ASKED:
		cmd_run_answer(r, c);
		break;
	case CONTROL_SIGNAL:
		launch_signal(r->tracees.launch, sig);
		__attribute__((fallthrough));
	case CONTROL_SHARED:
		if (!IS_AGENT)
			cmd_run_ignored(r, c, sig);
		break;
	case CONTROL_STOP: /* --duration: the program runs on untraced */
		cmd_run_finish(r);
		launch_leave_children(r->tracees.launch);
		if (!launch_leave(r->tracees.launch))
			debug("run: the source has detached");
		break;
	default:
		break;
	}
}

/* Messages while the program runs. */
struct run_line {
	struct status_line line;
	bool has_line;
	u64 price_ns;  /* when to tell that breakpoints are dear; 0 = it was told */
	u64 polled_ns; /* when events were entered last */
};

/* The program is slow because of breakpoints, and its user may wonder. */
static void cmd_run_tell_price(struct run_line *p, const struct session *s)
{
	const struct session_probes probes = session_probes(s);

	if (!p->price_ns || clock_now_ns() < p->price_ns || probes.ns <= probes.cpu_ns / 2)
		return;
	p->price_ns = 0;
	info("run: breakpoints take about %s of the CPU time of %s (pid %d): %s for each of its calls",
	     human_percent(probes.ns, probes.cpu_ns).text, probes.process->comm, (int)probes.process->pid,
	     human_duration(probes.ns / probes.calls).text);
}

/* One round: wait for a moment, enter the events, do what was asked for. */
static enum control_event cmd_run_go_on(struct run *r, struct control *c, struct run_line *p)
{
	int sig, fd = r->tracees.is_finished ? -1 : session_wait_fd(r->tracees.session);
	enum control_event event =
		control_wait(c, fd, !IS_AGENT && r->limit.is_near ? DEAR_MS : POLL_MS, &sig);

	/* A thread stands at its beginning or end, and a look at the rings of thousands would hold it up. */
	if (event == CONTROL_CHILD && clock_now_ns() - p->polled_ns < CHILD_NS)
		return event;
	p->polled_ns = clock_now_ns();
	if (!r->tracees.is_finished && session_poll(r->tracees.session))
		debug("run: no more events");
	if (!r->tracees.is_finished)
		tracees_check(&r->tracees);
	cmd_run_handle(r, c, event, sig);
	if (!r->tracees.is_finished)
		session_bound_ended(r->tracees.session);
	if (cmd_run_attaches(r) && !r->tracees.is_finished)
		code_choice_round(&r->choice, r->tracees.session, r->options->max_cost, r->options->quiet);
	if (!IS_AGENT && r->tracees.is_attached && !r->tracees.is_finished)
		cost_limit_round(&r->limit, r->tracees.session);
	if (!r->tracees.is_finished && session_is_enough(r->tracees.session))
		control_stop_soon(c);
	if (!IS_AGENT && r->tracees.is_attached && !r->tracees.is_finished)
		cmd_run_tell_price(p, r->tracees.session);
	if (!IS_AGENT && p->has_line && r->tracees.is_attached && !r->tracees.is_finished)
		status_line_round(&p->line, r->tracees.session);
	return event;
}

/* The program has ended. Daemons are children that run on. */
static void await_children(struct run *r, struct control *c, struct run_line *p)
{
	size_t nr = session_running(r->tracees.session);

	if (!nr)
		return;
	control_keep_signals(c);
	info("run: the program has ended; waiting for %zu followed process%s; Ctrl-C ends tracing", nr,
	     nr == 1 ? "" : "es");
	while (!r->tracees.is_finished && session_running(r->tracees.session) &&
	       cmd_run_go_on(r, c, p) != CONTROL_STOP)
		launch_poll(r->tracees.launch);
}

/* From its first instruction to its end. */
static void cmd_run_follow(struct run *r, struct control *c)
{
	struct run_line p = { .has_line =
				      r->options->status && !r->options->quiet && log_status_is_possible(),
			      .price_ns = clock_now_ns() + price_after_ns };

	control_listen(c);
	control_start_clocks(c);
	launch_start(r->tracees.launch);
	/* The program is not traced, but as its tracer heaptap would keep LeakSanitizer in it from its work. */
	if ((!r->tracees.is_attached || cmd_run_attaches(r)) && launch_leave(r->tracees.launch))
		debug("run: detached from the program");
	while (!launch_poll(r->tracees.launch))
		cmd_run_go_on(r, c, &p);
	/* Another process may soon have the PID. */
	control_begin(c, 0);
	if (!r->tracees.is_finished) {
		if (session_poll(r->tracees.session))
			debug("run: no more events");
		if (!cmd_run_attaches(r))
			session_ended(r->tracees.session, launch_pid(r->tracees.launch),
				      launch_status(r->tracees.launch));
	}
	if (!cmd_run_attaches(r) && r->tracees.is_attached && !r->tracees.is_finished && r->options->follow &&
	    !r->options->no_wait)
		await_children(r, c, &p);
	/* The last ones may have ended since the last round. */
	if (!r->tracees.is_finished)
		session_bound_ended(r->tracees.session);
	log_status(NULL);
	launch_leave_children(r->tracees.launch);
}

static int launch_error(int err)
{
	if (err == -ENOENT)
		return STATUS_NOT_FOUND;
	return err == -EINVAL ? STATUS_USAGE : STATUS_CANNOT_RUN;
}

static int program_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * The program's @status, or another one by the rules of --fail-on. A program that could not be traced has no verdict,
 * and neither has one whose events were lost, or one without the functions that were asked for.
 * Without its report a run is no success.
 */
static int cmd_run_judged_status(const struct run *r, int status)
{
	const struct options *o = r->options;
	int found = 0;

	if (options_have_rule(o))
		found = r->tracees.is_attached ? session_findings(r->tracees.session) : -ENODATA;
	if (found > 0)
		return o->error_exitcode ? (int)o->error_exitcode : ERROR_EXITCODE;
	if (found < 0)
		return STATUS_NO_VERDICT;
	if (status == STATUS_DONE && r->is_unwritten)
		return STATUS_UNTRUSTED;
	return status == STATUS_DONE && r->tracees.is_attached && session_lacks_functions(r->tracees.session)
		       ? STATUS_NO_VERDICT
		       : status;
}

/* Is standard output asked for by a report? What the program prints would be in the middle of it. */
static bool run_leaves_stdout(const struct options *o)
{
	bool is_asked = false;

	for (size_t i = 0; i < o->outputs.nr; i++)
		is_asked |= !strcmp(o->outputs.items[i], "-");
	if (is_asked && !o->quiet)
		info("run: the program prints to standard error, because the report goes to standard output");
	return is_asked;
}

/* Make the process of the program while heaptap has all rights of the user: the program keeps them. */
static int cmd_run_prepare(void *ctx, struct session *s)
{
	struct run *r = ctx;
	const struct options *o = r->options;
	int err = 0;

	r->tracees.session = s;
	r->launching = (struct launch_options){
		.argv = o->args,
		.cwd = o->cwd,
		.leaves_stdout = !IS_AGENT && run_leaves_stdout(o),
		/* The source decides which children it traces; watch them all. */
		.max_children = o->follow && !cmd_run_attaches(r) ? UINT32_MAX : 0,
	};
	if (!IS_AGENT && o->perturb && perturb_env(&r->env, environ))
		return launch_error(-ENOMEM);
	err = run_as(o, &r->user);
	if (err)
		return launch_error(err);
	r->launching.env = r->env;
	r->launching.user = r->user;
	if (!cmd_run_attaches(r))
		r->launching.tracer = session_tracer(s, &r->launching.source);
	err = launch_prepare(&r->tracees.launch, &r->launching);
	return err ? launch_error(err) : STATUS_DONE;
}

static void cmd_run_let_be(void *ctx, pid_t pid)
{
	(void)ctx;
	(void)pid;
}

static void cmd_run_let_end(void *ctx, pid_t pid, int status)
{
	(void)ctx;
	(void)pid;
	(void)status;
}

/* Trace the processes of --pid. The program is a clock, of which nothing is reported. An exit status. */
static int cmd_run_attach(struct run *r, struct launch_hooks *hooks)
{
	int status = attach_targets(r->tracees.session, r->options);

	*hooks = (struct launch_hooks){ .exec = cmd_run_let_be,
					.mapped = cmd_run_let_be,
					.exiting = cmd_run_let_end,
					.ended = cmd_run_let_end };
	r->tracees.is_attached = status == STATUS_DONE;
	r->tracees.is_for_ends = true;
	return status;
}

/* With a session and a control: the program's exit status, or ours. */
static int run_program(void *ctx, const struct options *o, struct session *s, struct control *c)
{
	struct run *r = ctx;
	struct launch_hooks hooks = tracees_hooks(&r->tracees);
	int status = cmd_run_attaches(r) ? cmd_run_attach(r, &hooks) : STATUS_DONE, err;

	(void)s;
	err = status == STATUS_DONE ? launch_begin(r->tracees.launch, &r->launching, &hooks) : 0;
	if (err || status != STATUS_DONE) {
		launch_free(take_ptr(r->tracees.launch));
		return err ? launch_error(err) : status;
	}
	control_begin(c, launch_pid(r->tracees.launch));
	if (!r->tracees.is_attached)
		warn("run: %s: not traced", o->args[0]);
	cmd_run_follow(r, c);
	control_finish(c);
	status = program_status(launch_status(r->tracees.launch));
	cmd_run_finish(r);
	launch_free(take_ptr(r->tracees.launch));
	return cmd_run_judged_status(r, status);
}

int cmd_run(const struct options *o)
{
	struct run r = { .options = o, .tracees.options = o };
	const struct tracing_command command = { .attaches = cmd_run_attaches(&r),
						 .is_launch = true,
						 .prepare = cmd_run_prepare,
						 .work = run_program,
						 .ctx = &r };
	int status;

	if (!IS_AGENT)
		r.limit = (struct cost_limit){ .max_cost = o->has_max_cost && !o->follow ? o->max_cost : 0,
					       .is_quiet = o->quiet };
	status = tracing_run(o, &command);
	if (!IS_AGENT)
		cost_limit_fini(&r.limit);
	/* If it was not even begun. */
	launch_free(r.tracees.launch);
	free(r.user);
	free(r.env);
	return status;
}
