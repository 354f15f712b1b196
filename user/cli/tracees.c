/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the stops of traced processes to the session. */
#include "user/cli/tracees.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/cli/options.h"
#include "user/lib/log.h"
#include "user/session/session.h"
#include "user/session/session_code.h"
#include "user/session/session_ending.h"
#include "user/session/session_live.h"

/* The kernel gives a traced program the privilege of its file only if the tracer has that, too. */
static void warn_of_privilege(const struct tracees *t, pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (geteuid() && !stat(path, &st) &&
	    ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	     (st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP)))
		warn("%s: PID %d: its file is set-user-ID or set-group-ID, and traced by a user it runs without that "
		     "privilege: trace it as root",
		     t->options->command->name, (int)pid);
}

static bool is_tracing(const struct tracees *t)
{
	return t->is_attached && !t->is_finished;
}

static void poll_session(const struct tracees *t)
{
	if (session_poll(t->session))
		debug("%s: no more events", t->options->command->name);
}

/* The program has a new image; nothing of it has run. */
static void tracees_on_exec(void *ctx, pid_t pid)
{
	struct tracees *t = ctx;

	if (t->is_finished)
		return;
	warn_of_privilege(t, pid);
	/* The record of a later exec makes the session open a new heap. */
	if (t->is_attached)
		poll_session(t);
	else
		t->is_attached = !session_attach(t->session, pid, true);
}

static int tracees_stop_process(void *ctx, pid_t pid, u64 max_ns)
{
	const struct tracees *t = ctx;

	return launch_hold(t->launch, pid, max_ns);
}

static void release_process(void *ctx, pid_t pid)
{
	const struct tracees *t = ctx;

	launch_release(t->launch, pid);
}

static int call_in_process(void *ctx, pid_t pid, struct thread_request *request)
{
	const struct tracees *t = ctx;

	return launch_call(t->launch, pid, request);
}

static bool watches_process(void *ctx, pid_t pid)
{
	const struct tracees *t = ctx;

	return launch_watches(t->launch, pid);
}

static void tracees_attend(void *ctx)
{
	const struct tracees *t = ctx;

	launch_attend(t->launch);
}

const struct session_stopper *tracees_stopper(struct tracees *t)
{
	t->stopper = (struct session_stopper){ t,
					       tracees_stop_process,
					       release_process,
					       call_in_process,
					       IS_AGENT ? NULL : watches_process,
					       tracees_attend };
	return t->launch && !t->is_for_ends ? &t->stopper : NULL;
}

void tracees_check(struct tracees *t)
{
	session_check(t->session, tracees_stopper(t));
}

static void tracees_on_born(void *ctx, pid_t pid)
{
	const struct tracees *t = ctx;

	if (is_tracing(t))
		session_born(t->session, pid);
}

static void tracees_on_mapped(void *ctx, pid_t pid)
{
	struct tracees *t = ctx;

	if (!is_tracing(t))
		return;
	session_update(t->session, pid);
	tracees_check(t);
}

static void tracees_on_exiting(void *ctx, pid_t pid, int status)
{
	const struct tracees *t = ctx;

	(void)status;
	if (!is_tracing(t))
		return;
	/* Read its mappings once more, because names are looked up after its end. */
	session_update(t->session, pid);
	session_look_at_children(t->session, pid);
	if (t->options->scan != SCAN_NEVER)
		session_scan_exiting(t->session, pid);
}

static struct thread_stop tracees_reason(void *ctx, pid_t tid)
{
	const struct tracees *t = ctx;

	return session_stop_reason(t->session, tid);
}

static bool tracees_on_trapped(void *ctx, pid_t pid, pid_t tid)
{
	const struct tracees *t = ctx;

	return is_tracing(t) && session_trapped(t->session, pid, tid);
}

/* The last moment at which its threads can be stopped for a verdict. */
static void tracees_on_leaving(void *ctx, pid_t pid, enum thread_stop_why why)
{
	const struct tracees *t = ctx;

	if (why == THREAD_STOP_UNTRACED)
		tracees_on_exiting(ctx, pid, 0);
	if (is_tracing(t))
		session_left(t->session, pid, why);
}

static void tracees_on_ended(void *ctx, pid_t pid, int status)
{
	const struct tracees *t = ctx;

	if (!is_tracing(t))
		return;
	poll_session(t);
	session_ended(t->session, pid, status);
}

int tracees_put_code(void *ctx, struct session *s, pid_t pid)
{
	struct tracees *t = ctx;
	const struct launch_hooks hooks = tracees_hooks(t);
	bool was_joined = t->launch && launch_watches(t->launch, pid);
	int err = t->launch ? launch_part(t->launch, pid) : launch_new_joined(&t->launch, &hooks), joined;

	if (err)
		return err;
	err = session_put_code(s, pid);
	if (err && !was_joined)
		return err;
	joined = launch_join(t->launch, pid);
	if (joined)
		debug("PID %d: ends before it can be traced by ptrace: %s", (int)pid, strerror(-joined));
	else
		launch_release(t->launch, pid);
	return err;
}

struct launch_hooks tracees_hooks(struct tracees *t)
{
	return (struct launch_hooks){ .ctx = t,
				      .exec = tracees_on_exec,
				      .mapped = tracees_on_mapped,
				      .exiting = tracees_on_exiting,
				      .ended = tracees_on_ended,
				      .reason = tracees_reason,
				      .trapped = tracees_on_trapped,
				      .leaving = tracees_on_leaving,
				      .born = tracees_on_born };
}
