/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the differences of two reports as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "user/report/diff.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/human.h"
#include "user/lib/json.h"

enum {
	BRIEF_ROWS = 3,	    /* on a screen, of those with more and of those with less */
	MAX_LOOKED_AT = 64, /* callers whose places are added up, the largest first */
};

static u64 diff_print_size_of(s64 change)
{
	return change < 0 ? 0 - (u64)change : (u64)change;
}

static const char *blocks_word(u64 blocks)
{
	return blocks == 1 ? "block" : "blocks";
}

/* "+1.2 KiB, -3 blocks". Leaves out a part that did not change, but never both parts. */
static void diff_print_change(FILE *out, s64 bytes, s64 blocks)
{
	if (bytes || !blocks)
		fputs(human_change(bytes).text, out);
	if (bytes && blocks)
		fputs(", ", out);
	if (blocks)
		fprintf(out, "%c%s %s", blocks < 0 ? '-' : '+', human_count(diff_print_size_of(blocks)).text,
			blocks_word(diff_print_size_of(blocks)));
}

static void diff_print_sum(FILE *out, u64 bytes, u64 blocks)
{
	if (!blocks)
		fputs("none", out);
	else
		fprintf(out, "%s in %s %s", human_bytes(bytes).text, human_count(blocks).text,
			blocks_word(blocks));
}

static void print_total(FILE *out, const char *what, const u64 bytes[2], const u64 blocks[2])
{
	s64 change = (s64)(bytes[1] - bytes[0]), more = (s64)(blocks[1] - blocks[0]);

	fprintf(out, "  %-11s ", what);
	diff_print_sum(out, bytes[0], blocks[0]);
	if (!change && !more) {
		fputs(", as before\n", out);
		return;
	}
	fputs(", then ", out);
	diff_print_sum(out, bytes[1], blocks[1]);
	fputs(": ", out);
	diff_print_change(out, change, more);
	fputc('\n', out);
}

static void print_peak(FILE *out, u64 before, u64 after)
{
	s64 change = (s64)(after - before);

	fprintf(out, "  %-11s %s", "peak", human_bytes(before).text);
	if (!change)
		fputs(", as before\n", out);
	else
		fprintf(out, ", then %s: %s\n", human_bytes(after).text, human_change(change).text);
}

/* The traced programs and how long: the reader must see whether the two runs can be compared. */
static void print_traced(FILE *out, const struct saved_totals t[2])
{
	fprintf(out, "  %-11s ", "traced");
	for (u32 i = 0; i < 2; i++) {
		if (t[i].nr_processes == 1)
			escape_text(out, t[i].comm);
		else
			fprintf(out, "%s processes", human_count(t[i].nr_processes).text);
		fprintf(out, " for %s%s", human_duration(t[i].duration_ns).text, i ? "\n" : ", then ");
	}
}

/* Lost blocks, and those that only they lead to, in the words of reports. */
static void print_leaked(FILE *out, const struct saved_numbers *a, const struct saved_numbers *b)
{
	const u64 indirect[2] = { a->leaked_bytes - a->definite_bytes, b->leaked_bytes - b->definite_bytes };
	const u64 blocks[2] = { a->leaked_blocks - a->definite_blocks,
				b->leaked_blocks - b->definite_blocks };

	print_total(out, "definite", (u64[]){ a->definite_bytes, b->definite_bytes },
		    (u64[]){ a->definite_blocks, b->definite_blocks });
	if (blocks[0] || blocks[1])
		print_total(out, "indirect", indirect, blocks);
}

static void print_totals(FILE *out, const struct saved_totals t[2], const char *const names[2])
{
	const struct saved_numbers *a = &t[0].numbers, *b = &t[1].numbers;

	escape_text(out, names[0]);
	fputs(" and then ", out);
	escape_text(out, names[1]);
	fputc('\n', out);
	print_traced(out, t);
	print_total(out, "live", (u64[]){ a->live_bytes, b->live_bytes },
		    (u64[]){ a->live_blocks, b->live_blocks });
	print_peak(out, a->peak_bytes, b->peak_bytes);
	print_total(out, "allocated", (u64[]){ a->alloc_bytes, b->alloc_bytes },
		    (u64[]){ a->allocs, b->allocs });
	if (t[0].nr_scanned && t[1].nr_scanned)
		print_leaked(out, a, b);
	else if (t[0].nr_scanned || t[1].nr_scanned)
		fprintf(out, "  %-11s not known of the %s\n", "leaks", t[0].nr_scanned ? "second" : "first");
	if (t[0].lost || t[1].lost)
		fprintf(out, "  %-11s %s events, then %s: what is said here is not exact\n", "lost",
			human_count(t[0].lost).text, human_count(t[1].lost).text);
}

/* The bytes and blocks of a row for @key. A peak has no number of blocks. */
static void numbers_of(const struct saved_numbers *n, enum diff_key key, u64 *bytes, u64 *blocks)
{
	bool is_total = key == DIFF_TOTAL_BYTES || key == DIFF_TOTAL_BLOCKS;

	*bytes = key == DIFF_LEAKED_BYTES ? n->leaked_bytes : is_total ? n->alloc_bytes : n->live_bytes;
	*blocks = key == DIFF_LEAKED_BYTES ? n->leaked_blocks : is_total ? n->allocs : n->live_blocks;
	if (key == DIFF_PEAK) {
		*bytes = n->peak_bytes;
		*blocks = 0;
	}
}

void diff_print_frames(FILE *out, const char *frames)
{
	for (const char *p = frames; *p;) {
		size_t len = strcspn(p, "\n");
		char line[1024];

		snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line) - 1), p);
		fputs("        ", out);
		escape_text(out, line);
		fputc('\n', out);
		p += len + (p[len] == '\n');
	}
}

static void diff_print_row(FILE *out, const struct diff_row *row, enum diff_key key, size_t number,
			   bool is_brief)
{
	u64 bytes[2], blocks[2];

	for (u32 i = 0; i < 2; i++)
		numbers_of(&row->of[i], key, &bytes[i], &blocks[i]);
	fprintf(out, "%s#%-3zu ", is_brief ? "" : "\n", number);
	diff_print_change(out, (s64)(bytes[1] - bytes[0]), (s64)(blocks[1] - blocks[0]));
	fputs(" (", out);
	for (u32 i = 0; i < 2; i++) {
		if (key == DIFF_PEAK)
			fputs(bytes[i] ? human_bytes(bytes[i]).text : "none", out);
		else
			diff_print_sum(out, bytes[i], blocks[i]);
		fputs(i ? "), by " : ", then ", out);
	}
	escape_text(out, row->function);
	if (row->place) {
		fputs(" from ", out);
		escape_text(out, row->place);
	}
	fputc('\n', out);
	if (!is_brief)
		diff_print_frames(out, row->frames);
}

/* Write the rows with gains or those with losses, the largest change first. */
static void diff_print_rows(FILE *out, const struct diff_row *const *rows, size_t nr, enum diff_key key,
			    u32 top, bool is_brief, bool is_gain)
{
	static const char *const words[NR_DIFF_KEYS][2] = {
		[DIFF_LIVE_BYTES] = { "holds less", "holds more" },
		[DIFF_LIVE_BLOCKS] = { "holds fewer blocks", "holds more blocks" },
		[DIFF_TOTAL_BYTES] = { "allocated less", "allocated more" },
		[DIFF_TOTAL_BLOCKS] = { "allocated fewer blocks", "allocated more blocks" },
		[DIFF_LEAKED_BYTES] = { "leaked less", "leaked more" },
		[DIFF_LOST_BYTES] = { "leaked less", "leaked more" },
		[DIFF_PEAK] = { "held less at the peak", "held more at the peak" },
	};
	size_t shown;

	top = is_brief ? BRIEF_ROWS : top;
	shown = top && top < nr ? top : nr;
	if (!nr)
		return;
	fprintf(out, "\nWho %s: ", words[key][is_gain]);
	if (shown < nr)
		fprintf(out, "top %s of ", human_count(shown).text);
	fprintf(out, "%s caller%s\n", human_count(nr).text, nr == 1 ? "" : "s");
	for (size_t i = 0; i < shown; i++)
		diff_print_row(out, rows[is_gain ? i : nr - 1 - i], key, i + 1, is_brief);
}

/* The gain of the place of @rows[i], of all its callers, if this is the first of them. */
static s64 diff_print_place_gain(const struct diff_row *const *rows, size_t i, size_t nr, enum diff_key key)
{
	s64 sum = 0;

	for (size_t k = 0; k < nr; k++) {
		if (k != i && (!rows[i]->place || !rows[k]->place || strcmp(rows[k]->place, rows[i]->place)))
			continue;
		if (k < i)
			return 0;
		sum += diff_change(rows[k], key);
	}
	return sum;
}

/* ", most of it from make_node (list.c:42)": the place that gained most of the @all bytes of @key. */
static void diff_print_place(FILE *out, struct diff *d, enum diff_key key, s64 all)
{
	size_t nr;
	const struct diff_row *const *rows = diff_rows(d, key, &nr);
	const struct diff_row *holder = NULL;
	s64 most = 0;

	for (size_t i = 0; i < nr && i < MAX_LOOKED_AT; i++) {
		s64 gain = diff_print_place_gain(rows, i, nr < MAX_LOOKED_AT ? nr : MAX_LOOKED_AT, key);

		if (gain > most) {
			most = gain;
			holder = rows[i];
		}
	}
	if (all <= 0 || !holder)
		return;
	fprintf(out, ", %sfrom ", most >= all ? "" : most * 2 >= all ? "most of it " : "the largest part ");
	if (holder->place)
		escape_text(out, holder->place);
	else
		fprintf(out, "%.*s", (int)strcspn(holder->frames, "\n"), holder->frames);
}

static void print_more(FILE *out, const char *verb, s64 change, bool is_estimate)
{
	fprintf(out, "%s %s%s %s", verb, is_estimate ? "~" : "", human_bytes(diff_print_size_of(change)).text,
		change < 0 ? "less" : "more");
}

/* Definite blocks, and those with them, if both are more, or both are less; else their sum. */
static void print_leaks(FILE *out, struct diff *d, const struct diff_sums *sums)
{
	s64 bytes = sums->definite_bytes, blocks = sums->definite_blocks;
	s64 more_bytes = sums->leaked_bytes - bytes, more_blocks = sums->leaked_blocks - blocks;
	bool is_split = blocks > 0 ? bytes >= 0 && more_bytes >= 0 && more_blocks >= 0
				   : blocks < 0 && bytes <= 0 && more_bytes <= 0 && more_blocks <= 0;

	if (!is_split) {
		bytes = sums->leaked_bytes;
		blocks = sums->leaked_blocks;
		more_blocks = 0;
	}
	print_more(out, "leaks", bytes, sums->is_estimate);
	fprintf(out, " in %s %s %s", human_count(diff_print_size_of(blocks)).text,
		blocks < 0 ? "fewer" : "more", blocks_word(diff_print_size_of(blocks)));
	if (more_blocks)
		fprintf(out, ", and with them %s in %s", human_bytes(diff_print_size_of(more_bytes)).text,
			human_count(diff_print_size_of(more_blocks)).text);
	diff_print_place(out, d, is_split ? DIFF_LOST_BYTES : DIFF_LEAKED_BYTES, sums->leaked_bytes);
}

/* The answer: what leaks more, and who holds more. */
static void print_answer(FILE *out, struct diff *d)
{
	const struct diff_sums sums = diff_sums(d);
	const struct saved_totals after = diff_totals(d, 1);

	if (!sums.has_leaks) {
		fputs("no leak verdict in both", out);
	} else if (sums.leaked_bytes || sums.leaked_blocks) {
		print_leaks(out, d, &sums);
	} else {
		fputs(after.numbers.leaked_blocks ? "leaks as much as before" : "no leaks", out);
	}
	fputs("; ", out);
	if (sums.live_bytes)
		print_more(out, "holds", sums.live_bytes, sums.is_estimate);
	else
		fputs("holds as much as before", out);
	if (sums.is_noise)
		fputs(" (within the noise of samples)", out);
	diff_print_place(out, d, DIFF_LIVE_BYTES, sums.live_bytes);
	fputc('\n', out);
}

/* Code without symbols has other offsets in another build: then each of its callers is new, or gone. */
static void print_unmatched(FILE *out, struct diff *d)
{
	size_t nr, nr_matched = 0, nr_only[2] = { 0 }, nr_named[2] = { 0 };
	bool is_stripped;
	const struct diff_row **rows;

	if (diff_all(d, &rows, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		bool is_later = rows[i]->of[1].allocs;

		if (rows[i]->of[0].allocs && is_later)
			nr_matched++;
		else if (strstr(rows[i]->frames, "+0x"))
			nr_only[is_later]++;
		else
			nr_named[is_later]++;
	}
	free(rows);
	/* Or one of them has symbols, and the other has none. */
	is_stripped = (nr_only[0] && !nr_named[0] && !nr_only[1] && nr_named[1]) ||
		      (nr_only[1] && !nr_named[1] && !nr_only[0] && nr_named[0]);
	if ((nr_only[0] && nr_only[1] && nr_only[0] + nr_only[1] > nr_matched) ||
	    (is_stripped && !nr_matched))
		fprintf(out,
			"callers cannot be matched: %s of the first report and %s of the second are code without "
			"symbols, which has other offsets in another build; totals are right\n",
			human_count(nr_only[0]).text, human_count(nr_only[1]).text);
}

int diff_write_text(FILE *out, struct diff *d, enum diff_key key, u32 top, bool is_brief,
		    const char *const names[2])
{
	const struct saved_totals totals[2] = { diff_totals(d, 0), diff_totals(d, 1) };
	const struct diff_row *const *rows;
	size_t nr, nr_gains = 0;

	print_answer(out, d);
	print_unmatched(out, d);
	key = diff_key_for(d, key);
	rows = diff_rows(d, key, &nr);
	print_totals(out, totals, names);
	while (nr_gains < nr && diff_change(rows[nr_gains], key) > 0)
		nr_gains++;
	if (!nr)
		fputs("\nNo caller changed.\n", out);
	diff_print_rows(out, rows, nr_gains, key, top, is_brief, true);
	diff_print_rows(out, rows + nr_gains, nr - nr_gains, key, top, is_brief, false);
	if (is_brief && nr)
		fputs("\nAll callers with their stacks: -n 0, or a page: -o diff.html\n", out);
	return flush_stream(out);
}

static void json_numbers(struct json *j, const char *key, const struct saved_numbers *n)
{
	json_object_begin(j, key);
	json_u64(j, "live_bytes", n->live_bytes);
	json_u64(j, "live_blocks", n->live_blocks);
	json_u64(j, "alloc_bytes", n->alloc_bytes);
	json_u64(j, "allocs", n->allocs);
	json_u64(j, "leaked_bytes", n->leaked_bytes);
	json_u64(j, "leaked_blocks", n->leaked_blocks);
	json_u64(j, "peak_bytes", n->peak_bytes);
	json_object_end(j);
}

static void json_side(struct json *j, const char *key, const struct diff *d, u32 side, const char *name)
{
	const struct saved_totals t = diff_totals(d, side);

	json_object_begin(j, key);
	json_string(j, "file", name);
	json_u64(j, "processes", t.nr_processes);
	json_u64(j, "scanned", t.nr_scanned);
	json_u64(j, "lost", t.lost);
	json_u64(j, "duration_ns", t.duration_ns);
	json_numbers(j, "totals", &t.numbers);
	json_object_end(j);
}

void diff_json_sides(struct json *j, const struct diff *d, const char *const names[2])
{
	json_side(j, "a", d, 0, names[0]);
	json_side(j, "b", d, 1, names[1]);
}

void diff_json_frames(struct json *j, const char *frames)
{
	json_array_begin(j, "frames");
	for (const char *p = frames; *p;) {
		size_t len = strcspn(p, "\n");
		char line[1024];

		snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line) - 1), p);
		json_string(j, NULL, line);
		p += len + (p[len] == '\n');
	}
	json_array_end(j);
}

int diff_write_json(FILE *out, struct diff *d, enum diff_key key, const char *const names[2])
{
	size_t nr;
	const struct diff_row *const *rows = diff_rows(d, key, &nr);
	struct json j;

	json_init(&j, out, 3);
	json_object_begin(&j, NULL);
	json_string(&j, "schema", "heaptap-diff/1");
	json_string(&j, "version", HEAPTAP_VERSION);
	diff_json_sides(&j, d, names);
	json_array_begin(&j, "callers");
	for (size_t i = 0; i < nr; i++) {
		json_object_begin(&j, NULL);
		json_string(&j, "function", rows[i]->function);
		json_string(&j, "place", rows[i]->place);
		json_s64(&j, "live_bytes", diff_change(rows[i], DIFF_LIVE_BYTES));
		json_s64(&j, "live_blocks", diff_change(rows[i], DIFF_LIVE_BLOCKS));
		json_s64(&j, "leaked_bytes", diff_change(rows[i], DIFF_LEAKED_BYTES));
		json_numbers(&j, "a", &rows[i]->of[0]);
		json_numbers(&j, "b", &rows[i]->of[1]);
		diff_json_frames(&j, rows[i]->frames);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	fputc('\n', out);
	return flush_stream(out);
}
