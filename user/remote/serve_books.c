/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leak verdicts on the server, step by step as frames of the client come. */
#include "user/remote/serve_books.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/remote/wire_chain.h"
#include "user/remote/wire_scan.h"
#include "user/scan/leaks.h"
#include "user/scan/scan_reason.h"
#include "user/session/session_lent.h"
#include "user/session/session_stopper.h"
#include "user/source/backlog.h"
#include "user/source/source_tracer.h"

enum { SILENCE_MS = 60000, EXITING_MS = 10000, ROUND_MS = 5 };
#define MAX_BLOCK_BYTES (1ULL << 30)

/* The body of one WIRE_BLOCKS. */
struct block_list {
	struct block_list *next;
	size_t len;
	u8 data[];
};

struct serve_books {
	pid_t pid;
	bool is_awaited, is_exiting; /* the process waits for it; at its end */
	u64 heard_ms;
	struct block_list *first, **last; /* owned */
	struct wire_scan_at at;
	u64 nr_blocks, nr_bytes;       /* that have come */
	bool has_all;		       /* of the wish */
	const struct cover_map *cover; /* borrowed; NULL = not known */

	/* NULL while blocks are coming. */
	struct scan *scan;     /* owned */
	struct snapshot *snap; /* owned */
	u64 pause_ns, max_pause_ns;
	bool is_copied, is_partial;
	struct leak_books
		books; /* by which @scan was judged, if they have an allocator: then it has no pointers */
	struct wire_scan_at verdict_at;
	u32 nr_verdicts; /* that were sent */
	bool is_sent;	 /* WIRE_SCANNED, too: WIRE_WHY may come */

	bool wants_whys;
	struct scan_whys *whys;	  /* owned; NULL until the first question */
	struct scan_chain *chain; /* owned; is being sent; NULL = none */
	taddr_t why_addr, step_at;
	size_t nr_steps; /* of chain, that were sent */
	u8 body[WIRE_SCAN_BODY];
};

void serve_books_end(struct serve *s)
{
	struct serve_books *n = s->books;

	if (!n)
		return;
	session_lend_end(s->session);
	while (n->first) {
		struct block_list *next = n->first->next;

		free(n->first);
		n->first = next;
	}
	scan_whys_free(n->whys);
	free(n->chain);
	scan_free(n->scan);
	snapshot_free(n->snap);
	free(n);
	s->books = NULL;
}

static void serve_books_put(struct serve *s, u8 kind, const void *data, size_t len)
{
	struct wire_out *out = serve_link_out(s->link);

	if (out && wire_put(out, kind, data, len))
		serve_link_drop(s->link, "too much waits to be sent to it");
}

/* End all, and send the reason to the client. */
static void serve_books_give_up(struct serve *s, int err)
{
	struct scan_reason why =
		scan_reason(err, s->books ? s->books->pid : 0, s->books ? s->books->max_pause_ns : 0);
	u8 body[1 + sizeof(why.text)] = { 0 };

	serve_books_end(s);
	memcpy(body + 1, why.text, strlen(why.text));
	serve_books_put(s, WIRE_SCANNED, body, 1 + strlen(why.text));
}

/* Send a mark: the stream has all events until now, and no later ones. */
static void serve_books_mark(struct serve *s, pid_t pid, enum wire_mark what)
{
	u8 data[8];
	struct wire_body b = { data, 0, sizeof(data), false };

	wire_put_number(&b, pid, 4);
	wire_put_number(&b, what, 1);
	serve_books_put(s, WIRE_MARK, b.data, b.len);
}

void serve_books_begin(struct serve *s, struct wire_view *v)
{
	pid_t pid = (pid_t)wire_get_number(v, 4);
	int err;

	serve_books_end(s);
	s->books = calloc(1, sizeof(*s->books));
	err = s->books ? session_lend(s->session, pid) : -ENOMEM;
	if (err) {
		serve_books_give_up(s, err);
		return;
	}
	s->books->pid = pid;
	s->books->is_awaited = s->exiting == pid;
	s->books->is_exiting =
		s->books->is_awaited && (IS_AGENT || s->exiting_by == WIRE_MARK_EXITING || s->has_stopped);
	s->books->last = &s->books->first;
	s->books->heard_ms = clock_now_ms();
	serve_books_mark(s, pid, WIRE_MARK_BLOCKS);
}

/* Check that the body is a list of blocks in order, and count them. */
static int serve_books_check(struct serve_books *n, struct wire_view v)
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

void serve_books_blocks(struct serve *s, struct wire_view *v)
{
	struct serve_books *n = s->books;
	struct block_list *list;
	int err;

	if (!n || n->scan)
		return;
	n->heard_ms = clock_now_ms();
	n->nr_bytes += sizeof(*list) + v->len;
	err = n->nr_bytes > MAX_BLOCK_BYTES ? -EOVERFLOW : serve_books_check(n, *v);
	list = err ? NULL : malloc(sizeof(*list) + v->len);
	if (!list) {
		serve_books_give_up(s, err ? err : -ENOMEM);
		return;
	}
	list->next = NULL;
	list->len = v->len;
	memcpy(list->data, v->data, v->len);
	*n->last = list;
	n->last = &list->next;
}

/* struct scan_books. serve_books_check() has found no error in the blocks. */
static int serve_books_for_each(const void *ctx,
				int (*visit)(void *visit_ctx, const struct heap_block *block),
				void *visit_ctx)
{
	const struct serve_books *n = ctx;
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

/* struct scan_books. */
static const struct cover_map *serve_books_cover(const void *ctx)
{
	const struct serve_books *n = ctx;

	return n->cover;
}

/* struct lent_books. */
static void serve_books_moment(void *ctx, const struct cover_map *cover)
{
	struct serve *s = ctx;

	s->books->cover = s->books->has_all ? cover : NULL;
	serve_books_mark(s, s->books->pid, WIRE_MARK_MOMENT);
}

/* struct lent_books. */
static void serve_books_take(void *ctx, struct scan *scan, struct snapshot *snap)
{
	const struct serve *s = ctx;

	s->books->scan = scan;
	s->books->snap = snap;
}

/* Read events while another thread works on the scan. Otherwise the ring of the source would overflow. */
static bool serve_books_read_on(void *ctx)
{
	const struct serve *s = ctx;

	if (session_forward_poll(s->session))
		debug("serve: the stream is broken");
	if (s->launch && !s->ops->tracer)
		launch_attend(s->launch);
	serve_link_keep(s->link);
	return false;
}

/* struct session_stopper. */
static int serve_books_stop(void *ctx, pid_t pid, u64 max_ns)
{
	const struct serve *s = ctx;

	return launch_hold(s->launch, pid, max_ns);
}

static void serve_books_release(void *ctx, pid_t pid)
{
	const struct serve *s = ctx;

	launch_release(s->launch, pid);
}

static int serve_books_call(void *ctx, pid_t pid, struct thread_request *request)
{
	const struct serve *s = ctx;

	return launch_call(s->launch, pid, request);
}

/* Find the verdicts as @wish says. 0 or -errno. */
static int serve_books_judge(struct serve *s, struct serve_books *n, const struct wire_scan_wish *wish)
{
	const struct session_stopper stopper = { s, serve_books_stop, serve_books_release,
						 IS_AGENT ? NULL : serve_books_call, NULL };
	const struct scan_books books = { .ctx = n,
					  .nr_blocks = n->nr_blocks,
					  .for_each = serve_books_for_each,
					  .cover = serve_books_cover };
	const struct verdict_options verdict = { .max_pause_ns = s->options.max_pause_ns,
						 .snapshot = s->options.snapshot,
						 .nr_jobs = s->options.nr_jobs,
						 .max_copy = s->options.max_copy,
						 .pointer_mask = wish->pointer_mask,
						 .unaligned = wish->want_unaligned };
	bool is_watched = s->launch && launch_watches(s->launch, n->pid);
	const struct lent_books lent = { .books = &books,
					 .verdict = &verdict,
					 .stopper = is_watched && !n->is_exiting ? &stopper : NULL,
					 .max_pause_ns = wish->max_pause_ns,
					 .is_exiting = n->is_exiting,
					 .is_last = wish->is_last && !n->is_exiting,
					 .is_partial = wish->is_partial,
					 .has_all = wish->has_all,
					 .ctx = s,
					 .moment = serve_books_moment,
					 .take = serve_books_take,
					 .read_on = serve_books_read_on };
	const struct leaks *l;

	n->wants_whys = wish->wants_whys;
	n->has_all = wish->has_all;
	l = session_scan_lent(s->session, &lent);
	if (!l)
		return -ESRCH;
	n->max_pause_ns = l->max_pause_ns;
	n->pause_ns = l->pause_ns;
	n->is_copied = l->is_copied;
	if (!IS_AGENT) {
		n->is_partial = l->is_partial;
		n->books = l->books;
	}
	return l->err;
}

void serve_books_run(struct serve *s, struct wire_view *v)
{
	struct serve_books *n = s->books;
	struct wire_scan_wish wish;
	int err;

	if (!n || n->scan)
		return;
	/* Answers do not wait for the verdicts. */
	serve_link_keep(s->link);
	err = wire_get_wish(v, &wish) || wish.nr_blocks != n->nr_blocks ? -EPROTO
									: serve_books_judge(s, n, &wish);
	if (err)
		serve_books_give_up(s, err);
	else
		serve_books_round(s);
}

/* The sums by the books of the allocator. */
static void serve_books_send_books(struct serve *s, const struct serve_books *n)
{
	u8 data[WIRE_BOOKS_MIN + sizeof(n->books.allocator)];
	struct wire_body b = { data, 0, sizeof(data), false };
	size_t len = strlen(n->books.allocator);

	wire_put_number(&b, n->is_partial, 1);
	for (u32 i = 0; i < NR_SCAN_VERDICTS; i++) {
		wire_put_number(&b, n->books.sums.of[i].blocks, 8);
		wire_put_number(&b, n->books.sums.of[i].bytes, 8);
	}
	memcpy(data + b.len, n->books.allocator, len);
	serve_books_put(s, WIRE_BOOKS, data, b.len + len);
}

static void serve_books_send_result(struct serve *s, const struct serve_books *n)
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
	debug("scan: %" PRIu64 " blocks came in %" PRIu64 " bytes, %u verdicts went", n->nr_blocks,
	      n->nr_bytes, n->nr_verdicts);
	serve_books_put(s, WIRE_SCANNED, b.data, b.len);
}

/* Send as many verdicts as the queue has room for, and behind them the result. */
static void serve_books_send_verdicts(struct serve *s, struct serve_books *n, const struct wire_out *out)
{
	u32 nr = scan_count(n->scan);

	while (n->nr_verdicts < nr && wire_out_has_room(out, WIRE_SCAN_BODY, out->limit / 2)) {
		struct wire_body b = { n->body, 0, sizeof(n->body), false };
		struct scan_block_info info;

		while (n->nr_verdicts < nr && b.size - b.len >= WIRE_VERDICT_MAX) {
			scan_at(n->scan, n->nr_verdicts++, &info);
			wire_put_verdict(&b, &n->verdict_at, &info);
		}
		serve_books_put(s, WIRE_VERDICTS, b.data, b.len);
	}
	if (n->nr_verdicts < nr)
		return;
	if (!IS_AGENT && *n->books.allocator)
		serve_books_send_books(s, n);
	serve_books_send_result(s, n);
	n->is_sent = true;
	n->heard_ms = clock_now_ms();
	if (!n->wants_whys)
		serve_books_end(s);
}

/* Send as much of the chain as the queue has room for. */
static void serve_books_send_chain(struct serve *s, struct serve_books *n, const struct wire_out *out)
{
	while (n->chain && wire_out_has_room(out, WIRE_CHAIN_BODY, out->limit / 2)) {
		struct wire_body b = { n->body, 0, WIRE_CHAIN_BODY, false };

		while (n->nr_steps < n->chain->nr && b.size - b.len >= WIRE_STEP_MAX)
			wire_put_step(&b, &n->step_at, &n->chain->steps[n->nr_steps++]);
		if (b.len) {
			serve_books_put(s, WIRE_CHAIN, b.data, b.len);
			continue;
		}
		wire_put_chain_end(&b, n->chain, n->snap->word_size);
		serve_books_put(s, WIRE_CHAIN_END, b.data, b.len);
		free(n->chain);
		n->chain = NULL;
	}
}

static int serve_books_find_chain(void *arg)
{
	struct serve_books *n = arg;
	int err = n->whys ? 0 : scan_whys_new(&n->whys, n->scan);

	return err ? err : scan_whys_find(n->whys, n->why_addr, &n->chain);
}

void serve_books_why(struct serve *s, struct wire_view *v)
{
	struct serve_books *n = s->books;
	u8 none = 0;

	if (!n || !n->is_sent || n->chain)
		return;
	n->heard_ms = clock_now_ms();
	n->why_addr = wire_get_number(v, 8);
	n->nr_steps = 0;
	n->step_at = 0;
	if ((!IS_AGENT && *n->books.allocator) ||
	    backlog_work(serve_books_find_chain, n, serve_books_read_on, s))
		serve_books_put(s, WIRE_CHAIN_END, &none, sizeof(none));
	else
		serve_books_round(s);
}

void serve_books_round(struct serve *s)
{
	struct serve_books *n = s->books;
	struct wire_out *out = serve_link_out(s->link);
	bool is_silent = n && clock_now_ms() - n->heard_ms >= SILENCE_MS;

	if (!n || !out)
		return;
	if (n->chain)
		serve_books_send_chain(s, n, out);
	else if (n->scan && !n->is_sent)
		serve_books_send_verdicts(s, n, out);
	else if (is_silent && n->is_sent)
		serve_books_end(s);
	else if (is_silent)
		serve_books_give_up(s, -ETIMEDOUT);
}

void serve_books_wait(struct serve *s, pid_t pid, enum wire_mark what)
{
	u64 heard_ms = clock_now_ms();
	struct wire_frame f;

	if (!s->client || !s->wants_exit_scan || session_forward_flush(s->session))
		return;
	serve_books_mark(s, pid, what);
	s->exiting = pid;
	s->exiting_by = what;
	/* The client may first finish the scan of another process. */
	while (s->exiting && !s->late.kind && s->client == serve_link_client(s->link) &&
	       clock_now_ms() - heard_ms < EXITING_MS) {
		int got = serve_link_poll(s->link, &f);

		if (got < 0)
			break;
		if (!got) {
			serve_books_round(s);
			/* The other processes go on. */
			serve_books_read_on(s);
			serve_link_wait(s->link, ROUND_MS);
			continue;
		}
		heard_ms = clock_now_ms();
		serve_command(s, &f);
	}
	s->exiting = 0;
	if (s->books && s->books->is_awaited)
		serve_books_end(s);
}
