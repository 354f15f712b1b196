/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects the frames of a caller with their names, and says why frames are missing. */
#include "user/report/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/stacks.h"
#include "user/lib/array.h"
#include "user/lib/path.h"
#include "user/names/symbolize.h"

/* The rule by which all outputs fold recursion. */

enum { MAX_TURN = 12, MIN_TIMES = 3 };

struct turns turns_find(size_t nr, bool (*is_same)(const void *ctx, size_t a, size_t b), const void *ctx)
{
	for (size_t turn = 1; turn <= MAX_TURN && turn * MIN_TIMES <= nr; turn++) {
		size_t more = 0;

		while (more + turn < nr && is_same(ctx, more, more + turn))
			more++;
		if (more / turn + 1 >= MIN_TIMES)
			return (struct turns){ (u32)turn, (u32)(more / turn + 1) };
	}
	return (struct turns){ 1, 1 };
}

static void set_mark(struct report_frames *f, const struct stack *s, const char *truncated)
{
	if (!truncated)
		f->mark[0] = '\0';
	else if (s)
		snprintf(f->mark, sizeof(f->mark), "cut: %s", truncated);
	else
		snprintf(f->mark, sizeof(f->mark), "%s",
			 strcmp(truncated, "none") ? "stack lost" : "no stack taken");
}

int report_frames(struct report_frames *f, const struct report *r, const struct report_process *p,
		  const struct report_row *row)
{
	const char *truncated;
	const struct stack *s = report_stack(p, row, &truncated);
	int err = 0;

	f->nr = 0;
	set_mark(f, s, truncated);
	for (size_t i = 0; s && i < s->nr_frames && !err; i++) {
		const struct symbol *symbols;
		size_t nr = 0;

		err = report_symbols(r, s->frames[i], &symbols, &nr);
		if (!err)
			err = array_reserve(f->list, f->max, f->nr + nr);
		for (size_t k = 0; k < nr && !err; k++)
			f->list[f->nr++] = (struct report_frame){ s->frames[i], &symbols[k] };
	}
	return err;
}

void report_frames_fini(struct report_frames *f)
{
	free(f->list);
	*f = (struct report_frames){ 0 };
}

const struct alloc_fn *report_alloc_fn(const struct report_process *p, const struct report_row *row)
{
	return alloc_fn(heap_functions(p->heap), row->row.fn);
}

const char *report_frame_name(struct report_frames *f, const struct report *r, size_t i)
{
	const struct report_frame *frame = &f->list[i];
	const struct module *m = module_get(r->modules, frame->ref.module);

	if (frame->symbol->function)
		return frame->symbol->function;
	snprintf(f->name, sizeof(f->name), "%.400s%s0x%llx", m ? path_name(module_name(m)) : "", m ? "+" : "",
		 (unsigned long long)frame->ref.offset);
	return f->name;
}
