/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects leaks and wrong releases of a report, and says each in words. */
#include "user/report/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/heap/misuse.h"
#include "user/heap/stacks.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/names/symbolize.h"
#include "user/report/own_code.h"
#include "user/report/report_parts.h"
#include "user/report/report_rows.h"
#include "user/scan/leaks.h"
#include "user/source/source.h"
#include "user/target/allocator.h"

enum { CALLERS_MAX = 600, DOUBT_MAX = 400 };

const struct finding_rule finding_rules[NR_FINDING_KINDS] = {
	[FINDING_DEFINITE] = { "definite-leak", "DefiniteLeak", "definite leak",
			       "Nothing in the process points to these blocks any more.", LEVEL_ERROR },
	[FINDING_POSSIBLE] = { "possible-leak", "PossibleLeak", "possible leak",
			       "Only pointers into the middle of these blocks are left.", LEVEL_WARNING },
	[FINDING_INDIRECT] = { "indirect-leak", "IndirectLeak", "indirect leak",
			       "Only lost blocks point to these blocks. Fix the definite leak first.",
			       LEVEL_NOTE },
	[FINDING_MISMATCHED] = { "mismatched-free", "MismatchedFree", "mismatched release",
				 "A function of another family than that of the allocation released the block.",
				 LEVEL_ERROR },
	[FINDING_DOUBLE] = { "double-free", "DoubleFree", "double release", "The block was released before.",
			     LEVEL_ERROR },
	[FINDING_BAD_FREE] = { "bad-free", "BadFree", "bad release", "No block begins at this address.",
			       LEVEL_ERROR },
	[FINDING_BAD_REALLOC] = { "bad-realloc", "BadRealloc", "bad realloc",
				  "No block begins at this address, or it was released before.",
				  LEVEL_ERROR },
	[FINDING_SIZE] = { "size-mismatch", "SizeMismatch", "wrong size",
			   "The release said another size than the allocation asked for.", LEVEL_ERROR },
	[FINDING_ALIGNMENT] = { "alignment-mismatch", "AlignmentMismatch", "wrong alignment",
				"The block came from an aligned new, and went to an unaligned delete, or the reverse.",
				LEVEL_ERROR },
};

static const struct {
	enum finding_kind kind;
	enum scan_verdict verdict;
} leak_kinds[] = { { FINDING_DEFINITE, SCAN_DEFINITE },
		   { FINDING_POSSIBLE, SCAN_POSSIBLE },
		   { FINDING_INDIRECT, SCAN_INDIRECT } };

static const enum finding_kind misuse_kinds[NR_MISUSES] = {
	[MISUSE_MISMATCHED] = FINDING_MISMATCHED,
	[MISUSE_DOUBLE] = FINDING_DOUBLE,
	[MISUSE_BAD_FREE] = FINDING_BAD_FREE,
	[MISUSE_BAD_REALLOC] = FINDING_BAD_REALLOC,
	[MISUSE_SIZE] = FINDING_SIZE,
	[MISUSE_ALIGNMENT] = FINDING_ALIGNMENT,
};

static int findings_add(struct findings *f, size_t *max, const struct finding_item *item)
{
	int err = array_reserve(f->list, *max, f->nr + 1);

	if (!err)
		f->list[f->nr++] = *item;
	return err;
}

static int add_leaks(struct findings *f, size_t *max, const struct report_process *p,
		     const struct report_row *row, size_t kind)
{
	const struct scan_sum *sum = &row->leaks.sums.of[leak_kinds[kind].verdict];
	struct finding_item item = { .kind = leak_kinds[kind].kind,
				     .process = p,
				     .row = row->id,
				     .blocks = sum->blocks,
				     .bytes = sum->bytes };

	if (item.kind == FINDING_DEFINITE)
		item.through = row->leaks.through;
	return sum->blocks ? findings_add(f, max, &item) : 0;
}

static int compare_findings(const void *pa, const void *pb)
{
	const struct finding_item *a = pa;
	const struct finding_item *b = pb;
	u64 a_bytes = a->bytes + a->through.bytes, b_bytes = b->bytes + b->through.bytes;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a_bytes != b_bytes)
		return a_bytes > b_bytes ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static int findings_add_process(struct findings *f, size_t *max, const struct report_process *p)
{
	auto_free struct report_row *rows = NULL;
	size_t nr_rows, nr_misuses, first = f->nr;
	const struct misuse *misuses = heap_misuses(p->heap, &nr_misuses);
	int err = report_rows(f->report, p, &rows, &nr_rows, NULL);

	if (err)
		return err;
	for (size_t i = 0; i < nr_rows; i++)
		for (size_t k = 0; k < ARRAY_SIZE(leak_kinds) && !err; k++)
			err = add_leaks(f, max, p, &rows[i], k);
	if (f->nr > first)
		qsort(f->list + first, f->nr - first, sizeof(*f->list), compare_findings);
	for (const struct misuse *m = misuses; m < misuses + nr_misuses && !err; m++)
		err = findings_add(f, max,
				   &(struct finding_item){ .kind = misuse_kinds[m->kind],
							   .process = p,
							   .row = m->free_row,
							   .misuse = m });
	return err;
}

/* The directory that the names of source files are shown from. */
static char *findings_find_root(void)
{
	const char *workspace = getenv("GITHUB_WORKSPACE");
	char *root = workspace && *workspace == '/' ? strdup(workspace) : getcwd(NULL, 0);
	size_t len;

	if (!root)
		return strdup("");
	len = strlen(root);
	while (len && root[len - 1] == '/')
		root[--len] = '\0';
	return root;
}

int findings_init(struct findings *f, const struct report *r)
{
	size_t max = 0;
	int err = 0;

	*f = (struct findings){ .report = r, .root = findings_find_root() };
	if (!f->root)
		return -ENOMEM;
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = findings_add_process(f, &max, &r->processes[i]);
	return err;
}

void findings_fini(struct findings *f)
{
	free(f->list);
	free(f->root);
	*f = (struct findings){ 0 };
}

const char *finding_file(const struct findings *f, const char *file)
{
	size_t len = strlen(f->root);

	return len && !strncmp(file, f->root, len) && file[len] == '/' && file[len + 1] ? file + len + 1
											: file;
}

static const struct stack *findings_stack_of(const struct finding_item *item, u32 row, const char **truncated)
{
	const struct report_row shown = { .row = heap_row_get(item->process->heap, row) };

	if (row != MISUSE_NO_ROW)
		return report_stack(item->process, &shown, truncated);
	*truncated = "none";
	return NULL;
}

const struct stack *finding_stack_get(const struct finding_item *item, u32 row)
{
	const char *truncated;

	return findings_stack_of(item, row, &truncated);
}

int finding_place(const struct findings *f, const struct finding_item *item, struct finding_place *place)
{
	const char *exe = item->process->target->exe;
	struct own_code o = { .symbol = NULL };
	int err = 0;

	if (item->row != MISUSE_NO_ROW)
		err = own_code_find(f->report, item->process,
				    heap_row_get(item->process->heap, item->row).stack, &o);
	*place = (struct finding_place){ o.symbol ? o.symbol->function : NULL, NULL, 0 };
	if (o.symbol && o.symbol->file && o.symbol->line) {
		place->file = finding_file(f, o.symbol->file);
		place->line = o.symbol->line;
	} else if (*exe) {
		place->file = finding_file(f, exe);
	}
	return err;
}

static const char *function_name(const struct finding_item *item, u32 row)
{
	const struct heap *heap = item->process->heap;

	return alloc_fn(heap_functions(heap), heap_row_get(heap, row).fn)->name;
}

/* Write a text about @item to memory. */
static int findings_make_text(const struct findings *f, const struct finding_item *item,
			      int (*write)(FILE *out, const struct findings *f,
					   const struct finding_item *item),
			      char **text)
{
	size_t len;
	FILE *out;
	int err;

	*text = NULL;
	out = open_memstream(text, &len);
	if (!out)
		return -ENOMEM;
	err = write(out, f, item);
	if (ferror(out) && !err)
		err = -ENOMEM;
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (err)
		free(take_ptr(*text));
	return err;
}

/* The innermost functions of the finding. */
static int findings_write_callers(FILE *out, const struct findings *f, const struct finding_item *item)
{
	char callers[CALLERS_MAX] = "";
	int err = 0;

	if (item->row != MISUSE_NO_ROW)
		err = report_callers(f->report, item->process, item->row, callers, sizeof(callers));
	if (*callers)
		fputs(callers, out);
	else
		fputs("an unknown caller", out);
	return err;
}

static int findings_write_title(FILE *out, const struct findings *f, const struct finding_item *item)
{
	fprintf(out, "%s in ", finding_rules[item->kind].what);
	return findings_write_callers(out, f, item);
}

int finding_title(const struct findings *f, const struct finding_item *item, char **text)
{
	return findings_make_text(f, item, findings_write_title, text);
}

static void write_leak(FILE *out, const struct finding_item *item)
{
	static const char *const fates[] = {
		[FINDING_DEFINITE] = "definitely lost",
		[FINDING_POSSIBLE] = "possibly lost",
		[FINDING_INDIRECT] = "indirectly lost",
	};

	fprintf(out, "%s in %s block%s %s, ", human_bytes(item->bytes).text, human_count(item->blocks).text,
		item->blocks == 1 ? "" : "s", fates[item->kind]);
	if (item->through.blocks)
		fprintf(out, "and %s in %s block%s through them, ", human_bytes(item->through.bytes).text,
			human_count(item->through.blocks).text, item->through.blocks == 1 ? "" : "s");
	fputs("allocated by ", out);
	escape_text(out, function_name(item, item->row));
}

static void write_misuse(FILE *out, const struct finding_item *item)
{
	const struct misuse *m = item->misuse;
	const struct heap *heap = item->process->heap;

	fputs(finding_rules[item->kind].what, out);
	if (misuse_has_numbers(m))
		fprintf(out, " (%s%llu, not %llu%s)", m->count > 1 ? "first " : "",
			(unsigned long long)m->said, (unsigned long long)m->asked,
			m->kind == MISUSE_SIZE ? " bytes" : "");
	fprintf(out, ", %s time%s, by ", human_count(m->count).text, m->count == 1 ? "" : "s");
	escape_text(out, alloc_fn(heap_functions(heap), m->fn)->name);
	if (m->alloc_row == MISUSE_NO_ROW)
		return;
	fputs(m->inside ? " inside a block of " : " of a block of ", out);
	escape_text(out, function_name(item, m->alloc_row));
}

static int write_message(FILE *out, const struct findings *f, const struct finding_item *item)
{
	if (item->misuse)
		write_misuse(out, item);
	else
		write_leak(out, item);
	fputs(" in ", out);
	return findings_write_callers(out, f, item);
}

int finding_message(const struct findings *f, const struct finding_item *item, char **text)
{
	return findings_make_text(f, item, write_message, text);
}

size_t finding_stacks(const struct finding_item *item, struct finding_stack stacks[FINDING_MAX_STACKS])
{
	const struct misuse *m = item->misuse;
	const struct finding_stack all[FINDING_MAX_STACKS] = {
		{ m ? "released by" : "allocated by", item->row },
		{ "released before by", m ? m->earlier_row : MISUSE_NO_ROW },
		{ m && m->inside ? "inside a block allocated by" : "allocated by",
		  m ? m->alloc_row : MISUSE_NO_ROW },
	};
	size_t nr = 0;

	for (size_t i = 0; i < FINDING_MAX_STACKS; i++)
		if (all[i].row != MISUSE_NO_ROW)
			stacks[nr++] = all[i];
	return nr;
}

static void write_symbol(FILE *out, const struct findings *f, struct code_ref ref, const struct symbol *s)
{
	const struct module *m = module_get(f->report->modules, ref.module);

	fputs("    ", out);
	escape_text(out, s->function ? s->function : "(unknown)");
	if (s->file) {
		fputs(" at ", out);
		escape_text(out, finding_file(f, s->file));
		if (s->line)
			fprintf(out, ":%u", s->line);
	} else {
		fputs(" in ", out);
		escape_text(out, m ? module_name(m) : "no file");
		fprintf(out, "+0x%" PRIx64, ref.offset);
	}
	fputs(s->is_inlined ? " (inlined)\n" : "\n", out);
}

static int findings_write_frame(FILE *out, const struct findings *f, struct code_ref ref, size_t *nr_lines)
{
	const struct symbol *symbols;
	size_t nr;
	int err = report_symbols(f->report, ref, &symbols, &nr);

	for (size_t i = 0; i < nr && !err; i++, ++*nr_lines)
		write_symbol(out, f, ref, &symbols[i]);
	return err;
}

static int findings_write_stack(FILE *out, const struct findings *f, const struct finding_item *item,
				const struct finding_stack *stack)
{
	const char *truncated;
	const struct stack *s = findings_stack_of(item, stack->row, &truncated);
	int err = 0;

	fprintf(out, "  %s ", stack->what);
	escape_text(out, function_name(item, stack->row));
	fputc('\n', out);
	for (size_t i = 0; s && i < s->nr_frames && !err;) {
		struct turns turns = report_turns(f->report, s, i, s->nr_frames);
		size_t nr_lines = 0;

		for (size_t k = i; k < i + turns.nr && !err; k++)
			err = findings_write_frame(out, f, s->frames[k], &nr_lines);
		report_turns_more(out, "    ", nr_lines, turns);
		i += (size_t)turns.nr * turns.times;
	}
	if (truncated)
		fprintf(out, "    (%s: %s)\n", s ? "cut here" : "stack", truncated);
	return err;
}

static int findings_write_text(FILE *out, const struct findings *f, const struct finding_item *item)
{
	struct finding_stack stacks[FINDING_MAX_STACKS];
	size_t nr = finding_stacks(item, stacks);
	int err = write_message(out, f, item);

	fputc('\n', out);
	for (size_t i = 0; i < nr && !err; i++)
		err = findings_write_stack(out, f, item, &stacks[i]);
	return err;
}

int finding_text(const struct findings *f, const struct finding_item *item, char **text)
{
	return findings_make_text(f, item, findings_write_text, text);
}

bool finding_doubt(const struct report_process *p, size_t i, char *text, size_t size)
{
	struct losses lost = report_losses(p);
	u64 nr_dropped = heap_misuse_counts(p->heap).nr_dropped;
	char why[DOUBT_MAX];

	if (p->unwatched && !i--)
		snprintf(text, size, "nothing could be watched: %s",
			 escape_buf(why, sizeof(why), p->unwatched));
	else if (p->leaks && !p->leaks->has_verdict && !i--)
		snprintf(text, size, "no leak verdict: %s", escape_buf(why, sizeof(why), p->leaks->why));
	else if ((lost.allocs || lost.frees) && !i--)
		snprintf(text, size, "events were lost: %s allocations, %s frees",
			 human_count(lost.allocs).text, human_count(lost.frees).text);
	else if (lost.other > lost.abandoned && !i--)
		snprintf(text, size, "calls may be missing: %s other events were lost",
			 human_count(lost.other - lost.abandoned).text);
	else if (nr_dropped && !i--)
		snprintf(text, size, "%s wrong releases are not in the list", human_count(nr_dropped).text);
	else
		return false;
	return true;
}
