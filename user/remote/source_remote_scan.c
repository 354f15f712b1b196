/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leak scan over the wire, from the host's side. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/escape.h"
#include "user/lib/log.h"
#include "user/scan/scan_reason.h"
#include "user/scan/scan_remote.h"
#include "user/session/control.h"
#include "user/remote/source_remote_private.h"

enum { WAIT_MS = 20, SILENCE_MS = 120000, PATIENCE_MS = 500 };

/* Of a verdict that somebody waits for: few blocks may take the whole time, as nothing is on its way behind them. */
enum { BODY = 16384, ASKED_MS = 300, LATE_MS = 700, FEW_BYTES = 4096 };

static bool is_under_way(const struct remote_scan *n)
{
	return n->state == REMOTE_SCAN_RUNNING || n->state == REMOTE_SCAN_ANSWERED;
}

void source_remote_on_mark(struct remote_source *s, struct wire_view *v)
{
	u32 pid = wire_get_number(v, 4), kind = wire_get_number(v, 1);

	if (kind == WIRE_MARK_EXITING || kind == WIRE_MARK_EXECUTING) {
		s->exiting = (pid_t)pid;
		s->executes = kind == WIRE_MARK_EXECUTING;
	}
	/* Other marks are of a scan; ignore those of a scan that was given up. */
	else if (kind < WIRE_MARK_EXITING && is_under_way(&s->scan) && (pid_t)pid == s->scan.pid)
		s->mark.is_reached = true;
}

void source_remote_on_verdicts(struct remote_source *s, struct wire_view *v)
{
	struct remote_scan *n = &s->scan;
	struct scan_block_info info;

	while (n->scan && v->len) {
		if (wire_get_verdict(v, &n->at, &info)) {
			n->err = -EPROTO;
			return;
		}
		scan_take(n->scan, &info);
		n->nr_verdicts++;
	}
}

void source_remote_on_books(struct remote_source *s, struct wire_view *v)
{
	struct remote_scan *n = &s->scan;
	char name[sizeof(n->books.allocator)];

	n->is_partial = wire_get_number(v, 1);
	for (u32 i = 0; i < NR_SCAN_VERDICTS; i++) {
		n->books.sums.of[i].blocks = wire_get_number(v, 8);
		n->books.sums.of[i].bytes = wire_get_number(v, 8);
	}
	escape_buf(n->books.allocator, sizeof(n->books.allocator), wire_get_text(v, name, sizeof(name)));
}

void source_remote_on_scanned(struct remote_source *s, struct wire_view *v)
{
	struct remote_scan *n = &s->scan;
	struct scan_result *r = &n->result;

	if (!is_under_way(n))
		return;
	n->state = REMOTE_SCAN_ANSWERED;
	if (!wire_get_number(v, 1)) {
		n->err = -EREMOTEIO;
		wire_get_text(v, n->why, sizeof(n->why));
		return;
	}
	memset(r, 0, sizeof(*r));
	r->is_complete = wire_get_number(v, 1);
	n->is_copied = wire_get_number(v, 1);
	n->pause_ns = wire_get_number(v, 8);
	wire_get_number(v, 8);
	r->scanned_bytes = wire_get_number(v, 8);
	r->skipped_bytes = wire_get_number(v, 8);
	r->nr_unstopped = wire_get_number(v, 8);
	r->nr_overlaps = wire_get_number(v, 8);
	if (v->is_bad || wire_get_number(v, 8) != n->nr_verdicts)
		n->err = -EPROTO;
}

void source_remote_lose_scan(struct remote_source *s)
{
	struct remote_scan *n = &s->scan;

	s->mark.is_reached = false;
	s->exiting = 0;
	if (!is_under_way(n)) {
		n->state = REMOTE_SCAN_NONE;
		return;
	}
	n->state = REMOTE_SCAN_ANSWERED;
	n->err = -ENOTCONN;
	snprintf(n->why, sizeof(n->why), "the connection was lost");
}

static int source_remote_scan_fail(struct remote_source *s, struct source_scan *o, int err)
{
	bool is_given_up = err == -EINTR || err == -ETIMEDOUT || s->scan.state == REMOTE_SCAN_GIVEN_UP;
	char text[144];

	s->mark.is_reached = false;
	s->scan.state = is_given_up ? REMOTE_SCAN_GIVEN_UP : REMOTE_SCAN_NONE;
	s->scan.scan = NULL;
	if (s->scan.why[0])
		snprintf(text, sizeof(text), "%.120s (on the server)", s->scan.why);
	else
		snprintf(text, sizeof(text), "%s",
			 s->hurry.is_late ? "the link is slow"
					  : scan_reason(err, o->pid, o->max_pause_ns).text);
	scan_reason_note(o->why, sizeof(o->why), text);
	return err;
}

void source_remote_hurry(struct source *source, u64 since_ms)
{
	remote_self(source)->hurry = (struct remote_hurry){ .since_ms = since_ms };
}

bool source_remote_is_late(const struct source *source)
{
	return remote_self(source)->hurry.is_late;
}

/* @len bytes of blocks were put. The server refuses a command behind them when it has taken them. */
static void ask_behind(struct remote_source *s, size_t len)
{
	struct remote_hurry *h = &s->hurry;

	h->nr_put += len;
	if (!h->since_ms || s->tuning.nr_unanswered || source_remote_command_put(s, &s->tuning.now))
		return;
	h->nr_asked = h->nr_put - h->nr_behind;
	h->nr_behind = h->nr_put;
	h->asked_ms = clock_now_ms();
	/* On its way at once, as the rest of the blocks takes time, too. */
	remote_link_poll(s->link);
}

static bool is_too_late(struct remote_source *s)
{
	struct remote_hurry *h = &s->hurry;
	u64 now = clock_now_ms(), limit_ms = h->nr_put > FEW_BYTES ? LATE_MS : SOURCE_REMOTE_HURRY_MS;

	h->is_late |= h->asked_ms && s->tuning.nr_unanswered && now - h->asked_ms >= ASKED_MS &&
		      h->nr_asked / (now - h->asked_ms) < SOURCE_REMOTE_SLOW && now - h->since_ms >= limit_ms;
	return h->is_late;
}

/*
 * Does a signal, or somebody who waits, want heaptap to end? Work that began less than PATIENCE_MS before a signal is
 * finished all the same.
 */
static bool source_remote_scan_is_called_off(struct remote_source *s, u64 began_ms)
{
	return is_too_late(s) || (clock_now_ms() - began_ms >= PATIENCE_MS && control_is_stop_pending());
}

int source_remote_wait(struct remote_source *s, const struct sink *sink, bool is_past, u64 silence_ms,
		       bool (*is_done)(const struct remote_source *s))
{
	u64 began_ms = clock_now_ms(), heard_ms = began_ms;

	while (!is_done(s)) {
		struct pollfd p = { .fd = remote_link_fd(s->link), .events = POLLIN };
		int nr = source_remote_take(s, sink, is_past);

		if (nr < 0)
			return nr;
		/* A server that sends without end must not keep heaptap from ending. */
		if (source_remote_scan_is_called_off(s, began_ms))
			return -EINTR;
		if (nr)
			heard_ms = clock_now_ms();
		else if (clock_now_ms() - heard_ms > silence_ms)
			return -ETIMEDOUT;
		else
			poll(&p, 1, WAIT_MS);
	}
	return 0;
}

/* Like source_remote_wait(), and returns the error of a scan that has failed. */
static int wait_until(struct remote_source *s, const struct sink *sink, bool is_past,
		      bool (*is_done)(const struct remote_source *s))
{
	int err = source_remote_wait(s, sink, is_past, SILENCE_MS, is_done);

	return !err && s->scan.state == REMOTE_SCAN_ANSWERED ? s->scan.err : err;
}

static bool is_scanned(const struct remote_source *s)
{
	return s->scan.state == REMOTE_SCAN_ANSWERED;
}

static bool is_at_mark(const struct remote_source *s)
{
	return s->mark.is_reached || is_scanned(s);
}

/* Wait for the last frames of a scan that was given up: they come before the answer to a command. */
static int forget_scan(struct source *source, const struct source_scan *o)
{
	struct remote_source *s = remote_self(source);
	char why[160];
	int err;

	if (s->scan.state != REMOTE_SCAN_GIVEN_UP)
		return 0;
	err = source_remote_put(s, WIRE_SCAN_OVER, NULL, 0);
	if (!err)
		err = source_remote_tune(source, &s->tuning.now, o->sink, why, sizeof(why));
	if (!err)
		s->scan.state = REMOTE_SCAN_NONE;
	return err;
}

int source_remote_scan_begin(struct source *source, struct source_scan *o)
{
	struct remote_source *s = remote_self(source);
	u8 data[4];
	struct wire_body b = { data, 0, sizeof(data), false };
	int err = forget_scan(source, o);

	if (err) {
		s->scan.why[0] = '\0';
		return source_remote_scan_fail(s, o, err);
	}
	s->scan = (struct remote_scan){ .state = REMOTE_SCAN_RUNNING, .pid = o->pid };
	wire_put_number(&b, o->pid, 4);
	err = source_remote_put(s, WIRE_SCAN, b.data, b.len);
	if (!err)
		err = wait_until(s, o->sink, false, is_at_mark);
	return err ? source_remote_scan_fail(s, o, err) : 0;
}

/* Blocks on their way. */
struct sending {
	struct remote_source *source;
	const struct sink *sink;
	struct wire_body body;
	struct wire_scan_at at;
	u64 nr;
};

/* Put the blocks into the queue. While it is full, wait for the server to read. */
static int send_body(struct sending *n)
{
	struct remote_source *s = n->source;
	u64 began_ms = clock_now_ms();
	int err;

	while ((err = source_remote_put(s, WIRE_BLOCKS, n->body.data, n->body.len)) == -ENOBUFS) {
		struct pollfd p = { .fd = remote_link_fd(s->link), .events = POLLIN | POLLOUT };

		poll(&p, 1, WAIT_MS);
		err = source_remote_take(s, n->sink, false);
		if (err < 0 || is_scanned(s))
			return err < 0 ? err : s->scan.err;
		if (source_remote_scan_is_called_off(s, began_ms))
			return -EINTR;
		if (clock_now_ms() - began_ms > SILENCE_MS)
			return -ETIMEDOUT;
	}
	ask_behind(s, err ? 0 : n->body.len);
	n->body.len = 0;
	return err;
}

static int source_remote_scan_send_block(void *ctx, const struct heap_block *block)
{
	struct sending *n = ctx;

	wire_put_block(&n->body, &n->at, block);
	n->nr++;
	return n->body.size - n->body.len < WIRE_BLOCK_MAX ? send_body(n) : 0;
}

/* Send the blocks of @o, and how they are to be judged. */
static int send_blocks(struct remote_source *s, const struct source_scan *o, struct scan *scan)
{
	auto_free u8 *data = malloc(BODY);
	struct sending n = { .source = s, .sink = o->sink, .body = { data, 0, BODY, false } };
	struct wire_scan_wish wish = { .max_pause_ns = o->max_pause_ns,
				       .pointer_mask = o->pointer_mask,
				       .is_partial = o->is_partial,
				       .is_last = o->is_last,
				       .wants_whys = o->wants_whys,
				       .want_unaligned = o->want_unaligned,
				       .has_all = o->has_all && heap_cover(o->heap) };
	u8 last[WIRE_WISH_LEN];
	struct wire_body b = { last, 0, sizeof(last), false };
	int err = data ? scan_send(scan, o->heap, source_remote_scan_send_block, &n) : -ENOMEM;

	if (!err && n.body.len)
		err = send_body(&n);
	wish.nr_blocks = n.nr;
	wire_put_wish(&b, &wish);
	return err ? err : source_remote_put(s, WIRE_BLOCKS_END, b.data, b.len);
}

int source_remote_scan_blocks(struct source *source, struct source_scan *o, struct scan *scan)
{
	struct remote_source *s = remote_self(source);
	int err = send_blocks(s, o, scan);

	s->mark.is_reached = false;
	s->scan.scan = scan;
	/* Take the events up to the moment when the process was stopped. */
	if (!err)
		err = wait_until(s, o->sink, false, is_at_mark);
	return err ? source_remote_scan_fail(s, o, err) : 0;
}

int source_remote_scan_wait(struct source *source, struct source_scan *o, struct scan *scan)
{
	struct remote_source *s = remote_self(source);
	int err = wait_until(s, o->aside, true, is_scanned);

	if (err)
		return source_remote_scan_fail(s, o, err);
	scan_take_end(scan, &s->scan.result);
	o->pause_ns = s->scan.pause_ns;
	o->is_copied = s->scan.is_copied;
	if (*s->scan.books.allocator) {
		*o->books = s->scan.books;
		o->is_partial = s->scan.is_partial;
	}
	s->scan.state = o->wants_whys ? REMOTE_SCAN_KEPT : REMOTE_SCAN_NONE;
	s->scan.scan = NULL;
	s->mark.is_reached = false;
	s->answer.limit_steps = scan_count(scan);
	return 0;
}

pid_t source_remote_exiting(const struct source *source, bool *executes)
{
	const struct remote_source *s = remote_self(source);

	*executes = s->executes;
	return s->exiting;
}

void source_remote_let_exit(struct source *source)
{
	struct remote_source *s = remote_self(source);
	u8 data[4];
	struct wire_body b = { data, 0, sizeof(data), false };

	wire_put_number(&b, s->exiting, 4);
	if (s->exiting && source_remote_put(s, WIRE_LET_EXIT, b.data, b.len))
		debug("connect: the server resumes the program without being asked");
	s->exiting = 0;
}
