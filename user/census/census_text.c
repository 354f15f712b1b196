/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The census for people: a line that can be quoted, then tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/census/census_owners.h"
#include "user/census/census_report.h"
#include "user/census/census_sizes.h"
#include "user/census/census_types.h"
#include "user/census/census_walk.h"
#include "user/census/census_why.h"
#include "user/census/census_why_type.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/lib/wrap.h"
#include "user/report/report_hint.h"
#include "user/target/allocator_kind.h"

enum {
	MAX_FIRSTS = 20,    /* rows of first words, unless -n says otherwise: each string may have its own */
	MIN_FREE = 1 << 20, /* bytes that are worth a way out */
	DEFAULT_WIDTH = 80, /* columns */
	BRIEF_ROWS = 3,	    /* of a table on a screen */
};

static const char *census_text_plural(u64 n)
{
	return n == 1 ? "" : "s";
}

static void census_text_print_sum(FILE *out, struct census_sum sum)
{
	fprintf(out, "%s in %s block%s", human_bytes(sum.bytes).text, human_count(sum.blocks).text,
		census_text_plural(sum.blocks));
}

static struct census_sum verdict_sum(const struct census *c, enum scan_verdict verdict)
{
	struct scan_result r = scan_result(c->scan);

	return (struct census_sum){ r.sums.of[verdict].blocks, r.sums.of[verdict].bytes };
}

/* Nothing is definitely lost. Say what else may be lost, so that nobody takes a doubt for an all-clear. */
static void print_doubt(FILE *out, const struct census *c)
{
	struct census_sum possible = verdict_sum(c, SCAN_POSSIBLE), unsure = verdict_sum(c, SCAN_UNSURE);

	fputs(possible.blocks || unsure.blocks ? "no definite leaks" : "no leaks", out);
	if (possible.blocks) {
		fputs("; ", out);
		census_text_print_sum(out, possible);
		fputs(" possibly leaked", out);
	}
	if (unsure.blocks) {
		fputs("; ", out);
		census_text_print_sum(out, unsure);
		fputs(" unsure", out);
	}
}

/* "leaks 1,442 B in 10 blocks, and with them 848 B in 13; 3,302 B live in 35 blocks; 1.2 MiB free in the allocator" */
static void census_text_print_head(FILE *out, const struct census *c)
{
	struct census_sum live = census_live(&c->blocks);

	if (!c->scan) {
		fprintf(out, "no leak verdict: %s", c->why);
	} else {
		struct census_sum definite = verdict_sum(c, SCAN_DEFINITE),
				  indirect = verdict_sum(c, SCAN_INDIRECT);

		if (definite.blocks)
			fprintf(out, "leaks %s",
				human_lost("", definite.bytes, definite.blocks, indirect.bytes,
					   indirect.blocks)
					.text);
		else
			print_doubt(out, c);
	}
	fprintf(out, "; %s live in %s block%s; %s free in the allocator", human_bytes(live.bytes).text,
		human_count(live.blocks).text, census_text_plural(live.blocks),
		human_bytes(census_free_bytes(&c->blocks)).text);
	if (c->has_free_resident)
		fprintf(out, ", %s of it in resident pages", human_bytes(c->free_resident).text);
	if (c->stranger)
		fprintf(out, "; the blocks of %s are not listed", c->stranger);
	putc('\n', out);
	if (c->scan) {
		struct scan_result r = scan_result(c->scan);
		char text[REPORT_HINT_TEXT];

		report_hint_tagged(text, &r);
		fprintf(out, "%s%s", text, *text ? "\n" : "");
	}
}

/* The parts of the process that the core does not have. */
static void print_core(FILE *out, const struct census *c)
{
	const struct core_facts *f = &c->core;

	if (!c->is_core)
		return;
	fputs("  a core has no data of epoll and timers: a block that only these hold is called lost\n", out);
	if (f->may_have_gaps)
		fputs("  gdb leaves out memory that the program excluded from cores (MADV_DONTDUMP): a block that only "
		      "such memory holds is called lost\n",
		      out);
	if (f->truncated_bytes)
		fprintf(out, "  the file is cut: %s at its end are missing\n",
			human_bytes(f->truncated_bytes).text);
	if (f->missing_bytes)
		fprintf(out,
			"  %s of writable memory are not in the file, so no block is called lost; see "
			"coredump_filter in core(5)\n",
			human_bytes(f->missing_bytes).text);
	if (f->nr_files_missing)
		fprintf(out, "  %s mapped files are not here in the version of the core; give --sysroot\n",
			human_count(f->nr_files_missing).text);
	if (!f->has_registers)
		fputs("  the registers of its threads are not known\n", out);
}

/* Where there are several, each with its blocks. */
static void print_allocator(FILE *out, const struct census *c, u32 i)
{
	const struct census_allocator *a = &c->allocators[i];

	fprintf(out, "%s%s%s%s", i ? " and " : ", ", a->name, a->version[0] ? " " : "", a->version);
	if (c->nr_allocators > 1)
		fprintf(out, " (%s block%s)", human_count(a->live.blocks).text,
			census_text_plural(a->live.blocks));
}

static void census_text_print_process(FILE *out, const struct census *c,
				      const struct census_report_options *o)
{
	fprintf(out, "\nCensus of PID %d (", (int)c->pid);
	escape_text(out, o->comm);
	fprintf(out, "), %d-bit", c->word_size * 8);
	for (u32 i = 0; i < c->nr_allocators; i++)
		print_allocator(out, c, i);
	if (c->is_core)
		fputs(": from a core file\n", out);
	else
		fprintf(out, ": stopped for %s%s\n", human_duration(c->pause_ns).text,
			c->is_copied ? ", read from a copy" : "");
	print_core(out, c);
}

static void census_text_print_row(FILE *out, const char *what, u64 bytes, u64 blocks, u64 whole)
{
	if (!bytes && !blocks)
		return;
	fprintf(out, "  %-24s %12s  %7s", what, human_bytes(bytes).text, human_percent(bytes, whole).text);
	if (blocks)
		fprintf(out, "  in %s block%s", human_count(blocks).text, census_text_plural(blocks));
	putc('\n', out);
}

/* All memory that the allocator has taken from the kernel, and what became of it. */
static void census_text_print_memory(FILE *out, const struct census *c)
{
	const struct census_blocks *b = &c->blocks;
	struct census_arena sum = { 0 };
	u64 whole = b->mapped_bytes;

	for (size_t i = 0; i < b->nr_arenas; i++) {
		const struct census_arena *a = &b->arenas[i];

		for (int s = 0; s < NR_CENSUS_STATES; s++) {
			sum.of[s].blocks += a->of[s].blocks;
			sum.of[s].bytes += a->of[s].bytes;
		}
		sum.bins.blocks += a->bins.blocks;
		sum.bins.bytes += a->bins.bytes;
		sum.top_bytes += a->top_bytes;
		sum.page_bytes += a->page_bytes;
		sum.unknown_bytes += a->unknown_bytes;
		sum.foreign_bytes += a->foreign_bytes;
		sum.other_bytes += a->other_bytes;
		whole += a->system_bytes;
	}
	fprintf(out, "\nMemory of the allocator: %s\n", human_bytes(whole).text);
	census_text_print_row(out, "live", sum.of[CENSUS_LIVE].bytes, sum.of[CENSUS_LIVE].blocks, whole);
	census_text_print_row(out, "live, mapped alone", b->mapped.bytes, b->mapped.blocks, whole);
	census_text_print_row(out, "free between live ones", sum.bins.bytes, sum.bins.blocks, whole);
	census_text_print_row(out, "free in small lists", sum.of[CENSUS_FAST].bytes,
			      sum.of[CENSUS_FAST].blocks, whole);
	census_text_print_row(out, "free in thread caches", sum.of[CENSUS_CACHED].bytes,
			      sum.of[CENSUS_CACHED].blocks, whole);
	census_text_print_row(out, "free at the end", sum.top_bytes, 0, whole);
	census_text_print_row(out, "free pages kept", sum.page_bytes, 0, whole);
	census_text_print_row(out, "of another user of brk", sum.foreign_bytes, 0, whole);
	census_text_print_row(out, "not known", sum.unknown_bytes, 0, whole);
	census_text_print_row(out, "headers and tables", sum.other_bytes + b->mapped_bytes - b->mapped.bytes,
			      0, whole);
}

/* The last block of the heap of brk keeps all memory below it, which glibc gives back at the end only. */
static void print_pin(FILE *out, const struct census *c)
{
	const struct census_segment *heap = NULL;
	const struct census_block *last = NULL;

	for (size_t i = 0; i < c->blocks.nr_segments; i++)
		if (!c->blocks.segments[i].is_mapped && !c->blocks.segments[i].arena)
			heap = &c->blocks.segments[i];
	for (size_t i = 0; heap && i < heap->nr; i++)
		if (c->blocks.blocks[heap->first + i].state == CENSUS_LIVE)
			last = &c->blocks.blocks[heap->first + i];
	if (last && !strcmp(c->blocks.walker->name, "glibc"))
		fprintf(out,
			"  the last block of the heap, %s at 0x%llx, pins what is free below it (--why 0x%llx)\n",
			human_bytes(last->size).text, (unsigned long long)last->addr,
			(unsigned long long)last->addr);
}

/* Free memory that counts in RSS: who keeps it, and the way out. */
static void print_free(FILE *out, const struct census *c)
{
	const char *text = allocator_way_out(c->blocks.walker->name);

	if (!c->has_free_resident || c->free_resident < MIN_FREE)
		return;
	fprintf(out, "\nFree and resident (fragmentation): %s in whole pages%s%s\n",
		human_bytes(c->free_resident).text, text ? ": " : "", text ? text : "");
	print_pin(out, c);
}

static void print_arenas(FILE *out, const struct census *c, const struct census_report_options *o)
{
	const struct census_blocks *b = &c->blocks;
	size_t nr = o->top && o->top < b->nr_arenas ? o->top : b->nr_arenas;

	if (b->nr_arenas < 2)
		return;
	fprintf(out, "\nArenas: %s\n  arena      memory        live      blocks        free     at the end\n",
		human_count(b->nr_arenas).text);
	for (size_t i = 0; i < nr; i++) {
		const struct census_arena *a = &b->arenas[i];
		u64 idle =
			a->bins.bytes + a->page_bytes + a->of[CENSUS_FAST].bytes + a->of[CENSUS_CACHED].bytes;

		fprintf(out, "  %-5zu  %10s  %10s  %10s  %10s     %10s%s\n", i,
			human_bytes(a->system_bytes).text, human_bytes(a->of[CENSUS_LIVE].bytes).text,
			human_count(a->of[CENSUS_LIVE].blocks).text, human_bytes(idle).text,
			human_bytes(a->top_bytes).text, a->is_locked ? "  locked" : "");
	}
	if (nr < b->nr_arenas)
		fprintf(out, "  ... and %s more\n", human_count(b->nr_arenas - nr).text);
}

/* Reachable blocks that only pointers behind a header lead to, and words that are no pointers. */
static void print_guesses(FILE *out, const struct census *c)
{
	struct scan_result r = scan_result(c->scan);
	char text[REPORT_HINT_TEXT];

	report_hint_behind(text, &r);
	if (*text)
		fprintf(out, "  %s in %s block%s %s\n", human_bytes(r.behind.bytes).text,
			human_count(r.behind.blocks).text, census_text_plural(r.behind.blocks), text);
	if (report_hint_links(text, &r))
		fprintf(out, "  %s\n", text);
}

static void print_verdicts(FILE *out, const struct census *c)
{
	static const enum scan_verdict verdicts[] = { SCAN_DEFINITE, SCAN_INDIRECT, SCAN_POSSIBLE,
						      SCAN_REACHABLE, SCAN_UNSURE };

	if (!c->scan)
		return;
	fputs("\nVerdicts\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		struct census_sum sum = verdict_sum(c, verdicts[i]);

		census_text_print_row(out, scan_verdict_name(verdicts[i]), sum.bytes, sum.blocks,
				      census_live(&c->blocks).bytes);
	}
	print_guesses(out, c);
}

static int print_sizes(FILE *out, const struct census *c, const struct census_report_options *o)
{
	auto_free struct census_size *sizes = NULL;
	u64 whole = census_live(&c->blocks).bytes;
	size_t nr, shown;
	int err = census_sizes(&sizes, &nr, c);

	if (err || !nr)
		return err;
	shown = o->top && o->top < nr ? o->top : nr;
	fprintf(out, "\nSizes of live blocks: %s\n        size       bytes             blocks        lost\n",
		human_count(nr).text);
	for (size_t i = 0; i < shown; i++)
		fprintf(out, "  %10s  %10s  %7s  %8s  %10s\n", human_bytes(sizes[i].size).text,
			human_bytes(sizes[i].live.bytes).text, human_percent(sizes[i].live.bytes, whole).text,
			human_count(sizes[i].live.blocks).text,
			sizes[i].lost.blocks ? human_count(sizes[i].lost.blocks).text : "");
	if (shown < nr)
		fprintf(out, "  ... and %s more\n", human_count(nr - shown).text);
	return 0;
}

static void print_type(FILE *out, const struct census_type_row *row, const struct census_name *name)
{
	fprintf(out, "  %10s  %8s  %10s  %s ", human_bytes(row->live.bytes).text,
		human_count(row->live.blocks).text,
		row->lost.blocks ? human_count(row->lost.blocks).text : "", name->kind);
	if (name->text[0])
		fputs(name->text, out);
	else
		fprintf(out, "%s", name->object);
	if (name->offset && strcmp(name->kind, "class") != 0)
		fprintf(out, "+0x%llx", (unsigned long long)name->offset);
	putc('\n', out);
}

/* Blocks by what they begin with: the table of a class, other data or code of a file. */
static int print_types(FILE *out, const struct census *c, const struct census_report_options *o)
{
	auto_free struct census_type_row *rows = NULL;
	size_t nr = 0, shown;
	int err = census_type_rows(&rows, &nr, c, true);

	if (err || !nr)
		return err;
	shown = o->top && o->top < nr ? o->top : nr;
	fprintf(out, "\nTypes of live blocks: %s\n       bytes    blocks        lost  begin with\n",
		human_count(nr).text);
	for (size_t i = 0; i < shown && !err; i++) {
		struct census_name name;

		err = census_name_type(o->names, rows[i].word, &name);
		print_type(out, &rows[i], &name);
	}
	if (shown < nr)
		fprintf(out, "  ... and %s more\n", human_count(nr - shown).text);
	return err;
}

static void print_first(FILE *out, const struct census *c, const struct census_type_row *row)
{
	static const char *const words[] = {
		[FIRST_TEXT] = "text",
		[FIRST_ZERO] = "zero",
		[FIRST_POINTER] = "a pointer, not into a file",
		[FIRST_NUMBER] = "a small number",
		[FIRST_OTHER] = "something else",
	};
	char text[CENSUS_FIRST_TEXT];

	census_row_text(c, row, text);
	fprintf(out, "  %10s  %8s  %10s  %s", human_bytes(row->live.bytes).text,
		human_count(row->live.blocks).text,
		row->lost.blocks ? human_count(row->lost.blocks).text : "", words[row->first]);
	if (text[0])
		fprintf(out, " \"%s\"", text);
	putc('\n', out);
}

static void print_owner(FILE *out, const struct census_owner_row *row)
{
	char text[CENSUS_OWNER_TEXT];

	census_owner_text(row, text);
	fprintf(out, "  %10s  %8s  %s\n", human_bytes(row->held.bytes).text,
		human_count(row->held.blocks).text, text);
}

/* Roots of the blocks that are not lost. */
static int print_owners(FILE *out, const struct census *c, const struct census_report_options *o)
{
	auto_free struct census_owner_row *rows = NULL;
	size_t nr = 0, most = o->top ? o->top : MAX_FIRSTS;
	int err = census_owner_rows(&rows, &nr, c, o->names, NULL);

	if (err || !nr)
		return err;
	fprintf(out, "\nOwners of live blocks: %s\n       bytes    blocks  reached from\n",
		human_count(nr).text);
	for (size_t i = 0; i < nr && i < most; i++)
		print_owner(out, &rows[i]);
	if (most < nr)
		fprintf(out, "  ... and %s more\n", human_count(nr - most).text);
	return 0;
}

/* The other blocks by their first word: strings have a row for each beginning. */
static int print_firsts(FILE *out, const struct census *c, const struct census_report_options *o)
{
	auto_free struct census_type_row *rows = NULL;
	size_t nr = 0, most = o->top ? o->top : MAX_FIRSTS;
	int err = census_type_rows(&rows, &nr, c, false);

	if (err || !nr)
		return err;
	fprintf(out,
		"\nOther live blocks by their first word: %s\n"
		"       bytes    blocks        lost  begin with\n",
		human_count(nr).text);
	for (size_t i = 0; i < nr && i < most; i++)
		print_first(out, c, &rows[i]);
	if (most < nr)
		fprintf(out, "  ... and %s more\n", human_count(nr - most).text);
	return 0;
}

static void print_resident(FILE *out, const struct census *c, const struct census_report_options *o)
{
	const struct residence *r = &c->resident;

	if (!r->rss)
		return;
	fprintf(out, "\nResident memory: %s\n", human_bytes(r->rss).text);
	for (int i = 0; i < NR_RESIDENT_PARTS; i++)
		if (!o->is_brief || r->of[i] * 100 >= r->rss)
			census_text_print_row(out, residence_name(i), r->of[i], 0, r->rss);
	if (r->nr_ended)
		fprintf(out,
			"  stacks of %s ended thread%s: %s (pthread_join or pthread_detach releases them)\n",
			human_count(r->nr_ended).text, census_text_plural(r->nr_ended),
			human_bytes(r->ended).text);
	if (r->swapped)
		fprintf(out, "  swapped out: %s\n", human_bytes(r->swapped).text);
	if (r->huge)
		fprintf(out, "  in huge pages: %s\n", human_bytes(r->huge).text);
	if (!o->is_brief)
		fprintf(out, "  page tables, in addition: %s\n", human_bytes(r->page_tables).text);
}

static int by_lost(const void *a, const void *b)
{
	const struct scan_block_info *x = a, *y = b;
	u64 bytes_x = x->size + x->indirect_bytes, bytes_y = y->size + y->indirect_bytes;

	if (bytes_x != bytes_y)
		return bytes_x < bytes_y ? 1 : -1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* How many blocks from @i on are like it, and lead to as much. A table of all rows has each with its address. */
static size_t nr_alike(const struct scan_block_info *leaders, size_t i, size_t nr)
{
	size_t k = i;

	while (k < nr && leaders[k].size == leaders[i].size &&
	       leaders[k].indirect_bytes == leaders[i].indirect_bytes &&
	       leaders[k].indirect_blocks == leaders[i].indirect_blocks)
		k++;
	return k - i;
}

static int census_text_print_leaks(FILE *out, const struct census *c, const struct census_report_options *o)
{
	auto_free struct scan_block_info *leaders = NULL;
	size_t nr, i, alike, shown = 0;
	int err = c->scan ? scan_leaders(c->scan, &leaders, &nr) : 0;

	if (err || !c->scan || !nr)
		return err;
	qsort(leaders, nr, sizeof(*leaders), by_lost);
	fputs("\nBlocks that nothing points to\n", out);
	for (i = 0; i < nr && (!o->top || shown < o->top); i += alike, shown++) {
		alike = o->top ? nr_alike(leaders, i, nr) : 1;
		fprintf(out, "  0x%llx  %s", (unsigned long long)leaders[i].addr,
			human_bytes(leaders[i].size).text);
		if (leaders[i].indirect_blocks)
			fprintf(out, ", and %s in %s block%s that only it leads to",
				human_bytes(leaders[i].indirect_bytes).text,
				human_count(leaders[i].indirect_blocks).text,
				census_text_plural(leaders[i].indirect_blocks));
		if (alike > 1)
			fprintf(out, "; %s more like it", human_count(alike - 1).text);
		putc('\n', out);
	}
	if (i < nr)
		fprintf(out, "  ... and %s more\n", human_count(nr - i).text);
	return 0;
}

static void print_notes(FILE *out, const struct census *c)
{
	const struct census_blocks *b = &c->blocks;
	size_t nr = b->nr_notes < CENSUS_MAX_NOTES ? b->nr_notes : CENSUS_MAX_NOTES;

	if (!nr)
		return;
	putc('\n', out);
	fputs("Does not add up\n", out);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "  %s\n", b->notes[i].text);
	if (nr < b->nr_notes)
		fprintf(out, "  ... and %s more\n", human_count(b->nr_notes - nr).text);
}

static int print_all(FILE *out, const struct census *c, const struct census_report_options *o)
{
	struct census_report_options brief = *o;
	int err;

	if (o->is_brief)
		brief.top = BRIEF_ROWS;
	o = &brief;
	/* A question has its answer, and not the census. */
	if (o->why_addr || o->why_type)
		return o->why_addr ? census_why_text(out, c, o->names, o->why_addr)
				   : census_why_type_text(out, c, o->names, o->why_type, o->top);
	census_text_print_head(out, c);
	census_text_print_process(out, c, o);
	if (!o->is_brief) {
		census_text_print_memory(out, c);
		print_arenas(out, c, o);
	}
	print_free(out, c);
	print_resident(out, c, o);
	if (!o->is_brief)
		print_verdicts(out, c);
	err = census_text_print_leaks(out, c, o);
	if (!err)
		err = print_owners(out, c, o);
	if (!err)
		err = print_types(out, c, o);
	if (!err && !o->is_brief)
		err = print_firsts(out, c, o);
	if (!err && !o->is_brief)
		err = print_sizes(out, c, o);
	if (!err && o->known)
		census_known_text(out, o->known, o->top);
	if (!err && o->baseline)
		err = census_baseline_text(out, o->baseline, c, o->names, o->top);
	print_notes(out, c);
	if (o->is_brief)
		fputs("\nMore rows and tables (arenas, verdicts, sizes): -n 10, -n 0, or a file: -o census.txt\n",
		      out);
	return err;
}

int census_text(FILE *out, const struct census *c, const struct census_report_options *o)
{
	u64 nr_lines = 0;
	FILE *lines = wrap_open_counted(out, o->width ? o->width : DEFAULT_WIDTH, &nr_lines);
	int err;

	if (!lines)
		return -ENOMEM;
	err = print_all(lines, c, o);
	/* The answer is what is left on the screen, if more was printed than fits. */
	fflush(lines);
	if (!err && o->is_terminal && nr_lines > WRAP_SCREEN_LINES && !o->why_addr && !o->why_type) {
		putc('\n', lines);
		census_text_print_head(lines, c);
	}
	return fclose(lines) && !err ? -EIO : err;
}

const struct census_format census_formats[] = {
	{ "text", census_text },     { "json", census_json }, { "csv", census_csv },
	{ "folded", census_folded }, { NULL, NULL },
};
