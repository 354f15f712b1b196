/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap run: start a program, trace it from its first allocation, report at its end. */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/cli/commands.h"
#include "user/cli/inline_hint.h"
#include "user/cli/options.h"
#include "user/session/control.h"
#include "user/source/launch.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/cli/tracing.h"
#include "user/source/perturb.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/session/session_stopper.h"
#include "user/stream/out_name.h"
#include "user/top/status_line.h"

enum { POLL_MS = 20, ERROR_EXITCODE = 99 };

struct run {
	const struct options *options;
	struct session *session;
	struct launch *launch; /* owned */
	struct launch_options launching;
	char **env;	/* owned; of the program; NULL = ours */
	char *user;	/* owned; who runs the program; NULL = as we are */
	int attach_err; /* of the first image */
	bool is_attached;
	bool is_finished;  /* tracing has ended, the last report is written */
	bool is_unwritten; /* a report could not be written, which was logged */
};

/* The kernel gives a traced program the privilege of its file only if the tracer has that, too. */
static void warn_of_privilege(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (geteuid() && !stat(path, &st) &&
	    ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	     (st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP)))
		warn("run: PID %d: its file is set-user-ID or set-group-ID, and traced by a user it runs without that "
		     "privilege: trace it as root",
		     (int)pid);
}

/* The program has a new image; nothing of it has run. */
static void on_exec(void *ctx, pid_t pid)
{
	struct run *r = ctx;

	if (r->is_finished)
		return;
	warn_of_privilege(pid);
	if (!r->is_attached) {
		r->attach_err = session_attach(r->session, pid, true);
		r->is_attached = !r->attach_err;
		return;
	}
	/* The record of the exec makes the session open a new heap. */
	if (session_poll(r->session))
		debug("run: no more events");
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

static int call_in_process(void *ctx, pid_t pid, struct thread_request *request)
{
	const struct run *r = ctx;

	return launch_call(r->launch, pid, request);
}

static void attend(void *ctx)
{
	const struct run *r = ctx;

	launch_attend(r->launch);
}

/* Make the leak check that the program has asked for. */
static void check(struct run *r)
{
	const struct session_stopper stopper = { r, stop_process, release_process, call_in_process, attend };

	session_check(r->session, &stopper);
}

static void on_born(void *ctx, pid_t pid)
{
	struct run *r = ctx;

	if (r->is_attached && !r->is_finished)
		session_born(r->session, pid);
}

static void on_mapped(void *ctx, pid_t pid)
{
	struct run *r = ctx;

	if (!r->is_attached || r->is_finished)
		return;
	session_update(r->session, pid);
	check(r);
}

static void on_exiting(void *ctx, pid_t pid, int status)
{
	struct run *r = ctx;

	(void)status;
	if (!r->is_attached || r->is_finished)
		return;
	/* Read its mappings once more, because names are looked up after its end. */
	session_update(r->session, pid);
	if (r->options->scan != SCAN_NEVER)
		session_scan_exiting(r->session, pid);
}

static struct thread_stop reason(void *ctx, pid_t tid)
{
	const struct run *r = ctx;

	return session_stop_reason(r->session, tid);
}

/* The last moment at which its threads can be stopped for a verdict. */
static void on_leaving(void *ctx, pid_t pid, enum thread_stop_why why)
{
	struct run *r = ctx;

	if (why == THREAD_STOP_UNTRACED)
		on_exiting(ctx, pid, 0);
	if (r->is_attached && !r->is_finished)
		session_left(r->session, pid, why);
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

static void scan(struct run *r, bool is_last)
{
	const struct session_stopper stopper = { r, stop_process, release_process, call_in_process, attend };

	session_scan(r->session, &stopper, is_last);
}

/* The end of tracing, if not of the program: the last report. */
static void finish(struct run *r)
{
	if (r->is_finished || !r->is_attached)
		return;
	r->is_finished = true;
	log_status(NULL);
	/* The ends of children that were left for another tracer. */
	if (!session_running(r->session))
		debug("run: no process is left");
	if (r->options->scan != SCAN_NEVER)
		scan(r, true);
	session_stop(r->session);
	session_has_no_allocator(r->session);
	if (!IS_AGENT)
		inline_hint_measure(r->options, r->session);
	if (r->options->perturb && !session_has_kind(r->session, "glibc"))
		warn("run: --perturb: no effect: no glibc in the program");
	r->is_unwritten = session_report(r->session);
	if (!r->is_unwritten && session_has_losses(r->session))
		warn("run: events were lost (\"lost\" in the report), so its numbers are not exact; "
		     "the exit status is that of the program and does not show it");
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
	const struct session_stopper stopper = { r, stop_process, release_process, call_in_process, attend };

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
	case CONTROL_STOP: /* --duration: the program runs on untraced */
		finish(r);
		launch_leave_children(r->launch);
		if (!launch_leave(r->launch))
			debug("run: the source has detached");
		break;
	default:
		break;
	}
}

/* The line on the terminal while the program runs. */
struct run_line {
	struct status_line line;
	bool has_line;
};

/* One round: wait for a moment, enter the events, do what was asked for. */
static enum control_event go_on(struct run *r, struct control *c, struct run_line *p)
{
	int sig, fd = r->is_finished ? -1 : session_wait_fd(r->session);
	enum control_event event = control_wait(c, fd, POLL_MS, &sig);

	if (!r->is_finished && session_poll(r->session))
		debug("run: no more events");
	if (!r->is_finished)
		check(r);
	handle(r, c, event, sig);
	if (!r->is_finished)
		session_bound_ended(r->session);
	if (!r->is_finished && session_is_enough(r->session))
		control_stop_soon(c);
	if (p->has_line && r->is_attached && !r->is_finished)
		status_line_round(&p->line, r->session);
	return event;
}

/* The program has ended. Daemons are children that run on. */
static void await_children(struct run *r, struct control *c, struct run_line *p)
{
	size_t nr = session_running(r->session);

	if (!nr)
		return;
	control_keep_signals(c);
	info("run: the program has ended; waiting for %zu followed process%s; Ctrl-C ends tracing", nr,
	     nr == 1 ? "" : "es");
	while (!r->is_finished && session_running(r->session) && go_on(r, c, p) != CONTROL_STOP)
		launch_poll(r->launch);
}

/* From its first instruction to its end. */
static void follow(struct run *r, struct control *c)
{
	struct run_line p = { .has_line =
				      r->options->status && !r->options->quiet && status_line_is_possible() };

	control_listen(c);
	launch_start(r->launch);
	/* Nothing is traced, but as its tracer heaptap would keep LeakSanitizer in the program from its work. */
	if (!r->is_attached && launch_leave(r->launch))
		debug("run: detached from the program");
	while (!launch_poll(r->launch))
		go_on(r, c, &p);
	/* Another process may soon have the PID. */
	control_begin(c, 0);
	if (!r->is_finished) {
		if (session_poll(r->session))
			debug("run: no more events");
		session_ended(r->session, launch_pid(r->launch), launch_status(r->launch));
	}
	if (r->is_attached && !r->is_finished && r->options->follow && !r->options->no_wait)
		await_children(r, c, &p);
	/* The last ones may have ended since the last round. */
	if (!r->is_finished)
		session_bound_ended(r->session);
	log_status(NULL);
	launch_leave_children(r->launch);
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
 * The program's @status, or another one by the rules of --fail-on. A program that could not be traced has no verdict.
 * Without its report a run is no success.
 */
static int judged_status(const struct run *r, int status)
{
	const struct options *o = r->options;
	int found = 0;

	if (options_have_rule(o))
		found = r->is_attached ? session_findings(r->session) : -ENODATA;
	if (found > 0)
		return o->error_exitcode ? (int)o->error_exitcode : ERROR_EXITCODE;
	if (found < 0)
		return STATUS_NO_VERDICT;
	return status == STATUS_DONE && r->is_unwritten ? STATUS_UNTRUSTED : status;
}

/* *@user: who shall run the program, NULL = as we are; owned by the caller. 0, -EINVAL or -ENOMEM, logged. */
static int choose_user(const struct options *o, char **user)
{
	uid_t uid;
	gid_t gid;
	const struct passwd *caller = out_find_caller(&uid, &gid) && uid ? getpwuid(uid) : NULL;
	const char *name = o->as_caller && caller ? caller->pw_name : o->user;

	if (o->as_caller && (!caller || o->user)) {
		error("run: --as-caller: %s",
		      caller ? "goes without --user" : "heaptap was not started by sudo of another user");
		return -EINVAL;
	}
	if (caller && !name && !o->quiet)
		info("run: the program runs as root; --as-caller runs it as %s", caller->pw_name);
	*user = name ? strdup(name) : NULL;
	if (!name || *user)
		return 0;
	error("run: %s", strerror(ENOMEM));
	return -ENOMEM;
}

/* Make the process of the program while heaptap has all rights of the user: the program keeps them. */
static int prepare(void *ctx, struct session *s)
{
	struct run *r = ctx;
	const struct options *o = r->options;
	int err = 0;

	r->session = s;
	r->launching = (struct launch_options){
		.argv = o->args,
		.cwd = o->cwd,
		/* The source decides which children it traces; watch them all. */
		.max_children = o->follow ? UINT32_MAX : 0,
	};
	if (o->perturb && perturb_env(&r->env, environ))
		return launch_error(-ENOMEM);
	err = choose_user(o, &r->user);
	if (err)
		return launch_error(err);
	r->launching.env = r->env;
	r->launching.user = r->user;
	r->launching.tracer = session_tracer(s, &r->launching.source);
	err = launch_prepare(&r->launch, &r->launching);
	return err ? launch_error(err) : STATUS_DONE;
}

/* With a session and a control: the program's exit status, or ours. */
static int run_program(void *ctx, const struct options *o, struct session *s, struct control *c)
{
	struct run *r = ctx;
	const struct launch_hooks hooks = { .ctx = r,
					    .exec = on_exec,
					    .mapped = on_mapped,
					    .exiting = on_exiting,
					    .ended = on_ended,
					    .reason = reason,
					    .leaving = on_leaving,
					    .born = on_born };
	int status, err;

	(void)s;
	err = launch_begin(r->launch, &r->launching, &hooks);
	if (err) {
		launch_free(take_ptr(r->launch));
		return launch_error(err);
	}
	control_begin(c, launch_pid(r->launch));
	if (!r->is_attached)
		warn("run: %s: not traced", o->args[0]);
	follow(r, c);
	control_finish(c);
	status = program_status(launch_status(r->launch));
	finish(r);
	launch_free(take_ptr(r->launch));
	return judged_status(r, status);
}

int cmd_run(const struct options *o)
{
	struct run r = { .options = o };
	const struct tracing_command command = {
		.is_launch = true, .prepare = prepare, .work = run_program, .ctx = &r
	};
	int status = tracing_run(o, &command);

	/* If it was not even begun. */
	launch_free(r.launch);
	free(r.user);
	free(r.env);
	return status;
}
