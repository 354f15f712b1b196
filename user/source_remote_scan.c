/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leak scan over the wire, from the host's side. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/clock.h"
#include "user/scan_remote.h"
#include "user/source_remote_private.h"

enum { WAIT_MS = 20, SILENCE_MS = 120000, PATIENCE_MS = 2000 };

void source_remote_on_mark(struct source *s, struct wire_view *v)
{
	u32 pid = wire_get_number(v, 4), what = wire_get_number(v, 1);

	if (v->is_bad || what > WIRE_MARK_EXITING)
		return;
	/* That of a scan that was given up. */
	if (what != WIRE_MARK_EXITING && (!s->is_scanning || (pid_t)pid != s->mark_pid))
		return;
	s->mark = what;
	s->mark_pid = pid;
	s->is_at_mark = true;
}

void source_remote_on_verdicts(struct source *s, struct wire_view *v)
{
	struct scan_block_info info;

	while (s->scan && v->len) {
		if (wire_get_verdict(v, &s->at, &info)) {
			s->scan_err = -EPROTO;
			return;
		}
		scan_take(s->scan, &info);
		s->nr_verdicts++;
	}
}

void source_remote_on_scanned(struct source *s, struct wire_view *v)
{
	struct scan_result *r = &s->result;

	s->is_scanned = true;
	if (!wire_get_number(v, 1)) {
		s->scan_err = -EREMOTEIO;
		wire_get_text(v, s->scan_why, sizeof(s->scan_why));
		return;
	}
	memset(r, 0, sizeof(*r));
	r->is_complete = wire_get_number(v, 1);
	s->pause_ns = wire_get_number(v, 8);
	wire_get_number(v, 8);
	r->scanned_bytes = wire_get_number(v, 8);
	r->skipped_bytes = wire_get_number(v, 8);
	r->nr_unstopped = wire_get_number(v, 8);
	r->nr_overlaps = wire_get_number(v, 8);
	if (v->is_bad || wire_get_number(v, 8) != s->nr_verdicts)
		s->scan_err = -EPROTO;
}

static int fail(struct source *s, struct source_scan *o, int err)
{
	s->is_scanning = false;
	s->is_at_mark = false;
	s->is_given_up = err == -EINTR || err == -ETIMEDOUT;
	s->scan = NULL;
	snprintf(o->why, sizeof(o->why), "scan given up: %.140s",
		 s->scan_why[0] ? s->scan_why : strerror(-err));
	return err;
}

/*
 * A signal that control.c has still to read: somebody wants this to end, which has gone on since @began_ms. What is
 * nearly done is finished.
 */
static bool is_called_off(u64 began_ms)
{
	static const int enders[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t pending;

	if (clock_now_ms() - began_ms < PATIENCE_MS || sigpending(&pending))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(enders); i++)
		if (sigismember(&pending, enders[i]) > 0)
			return true;
	return false;
}

int source_remote_wait(struct source *s, const struct sink *sink, bool is_past, u64 silence_ms,
		       bool (*is_done)(const struct source *s))
{
	u64 began_ms = clock_now_ms(), heard_ms = began_ms;

	while (!is_done(s)) {
		struct pollfd p = { .fd = remote_link_fd(s->link), .events = POLLIN };
		int nr = source_remote_take(s, sink, is_past);

		if (nr < 0)
			return nr;
		/* Who sends without end must not keep us. */
		if (is_called_off(began_ms))
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

/* The same, and how the scan is doing. */
static int wait_until(struct source *s, const struct sink *sink, bool is_past,
		      bool (*is_done)(const struct source *s))
{
	int err = source_remote_wait(s, sink, is_past, SILENCE_MS, is_done);

	return !err && s->is_scanned && s->scan_err ? s->scan_err : err;
}

static bool is_at_mark(const struct source *s)
{
	return s->is_at_mark || s->is_scanned;
}

static bool is_scanned(const struct source *s)
{
	return s->is_scanned;
}

/* Frames of a scan that was given up come before the answer to a command. */
static int forget_scan(struct source *s, const struct source_scan *o)
{
	char why[160];
	int err;

	if (!s->is_given_up)
		return 0;
	err = source_remote_put(s, WIRE_SCAN_OVER, NULL, 0);
	if (!err)
		err = source_remote_tune(s, &s->tuning, o->sink, why, sizeof(why));
	s->is_given_up = err != 0;
	return err;
}

int source_remote_scan_begin(struct source *s, struct source_scan *o)
{
	u8 data[4];
	struct wire_body b = { data, 0, sizeof(data), false };
	bool is_exiting = source_remote_exiting(s) == o->pid;
	int err = is_exiting ? 0 : forget_scan(s, o);

	if (err) {
		s->scan_why[0] = '\0';
		return fail(s, o, err);
	}
	s->is_scanning = true;
	s->is_scanned = false;
	s->scan_err = 0;
	s->scan_why[0] = '\0';
	s->nr_verdicts = 0;
	s->at = (struct wire_scan_at){ 0 };
	s->scan = NULL;
	s->mark_pid = o->pid;
	wire_put_number(&b, o->pid, 4);
	if (!is_exiting)
		err = source_remote_put(s, WIRE_SCAN, b.data, b.len);
	if (!err)
		err = wait_until(s, o->sink, false, is_at_mark);
	return err ? fail(s, o, err) : 0;
}

/* Blocks on their way. */
struct sending {
	struct source *source;
	const struct sink *sink;
	struct wire_body body;
	struct wire_scan_at at;
	u64 nr;
};

/* The queue is as long as what the other side has not taken yet. */
static int send_body(struct sending *n)
{
	struct source *s = n->source;
	u64 began_ms = clock_now_ms();
	int err;

	while ((err = source_remote_put(s, WIRE_BLOCKS, n->body.data, n->body.len)) == -ENOBUFS) {
		struct pollfd p = { .fd = remote_link_fd(s->link), .events = POLLIN | POLLOUT };

		poll(&p, 1, WAIT_MS);
		err = source_remote_take(s, n->sink, false);
		if (err < 0 || s->is_scanned)
			return err < 0 ? err : s->scan_err;
		if (is_called_off(began_ms))
			return -EINTR;
		if (clock_now_ms() - began_ms > SILENCE_MS)
			return -ETIMEDOUT;
	}
	n->body.len = 0;
	return err;
}

static int send_block(void *ctx, const struct heap_block *block)
{
	struct sending *n = ctx;

	wire_put_block(&n->body, &n->at, block);
	n->nr++;
	return n->body.size - n->body.len < WIRE_BLOCK_MAX ? send_body(n) : 0;
}

int source_remote_scan_blocks(struct source *s, struct source_scan *o, struct scan *scan)
{
	static u8 data[WIRE_SCAN_BODY];
	struct sending n = { .source = s, .sink = o->sink, .body = { data, 0, sizeof(data), false } };
	u8 last[WIRE_WISH_LEN];
	struct wire_body b = { last, 0, sizeof(last), false };
	int err = scan_send(scan, o->heap, send_block, &n);
	const struct wire_scan_wish wish = { .nr_blocks = n.nr,
					     .max_pause_ns = o->max_pause_ns,
					     .pointer_mask = o->pointer_mask,
					     .is_partial = o->is_partial,
					     .is_last = o->is_last,
					     .wants_whys = o->wants_whys,
					     .want_unaligned = o->want_unaligned };

	if (!err && n.body.len)
		err = send_body(&n);
	wire_put_wish(&b, &wish);
	if (!err)
		err = source_remote_put(s, WIRE_BLOCKS_END, b.data, b.len);
	s->is_at_mark = false;
	s->scan = scan;
	/* Events up to the moment when it stood. */
	if (!err)
		err = wait_until(s, o->sink, false, is_at_mark);
	return err ? fail(s, o, err) : 0;
}

int source_remote_scan_wait(struct source *s, struct source_scan *o, struct scan *scan)
{
	int err = wait_until(s, o->aside, true, is_scanned);

	if (err)
		return fail(s, o, err);
	scan_take_end(scan, &s->result);
	o->pause_ns = s->pause_ns;
	s->is_kept = o->wants_whys;
	s->limit_steps = scan_count(scan);
	s->is_scanning = s->is_at_mark = false;
	s->scan = NULL;
	return 0;
}

pid_t source_remote_exiting(const struct source *s)
{
	return s->is_at_mark && s->mark == WIRE_MARK_EXITING ? s->mark_pid : 0;
}

void source_remote_let_exit(struct source *s)
{
	if (!source_remote_exiting(s))
		return;
	s->is_at_mark = false;
	if (source_remote_put(s, WIRE_SCAN_OVER, NULL, 0))
		s->is_scanned = true;
}
