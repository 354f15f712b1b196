/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compiles the call frame information of a file: collects the entries, sorts them by address, and runs them in that
 * order.
 */
#include "user/unwind/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/unwind/cfi_exidx.h"
#include "user/unwind/cfi_parse.h"

enum { NR_CACHED_CIES = 64, LOOKS_PER_BYTE = 8 };

struct rows {
	struct cfi_row *list; /* owned */
	size_t nr;
};

struct builder {
	struct cfi_section section;
	const struct unwind_arch *arch;
	struct cfi_table *table; /* owned */
	size_t max_rows;
	struct cfi_fde *fdes; /* owned */
	size_t nr_fdes, max_fdes;
	struct cfi_cie cies[NR_CACHED_CIES]; /* by a hash of their offset */
	u64 budget; /* bytes that may still be read: damaged files refer to CIEs in any way */
	u64 text_end;
	u32 floor; /* rows before it belong to another FDE */
	const struct cfi_cie *cie;
	int err;
};

static int find_text(struct builder *b)
{
	const struct elf *elf = b->section.elf;
	u64 start = UINT64_MAX, end = 0;

	for (u32 i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X) || s->vaddr + s->memsz < s->vaddr)
			continue;
		start = s->vaddr < start ? s->vaddr : start;
		end = s->vaddr + s->memsz > end ? s->vaddr + s->memsz : end;
	}
	if (start >= end)
		return -ENOENT;
	if (end - start > UINT32_MAX) {
		end = start + UINT32_MAX;
		b->table->stats.is_cut = 1;
	}
	b->table->text_base = start;
	b->text_end = end;
	return 0;
}

static void cfi_spend(struct builder *b, size_t bytes)
{
	b->budget -= b->budget < bytes ? b->budget : bytes;
}

static bool has_budget(struct builder *b)
{
	if (!b->budget)
		b->table->stats.is_cut = 1;
	return b->budget;
}

static const struct cfi_cie *find_cie(struct builder *b, size_t offset)
{
	struct cfi_cie *cie = &b->cies[(offset * 0x9e3779b97f4a7c15ULL) >> 58];

	if (cie->offset == offset && cie->program.section)
		return cie->is_valid ? cie : NULL;
	cfi_cie_read(&b->section, b->arch, offset, cie);
	cie->program.section = &b->section; /* remembered even if damaged */
	cfi_spend(b, cie->size);
	return cie->is_valid ? cie : NULL;
}

/* Cut [@start, @start + @length) to the executable segment that holds its start. False if no segment does. */
static bool in_text(const struct builder *b, u64 start, u64 *length)
{
	const struct elf *elf = b->section.elf;

	if (start < b->table->text_base || start >= b->text_end)
		return false;
	for (u32 i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X) || start < s->vaddr ||
		    start - s->vaddr >= s->memsz)
			continue;
		if (*length > s->memsz - (start - s->vaddr))
			*length = s->memsz - (start - s->vaddr);
		if (*length > b->text_end - start)
			*length = b->text_end - start;
		return true;
	}
	return false;
}

static int add_fde(struct builder *b, size_t offset, size_t cie_offset, struct cfi_cursor *body)
{
	struct cfi_stats *stats = &b->table->stats;
	const struct cfi_cie *cie = find_cie(b, cie_offset);
	u64 start, length;
	u32 pc;

	if (!cie || !cfi_fde_read(cie, body, &start, &length)) {
		stats->nr_bad_entries++;
		return 0;
	}
	stats->nr_fdes++;
	if (length == 0) {
		stats->nr_empty++;
		return 0;
	}
	/* A linker that drops a function leaves 0 as its address here. */
	if ((b->section.is_debug && !start) || !in_text(b, start, &length)) {
		stats->nr_outside++;
		return 0;
	}
	if (b->nr_fdes == CFI_MAX_FDES) {
		stats->is_cut = 1;
		return 0;
	}
	if (array_reserve(b->fdes, b->max_fdes, b->nr_fdes + 1))
		return -ENOMEM;
	pc = (u32)(start - b->table->text_base);
	b->fdes[b->nr_fdes++] = (struct cfi_fde){ pc, pc + (u32)length, (u32)offset };
	return 0;
}

static int collect_fdes(struct builder *b)
{
	size_t next = 0, cie;
	struct cfi_cursor body;
	int err = 0;

	for (size_t offset = 0; offset < b->section.size && !err && has_budget(b); offset = next) {
		enum cfi_entry kind = cfi_entry_read(&b->section, offset, &body, &cie, &next);

		if (kind == ENTRY_END)
			break;
		if (kind == ENTRY_FDE)
			err = add_fde(b, offset, cie, &body);
		else if (kind == ENTRY_BAD && next - offset > 4) /* not a terminator */
			b->table->stats.nr_bad_entries++;
	}
	return err;
}

static int compare_fdes(const void *left, const void *right)
{
	const struct cfi_fde *l = left, *r = right;

	if (l->start != r->start)
		return l->start < r->start ? -1 : 1;
	return l->offset < r->offset ? -1 : l->offset > r->offset;
}

static void sort_fdes(struct builder *b)
{
	for (size_t i = 1; i < b->nr_fdes; i++)
		if (compare_fdes(&b->fdes[i - 1], &b->fdes[i]) > 0) {
			qsort(b->fdes, b->nr_fdes, sizeof(*b->fdes), compare_fdes);
			return;
		}
}

/* Add @rule, valid from @pc on. Replaces a row at this pc. A row that changes nothing is left out. */
static int cfi_add_row(struct builder *b, u32 pc, u32 rule)
{
	struct cfi_table *t = b->table;

	if (t->nr_rows && t->rows[t->nr_rows - 1].pc == pc)
		t->nr_rows--;
	if (t->nr_rows && t->rows[t->nr_rows - 1].rule == rule)
		return 0;
	/* The last place is kept for the CFI_NONE that ends every table. */
	if (t->nr_rows >= CFI_MAX_ROWS - 1 && rule != CFI_NONE) {
		t->stats.is_cut = 1;
		return -EFBIG;
	}
	if (array_reserve(t->rows, b->max_rows, t->nr_rows + 1))
		return -ENOMEM;
	t->rows[t->nr_rows++] = (struct cfi_row){ pc, rule };
	return 0;
}

static void cfi_on_row(void *ctx, u64 pc, const struct cfi_state *state)
{
	struct builder *b = ctx;
	u32 at = (u32)(pc - b->table->text_base);

	if (!b->err)
		b->err = cfi_add_row(b, at > b->floor ? at : b->floor,
				     cfi_pack(b->arch, b->cie, state, &b->table->stats));
}

static int run_fde(struct builder *b, const struct cfi_fde *fde)
{
	struct cfi_run run = { .arch = b->arch, .row = cfi_on_row, .ctx = b };
	struct cfi_state state;
	struct cfi_cursor body;
	size_t cie, next;
	u64 start, length;

	if (cfi_entry_read(&b->section, fde->offset, &body, &cie, &next) != ENTRY_FDE)
		return -EINVAL;
	b->cie = run.cie = find_cie(b, cie);
	if (!b->cie || !cfi_fde_read(b->cie, &body, &start, &length))
		return -EINVAL;
	cfi_spend(b, next - fde->offset);
	state = b->cie->initial;
	run.pc = start;
	run.end = b->table->text_base + fde->end;
	if (cfi_program_run(&run, body, &state) && !b->err) {
		u32 at = (u32)(run.pc - b->table->text_base);

		b->table->stats.unsupported[CFI_BAD_PROGRAM]++;
		b->err = cfi_add_row(b, at > b->floor ? at : b->floor, CFI_UNSUPPORTED);
	}
	return b->err;
}

/* Rows of all FDEs by address; each starts where those before it have ended. */
static int run_fdes(struct builder *b)
{
	int err = 0;

	for (size_t i = 0; i < b->nr_fdes && !err; i++) {
		const struct cfi_fde *fde = &b->fdes[i];

		if (!has_budget(b))
			break;
		if (fde->start < b->floor)
			b->table->stats.nr_overlapping++;
		if (fde->end <= b->floor)
			continue;
		b->floor = fde->start > b->floor ? fde->start : b->floor;
		err = run_fde(b, fde);
		b->floor = fde->end;
		if (!err || err == -EFBIG)
			err = cfi_add_row(b, fde->end, CFI_NONE);
	}
	if (err == -EFBIG)
		err = 0;
	if (!err && !b->table->nr_rows)
		err = cfi_add_row(b, 0, CFI_NONE);
	return err;
}

static int build_from(struct builder *b, const struct elf *elf, bool want_debug)
{
	int err = cfi_section_read(&b->section, elf, want_debug);

	if (err)
		return err;
	b->budget = (u64)b->section.size * LOOKS_PER_BYTE;
	b->table->stats.is_cut |= b->section.is_cut;
	err = find_text(b);
	if (!err)
		err = collect_fdes(b);
	if (!err && !b->nr_fdes)
		err = -ENOENT;
	return err;
}

static int on_exidx(void *ctx, u64 vaddr, u32 rule)
{
	struct builder *b = ctx;

	if (vaddr < b->table->text_base || vaddr >= b->text_end)
		return 0;
	b->table->stats.nr_fdes++;
	return cfi_add_row(b, (u32)(vaddr - b->table->text_base), rule);
}

/* ARM: the rows of .ARM.exidx, up to the end of the code. */
static int build_exidx(struct builder *b, const struct elf *elf)
{
	int err;

	b->section.elf = elf;
	err = find_text(b);
	if (!err)
		err = cfi_exidx_each(elf, b->arch, on_exidx, b);
	if (err == -EFBIG)
		err = 0;
	if (!err)
		err = cfi_add_row(b, (u32)(b->text_end - b->table->text_base), CFI_NONE);
	return err;
}

static int build_section(struct builder *b, const struct elf *elf, bool want_debug)
{
	int err = build_from(b, elf, want_debug);

	if (err)
		return err;
	sort_fdes(b);
	b->budget = (u64)b->section.size * LOOKS_PER_BYTE;
	return run_fdes(b);
}

static void drop_section(struct builder *b)
{
	free(b->section.data);
	b->section = (struct cfi_section){ 0 };
	memset(b->cies, 0, sizeof(b->cies));
	b->nr_fdes = 0;
	b->floor = 0;
}

/* Take the rows out of the table. */
static struct rows cfi_take_rows(struct builder *b)
{
	struct rows rows = { take_ptr(b->table->rows), b->table->nr_rows };

	b->table->nr_rows = b->max_rows = 0;
	return rows;
}

/* Fill the table with the rows of @first, and with those of @second where @first has no rule. */
static int merge_rows(struct builder *b, const struct rows *first, const struct rows *second)
{
	u32 rules[] = { CFI_NONE, CFI_NONE };
	size_t i = 0, k = 0;
	int err = 0;

	while (!err && (i < first->nr || k < second->nr)) {
		bool is_first = k == second->nr || (i < first->nr && first->list[i].pc <= second->list[k].pc);
		u32 pc = is_first ? first->list[i].pc : second->list[k].pc;

		if (i < first->nr && first->list[i].pc == pc)
			rules[0] = first->list[i++].rule;
		if (k < second->nr && second->list[k].pc == pc)
			rules[1] = second->list[k++].rule;
		err = cfi_add_row(b, pc, rules[cfi_kind(rules[0]) == CFI_NONE]);
		if (err == -EFBIG)
			return cfi_add_row(b, pc, CFI_NONE);
	}
	return err;
}

/*
 * Programs built without tables for exceptions have their own functions in .debug_frame, and those of linked
 * libraries in .eh_frame.
 */
static int add_debug_frame(struct builder *b, const struct elf *elf)
{
	struct rows first = cfi_take_rows(b), second;
	int err;

	drop_section(b);
	err = build_section(b, elf, true);
	second = cfi_take_rows(b);
	if (err && err != -ENOMEM && first.nr) {
		b->table->stats.is_cut |= err != -ENOENT;
		second.nr = 0;
		err = 0;
	}
	if (!err)
		err = merge_rows(b, &first, &second);
	free(first.list);
	free(second.list);
	return err;
}

static int build_rows(struct builder *b, const struct elf *elf)
{
	int err = CFI_HAS_EXIDX ? build_exidx(b, elf) : -ENOENT;

	if (err != -ENOENT)
		return err;
	err = build_section(b, elf, false);
	if ((err && err != -ENOENT) || !cfi_has_debug_frame(elf))
		return err;
	return add_debug_frame(b, elf);
}

static void builder_fini(struct builder *b)
{
	free(b->section.data);
	free(b->fdes);
	cfi_free(b->table);
	free(b);
}

/*
 * Code without information at the file's entry point is where a process begins: _start of ld.so and of musl. No
 * caller is above it.
 */
static int mark_entry(struct cfi_table *t, u64 entry)
{
	struct cfi_row row = { .rule = cfi_rule(CFI_OUTERMOST, 0, CFI_SAME, 0) };
	size_t i = 0;

	if (entry < t->text_base || entry - t->text_base >= UINT32_MAX ||
	    cfi_kind(cfi_find(t, entry)) != CFI_NONE)
		return 0;
	row.pc = entry - t->text_base;
	while (i < t->nr_rows && t->rows[i].pc < row.pc)
		i++;
	if (i == t->nr_rows) /* behind all functions */
		return 0;
	if (t->rows[i].pc == row.pc) {
		if (i + 1 < t->nr_rows)
			t->rows[i] = row;
		return 0;
	}
	if (array_extend(t->rows, t->nr_rows))
		return -ENOMEM;
	memmove(&t->rows[i + 1], &t->rows[i], (t->nr_rows - i) * sizeof(*t->rows));
	t->rows[i] = row;
	t->nr_rows++;
	return 0;
}

int cfi_build(struct cfi_table **out, struct elf *elf)
{
	const struct unwind_arch *arch = unwind_arch(elf->machine, elf->word_size);
	struct builder *b;
	void *fitting;
	int err = -ENOMEM;

	if (!arch)
		return -ENOTSUP;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->arch = arch;
	b->table = calloc(1, sizeof(*b->table));
	if (!b->table)
		goto undo;
	b->table->machine = elf->machine;
	b->table->word_size = elf->word_size;
	err = build_rows(b, elf);
	if (!err && elf->entry)
		err = mark_entry(b->table, elf->entry);
	if (err)
		goto undo;
	fitting = b->table->nr_rows ? realloc(b->table->rows, b->table->nr_rows * sizeof(*b->table->rows))
				    : NULL;
	if (fitting)
		b->table->rows = fitting;
	*out = b->table;
	b->table = NULL;
undo:
	builder_fini(b);
	return err;
}

void cfi_free(struct cfi_table *table)
{
	if (!table)
		return;
	free(table->rows);
	free(table);
}
