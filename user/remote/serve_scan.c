/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leak scan on the server, step by step as frames of the client come. */
#include "user/remote/serve_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/source/backlog.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/log.h"
#include "user/scan/kernel_words.h"
#include "user/scan/scan_reason.h"
#include "user/scan/scan_why.h"
#include "user/scan/snapshot_plan.h"
#include "user/session/session_fill.h"
#include "user/session/session_live.h"
#include "user/remote/wire_chain.h"
#include "user/remote/wire_scan.h"
#include "user/source/source_tracer.h"

enum {
	MAX_LOG = 1 << 20,
	BODY_LEN = 4,
	BLOCKS_MS = 60000,
	QUESTIONS_MS = 60000,
	EXITING_MS = 10000,
	EXIT_PAUSE_MS = 600000,
	ROUND_MS = 5,
};
#define MAX_BLOCK_BYTES (1ULL << 30)

/* The body of one WIRE_BLOCKS. */
struct block_list {
	struct block_list *next;
	size_t len;
	u8 data[];
};

enum step {
	STEP_BLOCKS,	/* blocks are coming */
	STEP_SENDING,	/* verdicts are being sent */
	STEP_QUESTIONS, /* WIRE_WHY may come */
};

struct serve_scan {
	struct session_listener listener; /* the first member; while events are needed */
	struct serve *serve;
	enum step step;
	pid_t pid;
	bool is_exiting;
	struct losses losses; /* when the scan began */
	u64 heard_ms;
	struct block_list *first, **last; /* owned */
	struct wire_scan_at at;
	u64 nr_blocks, nr_bytes; /* that have come */
	struct heap_event *log;	 /* owned; events since the mark */
	size_t nr_log, max_log;
	int err;

	struct scan *scan;     /* owned */
	struct snapshot *snap; /* owned */
	struct snapshot_plan plan;
	struct scan_options so;
	struct courtesy_hurry hurry;
	u64 pause_ns, max_pause_ns;
	bool is_copied;		       /* its memory was */
	bool is_last, has_all;	       /* of the wish */
	const struct cover_map *cover; /* borrowed while memory is read; NULL = not known */

	struct wire_body verdicts; /* owned data; bodies of WIRE_VERDICTS, each after its length */
	size_t body;		   /* offset of the last body */
	struct wire_scan_at verdict_at;
	size_t sent; /* bytes of verdicts.data */
	u64 nr_verdicts;

	bool wants_whys;
	struct scan_whys *whys;	  /* owned; NULL until the first question */
	struct scan_chain *chain; /* owned; is being sent; NULL = none */
	taddr_t why_addr, step_at;
	size_t nr_sent; /* steps of chain */
};

static void log_event(struct session_listener *l, const struct heap_event *ev)
{
	struct serve_scan *n = (struct serve_scan *)l;

	if ((pid_t)ev->h.pid != n->pid || n->err)
		return;
	if (n->scan) {
		n->err = scan_event(n->scan, ev);
		return;
	}
	if (n->nr_log == MAX_LOG)
		n->err = -EOVERFLOW;
	else if (array_reserve(n->log, n->max_log, n->nr_log + 1))
		n->err = -ENOMEM;
	else
		n->log[n->nr_log++] = *ev;
}

static void stop_listening(struct serve_scan *n)
{
	if (n && n->serve->session)
		session_unlisten(n->serve->session, &n->listener);
}

static void serve_scan_free(struct serve_scan *n)
{
	if (!n)
		return;
	while (n->first) {
		struct block_list *next = n->first->next;

		free(n->first);
		n->first = next;
	}
	scan_whys_free(n->whys);
	free(n->chain);
	scan_free(n->scan);
	snapshot_free(n->snap);
	free(n->log);
	free(n->verdicts.data);
	free(n);
}

void serve_scan_end(struct serve *s)
{
	stop_listening(s->scan);
	serve_scan_free(s->scan);
	s->scan = NULL;
}

static void serve_scan_put(struct serve *s, u8 kind, const void *data, size_t len)
{
	struct wire_out *out = serve_link_out(s->link);

	if (out && wire_put(out, kind, data, len))
		serve_link_drop(s->link, "too much waits to be sent to it");
}

/* End the scan, and send the reason to the client. */
static void serve_scan_give_up(struct serve *s, int err)
{
	struct scan_reason why =
		scan_reason(err, s->scan ? s->scan->pid : 0, s->scan ? s->scan->max_pause_ns : 0);
	u8 body[1 + sizeof(why.text)] = { 0 };

	serve_scan_end(s);
	memcpy(body + 1, why.text, strlen(why.text));
	serve_scan_put(s, WIRE_SCANNED, body, 1 + strlen(why.text));
}

/* Send a mark: the stream has all events until now, and no later ones. */
static int serve_scan_mark(struct serve *s, pid_t pid, enum wire_mark what)
{
	u8 data[8];
	struct wire_body b = { data, 0, sizeof(data), false };
	int err = session_forward_flush(s->session);

	wire_put_number(&b, pid, 4);
	wire_put_number(&b, what, 1);
	if (!err)
		serve_scan_put(s, WIRE_MARK, b.data, b.len);
	return err;
}

void serve_scan_begin(struct serve *s, u32 pid)
{
	struct serve_scan *n = calloc(1, sizeof(*n));

	serve_scan_end(s);
	if (!n || !session_find(s->session, pid)) {
		free(n);
		serve_scan_give_up(s, n ? -ESRCH : -ENOMEM);
		return;
	}
	n->serve = s;
	n->pid = pid;
	n->is_exiting = s->exiting == n->pid;
	n->last = &n->first;
	n->heard_ms = clock_now_ms();
	s->scan = n;
	if (session_forward_poll(s->session) || !session_find(s->session, pid)) {
		serve_scan_give_up(s, -ESRCH);
		return;
	}
	n->losses = session_forward_losses(s->session, pid);
	n->listener.event = log_event;
	session_listen(s->session, &n->listener);
	if (serve_scan_mark(s, n->pid, WIRE_MARK_BLOCKS))
		serve_scan_give_up(s, -EIO);
}

/* Check that the body is a list of blocks in order, and count them. */
static int serve_scan_check(struct serve_scan *n, struct wire_view v)
{
	struct heap_block block;

	while (v.len) {
		int err = wire_get_block(&v, &n->at, &block);

		if (err)
			return err;
		n->nr_blocks++;
	}
	return 0;
}

void serve_scan_blocks(struct serve *s, struct wire_view *v)
{
	struct serve_scan *n = s->scan;
	struct block_list *list;
	int err;

	if (!n || n->step != STEP_BLOCKS)
		return;
	n->heard_ms = clock_now_ms();
	n->nr_bytes += sizeof(*list) + v->len;
	err = n->nr_bytes > MAX_BLOCK_BYTES ? -EOVERFLOW : serve_scan_check(n, *v);
	list = err ? NULL : malloc(sizeof(*list) + v->len);
	if (!list) {
		serve_scan_give_up(s, err ? err : -ENOMEM);
		return;
	}
	list->next = NULL;
	list->len = v->len;
	memcpy(list->data, v->data, v->len);
	*n->last = list;
	n->last = &list->next;
}

/* Call @visit for each block. serve_scan_check() has found no error in them. */
static int serve_scan_for_each(const void *ctx, int (*visit)(void *visit_ctx, const struct heap_block *block),
			       void *visit_ctx)
{
	const struct serve_scan *n = ctx;
	struct wire_scan_at at = { 0 };

	for (const struct block_list *p = n->first; p; p = p->next) {
		struct wire_view v = { p->data, p->len, false };
		struct heap_block block;

		while (v.len) {
			int err = wire_get_block(&v, &at, &block);

			if (!err)
				err = visit(visit_ctx, &block);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Read events while another thread works on the scan. Otherwise the ring of the source would overflow. */
static bool serve_scan_read_on(void *ctx)
{
	struct serve *s = ctx;

	if (session_forward_poll(s->session))
		debug("serve: the stream is broken");
	if (s->launch && !s->ops->tracer)
		launch_attend(s->launch);
	serve_link_keep(s->link);
	return false;
}

/* struct scan_books. */
static const struct cover_map *serve_scan_cover(const void *ctx)
{
	const struct serve_scan *n = ctx;

	return n->cover;
}

static int remote_serve_scan_begin(void *arg)
{
	struct serve_scan *n = arg;
	const struct scan_books books = { .ctx = n,
					  .for_each = serve_scan_for_each,
					  .cover = serve_scan_cover };

	return scan_new(&n->scan, &books, &n->so);
}

static void begin_body(struct serve_scan *n)
{
	wire_put_number(&n->verdicts, 0, BODY_LEN);
	n->body = n->verdicts.len;
}

static void end_body(struct serve_scan *n)
{
	struct wire_body length = { n->verdicts.data + n->body - BODY_LEN, 0, BODY_LEN, false };

	wire_put_number(&length, n->verdicts.len - n->body, BODY_LEN);
}

static int serve_scan_put_verdict(void *ctx, const struct scan_block_info *info)
{
	struct serve_scan *n = ctx;
	struct wire_body *b = &n->verdicts;

	if (array_reserve(b->data, b->size, b->len + BODY_LEN + WIRE_VERDICT_MAX))
		return -ENOMEM;
	/* Begin another body before a verdict that might not fit. */
	if (!n->nr_verdicts || b->len - n->body > WIRE_SCAN_BODY - WIRE_VERDICT_MAX)
		begin_body(n);
	wire_put_verdict(b, &n->verdict_at, info);
	n->nr_verdicts++;
	end_body(n);
	return 0;
}

static int serve_scan_judge(void *arg)
{
	struct serve_scan *n = arg;
	int err = scan_judge(n->scan);

	return err ? err : scan_for_each(n->scan, serve_scan_put_verdict, n);
}

/* Fail if events were lost since the mark: then the blocks of the two sides differ. */
static int has_gaps(struct serve_scan *n)
{
	struct losses now = session_forward_losses(n->serve->session, n->pid);

	return memcmp(&now, &n->losses, sizeof(now)) ? -ENODATA : n->err;
}

static int serve_scan_read_regs(void *ctx, pid_t tid, struct arch_regs *regs)
{
	const struct serve *s = ctx;

	return s->ops->tracer->read_regs(s->source, tid, regs);
}

static int stop_held(void *ctx, u64 max_ns)
{
	const struct serve *s = ctx;
	pid_t pid = s->scan->pid;

	if (s->ops->tracer)
		return s->ops->tracer->hold(s->source, pid, max_ns);
	return launch_hold(s->launch, pid, max_ns);
}

static void release_held(void *ctx)
{
	const struct serve *s = ctx;

	if (s->ops->tracer)
		s->ops->tracer->release(s->source, s->scan->pid);
	else
		launch_release(s->launch, s->scan->pid);
}

static int call_held(void *ctx, struct thread_request *request)
{
	const struct serve *s = ctx;

	return s->ops->tracer ? s->ops->tracer->call(s->source, s->scan->pid, request)
			      : launch_call(s->launch, s->scan->pid, request);
}

/* snapshot_options. */
static void serve_scan_copying(void *ctx, pid_t pid, bool is_on)
{
	const struct serve *s = ctx;

	if (s->ops->copying)
		s->ops->copying(s->source, pid, is_on);
}

/* struct kernel_words. */
static int serve_scan_kernel_words(void *ctx, int (*add)(void *add_ctx, taddr_t word), void *add_ctx)
{
	const struct serve_scan *n = ctx;
	const struct serve *s = n->serve;
	int err = s->ops->kernel_words(s->source, n->pid, add, add_ctx);

	return err == -ENOMEM ? err : 0;
}

/* Does somebody here trace the process by ptrace? */
static bool serve_scan_is_held(const struct serve_scan *n)
{
	return n->serve->ops->tracer || (n->serve->launch && launch_watches(n->serve->launch, n->pid));
}

static int serve_scan_read_memory(void *arg)
{
	struct serve_scan *n = arg;

	return scan_read(n->scan, n->snap);
}

/* Stop the process, and take its last events. */
static int serve_scan_stop_process(struct serve_scan *n, const struct snapshot_holder *holder)
{
	struct serve *s = n->serve;
	const struct kernel_words kernel = { n, serve_scan_kernel_words };
	const struct snapshot_options so = { .max_pause_ns = n->max_pause_ns,
					     .nr_jobs = s->options.nr_jobs,
					     .kernel = s->ops->kernel_words ? &kernel : NULL,
					     .copying = serve_scan_copying,
					     .copying_ctx = s,
					     .way = n->plan.way,
					     .precopy = n->plan.precopy,
					     .is_traced = n->is_exiting || serve_scan_is_held(n),
					     .is_ending = n->is_exiting,
					     .holder = serve_scan_is_held(n) ? holder : NULL };
	int err = snapshot_stop_new(&n->snap, n->pid, &so);

	if (!err)
		err = session_forward_poll(s->session);
	if (!err)
		err = session_find(s->session, (u32)n->pid) ? has_gaps(n) : -ESRCH;
	/* The heap of the report is then the heap of this moment. */
	if (!err && n->is_last)
		session_forward_pause(s->session, n->pid);
	return err ? err : serve_scan_mark(s, n->pid, WIRE_MARK_MOMENT);
}

/* The process runs again, and nothing is left in it. */
static void serve_scan_end_moment(struct serve_scan *n, u64 start_ns)
{
	if (!n->is_exiting && serve_scan_is_held(n))
		release_held(n->serve);
	courtesy_hurry_end(&n->hurry);
	n->pause_ns = clock_now_ns() - start_ns;
	if (!IS_AGENT)
		snapshot_plan_free(&n->plan);
}

static struct snapshot_plan_options serve_scan_plan_options(const struct serve_scan *n,
							    const struct snapshot_holder *holder)
{
	return (struct snapshot_plan_options){ .pid = n->pid,
					       .way = n->serve->options.snapshot,
					       .max_copy = n->serve->options.max_copy,
					       .max_pause_ns = n->max_pause_ns,
					       .nr_jobs = n->serve->options.nr_jobs,
					       .holder = serve_scan_is_held(n) ? holder : NULL };
}

static int serve_scan_read_moment(struct serve_scan *n, const struct snapshot_holder *holder)
{
	const struct snapshot_plan_options po = serve_scan_plan_options(n, holder);
	u64 start_ns = clock_now_ns();
	int err, copy_err;

	courtesy_at_once(&n->hurry);
	err = n->is_exiting || !serve_scan_is_held(n) ? 0 : stop_held(n->serve, n->max_pause_ns);
	if (err) {
		courtesy_hurry_end(&n->hurry);
		return err;
	}
	err = serve_scan_stop_process(n, holder);
	if (!err && n->has_all)
		n->cover = session_forward_hold_cover(n->serve->session, n->pid);
	copy_err = err ? err : snapshot_copy_stopped(n->snap);
	n->is_copied = !copy_err;
	if (!copy_err) {
		/* Events are those of a later time from now on. */
		stop_listening(n);
		snapshot_let_go(n->snap);
		serve_scan_end_moment(n, start_ns);
		err = backlog_work(serve_scan_read_memory, n, serve_scan_read_on, n->serve);
		snapshot_resume(n->snap);
		return err;
	}
	if (!err && !IS_AGENT)
		err = snapshot_plan_check_uncopied(&n->plan, &po, copy_err);
	if (!err)
		err = serve_scan_read_memory(n);
	if (n->snap)
		snapshot_resume(n->snap);
	serve_scan_end_moment(n, start_ns);
	return err;
}

static int serve_scan_copy_ahead(void *arg)
{
	struct serve_scan *n = arg;
	const struct snapshot_plan_options po = serve_scan_plan_options(n, NULL);

	snapshot_plan_copy(&n->plan, &po);
	return 0;
}

/* Choose the way, and copy ahead what can be. A process that is going to end may stand. */
static int serve_scan_make_plan(struct serve_scan *n, const struct snapshot_holder *holder)
{
	const struct snapshot_plan_options po = serve_scan_plan_options(n, holder);
	int err;

	n->plan.way = SNAPSHOT_STOP;
	if (IS_AGENT || n->is_exiting)
		return 0;
	snapshot_plan_open(&n->plan, &po);
	err = n->plan.precopy ? backlog_work(serve_scan_copy_ahead, n, serve_scan_read_on, n->serve) : 0;
	if (!err)
		err = snapshot_plan_check(&n->plan, &po, n->plan.way);
	if (!err)
		err = session_forward_poll(n->serve->session);
	return err ? err : has_gaps(n);
}

static int serve_scan_find(struct serve_scan *n)
{
	struct serve *s = n->serve;
	const struct snapshot_holder holder = { .ctx = s,
						.read_regs = s->ops->tracer ? serve_scan_read_regs : NULL,
						.stop = stop_held,
						.release = release_held,
						.call = IS_AGENT ? NULL : call_held };
	int err = backlog_work(remote_serve_scan_begin, n, serve_scan_read_on, s);

	for (size_t i = 0; i < n->nr_log && !err; i++)
		err = scan_event(n->scan, &n->log[i]);
	if (!err)
		err = session_forward_poll(s->session);
	if (!err)
		err = has_gaps(n);
	if (!err)
		err = serve_scan_make_plan(n, &holder);
	if (!err)
		err = serve_scan_read_moment(n, &holder);
	if (!IS_AGENT)
		snapshot_plan_free(&n->plan);
	session_forward_release_cover(s->session);
	stop_listening(n);
	return err ? err : backlog_work(serve_scan_judge, n, serve_scan_read_on, s);
}

void serve_scan_run(struct serve *s, struct wire_view *v)
{
	struct serve_scan *n = s->scan;
	struct wire_scan_wish wish;
	int err;

	if (!n || n->step != STEP_BLOCKS)
		return;
	if (wire_get_wish(v, &wish) || wish.nr_blocks != n->nr_blocks) {
		serve_scan_give_up(s, -EPROTO);
		return;
	}
	n->so.is_partial = wish.is_partial;
	n->so.pointer_mask = wish.pointer_mask;
	n->so.want_unaligned = wish.want_unaligned;
	n->is_last = wish.is_last && !n->is_exiting;
	n->has_all = wish.has_all;
	n->wants_whys = wish.wants_whys;
	n->max_pause_ns = n->is_exiting ? EXIT_PAUSE_MS * 1000000ULL : SNAPSHOT_MAX_PAUSE_MS * 1000000ULL;
	/* The client may ask for a shorter pause than the server allows, not for a longer one. */
	if (s->options.max_pause_ns)
		n->max_pause_ns = s->options.max_pause_ns;
	if (wish.max_pause_ns && wish.max_pause_ns < n->max_pause_ns)
		n->max_pause_ns = wish.max_pause_ns;
	err = serve_scan_find(n);
	if (err) {
		serve_scan_give_up(s, err);
		return;
	}
	n->step = STEP_SENDING;
	serve_scan_round(s);
}

static void send_result(struct serve *s, const struct serve_scan *n)
{
	struct scan_result r = scan_result(n->scan);
	u8 data[64];
	struct wire_body b = { data, 0, sizeof(data), false };

	wire_put_number(&b, 1, 1);
	wire_put_number(&b, r.is_complete, 1);
	wire_put_number(&b, n->is_copied, 1);
	wire_put_number(&b, n->pause_ns, 8);
	wire_put_number(&b, n->max_pause_ns, 8);
	wire_put_number(&b, r.scanned_bytes, 8);
	wire_put_number(&b, r.skipped_bytes, 8);
	wire_put_number(&b, r.nr_unstopped, 8);
	wire_put_number(&b, r.nr_overlaps, 8);
	wire_put_number(&b, n->nr_verdicts, 8);
	debug("scan: %" PRIu64 " blocks came in %" PRIu64 " bytes, %" PRIu64 " verdicts go in %zu",
	      n->nr_blocks, n->nr_bytes, n->nr_verdicts, n->verdicts.len);
	serve_scan_put(s, WIRE_SCANNED, b.data, b.len);
}

/* Send as much of the chain as the queue has room for. */
static void send_chain(struct serve *s, struct serve_scan *n, const struct wire_out *out)
{
	while (n->chain && wire_out_has_room(out, WIRE_CHAIN_BODY, out->limit / 2)) {
		u8 data[WIRE_CHAIN_BODY];
		struct wire_body b = { data, 0, sizeof(data), false };

		while (n->nr_sent < n->chain->nr && b.size - b.len >= WIRE_STEP_MAX)
			wire_put_step(&b, &n->step_at, &n->chain->steps[n->nr_sent++]);
		if (b.len) {
			serve_scan_put(s, WIRE_CHAIN, b.data, b.len);
			continue;
		}
		wire_put_chain_end(&b, n->chain, n->snap->word_size);
		serve_scan_put(s, WIRE_CHAIN_END, b.data, b.len);
		free(n->chain);
		n->chain = NULL;
	}
}

static int serve_scan_find_chain(void *arg)
{
	struct serve_scan *n = arg;
	int err = n->whys ? 0 : scan_whys_new(&n->whys, n->scan);

	return err ? err : scan_whys_find(n->whys, n->why_addr, &n->chain);
}

void serve_scan_why(struct serve *s, struct wire_view *v)
{
	struct serve_scan *n = s->scan;
	u8 none = 0;

	if (!n || n->step != STEP_QUESTIONS || n->chain)
		return;
	n->heard_ms = clock_now_ms();
	n->why_addr = wire_get_number(v, 8);
	n->nr_sent = 0;
	n->step_at = 0;
	if (backlog_work(serve_scan_find_chain, n, serve_scan_read_on, s))
		serve_scan_put(s, WIRE_CHAIN_END, &none, sizeof(none));
	else
		serve_scan_round(s);
}

/* Do the work of steps that send no verdicts. False in STEP_SENDING. */
static bool is_waiting(struct serve *s, struct serve_scan *n, const struct wire_out *out)
{
	u64 silent_ms = clock_now_ms() - n->heard_ms;

	if (n->step == STEP_BLOCKS && silent_ms >= BLOCKS_MS)
		serve_scan_give_up(s, -ETIMEDOUT);
	else if (n->step == STEP_QUESTIONS && n->chain)
		send_chain(s, n, out);
	else if (n->step == STEP_QUESTIONS && silent_ms >= QUESTIONS_MS)
		serve_scan_end(s);
	else
		return n->step != STEP_SENDING;
	return true;
}

void serve_scan_round(struct serve *s)
{
	struct serve_scan *n = s->scan;
	struct wire_out *out = serve_link_out(s->link);

	if (!n || !out || is_waiting(s, n, out))
		return;
	while (n->sent < n->verdicts.len && wire_out_has_room(out, WIRE_SCAN_BODY, out->limit / 2)) {
		struct wire_view v = { n->verdicts.data + n->sent, BODY_LEN, false };
		size_t len = wire_get_number(&v, BODY_LEN);

		serve_scan_put(s, WIRE_VERDICTS, v.data, len);
		n->sent += BODY_LEN + len;
	}
	if (n->sent < n->verdicts.len)
		return;
	send_result(s, n);
	n->step = STEP_QUESTIONS;
	n->heard_ms = clock_now_ms();
	if (!n->wants_whys)
		serve_scan_end(s);
}

void serve_scan_exiting(struct serve *s, pid_t pid)
{
	u64 heard_ms = clock_now_ms();
	struct wire_frame f;

	if (!s->client || !s->wants_exit_scan || serve_scan_mark(s, pid, WIRE_MARK_EXITING))
		return;
	s->exiting = pid;
	/* The client may first finish the scan of another process. */
	while (s->exiting && !s->late.kind && s->client == serve_link_client(s->link) &&
	       clock_now_ms() - heard_ms < EXITING_MS) {
		int got = serve_link_poll(s->link, &f);

		if (got < 0)
			break;
		if (!got) {
			serve_scan_round(s);
			/* The other processes go on. */
			serve_scan_read_on(s);
			serve_link_wait(s->link, ROUND_MS);
			continue;
		}
		heard_ms = clock_now_ms();
		serve_command(s, &f);
	}
	s->exiting = 0;
	if (s->scan && s->scan->is_exiting)
		serve_scan_end(s);
}
