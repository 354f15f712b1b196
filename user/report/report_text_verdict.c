/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer with which the report for people begins: at most two lines that a reader can quote. */
#include "user/report/report_text.h"

#include <string.h>

#include "user/heap/stacks.h"
#include "user/lib/escape.h"
#include "user/lib/path.h"
#include "user/names/symbolize.h"
#include "user/report/short_name.h"
#include "user/source/source.h"

enum { MAX_PLACE_BYTES = 160, PLACE_WIDTH = 50 };

/* The callers whose blocks are definitely lost: how many, and the one that lost most. */
struct leaky {
	size_t nr;
	const struct report_row *worst;
};

static u64 definite_bytes(const struct report_row *row)
{
	return row->leaks.sums.of[SCAN_DEFINITE].bytes;
}

static struct leaky find_leaky(const struct report_row *rows, size_t nr)
{
	struct leaky p = { 0 };

	for (size_t i = 0; i < nr; i++) {
		if (!rows[i].leaks.sums.of[SCAN_DEFINITE].blocks)
			continue;
		p.nr++;
		if (!p.worst || definite_bytes(&rows[i]) > definite_bytes(p.worst))
			p.worst = &rows[i];
	}
	return p;
}

/* "open_session at leak.c:39", "open_session in libx.so", "libx.so+0x18032", or "" for code in no file. */
static void name_frame(const struct text *t, struct code_ref ref, const struct symbol *s, char *name,
		       size_t size)
{
	const struct module *m = module_get(t->report->modules, ref.module);
	char function[MAX_PLACE_BYTES], file[MAX_PLACE_BYTES];
	const char *path = s->file && s->line ? s->file : m ? module_name(m) : "";

	escape_buf(file, sizeof(file), path_name(path));
	if (!IS_AGENT)
		short_name(function, sizeof(function), s->function ? s->function : "", PLACE_WIDTH);
	if (IS_AGENT || !s->function)
		snprintf(name, size, m ? "%s+0x%llx" : "%s", file, (unsigned long long)ref.offset);
	else if (s->file && s->line)
		snprintf(name, size, "%s at %s:%u", function, file, s->line);
	else
		snprintf(name, size, m ? "%s in %s" : "%s", function, file);
}

/* Functions that start a program or a thread: in a program without symbols they are often the only names. */
static bool is_start(const char *function)
{
	static const char *const names[] = { "_start", "call_init", "clone", "clone3", "start_thread" };
	static const char *const begins[] = { "__libc_start_", "__libc_csu_", "_dl_", "__clone" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], function))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(begins[i], function, strlen(begins[i])))
			return true;
	return false;
}

/*
 * The name of the innermost frame of @row that has one, and starts no thread: frames without a name are often parts
 * of a wrapper around the allocator. Without such a name the innermost frame, as file and offset; "" without a stack.
 * 0 or -ENOMEM.
 */
static int place_name(const struct text *t, const struct report_process *p, const struct report_row *row,
		      char *name, size_t size)
{
	const char *truncated;
	const struct stack *stack = report_stack(p, row, &truncated);

	*name = '\0';
	for (size_t i = 0; stack && i < stack->nr_frames; i++) {
		const struct symbol *symbols;
		size_t nr;
		int err = report_symbols(t->report, stack->frames[i], &symbols, &nr);

		if (err)
			return err;
		if (i && symbols[0].function && is_start(symbols[0].function))
			return 0;
		if (!i || symbols[0].function)
			name_frame(t, stack->frames[i], &symbols[0], name, size);
		if (symbols[0].function)
			return 0;
	}
	return 0;
}

static int verdict_leaks(struct text *t, const struct report_process *p, const struct report_row *rows,
			 size_t nr)
{
	const struct scan_sum *sum = &p->leaks->result.sums.of[SCAN_DEFINITE];
	struct leaky leaky = find_leaky(rows, nr);
	char name[2 * MAX_PLACE_BYTES + 64];
	int err = 0;

	text_tone_begin(t, TONE_WARN);
	fprintf(t->out, "leaks %s in %s block%s", human_bytes(sum->bytes).text, human_count(sum->blocks).text,
		plural(sum->blocks));
	text_tone_end(t);
	if (!leaky.worst)
		return 0;
	err = place_name(t, p, leaky.worst, name, sizeof(name));
	if (err)
		return err;
	fprintf(t->out, ", %s place%s", human_count(leaky.nr).text, plural(leaky.nr));
	if (!*name)
		return 0;
	if (leaky.nr == 1)
		fprintf(t->out, " (%s)", name);
	else
		fprintf(t->out, " (worst: %s, %s)", name, human_bytes(definite_bytes(leaky.worst)).text);
	return 0;
}

static void verdict_live(struct text *t, const struct report_process *p)
{
	struct heap_totals totals = heap_totals(p->heap);

	if (totals.live_blocks)
		fprintf(t->out, "; %s live in %s block%s", human_bytes(totals.live_bytes).text,
			human_count(totals.live_blocks).text, plural(totals.live_blocks));
	else if (!p->target->is_started && !totals.allocs)
		fputs("; nothing was allocated since the attach", t->out);
	else
		fputs("; nothing is live", t->out);
}

/* Nothing is definitely lost. Say what else may be lost, so that nobody takes a doubt for an all-clear. */
static void verdict_none(struct text *t, const struct report_process *p)
{
	const struct scan_sum *possible = &p->leaks->result.sums.of[SCAN_POSSIBLE];
	const struct scan_sum *unsure = &p->leaks->result.sums.of[SCAN_UNSURE];

	if (!possible->blocks && !unsure->blocks) {
		fputs("no leaks", t->out);
		return;
	}
	fputs("no definite leaks", t->out);
	if (possible->blocks)
		fprintf(t->out, "; %s in %s block%s possibly leaked", human_bytes(possible->bytes).text,
			human_count(possible->blocks).text, plural(possible->blocks));
	if (unsure->blocks)
		fprintf(t->out, "; %s in %s block%s unsure", human_bytes(unsure->bytes).text,
			human_count(unsure->blocks).text, plural(unsure->blocks));
}

static void verdict_missing(struct text *t, const struct report_process *p)
{
	static const char prefix[] = "no leak verdict: ";
	const char *why = p->no_verdict ? p->no_verdict : "the memory was not searched";

	text_tone_begin(t, TONE_WARN);
	fputs(prefix, t->out);
	escape_text(t->out, strncmp(why, prefix, sizeof(prefix) - 1) ? why : why + sizeof(prefix) - 1);
	text_tone_end(t);
}

static int verdict_line(struct text *t, const struct report_process *p, const struct report_row *rows,
			size_t nr)
{
	int err = 0;

	if (p->unwatched) {
		text_tone_begin(t, TONE_WARN);
		fputs("no verdict: nothing could be watched: ", t->out);
		escape_text(t->out, p->unwatched);
		text_tone_end(t);
		putc('\n', t->out);
		return 0;
	}
	if (!p->leaks)
		verdict_missing(t, p);
	else if (p->leaks->result.sums.of[SCAN_DEFINITE].blocks)
		err = verdict_leaks(t, p, rows, nr);
	else
		verdict_none(t, p);
	if (!p->leaks || !p->leaks->result.sums.of[SCAN_DEFINITE].blocks)
		verdict_live(t, p);
	putc('\n', t->out);
	return err;
}

/* The part of the second line after those before it: "; ". */
static const char *joint(bool *is_any)
{
	const char *s = *is_any ? "; " : "";

	*is_any = true;
	return s;
}

/* Wrong releases, and why the numbers are not exact. No line if there is neither. */
static void doubt_line(struct text *t, const struct report_process *p)
{
	struct misuse_counts c = heap_misuse_counts(p->heap);
	struct losses lost = report_losses(p);
	u64 nr_lost = lost.allocs + lost.frees;
	bool is_any = false;

	for (int i = 0; i < NR_MISUSES; i++)
		is_any |= c.of[i] != 0;
	if (!is_any && !nr_lost)
		return;
	is_any = false;
	text_tone_begin(t, TONE_WARN);
	for (int i = 0; i < NR_MISUSES; i++)
		if (c.of[i])
			fprintf(t->out, "%s%s %s%s", joint(&is_any), human_count(c.of[i]).text,
				misuse_what(i), plural(c.of[i]));
	if (nr_lost)
		fprintf(t->out, "%snot exact: %s event%s lost", joint(&is_any), human_count(nr_lost).text,
			nr_lost == 1 ? " was" : "s were");
	text_tone_end(t);
	putc('\n', t->out);
}

int text_verdict(struct text *t, const struct report_process *p, const struct report_row *rows, size_t nr)
{
	int err = verdict_line(t, p, rows, nr);

	if (!err && !p->unwatched)
		doubt_line(t, p);
	if (!err && p->ending) {
		escape_text(t->out, p->ending);
		putc('\n', t->out);
	}
	return err;
}
