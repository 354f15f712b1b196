/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the records of a leak scan to struct leaks. Records name stack and function, struct leaks names rows. */
#include "user/session/source_recording_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/session/session_fill.h"
#include "user/heap/stacks.h"
#include "user/lib/escape.h"

struct stream_scan_row_key {
	u64 stack;
	u32 row;
	u16 fn;
};

void stream_scan_fini(struct stream_scan_state *st)
{
	leaks_free(st->leaks);
	free(st->keys);
	*st = (struct stream_scan_state){ 0 };
}

static int source_recording_scan_compare(const void *a, const void *b)
{
	const struct stream_scan_row_key *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->fn - y->fn;
}

/* The row of a caller, WHY_NO_ROW if the heap has no such row. */
static u32 source_recording_scan_find_row(const struct stream_scan_state *st, const u16 *fn_of, u64 stack,
					  u32 fn)
{
	const struct stream_scan_row_key key = { .stack = stack_canonical(session_stacks(st->session), stack),
						 .fn = fn_of[fn] };
	const struct stream_scan_row_key *found =
		bsearch(&key, st->keys, st->nr_keys, sizeof(key), source_recording_scan_compare);

	return found ? found->row : WHY_NO_ROW;
}

static int index_rows(struct stream_scan_state *st, const struct heap *heap)
{
	size_t nr = heap_row_count(heap);

	st->keys = calloc(nr + 1, sizeof(*st->keys));
	st->leaks->rows = calloc(nr + 1, sizeof(*st->leaks->rows));
	if (!st->keys || !st->leaks->rows)
		return -ENOMEM;
	for (u32 i = 0; i < nr; i++) {
		struct heap_row row = heap_row_get(heap, i);

		st->keys[i] = (struct stream_scan_row_key){ .stack = row.stack, .row = i, .fn = row.fn };
	}
	qsort(st->keys, nr, sizeof(*st->keys), source_recording_scan_compare);
	st->nr_keys = st->leaks->nr_rows = nr;
	return 0;
}

int stream_scan_begin(struct stream_scan_state *st, const struct session *s, struct process *p,
		      const struct stream_scan *rec)
{
	struct leaks *l;
	int err;

	stream_scan_fini(st);
	err = leaks_none(&st->leaks, rec->why);
	if (err)
		return err;
	l = st->leaks;
	st->process = p;
	st->session = s;
	st->is_exiting = rec->flags & STREAM_SCAN_EXITING;
	l->has_verdict = rec->flags & STREAM_SCAN_VERDICT;
	l->is_partial = rec->flags & STREAM_SCAN_PARTIAL;
	l->pause_ns = rec->pause_ns;
	l->max_pause_ns = rec->max_pause_ns;
	l->word_size = rec->word_size == 4 ? 4 : 8;
	l->has_before = rec->flags & STREAM_SCAN_BEFORE;
	l->left_out = rec->left_out;
	l->fresh = rec->fresh;
	l->again = rec->again;
	l->result.is_complete = rec->flags & STREAM_SCAN_COMPLETE;
	l->result.scanned_bytes = rec->scanned_bytes;
	l->result.skipped_bytes = rec->skipped_bytes;
	l->result.nr_unstopped = rec->nr_unstopped;
	l->result.nr_overlaps = rec->nr_overlaps;
	l->result.behind = rec->behind;
	for (u32 i = 0; i < SCAN_NR_HEADERS; i++)
		l->result.headers[i] = (u16)(rec->headers >> 16 * i);
	l->result.tagged = rec->tagged;
	l->result.tag_mask = rec->tag_mask;
	l->result.nr_links = rec->nr_links;
	l->result.sums = rec->sums;
	l->books.sums = rec->books;
	escape_buf(l->books.allocator, sizeof(l->books.allocator), rec->books_of);
	return index_rows(st, session_heap_of(p));
}

int stream_scan_row(struct stream_scan_state *st, const u16 *fn_of, const struct stream_scan_row *rec)
{
	struct leak_row *out;
	u32 row;

	if (!st->process)
		return -EBADMSG;
	row = source_recording_scan_find_row(st, fn_of, rec->stack, rec->fn);
	if (row == WHY_NO_ROW)
		return 0;
	out = &st->leaks->rows[row];
	out->sums = rec->sums;
	out->through = rec->through;
	return 0;
}

int stream_scan_link(struct stream_scan_state *st, const u16 *fn_of, const struct stream_scan_link *rec)
{
	struct leaks *l = st->leaks;
	struct leak_link link;

	if (!st->process)
		return -EBADMSG;
	link.row = source_recording_scan_find_row(st, fn_of, rec->stack, rec->fn);
	link.leader = source_recording_scan_find_row(st, fn_of, rec->leader_stack, rec->leader_fn);
	link.sum = rec->sum;
	if (link.row == WHY_NO_ROW || link.leader == WHY_NO_ROW)
		return 0;
	if (array_reserve(l->links, st->max_links, l->nr_links + 1))
		return -ENOMEM;
	l->links[l->nr_links++] = link;
	return 0;
}

/* A place for one more chain: in the list, or for the block that --why asked for. NULL without memory. */
static struct leak_why *add_why(struct stream_scan_state *st, bool is_asked)
{
	struct leaks *l = st->leaks;

	if (is_asked) {
		if (!l->asked)
			l->asked = calloc(1, sizeof(*l->asked));
		else
			leak_why_fini(l->asked);
		return l->asked;
	}
	if (array_reserve(l->whys, st->max_whys, l->nr_whys + 1))
		return NULL;
	l->whys[l->nr_whys] = (struct leak_why){ 0 };
	return &l->whys[l->nr_whys++];
}

int stream_scan_why(struct stream_scan_state *st, const u16 *fn_of, const struct stream_scan_why *rec)
{
	struct leak_why *why;

	if (!st->process || st->nr_steps || rec->nr_steps > WHY_MAX_STEPS ||
	    rec->verdict >= NR_SCAN_VERDICTS || rec->root > ROOT_KERNEL)
		return -EBADMSG;
	why = add_why(st, rec->flags & STREAM_WHY_ASKED);
	if (!why)
		return -ENOMEM;
	*why = (struct leak_why){ .row = WHY_NO_ROW,
				  .verdict = rec->verdict,
				  .addr = rec->addr,
				  .word_size = rec->word_size == 4 ? 4 : 8,
				  .root = rec->root,
				  .root_addr = rec->root_addr,
				  .root_tp = rec->root_tp,
				  .root_tid = (pid_t)rec->root_tid,
				  .root_where = rec->root_where,
				  .nr_left_out = rec->nr_left_out };
	if (rec->flags & STREAM_WHY_HAS_ROW)
		why->row = source_recording_scan_find_row(st, fn_of, rec->stack, rec->fn);
	why->steps = calloc(rec->nr_steps + 1, sizeof(*why->steps));
	if (rec->root == ROOT_MEMORY || rec->flags & STREAM_WHY_HAS_PATH)
		why->root_path = strdup(rec->root_path);
	if (!why->steps || (rec->root == ROOT_MEMORY && !why->root_path))
		return -ENOMEM;
	st->why = why;
	st->nr_steps = rec->nr_steps;
	return 0;
}

int stream_scan_step(struct stream_scan_state *st, const u16 *fn_of, const struct stream_scan_step *rec)
{
	u32 row = WHY_NO_ROW;

	if (!st->process || !st->nr_steps)
		return -EBADMSG;
	if (rec->flags & STREAM_WHY_HAS_ROW)
		row = source_recording_scan_find_row(st, fn_of, rec->stack, rec->fn);
	st->why->steps[st->why->nr_steps++] = (struct why_step){
		.addr = rec->addr, .size = rec->size, .offset = rec->offset, .nr = rec->nr, .row = row
	};
	st->nr_steps--;
	return 0;
}

int stream_scan_end(struct stream_scan_state *st, struct session *s)
{
	struct process *p = st->process;

	if (!p || st->nr_steps)
		return -EBADMSG;
	session_fill_leaks(s, p, st->leaks, st->is_exiting);
	st->leaks = NULL;
	stream_scan_fini(st);
	return 0;
}
