/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a saved JSON report and writes its callers, process by process, those that leak first. */
#include "user/report/saved_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/report/diff.h"
#include "user/report/saved.h"

struct saved_text_row {
	char *function, *frames, *place; /* owned */
	struct saved_numbers numbers;
};

struct saved_text {
	FILE *out;
	u32 top;
	size_t nr_printed;	     /* processes */
	struct saved_text_row *rows; /* owned; of the process that is being read */
	size_t nr, max;
};

static void saved_text_forget(struct saved_text *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		free(t->rows[i].function);
		free(t->rows[i].frames);
		free(t->rows[i].place);
	}
	t->nr = 0;
}

static int saved_text_add(void *ctx, const struct saved_process *p, const struct saved_caller *c)
{
	struct saved_text *t = ctx;
	struct saved_text_row *row;

	(void)p;
	if (!c->numbers.live_bytes && !c->numbers.live_blocks)
		return 0;
	if (array_reserve(t->rows, t->max, t->nr + 1))
		return -ENOMEM;
	row = &t->rows[t->nr++];
	*row = (struct saved_text_row){ strdup(c->function), strdup(c->frames), strdup(c->place),
					c->numbers };
	return row->function && row->frames && row->place ? 0 : -ENOMEM;
}

static int saved_text_compare(const void *a, const void *b)
{
	const struct saved_numbers *x = &((const struct saved_text_row *)a)->numbers;
	const struct saved_numbers *y = &((const struct saved_text_row *)b)->numbers;

	if (x->leaked_bytes != y->leaked_bytes)
		return x->leaked_bytes < y->leaked_bytes ? 1 : -1;
	return x->live_bytes == y->live_bytes ? 0 : x->live_bytes < y->live_bytes ? 1 : -1;
}

static void saved_text_sum(FILE *out, u64 bytes, const char *verb, u64 blocks)
{
	fprintf(out, "%s %s in %s block%s", human_bytes(bytes).text, verb, human_count(blocks).text,
		blocks == 1 ? "" : "s");
}

static void saved_text_row(FILE *out, const struct saved_text_row *row, size_t number)
{
	const struct saved_numbers *n = &row->numbers;

	fprintf(out, "\n#%-3zu ", number);
	if (n->leaked_blocks)
		saved_text_sum(out, n->leaked_bytes, "leaked", n->leaked_blocks);
	else
		saved_text_sum(out, n->live_bytes, "live", n->live_blocks);
	fputs(", by ", out);
	escape_text(out, row->function);
	if (*row->place) {
		fputs(" from ", out);
		escape_text(out, row->place);
	}
	fputc('\n', out);
	diff_print_frames(out, row->frames);
}

static int saved_text_process(void *ctx, const struct saved_process *p)
{
	struct saved_text *t = ctx;
	const struct saved_numbers *n = &p->numbers;
	size_t shown = t->top && t->top < t->nr ? t->top : t->nr;

	if (t->nr_printed++)
		fputc('\n', t->out);
	if (*p->verdict) {
		escape_text(t->out, p->verdict);
	} else {
		saved_text_sum(t->out, n->leaked_bytes, "leaked", n->leaked_blocks);
		fputs("; ", t->out);
		saved_text_sum(t->out, n->live_bytes, "live", n->live_blocks);
	}
	fputc('\n', t->out);
	escape_text(t->out, p->comm);
	fprintf(t->out, " (pid %" PRIu64 "); ", p->pid);
	saved_text_sum(t->out, n->alloc_bytes, "allocated", n->allocs);
	fputc('\n', t->out);
	if (t->nr)
		qsort(t->rows, t->nr, sizeof(*t->rows), saved_text_compare);
	for (size_t i = 0; i < shown; i++)
		saved_text_row(t->out, &t->rows[i], i + 1);
	if (shown < t->nr)
		fprintf(t->out, "\n%s more callers: --top 0 shows all\n", human_count(t->nr - shown).text);
	saved_text_forget(t);
	return 0;
}

int saved_print(FILE *out, const char *text, size_t len, u32 top, const char **why, size_t *at)
{
	struct saved_text t = { .out = out, .top = top };
	const struct saved_sink sink = { &t, saved_text_add, saved_text_process };
	struct saved_totals totals = { .nr_processes = 0 };
	int err = saved_read(text, len, &sink, &totals, why, at);

	if (!err && totals.lost)
		fprintf(out, "\n%s events were lost: the numbers are not exact\n",
			human_count(totals.lost).text);
	saved_text_forget(&t);
	free(t.rows);
	return err;
}
