/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the contents of a block: a dump in hexadecimal and text, then its strings, then its pointers. */
#include "user/report/report_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/report/report_parts.h"
#include "user/report/report_place.h"
#include "user/target/target.h"

enum {
	LINE = 16,	  /* bytes of a line of the dump */
	MIN_STRING = 4,	  /* letters; fewer in a row are mostly chance */
	MAX_STRING = 100, /* letters shown of one */
	MAX_STRINGS = 32,
	MAX_POINTERS = 64,
};

/* The block and its bytes. */
struct dump {
	FILE *out;
	const struct report *report;
	const struct report_process *process;
	const struct memory_view *view;
	const struct heap_block *block;
	const u8 *bytes;
	size_t len;
};

static bool is_text(u8 c)
{
	return c >= 0x20 && c < 0x7f;
}

static void dump_line(const struct dump *d, size_t at)
{
	size_t len = d->len - at < LINE ? d->len - at : LINE;

	fprintf(d->out, "  +0x%04zx ", at);
	for (size_t i = 0; i < LINE; i++) {
		if (i % 8 == 0)
			fputc(' ', d->out);
		if (i < len)
			fprintf(d->out, "%02x ", d->bytes[at + i]);
		else
			fputs("   ", d->out);
	}
	fputs(" |", d->out);
	for (size_t i = 0; i < len; i++)
		fputc(is_text(d->bytes[at + i]) ? d->bytes[at + i] : '.', d->out);
	fputs("|\n", d->out);
}

/* Lines that repeat the one before are one "*". The last line is always shown. */
static void dump_bytes(const struct dump *d)
{
	bool is_repeating = false;

	for (size_t at = 0; at < d->len; at += LINE) {
		bool is_same = at && at + LINE < d->len && !memcmp(d->bytes + at, d->bytes + at - LINE, LINE);

		if (!is_same)
			dump_line(d, at);
		else if (!is_repeating)
			fputs("  *\n", d->out);
		is_repeating = is_same;
	}
}

static void write_string(FILE *out, const u8 *bytes, size_t len)
{
	char text[MAX_STRING + 1];
	size_t shown = len < MAX_STRING ? len : MAX_STRING;

	memcpy(text, bytes, shown);
	text[shown] = '\0';
	fputc('"', out);
	escape_text(out, text);
	fprintf(out, "\"%s\n", shown < len ? "..." : "");
}

static void dump_strings(const struct dump *d)
{
	size_t nr = 0, len;

	for (size_t at = 0; at < d->len; at += len + 1) {
		for (len = 0; at + len < d->len && is_text(d->bytes[at + len]); len++)
			;
		if (len < MIN_STRING || nr++ >= MAX_STRINGS)
			continue;
		if (nr == 1)
			fputs("strings\n", d->out);
		fprintf(d->out, "  +0x%04zx  ", at);
		write_string(d->out, d->bytes + at, len);
	}
	if (nr > MAX_STRINGS)
		fprintf(d->out, "  and %s more\n", human_count(nr - MAX_STRINGS).text);
}

static taddr_t report_memory_word_at(const struct dump *d, size_t at, size_t size)
{
	u32 half;
	u64 word;

	if (size == sizeof(half)) {
		memcpy(&half, d->bytes + at, sizeof(half));
		return half;
	}
	memcpy(&word, d->bytes + at, sizeof(word));
	return word;
}

static int report_memory_by_addr(const void *pa, const void *pb)
{
	const struct place_block *a = pa, *b = pb;

	return (a->addr > b->addr) - (a->addr < b->addr);
}

static int dump_pointer(const struct dump *d, size_t at, taddr_t word, const struct place_block *list,
			size_t nr)
{
	const struct place_block key = { .addr = word };
	const struct place_block *b = bsearch(&key, list, nr, sizeof(key), report_memory_by_addr);
	char text[PLACE_MAX];
	int err = b ? report_place(d->report, d->process, d->view, b, text) : 0;

	if (b && !err)
		fprintf(d->out, "  +0x%04zx  0x%llx  %s\n", at, (unsigned long long)word, text);
	return err;
}

/* Words that are addresses of mappings. */
static int dump_pointers(const struct dump *d)
{
	size_t size = d->process->target->is_32bit ? 4 : 8, nr = 0, shown = 0;
	auto_free struct place_block *list = calloc(d->len / size + 1, sizeof(*list));
	int err = 0;

	if (!list)
		return -ENOMEM;
	for (size_t at = 0; at + size <= d->len; at += size)
		if (memory_view_map(d->view, report_memory_word_at(d, at, size)))
			list[nr++].addr = report_memory_word_at(d, at, size);
	report_place_blocks(d->process->heap, list, nr);
	for (size_t at = 0; at + size <= d->len && shown < nr && shown < MAX_POINTERS && !err; at += size) {
		taddr_t word = report_memory_word_at(d, at, size);

		if (!memory_view_map(d->view, word))
			continue;
		if (!shown++)
			fputs("pointers\n", d->out);
		err = dump_pointer(d, at, word, list, nr);
	}
	if (shown < nr)
		fprintf(d->out, "  and %s more\n", human_count(nr - shown).text);
	return err;
}

static int dump_head(const struct dump *d)
{
	const struct report *r = d->report;
	const struct heap_block *b = d->block;
	char names[PLACE_MAX];
	int err = report_callers(r, d->process, b->row, names, sizeof(names));

	fprintf(d->out, "0x%llx: %s by ", (unsigned long long)b->addr, human_bytes(b->size).text);
	report_function(d->out, d->process, heap_row_get(d->process->heap, b->row).fn);
	fprintf(d->out, "%s%s, %s ago, caller %u%s%s\n", *names ? " < " : "", names,
		human_duration(r->time_ns > b->time_ns ? r->time_ns - b->time_ns : 0).text, b->row + 1,
		b->is_unsure ? "; perhaps free" : "", b->is_pending ? ", in a realloc" : "");
	return err;
}

int report_memory(FILE *out, const struct report *r, const struct report_process *p,
		  const struct memory_view *v, const struct heap_block *block, u64 max)
{
	struct dump d = { .out = out, .report = r, .process = p, .view = v, .block = block };
	u64 want = max < MEMORY_MAX ? max : MEMORY_MAX;
	auto_free u8 *bytes = NULL;
	int err;

	want = want < block->size ? want : block->size;
	bytes = malloc(want + 1);
	if (!bytes)
		return -ENOMEM;
	d.bytes = bytes;
	d.len = memory_view_read(v, block->addr, bytes, want);
	if (want && !d.len)
		return -EIO;
	err = dump_head(&d);
	if (err)
		return err;
	dump_bytes(&d);
	if (d.len < want)
		fprintf(out, "  the next %s cannot be read\n", human_bytes(want - d.len).text);
	else if (want < block->size)
		fprintf(out, "  and %s more\n", human_bytes(block->size - want).text);
	dump_strings(&d);
	return dump_pointers(&d);
}
