/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The section on leaked blocks that --blocks asks for: addresses, and with --contents what they hold. */
#include <inttypes.h>

#include "user/heap/thread_table.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/report/report_parts.h"
#include "user/report/report_text.h"
#include "user/scan/leaks.h"
#include "user/scan/leaks_samples.h"

enum { SAMPLE_NAMES = 512, SAMPLE_LINE = 16 };

static void sample_dump(FILE *out, const struct leak_sample *s)
{
	for (u32 at = 0; at < s->nr_bytes; at += SAMPLE_LINE) {
		fprintf(out, "      %04" PRIx32 "  ", at);
		for (u32 i = at; i < at + SAMPLE_LINE; i++)
			if (i < s->nr_bytes)
				fprintf(out, "%02x ", s->bytes[i]);
			else
				fputs("   ", out);
		putc(' ', out);
		for (u32 i = at; i < at + SAMPLE_LINE && i < s->nr_bytes; i++)
			putc(s->bytes[i] >= ' ' && s->bytes[i] <= '~' ? s->bytes[i] : '.', out);
		putc('\n', out);
	}
}

static void sample_line(struct text *t, const struct report_process *p, const struct leak_sample *s)
{
	u64 now_ns = t->report->time_ns;
	struct thread_row thread;

	fprintf(t->out, "    0x%-14" PRIx64 "  %10s  %-8s  %s old", s->block.addr,
		human_bytes(s->block.size).text, scan_verdict_name(s->verdict),
		human_duration(now_ns > s->block.time_ns ? now_ns - s->block.time_ns : 0).text);
	if (heap_thread(p->heap, s->block.thread, &thread) && thread.tid) {
		fprintf(t->out, "  thread %u ", thread.tid);
		escape_text(t->out, report_thread_name(p, &thread) ? report_thread_name(p, &thread) : "");
	}
	putc('\n', t->out);
	sample_dump(t->out, s);
}

int text_samples(struct text *t, const struct report_process *p)
{
	const struct leak_samples *list = p->leaks ? &p->leaks->samples : NULL;
	char names[SAMPLE_NAMES];
	u32 row = UINT32_MAX;

	for (size_t i = 0; list && i < list->nr; i++) {
		const struct leak_sample *s = &list->list[i];
		struct leak_row sums = leaks_row(p->leaks, s->block.row);
		int err;

		/* A rule may leave out the whole caller. */
		if (!sums.sums.of[s->verdict].blocks)
			continue;
		if (row == UINT32_MAX)
			fputs("\nLeaked blocks\n", t->out);
		if (s->block.row != row) {
			err = report_callers(t->report, p, s->block.row, names, sizeof(names));
			if (err)
				return err;
			row = s->block.row;
			fputs("  ", t->out);
			report_function(t->out, p, heap_row_get(p->heap, row).fn);
			fprintf(t->out, "%s%s\n", *names ? " < " : "", names);
		}
		sample_line(t, p, s);
	}
	return 0;
}
