/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks in the text report: names and source lines. Frames that two stacks share are shown once. */
#include "user/report/report_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/heap/stacks.h"
#include "user/lib/path.h"
#include "user/names/symbolize.h"
#include "user/report/report_parts.h"
#include "user/report/short_name.h"

enum {
	FOLD_MIN_FRAMES = 5, /* fewer common frames are not worth a reference */
	MAX_FRAMES = 32,     /* of a stack; the last LAST_FRAMES are from its outer end */
	LAST_FRAMES = 6,
	MAX_NAME_BYTES = 240, /* of a function; names of C++ functions can be very long */
	MIN_NAME_WIDTH = 40,  /* however long the name of the source file is */
	BRIEF_LINE_MAX = 512,
	MAX_MERGED = 64, /* rows that are compared */
};

void text_tone_begin(struct text *t, enum tone tone)
{
	static const char *const codes[] = {
		[TONE_STRONG] = "\033[1m",
		[TONE_FAINT] = "\033[2m",
		[TONE_WARN] = "\033[33m",
	};
	_Static_assert(ARRAY_SIZE(codes) == NR_TONES, "a code for each tone");

	if (t->report->options.color)
		fputs(codes[tone], t->out);
}

void text_tone_end(struct text *t)
{
	if (t->report->options.color)
		fputs("\033[0m", t->out);
}

static void text_place(struct text *t, struct code_ref ref, bool want_offset)
{
	const struct module *m = module_get(t->report->modules, ref.module);

	if (!m) {
		fprintf(t->out, "at 0x%llx in no file", (unsigned long long)ref.offset);
		return;
	}
	fputs("in ", t->out);
	escape_text(t->out, t->report->options.verbose ? module_name(m) : path_name(module_name(m)));
	if (want_offset)
		fprintf(t->out, "+0x%llx", (unsigned long long)ref.offset);
}

/* Vote for the module that lacks most names: a module that has more than half of them wins. */
static void note_nameless(struct text *t, u32 module)
{
	if (!module)
		return;
	if (!t->nr_nameless)
		t->nameless = module;
	t->nr_nameless += t->nameless == module ? 1 : -1;
}

/* The columns that are left for the name of a function. */
static size_t name_width(const struct text *t, struct code_ref ref, const struct symbol *s)
{
	const size_t around = strlen(s->is_inlined ? "         at :10000 (inlined)" : "         at :10000");
	const struct module *m = module_get(t->report->modules, ref.module);
	const char *place = s->file ? s->file : m ? path_name(module_name(m)) : "";
	size_t all = t->report->options.width ? t->report->options.width : TEXT_DEFAULT_WIDTH;
	size_t used = strlen(place) + around;

	return all > used + MIN_NAME_WIDTH ? all - used : MIN_NAME_WIDTH;
}

static void text_source(struct text *t, const char *path)
{
	auto_free char *clean = calloc(1, strlen(path) + 2);

	escape_text(t->out, clean ? clean_path(clean, path) : path);
}

static void text_symbol(struct text *t, struct code_ref ref, const struct symbol *s)
{
	char name[MAX_NAME_BYTES];

	fputs("        ", t->out);
	if (IS_AGENT || !s->function) {
		if (!IS_AGENT)
			note_nameless(t, ref.module);
		text_place(t, ref, true);
	} else {
		if (t->report->options.verbose)
			escape_text(t->out, s->function);
		else
			fputs(short_name(name, sizeof(name), s->function, name_width(t, ref, s)), t->out);
		text_tone_begin(t, TONE_FAINT);
		if (s->file) {
			fputs(" at ", t->out);
			text_source(t, s->file);
			if (s->line)
				fprintf(t->out, ":%u", s->line);
		} else if (!code_ref_is_folded(ref)) {
			putc(' ', t->out);
			text_place(t, ref, t->report->options.verbose);
		}
		text_tone_end(t);
	}
	fputs(!IS_AGENT && s->is_inlined ? " (inlined)\n" : "\n", t->out);
}

static int text_frame(struct text *t, struct code_ref ref, size_t *nr_lines)
{
	const struct symbol *symbols;
	size_t nr;
	int err = report_symbols(t->report, ref, &symbols, &nr);

	for (size_t i = 0; i < nr && !err; i++, ++*nr_lines)
		text_symbol(t, ref, &symbols[i]);
	return err;
}

/* The number of outer frames that two stacks have in common. */
static size_t common_tail(const struct stack *a, const struct stack *b)
{
	size_t n = 0;

	while (n < a->nr_frames && n < b->nr_frames) {
		const struct code_ref *x = &a->frames[a->nr_frames - 1 - n];
		const struct code_ref *y = &b->frames[b->nr_frames - 1 - n];

		if (x->module != y->module || x->offset != y->offset)
			break;
		n++;
	}
	return n;
}

/* The largest number of outer frames that @s shares with one of @anchors, and the number of that row. */
static size_t find_anchor(const struct anchors *anchors, const struct stack *s, size_t *row)
{
	size_t most = 0;

	for (size_t i = 0; i < anchors->nr && i < TEXT_MAX_ANCHORS; i++) {
		size_t common = common_tail(s, anchors->list[i].stack);

		if (common > most) {
			most = common;
			*row = anchors->list[i].row;
		}
	}
	return most;
}

/* The recursion that begins at frame @i, before @end. */
static struct turns text_turns(const struct text *t, const struct stack *s, size_t i, size_t end)
{
	return IS_AGENT || t->report->options.verbose ? (struct turns){ 1, 1 }
						      : report_turns(t->report, s, i, end);
}

/* How many of the first @end frames are shown: of recursion, one turn. */
static size_t text_nr_shown(const struct text *t, const struct stack *s, size_t end)
{
	size_t nr = 0;

	for (size_t i = 0; i < end;) {
		struct turns turns = text_turns(t, s, i, end);

		nr += turns.nr;
		i += (size_t)turns.nr * turns.times;
	}
	return nr;
}

/* Write frame *@i of @s, or one turn of the recursion there. Moves *@i behind that; *@nr counts what was written. */
static int text_write_turn(struct text *t, const struct stack *s, size_t *i, size_t end, size_t *nr)
{
	struct turns turns = text_turns(t, s, *i, end);
	size_t nr_lines = 0;
	int err = 0;

	for (size_t k = *i; k < *i + turns.nr && !err; k++)
		err = text_frame(t, s->frames[k], &nr_lines);
	if (!IS_AGENT)
		report_turns_more(t->out, "        ", nr_lines, turns);
	*i += (size_t)turns.nr * turns.times;
	*nr += turns.nr;
	return err;
}

static int text_frames(struct text *t, const struct stack *s, size_t row, struct anchors *anchors)
{
	size_t shown = s->nr_frames, nr_left_out = 0, nr_shown;
	size_t anchor_row = 0;
	size_t common = t->report->options.verbose ? 0 : find_anchor(anchors, s, &anchor_row);
	int err = 0;

	if (common >= FOLD_MIN_FRAMES) {
		/* Show the first common frame: the two stacks meet there. */
		shown = s->nr_frames - common + 1;
	} else {
		size_t slot = anchors->nr++ % TEXT_MAX_ANCHORS;

		anchors->list[slot].stack = s;
		anchors->list[slot].row = row;
	}
	/* Both ends of a very long stack are the most useful parts. */
	nr_shown = text_nr_shown(t, s, shown);
	if (nr_shown > MAX_FRAMES && !t->report->options.verbose)
		nr_left_out = nr_shown - MAX_FRAMES;
	for (size_t i = 0, nr = 0; i < shown && !err;) {
		size_t from = i;

		while (nr_left_out && nr >= MAX_FRAMES - LAST_FRAMES) {
			struct turns turns = text_turns(t, s, i, shown);

			i += (size_t)turns.nr * turns.times;
			nr_left_out -= turns.nr < nr_left_out ? turns.nr : nr_left_out;
		}
		if (i > from)
			fprintf(t->out, "        ... %zu frames (-v shows them)\n", i - from);
		if (i < shown)
			err = text_write_turn(t, s, &i, shown, &nr);
	}
	if (shown < s->nr_frames)
		fprintf(t->out, "        ... and %zu more, as in #%zu\n", s->nr_frames - shown, anchor_row);
	return err;
}

/* "        make_node (list.c:42) < add_node < main", as much as fits into a line. */
static int text_row_brief(struct text *t, const struct report_process *p, const struct report_row *row)
{
	size_t width = t->report->options.width ? t->report->options.width : TEXT_DEFAULT_WIDTH;
	char names[BRIEF_LINE_MAX];
	size_t room = width > MIN_NAME_WIDTH + 12 ? width - 12 : MIN_NAME_WIDTH;
	int err = report_own_callers(t->report, p, row->id, names, sizeof(names));

	if (err)
		return err;
	if (strlen(names) > room)
		strcpy(names + room - 3, "...");
	fprintf(t->out, "        %s\n", *names ? names : "(no stack)");
	return 0;
}

static void text_add_sum(struct scan_sum *to, const struct scan_sum *sum)
{
	to->blocks += sum->blocks;
	to->bytes += sum->bytes;
}

static void text_add_row(struct report_row *to, const struct report_row *row)
{
	to->row.allocs += row->row.allocs;
	to->row.frees += row->row.frees;
	to->row.alloc_bytes += row->row.alloc_bytes;
	to->row.live_blocks += row->row.live_blocks;
	to->row.live_bytes += row->row.live_bytes;
	to->row.peak_bytes += row->row.peak_bytes;
	to->row.temporary += row->row.temporary;
	to->mismatched += row->mismatched;
	to->bad += row->bad;
	to->grown += row->grown;
	to->oldest_ns = row->oldest_ns > to->oldest_ns ? row->oldest_ns : to->oldest_ns;
	for (int i = 0; i < NR_SCAN_VERDICTS; i++)
		text_add_sum(&to->leaks.sums.of[i], &row->leaks.sums.of[i]);
	text_add_sum(&to->leaks.through, &row->leaks.through);
}

/* Put row @i, which may have grown, before smaller ones. */
static void text_move_up(struct report_row *rows, size_t i, const struct report_key *key)
{
	struct report_row row = rows[i];

	for (; i && report_key_value(key, &rows[i - 1]) < report_key_value(key, &row); i--)
		rows[i] = rows[i - 1];
	rows[i] = row;
}

int text_merge(struct text *t, const struct report_process *p, struct report_row *rows, size_t *nr,
	       const struct report_key *key)
{
	auto_free char(*lines)[BRIEF_LINE_MAX] = calloc(MAX_MERGED, sizeof(*lines));
	size_t kept = 0, looked_at = *nr < MAX_MERGED ? *nr : MAX_MERGED;
	int err = lines ? 0 : -ENOMEM;

	for (size_t i = 0; i < looked_at && !err; i++) {
		size_t k = 0;

		err = report_own_callers(t->report, p, rows[i].id, lines[kept], sizeof(*lines));
		while (k < kept && (strcmp(lines[k], lines[kept]) || rows[k].row.fn != rows[i].row.fn))
			k++;
		if (k < kept)
			text_add_row(&rows[k], &rows[i]);
		else
			rows[kept++] = rows[i];
	}
	for (size_t i = 1; i < kept; i++)
		text_move_up(rows, i, key);
	memmove(rows + kept, rows + looked_at, (*nr - looked_at) * sizeof(*rows));
	*nr -= looked_at - kept;
	return err;
}

int text_row(struct text *t, const struct report_process *p, const struct report_row *row, size_t number,
	     struct anchors *anchors)
{
	const char *truncated;
	const struct stack *s = report_stack(p, row, &truncated);
	int err;

	if (!IS_AGENT && text_is_brief(t))
		return text_row_brief(t, p, row);
	err = s ? text_frames(t, s, number, anchors) : 0;
	if (s && truncated)
		fprintf(t->out, "        (%s: %s)\n",
			s->end == STACK_GUESSED ? "functions may be left out" : "cut here", truncated);
	else if (!s)
		fprintf(t->out, "        (stack %s)\n", *truncated == 'l' ? "lost" : "not taken");
	return err;
}
