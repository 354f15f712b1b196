/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap run: start a program, trace it from its first allocation, report at its end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/commands.h"
#include "user/control.h"
#include "user/launch.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/options.h"
#include "user/output.h"
#include "user/perturb.h"
#include "user/recorder.h"
#include "user/session.h"

enum { POLL_MS = 20, ERROR_EXITCODE = 99 };

struct run {
	const struct options *options;
	struct session *session;
	struct launch *launch;
	int attach_err; /* of the first image */
	bool is_attached;
	bool is_finished; /* tracing has ended, the last report is written */
};

/* The program has a new image; nothing of it has run. */
static void on_exec(void *ctx, pid_t pid)
{
	struct run *r = ctx;

	if (r->is_finished)
		return;
	if (!r->is_attached) {
		r->attach_err = session_attach(r->session, pid, true);
		r->is_attached = !r->attach_err;
		return;
	}
	/* The record of the exec makes the session open new books. */
	if (session_poll(r->session))
		debug("run: no more events");
}

static void on_mapped(void *ctx, pid_t pid)
{
	struct run *r = ctx;

	if (r->is_attached && !r->is_finished)
		session_update(r->session, pid);
}

static void on_exiting(void *ctx, pid_t pid, int status)
{
	struct run *r = ctx;

	(void)status;
	if (!r->is_attached || r->is_finished)
		return;
	/* The last look at its mappings: names must work after it has gone. */
	session_update(r->session, pid);
	if (r->options->scan != SCAN_NEVER)
		session_scan_exiting(r->session, pid);
}

static void on_ended(void *ctx, pid_t pid, int status)
{
	struct run *r = ctx;

	if (!r->is_attached || r->is_finished)
		return;
	if (session_poll(r->session))
		debug("run: no more events");
	session_ended(r->session, pid, status);
}

static int stop_process(void *ctx, pid_t pid, u64 max_ns)
{
	const struct run *r = ctx;

	return launch_hold(r->launch, pid, max_ns);
}

static void release_process(void *ctx, pid_t pid)
{
	const struct run *r = ctx;

	launch_release(r->launch, pid);
}

static void scan(struct run *r, bool is_last)
{
	const struct session_stopper stopper = { r, stop_process, release_process };

	session_scan(r->session, &stopper, is_last);
}

/* The end of tracing, if not of the program: the last report. */
static void finish(struct run *r)
{
	if (r->is_finished || !r->is_attached)
		return;
	r->is_finished = true;
	if (r->options->scan != SCAN_NEVER)
		scan(r, true);
	session_stop(r->session);
	session_has_no_allocator(r->session);
	if (r->options->perturb && !session_has_kind(r->session, "glibc"))
		warn("run: --perturb: no effect: no glibc in the program");
	if (session_report(r->session))
		error("run: the report is not complete");
	else if (session_status(r->session) != STATUS_DONE)
		warn("run: events were lost (\"lost\" in the report): its numbers are not exact, and the "
		     "exit "
		     "status, which is the program's, does not tell");
}

static void report(struct run *r)
{
	if (r->is_finished || !r->is_attached)
		return;
	if (r->options->scan == SCAN_ALWAYS)
		scan(r, false);
	if (session_report(r->session))
		debug("run: report not written");
}

static void answer(struct run *r, struct control *c)
{
	const struct session_stopper stopper = { r, stop_process, release_process };

	session_answer(r->is_attached && !r->is_finished ? r->session : NULL, &stopper, control_questions(c));
}

static void handle(struct run *r, struct control *c, enum control_event event, int sig)
{
	switch (event) {
	case CONTROL_REPORT:
		report(r);
		break;
	case CONTROL_ASKED:
		answer(r, c);
		break;
	case CONTROL_SIGNAL:
		launch_signal(r->launch, sig);
		break;
	case CONTROL_STOP: /* --duration: the program goes on untraced */
		finish(r);
		break;
	default:
		break;
	}
}

/* From its first instruction to its end. */
static void follow(struct run *r, struct control *c)
{
	int sig;

	if (r->options->scan != SCAN_NEVER || r->options->record)
		control_listen(c);
	launch_start(r->launch);
	while (!launch_poll(r->launch)) {
		int fd = r->is_finished ? -1 : session_wait_fd(r->session);
		enum control_event event = control_wait(c, fd, POLL_MS, &sig);

		if (!r->is_finished && session_poll(r->session))
			debug("run: no more events");
		handle(r, c, event, sig);
	}
	/* Daemons go on when the program has ended. */
	launch_leave_children(r->launch);
	if (r->is_finished)
		return;
	if (session_poll(r->session))
		debug("run: no more events");
	session_ended(r->session, launch_pid(r->launch), launch_status(r->launch));
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

/* What --fail-on makes of @status. A program that could not be traced was not found free of leaks. */
static int judged_status(const struct run *r, int status)
{
	const struct options *o = r->options;

	if (!options_have_rule(o) || (r->is_attached && !session_findings(r->session)))
		return status;
	return o->error_exitcode ? (int)o->error_exitcode : ERROR_EXITCODE;
}

/* With a session and a control: the program's exit status, or ours. */
static int run_program(const struct options *o, struct run *r, struct control *c)
{
	auto_free char **env = NULL;
	struct launch_options lo = {
		.argv = o->args,
		.user = o->user,
		.cwd = o->cwd,
		/* Which children are traced the source decides; who watched no more than that might watch others. */
		.max_children = o->follow ? UINT32_MAX : 0,
	};
	struct launch_hooks hooks = { r, on_exec, on_mapped, on_exiting, on_ended };
	int status, err;

	if (o->perturb && perturb_env(&env, environ))
		return launch_error(-ENOMEM);
	lo.env = env;
	lo.tracer = session_tracer(r->session, &lo.source);
	err = launch_new(&r->launch, &lo, &hooks);
	if (err)
		return launch_error(err);
	if (!r->is_attached)
		warn("run: %s: not traced", o->args[0]);
	follow(r, c);
	control_finish(c);
	status = program_status(launch_status(r->launch));
	finish(r);
	launch_free(r->launch);
	return judged_status(r, status);
}

int cmd_run(const struct options *o)
{
	struct run r = { .options = o };
	struct control *c = NULL;
	struct outputs *outs = NULL;
	int status;
	int err = outputs_new(&outs, o, stderr);

	if (err)
		return outputs_status(err);
	status = STATUS_USAGE;
	if (recorder_check(o))
		goto out;
	status = STATUS_IMPOSSIBLE;
	if (session_new(&r.session, o, outs, true))
		goto out;
	err = control_new(&c, o, true);
	if (err)
		error("run: signals: %s", strerror(-err));
	else
		status = run_program(o, &r, c);
out:
	session_free(r.session);
	control_free(c);
	outputs_free(outs);
	return status;
}
