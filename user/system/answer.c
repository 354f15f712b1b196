/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the report on a traced process to one caller and one verdict. */
#include "user/system/answer.h"

#include <stdio.h>
#include <string.h>

#include "user/heap/heap_sample.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/report/report_parts.h"
#include "user/report/report_rows.h"
#include "user/scan/leaks.h"
#include "user/session/session.h"
#include "user/target/target.h"

enum { NAMES = 5 };

enum {
	MIN_ELSEWHERE = 1 << 20, /* bytes */
	PER_BLOCK = 32,		 /* bytes that an allocator takes for a block, beside its own, at most */
	MANY_DISTANCES = 32,	 /* blocks of so many bytes cannot all be missed by samples */
};

enum { WORTH = 4 }; /* a leak is the answer if it is this part of what grew most, or more */

const char *answer_kind_name(enum answer_kind kind)
{
	static const char *const names[] = {
		[ANSWER_NONE] = "none",	  [ANSWER_UNWATCHED] = "unwatched", [ANSWER_STILL] = "still",
		[ANSWER_GROWS] = "grows", [ANSWER_HELD] = "held",	    [ANSWER_POSSIBLE] = "possible",
		[ANSWER_LEAKS] = "leaks",
	};

	_Static_assert(ARRAY_SIZE(names) == NR_ANSWERS, "a name for each kind");
	return names[kind];
}

/* The program that runs now: of several the last. */
static const struct report_process *answer_present(const struct report *r)
{
	for (size_t i = r->nr_processes; i-- > 0;)
		if (!r->processes[i].is_replaced)
			return &r->processes[i];
	return NULL;
}

/* The callers that say most: the one that grew most, the one that lost most. NULL = none. */
struct worst {
	const struct report_row *grown, *lost;
	u64 all_grown;
};

static struct worst find_worst(const struct report_row *rows, size_t nr)
{
	struct worst w = { NULL };
	u64 most = 0;

	for (size_t i = 0; i < nr; i++) {
		u64 lost = leaks_lost(&rows[i].leaks).bytes;

		if (rows[i].grown > 0) {
			w.all_grown += (u64)rows[i].grown;
			if (!w.grown || rows[i].grown > w.grown->grown)
				w.grown = &rows[i];
		}
		if (lost > most) {
			most = lost;
			w.lost = &rows[i];
		}
	}
	return w;
}

/* The verdict on most bytes of a caller. */
static void answer_judge(struct zoom_answer *f, const struct report_process *p, const struct report_row *row)
{
	const struct scan_sum *of = row->leaks.sums.of;
	const struct scan_sum lost = leaks_lost(&row->leaks);

	f->kind = ANSWER_GROWS;
	f->bytes = row->row.live_bytes;
	f->blocks = row->row.live_blocks;
	if (!p->leaks)
		return;
	if (lost.bytes && lost.bytes >= of[SCAN_REACHABLE].bytes && lost.bytes >= of[SCAN_POSSIBLE].bytes) {
		f->kind = ANSWER_LEAKS;
		f->bytes = of[SCAN_DEFINITE].bytes;
		f->blocks = of[SCAN_DEFINITE].blocks;
		f->through = row->leaks.through;
		/* Blocks that are lost with those of another caller. */
		if (!f->blocks) {
			f->bytes = lost.bytes;
			f->blocks = lost.blocks;
		}
	} else if (of[SCAN_POSSIBLE].bytes > of[SCAN_REACHABLE].bytes) {
		f->kind = ANSWER_POSSIBLE;
		f->bytes = of[SCAN_POSSIBLE].bytes;
		f->blocks = of[SCAN_POSSIBLE].blocks;
	} else if (of[SCAN_REACHABLE].bytes >= of[SCAN_UNSURE].bytes) {
		f->kind = ANSWER_HELD;
	}
}

/* The innermost functions may belong to wrappers of the allocator: some more tell who asked. */
static void cut_names(char *where)
{
	char *end = where;

	for (u32 i = 0; i < NAMES && end; i++)
		end = strstr(end + (i > 0), " < ");
	if (end)
		*end = '\0';
}

static int take_worst(struct zoom_answer *f, const struct report *r, const struct report_process *p)
{
	auto_free struct report_row *rows = NULL;
	struct report sorted = *r;
	const struct report_row *row;
	struct worst w;
	size_t nr;
	int err;

	sorted.options = (struct report_options){ .sort = report_key_find("live-bytes") };
	err = report_rows(&sorted, p, &rows, &nr, NULL);
	if (err)
		return err;
	w = find_worst(rows, nr);
	row = w.lost && (!w.grown || leaks_lost(&w.lost->leaks).bytes * WORTH >= (u64)w.grown->grown)
		      ? w.lost
		      : w.grown;
	f->grown = w.all_grown;
	if (!row) {
		f->kind = ANSWER_STILL;
		return 0;
	}
	answer_judge(f, p, row);
	err = report_own_callers(r, p, row->id, f->where, sizeof(f->where));
	cut_names(f->where);
	return err;
}

static int answer_take_report(void *ctx, const struct report *r)
{
	const struct report_process *p = answer_present(r);
	struct zoom_answer *f = ctx;
	struct heap_totals totals;

	f->time_ns = clock_now_ns();
	f->window = r->window;
	f->where[0] = f->why[0] = '\0';
	f->through = (struct scan_sum){ 0 };
	f->bytes = f->blocks = f->grown = f->held = f->held_needs = 0;
	if (!p)
		return 0;
	if (p->unwatched) {
		f->kind = ANSWER_UNWATCHED;
		snprintf(f->why, sizeof(f->why), "%s", p->unwatched);
		return 0;
	}
	f->distance = HAS_SAMPLES ? heap_sample_bytes(p->heap) : 0;
	totals = heap_totals(p->heap);
	f->held = totals.live_bytes + totals.live_blocks * PER_BLOCK;
	f->held_needs = f->needs;
	if (p->leaks && p->leaks->has_verdict) {
		f->sums = p->leaks->result.sums;
		f->verdict_ns = f->time_ns;
	}
	if (p->no_verdict)
		escape_buf(f->why, sizeof(f->why), p->no_verdict);
	return take_worst(f, r, p);
}

int answer_take(struct zoom_answer *f, struct session *s, pid_t pid)
{
	int err = session_show(s, pid, answer_take_report, f);

	f->nr_verdicts++;
	return err;
}

int answer_look(struct zoom_answer *f, struct session *s, bool wants_scan)
{
	int err;

	if (wants_scan)
		session_scan(s, NULL, false);
	err = answer_take(f, s, 0);
	/* The first look shows what a start or a full cache took. Later ones count from here. */
	if (f->nr_verdicts == 1 && !err)
		session_reported(s);
	return err;
}

static void system_answer_describe(const struct zoom_answer *f, char *text, size_t size)
{
	const char *where = f->where[0] ? f->where : "no stack";
	const struct human_lost sum =
		human_lost(f->distance ? "~" : "", f->bytes, f->blocks, f->through.bytes,
			   f->kind == ANSWER_LEAKS ? f->through.blocks : 0);

	switch (f->kind) {
	case ANSWER_LEAKS:
		snprintf(text, size, "leaks %s: %s", sum.text, where);
		break;
	case ANSWER_POSSIBLE:
		snprintf(text, size, "holds %s, possibly lost: %s", sum.text, where);
		break;
	case ANSWER_HELD:
		snprintf(text, size, "holds %s, still reachable: %s", sum.text, where);
		break;
	case ANSWER_GROWS:
		snprintf(text, size, "holds %s: %s%s%s", sum.text, where, f->why[0] ? "; " : "", f->why);
		break;
	case ANSWER_STILL:
		snprintf(text, size,
			 f->distance ? "no sampled block is live"
				     : "nothing that it allocated since is live");
		break;
	case ANSWER_UNWATCHED:
		snprintf(text, size, "nothing could be watched: %s", f->why);
		break;
	default:
		snprintf(text, size, "traced, no verdict yet");
		break;
	}
}

u64 answer_scaled(const struct zoom_answer *f)
{
	u64 permille = report_window_permille(&f->window);

	return permille > 1000 ? (u64)((double)f->bytes * (double)permille / 1000) : 0;
}

u64 answer_elsewhere(const struct zoom_answer *f)
{
	u64 known = f->needed + f->held;
	u64 rest = f->held_needs > known ? f->held_needs - known : 0;

	/* Freed blocks that the allocator keeps, and fragments, are memory too: a half may be that. */
	if (rest < MIN_ELSEWHERE || rest / MANY_DISTANCES < f->distance)
		return 0;
	return !f->nr_windows && rest > f->held ? rest : 0;
}

void answer_describe(const struct zoom_answer *f, char *text, size_t size)
{
	const struct scan_sum *of = f->sums.of;
	size_t len;

	system_answer_describe(f, text, size);
	len = strlen(text);
	/* A caller that holds most hides no other that leaks. */
	if (f->kind != ANSWER_LEAKS && of[SCAN_DEFINITE].blocks)
		snprintf(text + len, size - len, "; leaks %s, too",
			 human_lost(f->distance ? "~" : "", of[SCAN_DEFINITE].bytes, of[SCAN_DEFINITE].blocks,
				    of[SCAN_INDIRECT].bytes, of[SCAN_INDIRECT].blocks)
				 .text);
	len = strlen(text);
	if (answer_elsewhere(f))
		snprintf(text + len, size - len,
			 "; %s of its growth since is in no block: it maps memory itself",
			 human_bytes(answer_elsewhere(f)).text);
	len = strlen(text);
	if (f->permyriad)
		snprintf(text + len, size - len, "; tracing costs it %s of a CPU",
			 human_percent(f->permyriad, 10000).text);
	len = strlen(text);
	if (f->nr_windows)
		snprintf(text + len, size - len, ", in %u window%s", f->nr_windows,
			 f->nr_windows == 1 ? "" : "s");
	len = strlen(text);
	if (answer_scaled(f))
		snprintf(text + len, size - len, "; scaled to the gaps between them about %s",
			 human_bytes(answer_scaled(f)).text);
}
