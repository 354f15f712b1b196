/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of a server become records; a connection that is lost is taken up again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/source_remote_private.h"
#include "user/stream_zstd.h"
#include "user/wire_command.h"

enum { KEEP_MS = 60000, ROUND_BYTES = 8 << 20, MAX_NOTES = 100 };

int source_remote_put(struct source *s, u8 kind, const void *data, size_t len)
{
	struct wire_out *out = remote_link_out(s->link);

	return out ? wire_put(out, kind, data, len) : -ENOTCONN;
}

static void end(struct source *s, const char *why)
{
	if (s->is_over)
		return;
	s->is_over = true;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

/* Ask for a stream, with what came of the last one. */
static void ask(struct source *s)
{
	auto_free struct wire_start *start = calloc(1, sizeof(*start));
	u8 data[WIRE_START_MAX];
	struct wire_body b = { data, 0, sizeof(data), false };
	u64 allocs, frees;
	pid_t pid;

	if (!start)
		return;
	start->tuning = s->tuning;
	start->want_mmap = s->options.want_mmap;
	start->no_cpp = s->options.no_cpp;
	start->wants_exit_scan = s->options.wants_exit_scan;
	start->resume_id = s->session_id;
	for (size_t i = 0; i < WIRE_MAX_HAD && remote_stream_count(s->stream, i, &pid, &allocs, &frees); i++)
		start->had[start->nr_had++] = (struct serve_had){ pid, allocs, frees };
	wire_put_start(&b, start);
	s->is_asked = !source_remote_put(s, WIRE_START, b.data, b.len);
}

static void on_started(struct source *s, struct wire_view *v)
{
	u64 id = wire_get_number(v, 8);
	bool is_again = wire_get_number(v, 1);

	if (v->is_bad || s->is_started) {
		remote_link_drop(s->link, "an answer that cannot be understood");
		return;
	}
	if (s->was_started) {
		remote_stream_restart(s->stream, is_again && id == s->session_id);
		if (!is_again || id != s->session_id)
			source_remote_keep_left_out(s);
		info("connect: the connection is back after %.1f s", (clock_now_ms() - s->lost_ms) / 1e3);
	}
	s->session_id = id;
	s->is_started = s->was_started = true;
	s->lost_ms = 0;
}

static void on_stopped(struct source *s, struct wire_view *v)
{
	u8 how = wire_get_number(v, 1);
	char text[sizeof(s->why)];

	wire_get_text(v, text, sizeof(text));
	s->is_complete = how != WIRE_END_ERROR;
	if (how == WIRE_END_ERROR && !text[0])
		snprintf(text, sizeof(text), "it cannot be traced over there");
	s->has_failed = how == WIRE_END_ERROR;
	end(s, text);
	/* It waits for that: serve_link_finish(). */
	remote_link_drop(s->link, "");
}

static void on_note(struct source *s, struct wire_view *v)
{
	char text[WIRE_MAX_TEXT];

	if (s->nr_notes == MAX_NOTES)
		return;
	info("connect: %s", wire_get_text(v, text, sizeof(text)));
	if (++s->nr_notes == MAX_NOTES)
		warn("connect: no more of what the other side says is shown: %d lines are enough", MAX_NOTES);
}

static const struct {
	u8 kind;
	void (*take)(struct source *s, struct wire_view *v);
} frames[] = {
	{ WIRE_STARTED, on_started },
	{ WIRE_STOPPED, on_stopped },
	{ WIRE_NOTE, on_note },
	{ WIRE_TUNED, source_remote_on_tuned },
	{ WIRE_LEFT_OUT, source_remote_on_left_out },
	{ WIRE_MARK, source_remote_on_mark },
	{ WIRE_VERDICTS, source_remote_on_verdicts },
	{ WIRE_SCANNED, source_remote_on_scanned },
	{ WIRE_CHAIN, source_remote_on_chain },
	{ WIRE_CHAIN_END, source_remote_on_chain_end },
};

static u64 now_ns(void)
{
	return clock_now_ns();
}

/*
 * What has come is from the past over there: its clock is at least so far ahead of ours. The way here takes its time,
 * and the shortest that it ever took is nearest to the truth. On one trace the clock never goes back.
 */
static void compare_clocks(struct source *s)
{
	s64 ahead_ns = (s64)(remote_stream_last_ns(s->stream) - now_ns());
	u64 hello_ns = remote_stream_hello(s->stream)->mono_ns;
	bool is_new = hello_ns != s->hello_ns && s->session_id != s->hello_id;

	if (is_new || (s->hello_ns && ahead_ns > s->clock_ns))
		s->clock_ns = ahead_ns;
	if (hello_ns == s->hello_ns)
		return;
	s->hello_ns = hello_ns;
	s->hello_id = s->session_id;
}

static int on_stream(struct source *s, const struct wire_frame *f, const struct sink *sink)
{
	char why[160];
	int err;

	if (!s->is_started)
		return 0;
	err = remote_stream_feed(s->stream, f->data, f->len, sink);
	compare_clocks(s);
	if (err) {
		snprintf(why, sizeof(why), "what the other side sends is damaged: %s",
			 remote_stream_why(s->stream));
		end(s, why);
		return err == -ENOMEM ? err : 0;
	}
	return 0;
}

static int on_frame(struct source *s, const struct wire_frame *f, const struct sink *sink)
{
	struct wire_view v = { f->data, f->len, false };

	if (f->kind == WIRE_STREAM)
		return on_stream(s, f, sink);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		if (frames[i].kind == f->kind)
			frames[i].take(s, &v);
	return 0;
}

static void on_lost(struct source *s)
{
	u64 now = clock_now_ms();

	if (!s->was_started && !s->options.link.is_listening) {
		end(s, remote_link_why(s->link));
		return;
	}
	s->is_asked = s->is_started = false;
	s->is_at_mark = s->is_kept = s->is_given_up = false;
	s->nr_unanswered = 0;
	if (s->is_scanning) {
		s->is_scanned = true;
		s->scan_err = -ENOTCONN;
		snprintf(s->scan_why, sizeof(s->scan_why), "the connection was lost");
	}
	if (!s->was_started)
		return;
	if (s->is_stopping) {
		end(s, "connection lost while the last events were on their way");
		return;
	}
	if (!s->lost_ms) {
		s->lost_ms = now;
		warn("connect: connection lost: %s; trying again for 60 s", remote_link_why(s->link));
	}
	if (now - s->lost_ms >= KEEP_MS)
		end(s, "connection lost; what is known until then is reported");
}

/* Look at the connection. False if it can give nothing now. */
static bool look(struct source *s)
{
	switch (remote_link_poll(s->link)) {
	case REMOTE_UP:
		if (!s->is_asked)
			ask(s);
		return true;
	case REMOTE_OVER:
		end(s, s->was_started && !s->is_stopping
			       ? "connection lost; what is known until then is reported"
			       : remote_link_why(s->link));
		return false;
	case REMOTE_AWAY:
		on_lost(s);
		return false;
	default:
		return false;
	}
}

int source_remote_take(struct source *s, const struct sink *sink, bool is_past)
{
	size_t bytes = 0;
	int nr = 0, before = -1, err = 0;
	struct wire_frame f;

	while (!s->is_over && bytes < ROUND_BYTES && nr != before && look(s)) {
		before = nr;
		while (!err && !s->is_over && (!s->is_at_mark || is_past) &&
		       remote_link_next(s->link, &f) == 1) {
			err = on_frame(s, &f, sink);
			bytes += f.len;
			nr++;
		}
		if (err)
			return err;
	}
	return nr || !s->is_over ? nr : -ENODATA;
}

static int poll_records(struct source *s, const struct sink *sink)
{
	return source_remote_take(s, sink, false);
}

static void free_source(struct source *s)
{
	if (!s)
		return;
	remote_link_free(s->link);
	remote_stream_free(s->stream);
	free(s->left_out);
	free(s->chain);
	free(s);
}

int source_remote_open(struct source **out, const struct source_remote_options *o,
		       struct module_table *modules)
{
	struct source *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->options = *o;
	s->tuning = o->tuning;
	err = remote_stream_new(&s->stream, modules, &stream_zstd);
	if (!err)
		err = remote_link_new(&s->link, &o->link);
	if (err)
		free_source(s);
	else
		*out = s;
	return err;
}

const char *source_remote_why(const struct source *s)
{
	return s->why;
}

bool source_remote_is_started(const struct source *s)
{
	u64 allocs, frees;
	pid_t pid;

	return s->was_started && !s->has_failed && remote_stream_count(s->stream, 0, &pid, &allocs, &frees);
}

bool source_remote_is_complete(const struct source *s)
{
	return s->is_complete;
}

void source_remote_stop(struct source *s)
{
	if (s->is_stopping)
		return;
	s->is_stopping = true;
	if (source_remote_put(s, WIRE_DETACH, NULL, 0))
		end(s, s->was_started ? "connection lost; what is known until then is reported" : "");
}

int source_remote_kill(struct source *s)
{
	return source_remote_put(s, WIRE_KILL, NULL, 0);
}

static int update(struct source *s, struct target *t)
{
	return remote_stream_update(s->stream, t);
}

static int wait_fd(struct source *s)
{
	return remote_link_fd(s->link);
}

/* The other side does it where it must be done. */
static void pause_process(struct source *s, pid_t pid)
{
	(void)s;
	(void)pid;
}

static struct losses losses_of(struct source *s, pid_t pid)
{
	return remote_stream_losses(s->stream, pid);
}

static void detach(struct source *s)
{
	if (!s->is_over)
		source_remote_stop(s);
}

static int describe(struct source *s, pid_t pid, struct target **out)
{
	return remote_stream_target(s->stream, pid, out);
}

static u64 clock_over_there(struct source *s)
{
	compare_clocks(s);
	return now_ns() + (u64)s->clock_ns;
}

/* When the stream began, which is before all of its events. */
static u64 began_over_there(struct source *s)
{
	return remote_stream_hello(s->stream)->mono_ns;
}

static const char *backend(struct source *s)
{
	const char *name = remote_stream_hello(s->stream)->backend;

	return name[0] ? name : "remote";
}

static const struct source_told_ops told = {
	.target = describe,
	.now_ns = clock_over_there,
	.began_ns = began_over_there,
	.backend = backend,
	.scan_begin = source_remote_scan_begin,
	.scan_blocks = source_remote_scan_blocks,
	.scan_wait = source_remote_scan_wait,
	.scan_why = source_remote_scan_why,
	.scan_over = source_remote_scan_over,
	.tune = source_remote_tune,
	.left_out = source_remote_left_out,
	.kill = source_remote_kill,
};

const struct source_ops source_remote = {
	.name = "remote",
	.told = &told,
	.update = update,
	.wait_fd = wait_fd,
	.poll = poll_records,
	.pause = pause_process,
	.resume = pause_process,
	.losses = losses_of,
	.detach = detach,
	.free = free_source,
};
