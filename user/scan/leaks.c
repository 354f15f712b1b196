/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leak verdicts on one process: the order of drain, stop and scan, and the sums that reports keep. */
#include "user/scan/leaks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/log.h"
#include "user/lib/serve_only.h"
#include "user/scan/leaks_why.h"
#include "user/scan/scan_plan.h"
#include "user/scan/scan_reason.h"
#include "user/scan/snapshot_plan.h"

enum { MAX_TRIES = 4 }; /* to find books that no thread is changing */

static const u64 MAX_WALK_NS = 600ULL * 1000000000; /* of a copy, which nothing waits for */

static void leaks_freep(struct leaks **l)
{
	leaks_free(*l);
}

#define auto_leaks __attribute__((cleanup(leaks_freep)))

void leaks_free(struct leaks *l)
{
	if (!l)
		return;
	free(l->rows);
	free(l->links);
	for (size_t i = 0; !IS_AGENT && i < l->nr_whys; i++)
		leak_why_fini(&l->whys[i]);
	free(l->whys);
	if (!IS_AGENT && l->asked)
		leak_why_fini(l->asked);
	free(l->asked);
	if (!IS_AGENT) {
		leak_blocks_fini(&l->blocks);
		leak_samples_fini(&l->samples);
	}
	free(l);
}

int leaks_none(struct leaks **out, const char *why)
{
	struct leaks *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	snprintf(l->why, sizeof(l->why), "%s", why);
	*out = l;
	return 0;
}

/* The sums of sampled blocks are those of what they stand for. */
static void leaks_sum_rows(struct leaks *l)
{
	struct scan_sums all = { 0 };

	for (size_t i = 0; i < l->nr_rows; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(all.of); k++) {
			all.of[k].blocks += l->rows[i].sums.of[k].blocks;
			all.of[k].bytes += l->rows[i].sums.of[k].bytes;
		}
	}
	l->result.sums = all;
}

static int leaks_keep(struct leaks *l, const struct scan *scan, const struct leaks_options *o)
{
	const struct heap *heap = o->heap;
	size_t nr = heap_row_count(heap);
	auto_free u8 *left_out = NULL;
	auto_free struct scan_sums *sums = calloc(nr + 1, sizeof(*sums));
	int err;

	l->rows = calloc(nr + 1, sizeof(*l->rows));
	if (!sums || !l->rows)
		return -ENOMEM;
	l->nr_rows = nr;
	err = scan_rows(scan, sums, nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++)
		l->rows[i].sums = sums[i];
	l->result = scan_result(scan);
	if (HAS_SAMPLES && heap_sample_bytes(heap))
		leaks_sum_rows(l);
	if (o->marks)
		err = leaks_compare(l, scan, heap, o->marks, o->kinds, &left_out);
	if (!err && !IS_AGENT)
		err = leak_blocks_init(&l->blocks, scan, heap, left_out);
	return err ? err : leaks_link(l, scan, heap, left_out);
}

/* The work of options->aside(). */
struct finding {
	struct leaks *leaks;
	const struct leaks_options *options;
	struct scan_books books;
	struct scan *scan; /* owned */
	struct scan *all;  /* owned; of all blocks in the books of the allocator. NULL = not listed */
	struct leaks_listed listed;
	struct snapshot *snap; /* owned; names roots after the process was resumed */
	struct snapshot_plan plan;
	struct courtesy_hurry hurry;
	u64 start_ns; /* of the stop */
	u32 nr_tries;
	bool is_judged;
};

static int leaks_begin(void *arg)
{
	struct finding *f = arg;
	const struct scan_options so = { .is_partial = f->options->is_partial,
					 .keeps_freed = f->options->keeps_freed,
					 .pointer_mask = f->options->pointer_mask,
					 .want_unaligned = f->options->want_unaligned,
					 .is_unwanted = f->options->is_unwanted };

	f->books.stacks = IS_AGENT ? NULL : f->options->stacks;
	return scan_new(&f->scan, &f->books, &so);
}

static void find_whys(struct finding *f)
{
	int err = IS_AGENT ? 0 : leaks_find_whys(f->leaks, f->all ? f->all : f->scan, f->options);

	if (err && err != -ECANCELED)
		warn("scan: PID %d: cannot find who holds blocks: %s", f->options->pid, strerror(-err));
}

static int judge_by_books(struct finding *f)
{
	int err = scan_judge(f->all);

	if (err)
		return err;
	scan_judge_by(f->scan, f->all);
	f->leaks->books.sums = scan_result(f->all).sums;
	/* Whether a block was lost before, too, only complete books of a trace can tell. */
	if (f->options->only_books && f->options->kinds == LEAKS_ALL)
		f->leaks->books.since = scan_lost_by(f->scan, f->all);
	snprintf(f->leaks->books.allocator, sizeof(f->leaks->books.allocator), "%s", f->listed.allocator);
	f->leaks->is_partial = f->listed.is_partial;
	return 0;
}

static int leaks_judge(void *arg)
{
	struct finding *f = arg;
	int err;

	if (!IS_AGENT && f->all)
		err = judge_by_books(f);
	else
		err = f->options->elsewhere ? 0 : scan_judge(f->scan);
	if (IS_SERVE_ONLY || f->options->take)
		return err;
	if (!err)
		err = leaks_keep(f->leaks, f->scan, f->options);
	if (!IS_AGENT && f->all && f->options->only_books)
		f->leaks->result.sums = f->leaks->books.sums;
	if (!err && !IS_AGENT)
		err = leak_samples_init(&f->leaks->samples, f->leaks, f->options, f->snap);
	f->is_judged = true;
	if (!err && !f->options->elsewhere)
		find_whys(f);
	return err;
}

/* List all blocks, and read the pointers to them. -ENOENT: no books. */
static int read_by_books(struct finding *f)
{
	const struct leaks_options *o = f->options;
	u64 patience_ns = f->leaks->is_copied ? MAX_WALK_NS : o->max_pause_ns;
	bool is_last = o->is_ending || ++f->nr_tries == MAX_TRIES;
	int err = o->lister->list(o->lister->ctx, f->snap, f->start_ns + patience_ns, is_last, &f->listed);
	const struct scan_options so = { .pointer_mask = o->pointer_mask,
					 .want_unaligned = o->want_unaligned,
					 .is_unwanted = o->is_unwanted,
					 .slack = f->listed.slack,
					 .is_partial = f->listed.is_partial,
					 .has_others = f->listed.has_others };

	if (!err)
		err = scan_new(&f->all, &f->listed.books, &so);
	if (!err)
		err = scan_is_listed(f->scan, f->all);
	/* Blocks that it knows may be long free. */
	if (!err || (err == -ENOENT && f->all && o->only_books))
		return scan_read(f->all, f->snap);
	scan_free(f->all);
	f->all = NULL;
	return err;
}

static int leaks_read_memory(void *arg)
{
	struct finding *f = arg;
	int err = IS_AGENT || !f->options->lister ? -ENOENT : read_by_books(f);

	if (!IS_AGENT && err == -ENOENT && f->options->only_books)
		scan_reason_note(
			f->leaks->why, sizeof(f->leaks->why),
			"most of its calls were not seen, and heaptap cannot read the books of its allocator");
	else if (err == -ENOENT)
		err = scan_read(f->scan, f->snap);
	return err;
}

static struct snapshot_plan_options leaks_plan_options(const struct finding *f)
{
	const struct leaks_options *o = f->options;

	return (struct snapshot_plan_options){ .pid = o->pid,
					       .way = o->way,
					       .max_copy = o->max_copy,
					       .max_pause_ns = o->max_pause_ns,
					       .nr_jobs = o->nr_jobs,
					       .walks_books = o->lister != NULL,
					       .is_price_known = o->is_price_known || f->nr_tries,
					       .is_unwanted = o->is_unwanted,
					       .holder = o->holder };
}

/* Takes long where memory is copied ahead. */
static int leaks_copy_ahead(void *arg)
{
	struct finding *f = arg;
	const struct snapshot_plan_options po = leaks_plan_options(f);

	snapshot_plan_copy(&f->plan, &po);
	return 0;
}

/* Choose the way. A process that is going to end may stand. */
static int leaks_make_plan(struct finding *f, const struct leaks_options *o)
{
	const struct snapshot_plan_options po = leaks_plan_options(f);
	int err;

	f->plan.way = SNAPSHOT_STOP;
	if (IS_AGENT || o->is_ending)
		return 0;
	snapshot_plan_open(&f->plan, &po);
	err = f->plan.precopy ? o->aside(o->ctx, leaks_copy_ahead, f) : 0;
	if (!err)
		err = snapshot_plan_check(&f->plan, &po, f->plan.way);
	if (err)
		f->leaks->pause_ns = snapshot_plan_pause(&f->plan);
	return err ? err : o->drain(o->ctx, f->scan, false);
}

/* The process runs again, and nothing is left in it. */
static void leaks_end_moment(struct finding *f, const struct leaks_options *o)
{
	if (o->release)
		o->release(o->ctx);
	courtesy_hurry_end(&f->hurry);
	f->leaks->pause_ns +=
		f->leaks->is_copied && !o->release ? f->snap->pause_ns : clock_now_ns() - f->start_ns;
	if (IS_AGENT)
		return;
	f->leaks->pause_ns += snapshot_plan_pause(&f->plan);
	snapshot_plan_free(&f->plan);
}

/* Stop the process, enter its last events, read its memory, resume it. The snapshot may be there after errors too. */
static int read_stopped(struct finding *f, const struct leaks_options *o)
{
	const struct snapshot_options so = { .max_pause_ns = o->max_pause_ns,
					     .nr_jobs = o->nr_jobs,
					     .way = f->plan.way,
					     .precopy = f->plan.precopy,
					     .by = o->by,
					     .is_ending = o->is_ending,
					     .holder = o->holder,
					     .copying = o->copying,
					     .copying_ctx = o->ctx,
					     .kernel = o->kernel };
	const struct snapshot_plan_options po = leaks_plan_options(f);
	int err = snapshot_stop_new(&f->snap, o->pid, &so), copy_err = -ECANCELED;

	if (!err)
		copy_err = snapshot_copy_stopped(f->snap);
	if (!err && !IS_AGENT)
		err = snapshot_plan_check_uncopied(&f->plan, &po, copy_err);
	if (!err)
		err = o->drain(o->ctx, f->scan, true);
	f->leaks->is_copied = !err && !copy_err;
	if (f->leaks->is_copied) {
		snapshot_let_go(f->snap);
		leaks_end_moment(f, o);
		err = o->aside(o->ctx, leaks_read_memory, f);
	} else if (!err) {
		err = leaks_read_memory(f);
		/* The process, whose memory is asked for, may end when it is resumed. */
		if (!err && o->content_bytes)
			err = leaks_judge(f);
	}
	if (f->snap)
		snapshot_resume(f->snap);
	return err;
}

static int leaks_read_moment(struct finding *f, const struct leaks_options *o)
{
	int err = leaks_make_plan(f, o);

	if (err)
		return err;
	/* The threads of the process wait, and beside a busy machine they wait longest for a CPU for heaptap. */
	courtesy_at_once(&f->hurry);
	f->start_ns = clock_now_ns();
	err = o->stop ? o->stop(o->ctx, o->max_pause_ns) : 0;
	if (err) {
		courtesy_hurry_end(&f->hurry);
		return err;
	}
	err = read_stopped(f, o);
	if (!f->leaks->is_copied)
		leaks_end_moment(f, o);
	f->leaks->word_size = f->snap ? f->snap->word_size : 0;
	return err;
}

/* Books that a thread is changing are read at another moment. */
static int leaks_read_process(struct finding *f, const struct leaks_options *o)
{
	u32 nr_tries;
	int err;

	/* Nothing is there to judge, and nothing comes any more. */
	if (!IS_SERVE_ONLY && o->is_ending && o->heap && !o->books && !o->lister &&
	    !heap_totals(o->heap).live_blocks)
		return 0;
	for (;;) {
		nr_tries = f->nr_tries;
		err = leaks_read_moment(f, o);
		if (IS_AGENT || err != -EBUSY || f->nr_tries == nr_tries)
			return err;
		snapshot_free(f->snap);
		f->snap = NULL;
	}
}

/* Say what a large scan takes, before it begins. */
static int plan_memory(struct finding *f, const struct leaks_options *o)
{
	int err = 0;

	if (!IS_AGENT && !o->elsewhere)
		err = scan_plan_check(o->pid, f->books.nr_blocks, o->nr_jobs, o->max_memory,
				      o->is_price_known);
	if (err)
		scan_reason_note(f->leaks->why, sizeof(f->leaks->why),
				 "it takes more memory than --max-memory allows");
	return err;
}

static int scan_leaks_find(struct leaks *l, const struct leaks_options *o)
{
	struct finding f = { .leaks = l,
			     .options = o,
			     .books = IS_SERVE_ONLY || o->books ? *o->books
								: scan_books_of(o->heap, !o->has_losses) };
	int err = plan_memory(&f, o);

	if (!err)
		err = o->aside(o->ctx, leaks_begin, &f);

	/* Enter the events of the meantime before the stop, so that the stop is short. */
	if (!err)
		err = o->drain(o->ctx, f.scan, false);
	if (!err)
		err = o->elsewhere ? o->elsewhere(o->ctx, f.scan, l) : leaks_read_process(&f, o);
	if (!err && !f.is_judged)
		err = o->aside(o->ctx, leaks_judge, &f);
	/* Only this thread may talk to the other machine. */
	if (!err && o->why)
		find_whys(&f);
	if (!err && o->take) {
		l->result = scan_result(f.scan);
		o->take(o->ctx, take_ptr(f.scan), take_ptr(f.snap));
	}
	scan_free(f.scan);
	if (!IS_AGENT)
		scan_free(f.all);
	snapshot_free(f.snap);
	if (!IS_AGENT)
		snapshot_plan_free(&f.plan);
	return err;
}

int leaks_find(struct leaks **out, const struct leaks_options *options)
{
	auto_leaks struct leaks *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->max_pause_ns = options->max_pause_ns;
	l->is_partial = options->is_partial;
	err = scan_leaks_find(l, options);
	if (err && !l->why[0])
		scan_reason_note(l->why, sizeof(l->why),
				 scan_reason(err, options->pid, options->max_pause_ns).text);
	l->err = err;
	l->has_verdict = !err;
	*out = take_ptr(l);
	return 0;
}

struct leak_row leaks_row(const struct leaks *l, u32 row)
{
	return l && row < l->nr_rows ? l->rows[row] : (struct leak_row){ 0 };
}

struct scan_sum leaks_lost(const struct leak_row *row)
{
	const struct scan_sum *definite = &row->sums.of[SCAN_DEFINITE];

	return (struct scan_sum){ definite->blocks + row->through.blocks,
				  definite->bytes + row->through.bytes };
}
