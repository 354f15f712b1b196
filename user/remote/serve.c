/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handle commands of the client, and keep the trace while the client is away. */
#include "user/remote/serve.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/session/session.h"
#include "user/session/session_ending.h"
#include "user/session/session_fill.h"
#include "user/session/session_live.h"
#include "user/remote/serve_books.h"
#include "user/remote/wire_command.h"
#include "user/lib/privileges.h"

enum { ALIVE_MS = 200, END_MS = 10000, ROUND_FRAMES = 256 };

static void serve_say(struct serve *s, u8 kind, const char *text)
{
	struct wire_out *out = serve_link_out(s->link);

	if (out && wire_put_text(out, kind, text))
		debug("serve: no room for an answer");
}

/* Answer with a frame of @kind: a byte, then words. */
static void serve_answer(struct serve *s, enum wire_kind kind, u8 what, const char *text)
{
	struct wire_out *out = serve_link_out(s->link);
	u8 body[WIRE_MAX_TEXT] = { what };
	size_t len = strnlen(text, sizeof(body) - 1);

	memcpy(body + 1, text, len);
	if (out && wire_put(out, kind, body, len + 1))
		debug("serve: no room for an answer");
}

/* Does the launch have the program of the command line, and not processes that are about to end? */
static bool has_program(const struct serve *s)
{
	return s->launch && (IS_AGENT || s->options.program);
}

/* Nothing is traced any more. */
static void close_trace(struct serve *s)
{
	if (!IS_AGENT && s->launch && !has_program(s))
		launch_free(take_ptr(s->launch));
	/* A source that is the tracer of our program detaches from it here, and then nothing is left to serve. */
	if (s->launch && s->ops && s->ops->tracer && !launch_leave(s->launch)) {
		launch_free(s->launch);
		s->launch = NULL;
		s->is_over = true;
	}
	serve_books_end(s);
	session_free(s->session);
	s->session = NULL;
	s->source = NULL;
	s->ops = NULL;
	s->client = 0;
	s->lost_ms = 0;
}

void serve_stop(struct serve *s, enum wire_end why, const char *text)
{
	if (s->session)
		session_stop(s->session);
	serve_answer(s, WIRE_STOPPED, why, text);
	if (!serve_link_flush(s->link, END_MS))
		debug("serve: no room for an answer");
	close_trace(s);
}

/* The queue to the client of the trace. NULL: there is none, or another one has taken its place. */
static struct wire_out *serve_queue(const struct serve *s)
{
	return s->client && s->client != serve_link_client(s->link) ? NULL : serve_link_out(s->link);
}

static int put_in_queue(void *ctx, const void *data, size_t len)
{
	struct wire_out *out = serve_queue(ctx);

	return out ? wire_put(out, WIRE_STREAM, data, len) : -EPIPE;
}

static unsigned int serve_filled(void *ctx)
{
	const struct wire_out *out = serve_queue(ctx);

	return out ? (unsigned int)(wire_out_pending(out) * 8 / out->limit) : 8;
}

static int open_trace(struct serve *s, bool is_launch)
{
	int err;

	s->sink = (struct recorder_sink){ s, put_in_queue, serve_filled };
	s->wanted.recorder.sink = &s->sink;
	err = session_new(&s->session, &s->wanted, NULL, is_launch);
	if (err)
		return err;
	s->ops = session_source(s->session, &s->source);
	return session_wait_fd(s->session) < 0 ? 0 : serve_link_watch(s->link, session_wait_fd(s->session));
}

static int serve_attach(struct serve *s, pid_t pid, bool is_started)
{
	return session_count(s->session) < FORWARD_MAX_PROCESSES ? session_attach(s->session, pid, is_started)
								 : -E2BIG;
}

/* The processes of the command line, the caller's. 0; or the error of the last name that none has. */
static int serve_find_all(const struct serve *s, pid_t **out, size_t *nr)
{
	int err = 0;

	for (size_t i = 0; i < s->options.nr_targets; i++) {
		auto_free pid_t *pids = NULL;
		size_t found = 0;

		err = target_find(s->options.targets[i], &pids, &found);
		for (size_t k = 0; !err && k < found; k++) {
			if (array_extend(*out, *nr))
				return -ENOMEM;
			(*out)[(*nr)++] = pids[k];
		}
	}
	return err;
}

/* Attach to all processes of the command line. */
static int serve_attach_all(struct serve *s)
{
	auto_free pid_t *pids = NULL;
	size_t nr = 0, nr_attached = 0;
	int err = serve_find_all(s, &pids, &nr);

	session_expect(s->session, nr);
	for (size_t i = 0; i < nr; i++) {
		int one = serve_attach(s, pids[i], false);

		nr_attached += !one;
		if (one)
			err = one;
	}
	return nr_attached ? 0 : err;
}

static void read_events(const struct serve *s)
{
	if (session_forward_poll(s->session))
		debug("serve: the stream is broken");
}

static void serve_on_exec(void *ctx, pid_t pid)
{
	struct serve *s = ctx;

	if (!s->session)
		return;
	if (!s->is_launched)
		s->status = serve_attach(s, pid, true);
	else
		read_events(s);
}

static void serve_on_executing(void *ctx, pid_t pid, bool is_stopped)
{
	struct serve *s = ctx;

	s->has_stopped = is_stopped;
	serve_books_wait(s, pid, WIRE_MARK_EXECUTING);
	s->has_stopped = false;
}

static void serve_check(struct serve *s)
{
	if (!IS_AGENT)
		session_judge_before_exec(s->session, serve_on_executing, s);
}

static void serve_on_mapped(void *ctx, pid_t pid)
{
	struct serve *s = ctx;

	if (!s->session)
		return;
	session_update(s->session, pid);
	serve_check(s);
}

static void serve_on_born(void *ctx, pid_t pid)
{
	struct serve *s = ctx;

	if (s->session)
		session_born(s->session, pid);
}

static void serve_on_exiting(void *ctx, pid_t pid, int status)
{
	struct serve *s = ctx;

	(void)status;
	if (!s->session)
		return;
	/* The record of the birth of a short child may still wait. */
	session_update(s->session, pid);
	if (session_find(s->session, (u32)pid))
		serve_books_wait(s, pid, WIRE_MARK_EXITING);
}

static struct thread_stop reason_of_stop(void *ctx, pid_t tid)
{
	const struct serve *s = ctx;

	return s->session ? session_stop_reason(s->session, tid)
			  : (struct thread_stop){ .why = THREAD_STOP_LOOK };
}

/* The last moment at which its threads can be stopped for a verdict, if it is not to run on under a debugger. */
static void serve_on_leaving(void *ctx, pid_t pid, enum thread_stop_why why)
{
	if (why == THREAD_STOP_UNTRACED)
		serve_on_exiting(ctx, pid, 0);
}

static bool serve_on_trapped(void *ctx, pid_t pid, pid_t tid)
{
	const struct serve *s = ctx;

	return s->session && session_trapped(s->session, pid, tid);
}

static void serve_on_ended(void *ctx, pid_t pid, int status)
{
	struct serve *s = ctx;

	if (!s->session)
		return;
	read_events(s);
	session_ended(s->session, pid, status);
}

/* Most children that are traced: as many as the client or the command line of serve wants. */
static u32 max_followed(const struct serve *s)
{
	u32 wanted = s->wanted.source.max_followed;

	return wanted > s->options.source.max_followed ? wanted : s->options.source.max_followed;
}

static struct launch_hooks serve_hooks(struct serve *s)
{
	return (struct launch_hooks){ .ctx = s,
				      .exec = serve_on_exec,
				      .mapped = serve_on_mapped,
				      .exiting = serve_on_exiting,
				      .ended = serve_on_ended,
				      .reason = reason_of_stop,
				      .trapped = serve_on_trapped,
				      .leaving = serve_on_leaving,
				      .born = serve_on_born };
}

int serve_launch(struct serve *s)
{
	const struct launch_options lo = { .argv = s->options.program,
					   .user = s->options.user,
					   .cwd = s->options.cwd,
					   .tracer = s->ops ? s->ops->tracer : NULL,
					   .source = s->source,
					   /* The source decides which children it traces; watch them all. */
					   .max_children = max_followed(s) ? UINT32_MAX : 0 };
	const struct launch_hooks hooks = serve_hooks(s);
	int err;

	s->status = 0;
	err = launch_new(&s->launch, &lo, &hooks);
	s->is_launched = true;
	/* The program has started with all rights of the user. */
	privileges_drop(PRIVILEGES_TRACING, 0);
	if (err)
		return err;
	launch_start(s->launch);
	return s->status;
}

/* Attach to the targets, or to the program, which is started first if it does not run. 0 or -errno. */
static int attach_or_launch(struct serve *s)
{
	if (!s->options.program)
		return serve_attach_all(s);
	if (!s->is_launched)
		return serve_launch(s);
	if (!s->launch || s->has_ended)
		return -ESRCH;
	/* The program runs already, and only one process can be its tracer: launch must detach first. */
	if (s->ops->tracer && !launch_leave(s->launch))
		return -ESRCH;
	return serve_attach(s, launch_pid(s->launch), false);
}

static const char *serve_reason(int err)
{
	if (err == -EPERM || err == -EACCES)
		return "no permission to trace it";
	if (err == -EOPNOTSUPP)
		return "tracing is not possible on that kernel";
	return err == -ESRCH ? "no such process" : strerror(-err);
}

static int tell_started(struct serve *s, bool is_again)
{
	struct wire_out *out = serve_link_out(s->link);
	u8 data[16];
	struct wire_body b = { data, 0, sizeof(data), false };

	wire_put_number(&b, session_forward_id(s->session), 8);
	wire_put_number(&b, is_again, 1);
	wire_put_number(&b, s->options.allow_kill, 1);
	return out ? wire_put(out, WIRE_STARTED, b.data, b.len) : -EPIPE;
}

/* The lost client is back: continue the trace. */
static int continue_trace(struct serve *s, const struct wire_start *start)
{
	int err = tell_started(s, true);

	if (!err)
		err = session_forward_connect(s->session, &start->received);
	if (!err)
		err = session_tune(s->session, &start->tuning);
	if (!err)
		info("serve: the client is back after %.1f s", (clock_now_ms() - s->lost_ms) / 1e3);
	return err;
}

static int serve_begin(struct serve *s, const struct wire_start *start)
{
	struct source_choice *choice = &s->wanted.source;
	int err;

	if (s->session) {
		info("serve: another client: tracing begins anew");
		close_trace(s);
	}
	s->wanted = (struct session_options){ .command = "serve",
					      .source = s->options.source,
					      .recorder.depth = start->tuning.depth,
					      .tuning = start->tuning };
	choice->depth = start->tuning.depth;
	choice->want_mmap |= start->want_mmap;
	choice->no_cpp |= start->no_cpp;
	choice->max_followed =
		start->max_followed < FORWARD_MAX_PROCESSES ? start->max_followed : FORWARD_MAX_PROCESSES;
	choice->max_followed = max_followed(s);
	s->wants_exit_scan = start->wants_exit_scan;
	/* The end of a program that serve starts is reported by its launch. */
	choice->wants_exec = choice->stops_at_checks = start->wants_exec_scan;
	choice->wants_end = !IS_AGENT && start->wants_exit_scan && (!s->options.program || s->is_launched);
	err = open_trace(s, !s->is_launched && s->options.program);
	if (!err)
		err = tell_started(s, false);
	if (!err)
		err = session_forward_connect(s->session, NULL);
	if (!err)
		err = attach_or_launch(s);
	/* A program that starts now has not mapped its libraries yet. */
	if (err || s->launch)
		return err;
	return session_has_no_allocator(s->session) ? -ENOENT : 0;
}

static void on_start(struct serve *s, struct wire_view *v)
{
	auto_free struct wire_start *start = malloc(sizeof(*start));
	bool is_again;
	int err;

	if (!start || wire_get_start(v, start)) {
		serve_link_drop(s->link, start ? "its start cannot be understood" : strerror(ENOMEM));
		return;
	}
	if (s->client) {
		serve_link_drop(s->link, "a second start");
		return;
	}
	is_again = s->session && start->resume_id && start->resume_id == session_forward_id(s->session);
	err = is_again ? continue_trace(s, start) : serve_begin(s, start);
	if (!err) {
		s->client = serve_link_client(s->link);
		s->lost_ms = 0;
		if (session_forward_lacks_memory(s->session))
			serve_say(s, WIRE_NOTE, "no memory for --thin: all frees are sent");
		info("serve: a client is there: %s", is_again ? "tracing goes on" : "tracing");
		return;
	}
	serve_stop(s, WIRE_END_ERROR, err == -ENOENT ? "no allocator function in it" : serve_reason(err));
	serve_link_drop(s->link, "there is nothing to trace for it");
	s->is_over |= s->is_launched && !s->launch;
}

/* Answer a command: done if @why is "", or why not. */
static void tell_tuned(struct serve *s, const char *why)
{
	serve_answer(s, WIRE_TUNED, !*why, why);
}

/* Answer a command whose result is @err. -EBUSY: it is answered. -EALREADY: the process has ended. */
static void end_command(struct serve *s, int err)
{
	if (err == -EBUSY)
		return;
	if (!err || err == -EALREADY)
		err = session_forward_flush(s->session);
	if (err == -EOPNOTSUPP)
		tell_tuned(s, "tracing began without stacks (--depth 0); they cannot be switched on now");
	else if (err)
		serve_link_drop(s->link, "the stream to it is broken");
	else
		tell_tuned(s, "");
}

/* Events in the ring are from before a change, and the answer comes behind them. 0, or the error to end with. */
static int begin_command(struct serve *s)
{
	if (!s->books)
		return session_forward_poll(s->session);
	tell_tuned(s, "a scan is under way");
	return -EBUSY;
}

static void on_tune(struct serve *s, struct wire_view *v)
{
	struct tuning t;
	int err;

	if (wire_get_tune(v, &t)) {
		serve_link_drop(s->link, "what it sends is no frame of a host");
		return;
	}
	err = begin_command(s);
	end_command(s, err ? err : session_tune(s->session, &t));
}

static void on_pause(struct serve *s, struct wire_view *v)
{
	pid_t pid = (pid_t)wire_get_number(v, 4);
	int err = begin_command(s);

	end_command(s, err ? err : session_pause(s->session, pid, wire_get_number(v, 1)));
}

static void on_detach(struct serve *s, struct wire_view *v)
{
	(void)v;
	info("serve: the client has enough: the probes are out");
	serve_stop(s, WIRE_END_DETACHED, "");
}

static void on_kill(struct serve *s, struct wire_view *v)
{
	auto_free pid_t *pids = NULL;
	size_t nr = 0;

	(void)v;
	if (!s->options.allow_kill) {
		/* The host knows, and does not ask. */
		serve_say(s, WIRE_NOTE, "needs serve --allow-kill");
		return;
	}
	if (session_pids(s->session, &pids, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		int err = target_signal(session_forward_target(s->session, pids[i]), SIGTERM);

		if (err && err != -ESRCH)
			serve_say(s, WIRE_NOTE, strerror(-err));
	}
}

static void on_scan_over(struct serve *s, struct wire_view *v)
{
	(void)v;
	serve_books_end(s);
}

static void on_let_exit(struct serve *s, struct wire_view *v)
{
	if ((pid_t)wire_get_number(v, 4) == s->exiting)
		s->exiting = 0;
}

/* Handlers of frames. Most need a trace that was begun for this client. */
static const struct {
	u8 kind;
	bool needs_trace;
	bool ends_trace; /* perhaps */
	void (*take)(struct serve *s, struct wire_view *v);
} handlers[] = {
	{ WIRE_START, false, true, on_start },
	{ WIRE_TUNE, true, false, on_tune },
	{ WIRE_PAUSE, true, false, on_pause },
	{ WIRE_DETACH, true, true, on_detach },
	{ WIRE_KILL, true, false, on_kill },
	{ WIRE_SCAN, true, false, serve_books_begin },
	{ WIRE_BLOCKS, true, false, serve_books_blocks },
	{ WIRE_BLOCKS_END, true, false, serve_books_run },
	{ WIRE_SCAN_OVER, true, false, on_scan_over },
	{ WIRE_LET_EXIT, true, false, on_let_exit },
	{ WIRE_WHY, true, false, serve_books_why },
};

/* In a hook of the launch nothing of the trace may be freed: keep @f. */
static void keep_for_later(struct serve *s, const struct wire_frame *f)
{
	if (s->late.kind || array_reserve(s->late.data, s->late.size, f->len)) {
		serve_link_drop(s->link, "too many commands");
		return;
	}
	if (f->len)
		memcpy(s->late.data, f->data, f->len);
	s->late.kind = f->kind;
	s->late.len = f->len;
}

void serve_command(struct serve *s, const struct wire_frame *f)
{
	struct wire_view v = { f->data, f->len, false };

	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (handlers[i].kind != f->kind)
			continue;
		if (handlers[i].ends_trace && s->exiting)
			keep_for_later(s, f);
		else if (!handlers[i].needs_trace || (s->session && s->client))
			handlers[i].take(s, &v);
	}
}

static void handle_late(struct serve *s)
{
	const struct wire_frame f = { s->late.kind, s->late.len, s->late.data };

	s->late.kind = 0;
	if (f.kind)
		serve_command(s, &f);
}

/* Notice that the client has gone, or that another one has taken its place. */
static void look_at_client(struct serve *s)
{
	if (s->client && s->client != serve_link_client(s->link)) {
		s->client = 0;
		s->lost_ms = clock_now_ms();
		serve_books_end(s);
		session_forward_disconnect(s->session);
	}
	if (s->session && !s->client && clock_now_ms() - s->lost_ms >= SERVE_KEEP_MS) {
		info("serve: the client did not come back: the probes are out");
		s->is_over |= s->has_ended && !session_running(s->session);
		close_trace(s);
	}
}

static void poll_events(struct serve *s)
{
	const struct launch_hooks hooks = serve_hooks(s);
	u64 now = clock_now_ms();

	if (!s->session)
		return;
	if (session_forward_poll(s->session) && s->client)
		serve_link_drop(s->link, "the stream to it is broken");
	serve_check(s);
	if (!IS_AGENT)
		session_await_ends(s->session, &s->launch, &hooks);
	if (now - s->alive_ms < ALIVE_MS)
		return;
	s->alive_ms = now;
	/* look_at_program() takes the exit status of our program. */
	if ((has_program(s) && !s->has_ended) || session_running(s->session))
		return;
	/* A client that is away may come back for the end: look_at_client(). */
	if (!s->client && s->lost_ms)
		return;
	serve_stop(s, WIRE_END_TARGET, "");
	s->is_over = true;
}

/* Is one of the processes of the command line there? One that is given by its name may begin at any time. */
static bool may_have_targets(const struct serve *s)
{
	for (size_t i = 0; i < s->options.nr_targets; i++) {
		auto_free pid_t *pids = NULL;
		size_t nr = 0;

		if (!isdigit((unsigned char)s->options.targets[i][0]) ||
		    !target_find(s->options.targets[i], &pids, &nr))
			return true;
	}
	return !s->options.nr_targets;
}

/* Without a client: end when there is nothing left to wait for. */
static void look_at_targets(struct serve *s)
{
	u64 now = clock_now_ms();

	if (s->session || now - s->alive_ms < ALIVE_MS)
		return;
	s->alive_ms = now;
	if (may_have_targets(s))
		return;
	info("serve: what it was to trace has ended");
	s->is_over = true;
}

/* While the program or its children run, their stops are handled here. */
static void look_at_program(struct serve *s)
{
	if (!s->launch || !launch_poll(s->launch) || !has_program(s))
		return;
	if (s->session && !s->has_ended) {
		serve_on_ended(s, launch_pid(s->launch), launch_status(s->launch));
		session_has_no_allocator(s->session);
	}
	s->has_ended = true;
	if (s->session && s->wanted.source.max_followed)
		return;
	s->is_over |= !s->session;
	launch_free(s->launch);
	s->launch = NULL;
}

void serve_round(struct serve *s)
{
	struct wire_frame f;
	int got = 1;

	look_at_program(s);
	handle_late(s);
	/* A limit, so that events and signals are not kept waiting by a client that sends without end. */
	for (int nr = 0; nr < ROUND_FRAMES && (got = serve_link_poll(s->link, &f)) == 1; nr++)
		serve_command(s, &f);
	look_at_client(s);
	look_at_targets(s);
	serve_books_round(s);
	poll_events(s);
	s->is_over |= got < 0;
}
