/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wrong releases in the text report: the error, and the stacks of the release, the allocation and the first release. */
#include "user/heap/misuse.h"
#include "user/report/report_parts.h"
#include "user/report/report_text.h"

#include "user/lib/escape.h"

static int report_text_misuse_stack_of(struct text *t, const struct report_process *p, u32 row, size_t number,
				       struct anchors *anchors)
{
	const struct report_row shown = { .id = row, .row = heap_row_get(p->heap, row) };

	return text_row(t, p, &shown, number, anchors);
}

static const char *report_text_misuse_name_of(const struct report_process *p, u32 row)
{
	return alloc_fn(heap_functions(p->heap), heap_row_get(p->heap, row).fn)->name;
}

static void misuse_head(struct text *t, const struct report_process *p, const struct misuse *m, size_t number)
{
	text_tone_begin(t, TONE_STRONG);
	fprintf(t->out, "#%-3zu %s", number, misuse_what(m->kind, 1));
	text_tone_end(t);
	if (misuse_has_numbers(m))
		fprintf(t->out, " (%s%llu, not %llu%s)", m->count > 1 ? "first " : "",
			(unsigned long long)m->said, (unsigned long long)m->asked,
			m->kind == MISUSE_SIZE ? " bytes" : "");
	fprintf(t->out, ", %s time%s, %s0x%llx, by ", human_count(m->count).text, plural(m->count),
		m->count > 1 ? "first " : "", (unsigned long long)m->addr);
	report_function(t->out, p, m->fn);
	putc('\n', t->out);
}

static int text_misuse(struct text *t, const struct report_process *p, const struct misuse *m, size_t number,
		       struct anchors *anchors)
{
	int err = 0;

	misuse_head(t, p, m, number);
	if (m->free_row != MISUSE_NO_ROW)
		err = report_text_misuse_stack_of(t, p, m->free_row, number, anchors);
	if (!err && m->earlier_row != MISUSE_NO_ROW) {
		fputs("      released before by ", t->out);
		escape_text(t->out, report_text_misuse_name_of(p, m->earlier_row));
		putc('\n', t->out);
		err = report_text_misuse_stack_of(t, p, m->earlier_row, number, anchors);
	}
	if (err || m->alloc_row == MISUSE_NO_ROW)
		return err;
	if (m->inside)
		fprintf(t->out, "      %llu bytes into a block allocated by ", (unsigned long long)m->inside);
	else
		fputs("      allocated by ", t->out);
	escape_text(t->out, report_text_misuse_name_of(p, m->alloc_row));
	putc('\n', t->out);
	return report_text_misuse_stack_of(t, p, m->alloc_row, number, anchors);
}

int text_notices(struct text *t, const struct report_process *p, size_t *nr_shown, struct anchors *anchors)
{
	const struct misuse_notice *n = heap_notices(p->heap);
	int err = 0;

	for (int kind = 0; n && !text_is_brief(t) && kind < NR_NOTICES_KINDS && !err; kind++) {
		if (!n[kind].count)
			continue;
		fprintf(t->out, "\nNotice: %s, %s time%s, first by ", notice_what(kind),
			human_count(n[kind].count).text, plural(n[kind].count));
		if (n[kind].row == MISUSE_NO_ROW) {
			fputs("an unknown caller\n", t->out);
			continue;
		}
		escape_text(t->out, report_text_misuse_name_of(p, n[kind].row));
		putc('\n', t->out);
		err = report_text_misuse_stack_of(t, p, n[kind].row, ++*nr_shown, anchors);
	}
	return err;
}

int text_misuses(struct text *t, const struct report_process *p, size_t *nr_shown, struct anchors *anchors)
{
	struct misuse_counts counts = heap_misuse_counts(p->heap);
	size_t nr, shown;
	const struct misuse *list = heap_misuses(p->heap, &nr);
	int err = 0;

	if (!nr && !counts.nr_dropped)
		return 0;
	shown = text_room(t, *nr_shown, nr);
	fprintf(t->out, "\n%s wrong release%s\n", human_count(nr).text, plural(nr));
	for (size_t i = 0; i < shown && !err; i++) {
		putc('\n', t->out);
		err = text_misuse(t, p, &list[i], ++*nr_shown, anchors);
	}
	if (shown < nr)
		fprintf(t->out, "\n%s more\n", human_count(nr - shown).text);
	if (counts.nr_dropped)
		fprintf(t->out, "\n%s more times, by callers beyond the first %d\n",
			human_count(counts.nr_dropped).text, MISUSE_MAX);
	return err;
}
