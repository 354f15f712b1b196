/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says how the resident memory of a process changed, so that growth that is in no block has an owner, too. */
#include "user/report/report_residence.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/stacks.h"
#include "user/lib/human.h"
#include "user/report/estimate.h"
#include "user/names/symbolize.h"
#include "user/report/report_verdict.h"
#include "user/source/source.h"
#include "user/target/allocator_kind.h"

enum {
	MIN_CHANGE = 64 << 10, /* bytes; less is no change */
	MIN_HELP = 1 << 20,    /* bytes that are worth a way out */
	MIN_UNHELD = 4 << 20,  /* bytes in no block that are worth a word in the verdict */
	MIN_UNHELD_SHARE = 10, /* and a tenth of what was resident */
	MIN_SHARE = 50,	       /* a part of less than a fiftieth is not listed */
	MAX_LISTED = 4,
	MAX_THREAD_FRAMES = 6,	/* from the allocator to pthread_create() */
	MAX_SPARE = 1 << 20,	/* bytes that an allocator takes in advance */
	BLOCK_SPARE = 32,	/* and for a block */
	STACKS_KEPT = 40 << 20, /* bytes of stacks of ended threads that glibc keeps for the next ones */
};

enum item { IN_BLOCKS, IN_FREE, IN_ENDED, IN_STACKS, IN_MAPPED, IN_SHARED, IN_FILES, NR_ITEMS };

static const struct residence_item residence_names[NR_ITEMS] = {
	[IN_BLOCKS] = { 0, "blocks", "in blocks" },
	[IN_FREE] = { 0, "allocator_free", "free in the allocator" },
	[IN_ENDED] = { 0, "ended_stacks", "in stacks of ended threads" },
	[IN_STACKS] = { 0, "stacks", "in stacks" },
	[IN_MAPPED] = { 0, "mapped", "mapped by the program itself" },
	[IN_SHARED] = { 0, "shared", "in shared memory" },
	[IN_FILES] = { 0, "files", "of files" },
};

static s64 residence_grown(const struct report_residence *d, enum resident_part part)
{
	return (s64)d->now.of[part] - (s64)d->before.of[part];
}

/*
 * Of @free new bytes in heaps, those that brk of the program has made: an allocator takes no more than it was asked
 * for. Nobody knows that where calls were missed, or where a program is seen from its start.
 */
static s64 residence_brk(const struct report_process *p, s64 free)
{
	const struct report_residence *d = p->residence;
	struct heap_totals totals = heap_totals(p->heap);
	s64 asked = (s64)(totals.alloc_bytes + totals.allocs * BLOCK_SPARE) + (totals.allocs ? MAX_SPARE : 0);
	s64 bytes = (s64)d->now.heap - (s64)d->before.heap - asked;

	if (!d->before.rss || report_losses(p).allocs)
		return 0;
	bytes = bytes < free ? bytes : free;
	return bytes > 0 ? bytes : 0;
}

size_t report_residence_items(const struct report_process *p, struct residence_item *items)
{
	const struct report_residence *d = p->residence;
	s64 allocator = residence_grown(d, RESIDENT_ALLOCATOR), live = (s64)d->now.live;
	s64 ended = (s64)d->now.ended - (s64)d->before.ended, brk;

	memcpy(items, residence_names, sizeof(residence_names));
	/* A block may have pages that nothing was written to, and may take the room of an older one. */
	items[IN_BLOCKS].bytes = live < allocator ? live : allocator > 0 ? allocator : 0;
	brk = residence_brk(p, allocator - items[IN_BLOCKS].bytes);
	items[IN_FREE].bytes = allocator - items[IN_BLOCKS].bytes - brk;
	items[IN_ENDED].bytes = ended;
	items[IN_STACKS].bytes = residence_grown(d, RESIDENT_STACKS) - ended;
	items[IN_MAPPED].bytes = residence_grown(d, RESIDENT_ANONYMOUS) + brk;
	items[IN_SHARED].bytes = residence_grown(d, RESIDENT_SHARED);
	items[IN_FILES].bytes = residence_grown(d, RESIDENT_FILES);
	return NR_ITEMS;
}

static __printf(2, 3) void residence_add(char *text, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + used, RESIDENCE_TEXT_MAX - used, fmt, ap);
	va_end(ap);
}

/* Was the block of @row made for a thread? The C library makes one for each, and frees it with the stack. */
static int report_residence_is_thread(const struct report *r, const struct report_process *p,
				      const struct report_row *row, bool *is)
{
	const char *truncated;
	const struct stack *s = report_stack(p, row, &truncated);
	int err = 0;

	*is = false;
	for (u32 i = 0; s && i < s->nr_frames && i < MAX_THREAD_FRAMES && !err && !*is; i++) {
		const struct symbol *symbols;
		size_t nr;

		err = report_symbols(r, s->frames[i], &symbols, &nr);
		for (size_t k = 0; !err && k < nr; k++)
			*is |= symbols[k].function && strstr(symbols[k].function, "pthread_create");
	}
	return err;
}

/* Find who made the threads whose stacks are left: the caller of pthread_create() with most of its blocks. */
static int residence_thread_maker(const struct report *r, const struct report_process *p,
				  const struct report_row *rows, size_t nr, char place[OWN_PLACE_MAX])
{
	const struct report_row *most = NULL;
	int err = 0;

	*place = '\0';
	for (size_t i = 0; i < nr && !err; i++) {
		bool is = false;

		if (rows[i].row.live_blocks > (most ? most->row.live_blocks : 0))
			err = report_residence_is_thread(r, p, &rows[i], &is);
		if (is)
			most = &rows[i];
	}
	return err || !most ? err : own_code_name(r, p, most->row.stack, place);
}

/* Name who is behind the part @item. */
static int residence_add_who(char *text, enum item item, const struct report *r,
			     const struct report_process *p, const struct report_row *rows, size_t nr)
{
	const struct report_residence *d = p->residence;
	struct report_holder holder = { .share = "" };
	int err = 0;

	if (item == IN_BLOCKS)
		err = report_holder(&holder, r, p, rows, nr);
	else if (item == IN_ENDED)
		err = residence_thread_maker(r, p, rows, nr, holder.place);
	if (item == IN_ENDED)
		residence_add(text, " (%" PRIu64 " of them%s", d->now.nr_ended,
			      d->now.ended_mapped > STACKS_KEPT ? ", not joined" : "");
	if (*holder.place)
		residence_add(text, "%s%sfrom %s", item == IN_ENDED ? ", " : " (", holder.share,
			      holder.place);
	if (item == IN_ENDED || *holder.place)
		residence_add(text, ")");
	return err;
}

static const char *residence_way_out(const struct report_residence *d, enum item item)
{
	if (item == IN_ENDED)
		return "pthread_join() or pthread_detach() releases a stack";
	if (item == IN_MAPPED && !d->sees_mappings)
		return "--mmap names who maps memory";
	return item == IN_FREE ? allocator_way_out(d->allocator) : NULL;
}

static u64 residence_size(s64 bytes)
{
	return bytes < 0 ? -(u64)bytes : (u64)bytes;
}

/* The largest parts, and the way out of the largest one. */
static int residence_add_parts(char *text, u64 change, const struct report *r, const struct report_process *p,
			       const struct report_row *rows, size_t nr)
{
	struct residence_item items[RESIDENCE_MAX_ITEMS];
	size_t nr_items = report_residence_items(p, items), most = 0;
	u64 least = change / MIN_SHARE > MIN_CHANGE ? change / MIN_SHARE : MIN_CHANGE;
	const char *help;
	int err = 0;

	for (size_t n = 0; n < MAX_LISTED && !err; n++) {
		struct human size;
		size_t k = 0;

		for (size_t i = 1; i < nr_items; i++)
			if (residence_size(items[i].bytes) > residence_size(items[k].bytes))
				k = i;
		if (residence_size(items[k].bytes) < least)
			break;
		most = n ? most : k;
		size = human_bytes(residence_size(items[k].bytes));
		if (k == IN_BLOCKS || k == IN_FREE)
			size = estimate_of(p->heap, size);
		residence_add(text, "%s%s%s %s", n ? ", " : ": ", items[k].bytes < 0 ? "-" : "", size.text,
			      items[k].what);
		if (items[k].bytes > 0)
			err = residence_add_who(text, k, r, p, rows, nr);
		items[k].bytes = 0;
	}
	report_residence_items(p, items);
	help = items[most].bytes >= MIN_HELP ? residence_way_out(p->residence, most) : NULL;
	if (help)
		residence_add(text, "; %s", help);
	return err;
}

u64 report_residence_unheld(const struct report_process *p, const char **what)
{
	struct residence_item items[RESIDENCE_MAX_ITEMS];
	const struct report_residence *d = p->residence;
	size_t most = IN_FREE;
	s64 all = d ? (s64)d->now.rss - (s64)d->before.rss : 0, unheld;

	if (all <= 0 || !d->before.rss)
		return 0;
	report_residence_items(p, items);
	unheld = all - items[IN_BLOCKS].bytes;
	for (size_t i = IN_FREE; i < NR_ITEMS; i++)
		if (items[i].bytes > items[most].bytes)
			most = i;
	*what = items[most].what;
	return unheld >= MIN_UNHELD && unheld >= all / 2 && (u64)unheld >= d->before.rss / MIN_UNHELD_SHARE
		       ? (u64)unheld
		       : 0;
}

int report_residence(char text[RESIDENCE_TEXT_MAX], const struct report *r, const struct report_process *p,
		     const struct report_row *rows, size_t nr)
{
	const struct report_residence *d = p->residence;
	u64 change;

	*text = '\0';
	if (!d)
		return 0;
	change = residence_size((s64)d->now.rss - (s64)d->before.rss);
	residence_add(text, "resident: %s", human_bytes(d->now.rss).text);
	if (d->before.rss && change < MIN_CHANGE) {
		residence_add(text, ", as at the attach");
		return 0;
	}
	if (d->before.rss)
		residence_add(text, ", %s %s than at the attach", human_bytes(change).text,
			      d->now.rss > d->before.rss ? "more" : "less");
	return residence_add_parts(text, change, r, p, rows, nr);
}
