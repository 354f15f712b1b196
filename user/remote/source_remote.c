/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns the frames of a server into records, and connects again when the connection is lost. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/remote/remote_stream.h"
#include "user/remote/source_remote_private.h"
#include "user/stream/stream_zstd.h"
#include "user/remote/wire_command.h"

enum { KEEP_MS = 60000, ROUND_BYTES = 8 << 20, MAX_NOTES = 100 };

static const char lost_for_good[] = "connection lost; what is known until then is reported";

int source_remote_put(struct remote_source *s, u8 kind, const void *data, size_t len)
{
	struct wire_out *out = remote_link_out(s->link);

	return out ? wire_put(out, kind, data, len) : -ENOTCONN;
}

static void source_remote_end(struct remote_source *s, enum remote_life life, const char *why)
{
	if (source_remote_is_over(s))
		return;
	s->trace.life = life;
	snprintf(s->trace.why, sizeof(s->trace.why), "%s", why);
}

/* Ask for a stream, and say which events of the last stream have come. */
static void source_remote_ask(struct remote_source *s)
{
	auto_free struct wire_start *start = calloc(1, sizeof(*start));
	auto_free u8 *data = malloc(WIRE_START_MAX);
	struct wire_body b = { data, 0, WIRE_START_MAX, false };

	if (!start || !data)
		return;
	start->tuning = s->tuning.now;
	start->want_mmap = s->options.want_mmap;
	start->no_cpp = s->options.no_cpp;
	start->wants_exit_scan = s->options.wants_exit_scan;
	start->max_followed = s->options.max_followed;
	start->resume_id = s->trace.id;
	remote_stream_received(s->stream, &start->received);
	wire_put_start(&b, start);
	if (!source_remote_put(s, WIRE_START, b.data, b.len))
		s->trace.start = START_ASKED;
}

static void on_started(struct remote_source *s, struct wire_view *v)
{
	struct remote_trace *t = &s->trace;
	u64 id = wire_get_number(v, 8);
	bool is_again = wire_get_number(v, 1) && id == t->id;
	bool may_kill = wire_get_number(v, 1);

	if (t->start != START_ASKED) {
		remote_link_drop(s->link, "an answer to a question that was not asked");
		return;
	}
	if (t->was_started) {
		remote_stream_restart(s->stream, is_again);
		if (t->lost_ms)
			info("connect: the connection is back after %.1f s",
			     (clock_now_ms() - t->lost_ms) / 1e3);
	}
	t->id = id;
	t->may_kill = may_kill;
	t->start = START_DONE;
	t->was_started = true;
	t->lost_ms = 0;
}

static void on_stopped(struct remote_source *s, struct wire_view *v)
{
	bool has_failed = wire_get_number(v, 1) == WIRE_END_ERROR;
	char text[sizeof(s->trace.why)];

	wire_get_text(v, text, sizeof(text));
	if (has_failed && !text[0])
		snprintf(text, sizeof(text), "it cannot be traced over there");
	source_remote_end(s, has_failed ? REMOTE_FAILED : REMOTE_COMPLETE, text);
	/* The server waits for that: serve_link_finish(). */
	remote_link_drop(s->link, "");
}

static void on_note(struct remote_source *s, struct wire_view *v)
{
	char text[WIRE_MAX_TEXT];

	if (s->trace.nr_notes == MAX_NOTES)
		return;
	info("connect: %s", wire_get_text(v, text, sizeof(text)));
	if (++s->trace.nr_notes == MAX_NOTES)
		warn("connect: the other side sent %d notes; no more of them are shown", MAX_NOTES);
}

/* A ping that the server sent by itself shows that it is there, too. */
static void on_ping(struct remote_source *s, struct wire_view *v)
{
	(void)v;
	s->called_ms = 0;
}

/* Handlers of frames, by kind. WIRE_STREAM goes to on_stream(). */
static void (*const handlers[NR_WIRE_KINDS])(struct remote_source *s, struct wire_view *v) = {
	[WIRE_STARTED] = on_started,
	[WIRE_STOPPED] = on_stopped,
	[WIRE_NOTE] = on_note,
	[WIRE_PING] = on_ping,
	[WIRE_TUNED] = source_remote_on_tuned,
	[WIRE_MARK] = source_remote_on_mark,
	[WIRE_VERDICTS] = source_remote_on_verdicts,
	[WIRE_SCANNED] = source_remote_on_scanned,
	[WIRE_CHAIN] = source_remote_on_chain,
	[WIRE_CHAIN_END] = source_remote_on_chain_end,
	[WIRE_BOOKS] = source_remote_on_books,
};

/*
 * The latest event is from the past, so the server's clock is at least as far ahead of ours as its time says. The way
 * here delays each event; the shortest delay until now gives the best estimate. On one trace our estimate only grows.
 */
static void compare_clocks(struct remote_source *s)
{
	struct remote_clock *c = &s->clock;
	s64 ahead_ns = (s64)(remote_stream_last_ns(s->stream) - clock_now_ns());
	u64 hello_ns = remote_stream_hello(s->stream)->mono_ns;
	bool is_new = hello_ns != c->hello_ns && s->trace.id != c->hello_trace;

	if (is_new || (c->hello_ns && ahead_ns > c->ahead_ns))
		c->ahead_ns = ahead_ns;
	if (hello_ns == c->hello_ns)
		return;
	c->hello_ns = hello_ns;
	c->hello_trace = s->trace.id;
}

static int on_stream(struct remote_source *s, const struct wire_frame *f, const struct sink *sink)
{
	char why[160];
	int err;

	if (s->trace.start != START_DONE)
		return 0;
	err = remote_stream_feed(s->stream, f->data, f->len, sink);
	compare_clocks(s);
	if (!err && s->options.needs_all && remote_stream_hello(s->stream)->sample_bytes) {
		snprintf(why, sizeof(why), "the other side samples blocks: %s", s->options.needs_all);
		source_remote_end(s, REMOTE_BROKEN, why);
	}
	if (!err)
		return 0;
	snprintf(why, sizeof(why), "what the other side sends is damaged: %s", remote_stream_why(s->stream));
	source_remote_end(s, REMOTE_BROKEN, why);
	return err == -ENOMEM ? err : 0;
}

static int source_remote_on_frame(struct remote_source *s, const struct wire_frame *f,
				  const struct sink *sink)
{
	struct wire_view v = { f->data, f->len, false };

	if (f->kind == WIRE_STREAM)
		return on_stream(s, f, sink);
	if (handlers[f->kind])
		handlers[f->kind](s, &v);
	return 0;
}

/* Questions on the connection that is lost have no answer. */
static void forget_connection(struct remote_source *s)
{
	s->trace.start = START_NOT_ASKED;
	s->tuning.nr_unanswered = 0;
	source_remote_lose_scan(s);
}

static void on_lost(struct remote_source *s)
{
	struct remote_trace *t = &s->trace;
	u64 now = clock_now_ms();

	if (!t->was_started && !s->options.link.is_listening) {
		source_remote_end(s, REMOTE_BROKEN, remote_link_why(s->link));
		return;
	}
	forget_connection(s);
	if (!t->was_started)
		return;
	if (t->life == REMOTE_STOPPING) {
		source_remote_end(s, REMOTE_BROKEN,
				  "connection lost while the last events were on their way");
		return;
	}
	if (!t->lost_ms) {
		t->lost_ms = now;
		warn("connect: connection lost: %s; trying again for 60 s", remote_link_why(s->link));
	}
	if (now - t->lost_ms >= KEEP_MS)
		source_remote_end(s, REMOTE_BROKEN, lost_for_good);
}

/* Keep the connection up. True if frames may have come. */
static bool poll_link(struct remote_source *s)
{
	bool was_tracing = s->trace.was_started && s->trace.life != REMOTE_STOPPING;

	switch (remote_link_poll(s->link)) {
	case REMOTE_UP:
		if (s->trace.start == START_NOT_ASKED)
			source_remote_ask(s);
		return true;
	case REMOTE_OVER:
		source_remote_end(s, REMOTE_BROKEN, was_tracing ? lost_for_good : remote_link_why(s->link));
		return false;
	case REMOTE_AWAY:
		on_lost(s);
		return false;
	default:
		return false;
	}
}

int source_remote_take(struct remote_source *s, const struct sink *sink, bool is_past)
{
	size_t bytes = 0;
	int nr = 0, before = -1, err = 0;
	struct wire_frame f;

	while (!source_remote_is_over(s) && bytes < ROUND_BYTES && nr != before && poll_link(s)) {
		before = nr;
		while (!err && !source_remote_is_over(s) && (!s->mark.is_reached || is_past) &&
		       remote_link_next(s->link, &f) == 1) {
			err = source_remote_on_frame(s, &f, sink);
			bytes += f.len;
			nr++;
		}
		if (err)
			return err;
	}
	return nr || !source_remote_is_over(s) ? nr : -ENODATA;
}

static int source_remote_poll_records(struct source *source, const struct sink *sink)
{
	struct remote_source *s = remote_self(source);

	return source_remote_take(s, sink, false);
}

static void source_remote_free_source(struct source *source)
{
	struct remote_source *s = remote_self(source);

	if (!s)
		return;
	remote_link_free(s->link);
	remote_stream_free(s->stream);
	free(s->answer.steps);
	free(s->answer.chain);
	free(s);
}

int source_remote_open(struct source **out, const struct source_remote_options *o,
		       struct module_table *modules, struct alloc_table *fns)
{
	struct remote_source *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->options = *o;
	s->tuning.now = o->tuning;
	err = remote_stream_new(&s->stream, modules, fns, &stream_zstd);
	if (!err)
		err = remote_link_new(&s->link, &o->link);
	if (err)
		source_remote_free_source((struct source *)s);
	else
		*out = (struct source *)s;
	return err;
}

const char *source_remote_why(const struct source *source)
{
	const struct remote_source *s = remote_self(source);

	return s->trace.why;
}

bool source_remote_is_started(const struct source *source)
{
	const struct remote_source *s = remote_self(source);

	return s->trace.was_started && s->trace.life != REMOTE_FAILED && !remote_stream_is_empty(s->stream);
}

bool source_remote_is_complete(const struct source *source)
{
	const struct remote_source *s = remote_self(source);

	return s->trace.life == REMOTE_COMPLETE;
}

void source_remote_stop(struct source *source)
{
	struct remote_source *s = remote_self(source);

	if (s->trace.life != REMOTE_TRACING)
		return;
	s->trace.life = REMOTE_STOPPING;
	if (source_remote_put(s, WIRE_DETACH, NULL, 0))
		source_remote_end(s, REMOTE_BROKEN, s->trace.was_started ? lost_for_good : "");
}

int source_remote_farewell(struct source *source, u8 bytes[WIRE_HEADER_LEN])
{
	const u8 detach[WIRE_HEADER_LEN] = { [4] = WIRE_DETACH };
	struct remote_source *s = remote_self(source);
	u32 number = remote_link_number(s->link);

	if (!number || number == s->nr_farewell)
		return -1;
	s->nr_farewell = number;
	memcpy(bytes, detach, WIRE_HEADER_LEN);
	return fcntl(remote_link_fd(s->link), F_DUPFD_CLOEXEC, 0);
}

void source_remote_call(struct source *source)
{
	struct remote_source *s = remote_self(source);

	s->called_ms = source_remote_put(s, WIRE_PING, NULL, 0) ? 0 : clock_now_ms();
}

bool source_remote_is_silent(const struct source *source, u64 *ms)
{
	const struct remote_source *s = remote_self(source);
	u64 since_call_ms = clock_now_ms() - s->called_ms, silent_ms = remote_link_silent_ms(s->link);

	if (!s->called_ms || source_remote_is_over(s) || !remote_link_out(s->link))
		return false;
	*ms = since_call_ms < silent_ms ? since_call_ms : silent_ms;
	return true;
}

void source_remote_leave(struct source *source, const char *why)
{
	struct remote_source *s = remote_self(source);

	source_remote_stop(source);
	/* Should the other side be alive after all, it finds the request before the end of the connection. */
	remote_link_poll(s->link);
	source_remote_end(s, REMOTE_BROKEN, why);
}

u64 source_remote_bytes(const struct source *source)
{
	return remote_link_bytes(remote_self(source)->link);
}

bool source_remote_cut(struct source *source)
{
	struct remote_source *s = remote_self(source);

	if (s->trace.life != REMOTE_TRACING || !s->trace.was_started || s->options.link.is_listening ||
	    s->options.link.addr.kind == NET_SSH)
		return false;
	forget_connection(s);
	remote_link_renew(s->link);
	return true;
}

bool source_remote_has_asked(const struct source *source)
{
	return remote_self(source)->trace.start != START_NOT_ASKED;
}

/* Ask the server to end the target by SIGTERM. 0; -EPERM: it does not allow that; or another -errno. */
static int source_remote_kill(struct source *source)
{
	struct remote_source *s = remote_self(source);

	return s->trace.may_kill ? source_remote_put(s, WIRE_KILL, NULL, 0) : -EPERM;
}

static int source_remote_update(struct source *source, struct target *t)
{
	struct remote_source *s = remote_self(source);
	int changed = remote_stream_update(s->stream, t);

	/* The server counts the files for whose probes there is no room. */
	return changed < 0 ? changed : 0;
}

static int wait_fd(struct source *source)
{
	struct remote_source *s = remote_self(source);

	return remote_link_fd(s->link);
}

static void source_remote_forget(struct source *source, pid_t pid)
{
	struct remote_source *s = remote_self(source);

	remote_stream_forget(s->stream, pid);
}

/* The server pauses its processes itself. */
static void source_remote_pause_process(struct source *source, pid_t pid)
{
	(void)source;
	(void)pid;
}

static struct losses source_remote_losses_of(struct source *source, pid_t pid)
{
	struct remote_source *s = remote_self(source);

	return remote_stream_losses(s->stream, pid);
}

static void source_remote_detach(struct source *source)
{
	source_remote_stop(source);
}

static int source_remote_describe(struct source *source, pid_t pid, struct target **out)
{
	struct remote_source *s = remote_self(source);

	return remote_stream_target(s->stream, pid, out);
}

static u64 clock_over_there(struct source *source)
{
	struct remote_source *s = remote_self(source);

	compare_clocks(s);
	return clock_now_ns() + (u64)s->clock.ahead_ns;
}

u64 source_remote_lag_ns(struct source *source, u64 before_ns)
{
	u64 now_ns = clock_over_there(source), last_ns = remote_stream_last_ns(remote_self(source)->stream);

	if (before_ns)
		now_ns -= clock_now_ns() - before_ns;
	return last_ns && now_ns > last_ns ? now_ns - last_ns : 0;
}

/* The stream began before all of its events. */
static u64 began_over_there(struct source *source)
{
	struct remote_source *s = remote_self(source);

	return remote_stream_hello(s->stream)->mono_ns;
}

static u64 source_remote_sample_bytes(struct source *source)
{
	return remote_stream_hello(remote_self(source)->stream)->sample_bytes;
}

static const char *source_remote_backend(struct source *source)
{
	struct remote_source *s = remote_self(source);
	const char *name = remote_stream_hello(s->stream)->backend;

	return name[0] ? name : "remote";
}

static bool is_broken_off(const struct source *source)
{
	const struct remote_source *s = remote_self(source);

	return s->trace.life == REMOTE_BROKEN;
}

static const struct source_told_ops told = {
	.target = source_remote_describe,
	.now_ns = clock_over_there,
	.began_ns = began_over_there,
	.sample_bytes = source_remote_sample_bytes,
	.backend = source_remote_backend,
	.is_broken_off = is_broken_off,
	.scan_begin = source_remote_scan_begin,
	.scan_blocks = source_remote_scan_blocks,
	.scan_wait = source_remote_scan_wait,
	.scan_why = source_remote_scan_why,
	.scan_over = source_remote_scan_over,
	.tune = source_remote_tune,
	.pause = source_remote_pause_one,
	.kill = source_remote_kill,
};

const struct source_ops source_remote = {
	.name = "remote",
	.told = &told,
	.update = source_remote_update,
	.wait_fd = wait_fd,
	.poll = source_remote_poll_records,
	.pause = source_remote_pause_process,
	.resume = source_remote_pause_process,
	.losses = source_remote_losses_of,
	.forget = source_remote_forget,
	.detach = source_remote_detach,
	.free = source_remote_free_source,
};
