/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every row of compiled call frame information against libdw; files given as arguments are compared, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include "arch/unwind.h"
#include "tests/unit/elf_files.h"
#include "user/unwind/cfi.h"
#include "user/lib/elf.h"

/*
 * Both sides compute the caller's registers from made-up ones: rules are equal if the numbers are, however
 * they are written. Memory is a hash of the address, so that each word is different.
 */
struct registers {
	u64 pc, sp, fp, lr;
};

enum outcome { OUT_NONE, OUT_OUTERMOST, OUT_UNKNOWN, OUT_CALLER };

struct result {
	enum outcome outcome;
	bool has_fp; /* false: cannot be restored */
	struct registers caller;
};

enum { MAX_ROWS = 120000, MAX_STACK = 16 };

static const char *const *extra_files;

static u64 memory(const struct unwind_arch *arch, u64 addr)
{
	u64 word = (addr + 1) * 0x9e3779b97f4a7c15ULL;

	return arch->word_size == 4 ? word >> 32 : word;
}

static u64 to_word(const struct unwind_arch *arch, u64 value)
{
	return arch->word_size == 4 ? (u32)value : value;
}

static bool register_value(const struct unwind_arch *arch, const struct registers *r, u64 number, u64 *value)
{
	if (number == arch->sp)
		*value = r->sp;
	else if (number == arch->fp)
		*value = r->fp;
	else if (number == arch->ra)
		*value = arch->has_link ? r->lr : r->pc;
	else
		return false;
	return true;
}

struct evaluation {
	const struct unwind_arch *arch;
	const struct registers *regs;
	u64 cfa;
	u64 stack[MAX_STACK];
	size_t depth;
	bool is_value; /* the result is the value, not where it is */
};

static bool push(struct evaluation *e, u64 value)
{
	if (e->depth == MAX_STACK)
		return false;
	e->stack[e->depth++] = to_word(e->arch, value);
	return true;
}

static bool push_register(struct evaluation *e, u64 number, u64 offset)
{
	u64 value;

	return register_value(e->arch, e->regs, number, &value) && push(e, value + offset);
}

static bool binary(struct evaluation *e, u8 atom)
{
	u64 right, left;

	if (e->depth < 2)
		return false;
	right = e->stack[--e->depth];
	left = e->stack[--e->depth];
	switch (atom) {
	case DW_OP_and:
		return push(e, left & right);
	case DW_OP_plus:
		return push(e, left + right);
	case DW_OP_ge:
		return push(e, (s64)left >= (s64)right);
	case DW_OP_shl:
		return push(e, left << right);
	default:
		return false;
	}
}

static bool evaluate_op(struct evaluation *e, const Dwarf_Op *op)
{
	u8 atom = op->atom;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_register(e, atom - DW_OP_breg0, op->number);
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return push(e, atom - DW_OP_lit0);
	switch (atom) {
	case DW_OP_bregx:
		return push_register(e, op->number, op->number2);
	case DW_OP_call_frame_cfa:
		return push(e, e->cfa);
	case DW_OP_plus_uconst:
		return e->depth && push(e, e->stack[--e->depth] + op->number);
	case DW_OP_deref:
		return e->depth && push(e, memory(e->arch, e->stack[--e->depth]));
	case DW_OP_stack_value:
		e->is_value = true;
		return true;
	default:
		return binary(e, atom);
	}
}

static bool evaluate(struct evaluation *e, const Dwarf_Op *ops, size_t nr, u64 *result)
{
	e->depth = 0;
	e->is_value = false;
	for (size_t i = 0; i < nr; i++)
		if (!evaluate_op(e, &ops[i]))
			return false;
	if (!e->depth)
		return false;
	*result = e->stack[e->depth - 1];
	return true;
}

enum register_state { REGISTER_KNOWN, REGISTER_UNDEFINED, REGISTER_UNKNOWN };

static enum register_state libdw_register(struct evaluation *e, Dwarf_Frame *frame, int number, u64 *value)
{
	Dwarf_Op mem[3], *ops;
	size_t nr;

	assert_int_equal(dwarf_frame_register(frame, number, mem, &ops, &nr), 0);
	if (nr == 0 && ops == mem)
		return REGISTER_UNDEFINED;
	if (nr == 0)
		return register_value(e->arch, e->regs, (u64)number, value) ? REGISTER_KNOWN
									    : REGISTER_UNKNOWN;
	if (!evaluate(e, ops, nr, value))
		return REGISTER_UNKNOWN;
	if (!e->is_value)
		*value = memory(e->arch, *value);
	return REGISTER_KNOWN;
}

static struct result libdw_step(const struct unwind_arch *arch, Dwarf_CFI *cfi, const struct registers *r)
{
	struct evaluation e = { .arch = arch, .regs = r };
	struct result out = { .outcome = OUT_UNKNOWN };
	enum register_state ra, fp;
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	size_t nr;

	if (dwarf_cfi_addrframe(cfi, r->pc, &frame))
		return (struct result){ .outcome = OUT_NONE };
	if (dwarf_frame_cfa(frame, &ops, &nr) == 0 && evaluate(&e, ops, nr, &e.cfa)) {
		ra = libdw_register(&e, frame, arch->ra, &out.caller.pc);
		fp = libdw_register(&e, frame, arch->fp, &out.caller.fp);
		out.has_fp = fp == REGISTER_KNOWN;
		if (ra == REGISTER_KNOWN &&
		    libdw_register(&e, frame, arch->sp, &out.caller.sp) == REGISTER_KNOWN)
			out.outcome = OUT_CALLER;
	} else {
		ra = libdw_register(&e, frame, arch->ra, &out.caller.pc);
	}
	if (ra == REGISTER_UNDEFINED)
		out.outcome = OUT_OUTERMOST;
	free(frame);
	return out;
}

/* A second reading of bpf/cfi_rule.h, for the made-up memory. */
static bool row_cfa(const struct unwind_arch *arch, u32 rule, const struct registers *r, u64 *base, u64 *cfa)
{
	s64 offset = (s64)cfi_cfa_words(rule) * arch->word_size;
	u32 kind = cfi_kind(rule);

	*base = kind == CFI_FP || kind == CFI_DEREF_FP || kind == CFI_DEREF_FP_WORD ? r->fp : r->sp;
	*cfa = to_word(arch, *base + (u64)offset);
	if (kind == CFI_PLT)
		*cfa = *base + arch->word_size + ((r->pc & 15) >= cfi_save_words(rule) ? arch->word_size : 0);
	else if (kind >= CFI_DEREF_SP)
		*cfa = memory(arch, *cfa);
	if (kind == CFI_DEREF_SP_WORD || kind == CFI_DEREF_FP_WORD)
		*cfa = to_word(arch, *cfa + arch->word_size);
	return kind >= CFI_PLT;
}

static void row_saved(const struct unwind_arch *arch, u32 rule, u64 base, u64 cfa, struct result *out)
{
	u64 below = to_word(arch, cfa - (u64)cfi_save_words(rule) * arch->word_size);
	u64 above = to_word(arch, base + (u64)cfi_save_words(rule) * arch->word_size);
	u64 gap = arch->word_size;
	struct registers *c = &out->caller;

	if (cfi_kind(rule) == CFI_PLT)
		return;
	switch ((enum cfi_save)cfi_save(rule)) {
	case CFI_FP_AT_CFA:
		c->fp = memory(arch, below);
		break;
	case CFI_FP_AT_BASE:
		c->fp = memory(arch, above);
		break;
	case CFI_RA_AT_CFA_FP_LOST:
		out->has_fp = false;
		/* fall through */
	case CFI_RA_AT_CFA:
		c->pc = memory(arch, cfi_kind(rule) == CFI_SP_RA_AT_SP ? above : below);
		break;
	case CFI_PAIR_AT_CFA:
		c->fp = memory(arch, below);
		c->pc = memory(arch, to_word(arch, below + gap));
		break;
	case CFI_PAIR_AT_BASE:
		c->fp = memory(arch, above);
		c->pc = memory(arch, to_word(arch, above + gap));
		break;
	case CFI_FP_LOST:
		out->has_fp = false;
		break;
	default:
		break;
	}
}

static struct result row_step(const struct unwind_arch *arch, const struct cfi_table *t,
			      const struct registers *r)
{
	struct result out = { .outcome = OUT_CALLER, .has_fp = true, .caller = *r };
	u32 rule = cfi_find(t, r->pc);
	u64 base, cfa;

	switch (cfi_kind(rule)) {
	case CFI_NONE:
		return (struct result){ .outcome = OUT_NONE };
	case CFI_OUTERMOST:
		return (struct result){ .outcome = OUT_OUTERMOST };
	case CFI_UNSUPPORTED:
		return (struct result){ .outcome = OUT_UNKNOWN };
	case CFI_SIGNAL:
		cfa = r->sp + (u64)cfi_cfa_words(rule) * arch->word_size;
		out.caller.sp = memory(arch, to_word(arch, cfa));
		out.caller.pc = memory(arch, to_word(arch, cfa + (u64)arch->signal_pc));
		out.caller.fp = memory(arch, to_word(arch, cfa + (u64)arch->signal_fp));
		return out;
	}
	assert_true(row_cfa(arch, rule, r, &base, &cfa));
	out.caller.sp = cfa;
	out.caller.pc = arch->has_link ? r->lr : memory(arch, to_word(arch, cfa - arch->word_size));
	row_saved(arch, rule, base, cfa, &out);
	return out;
}

struct comparison {
	const char *path;
	const struct unwind_arch *arch;
	const struct cfi_table *table;
	u64 entry; /* of the file */
	Dwarf_CFI *cfi;
	Dwarf_CFI *debug; /* for where that has nothing; NULL = none */
	size_t nr, nr_callers, nr_unsupported, nr_lost, nr_wrong, nr_by_debug;
};

static void compare_at(struct comparison *c, u64 pc)
{
	struct registers r = { pc, to_word(c->arch, 0x7fe010203040), to_word(c->arch, 0x7fd050607080),
			       0x5e0a };
	struct result want = libdw_step(c->arch, c->cfi, &r), have = row_step(c->arch, c->table, &r);
	bool is_same;

	c->nr++;
	if (want.outcome == OUT_NONE && c->debug) {
		want = libdw_step(c->arch, c->debug, &r);
		c->nr_by_debug += want.outcome == OUT_CALLER;
	}
	is_same = want.outcome == have.outcome;
	/* libdw knows nothing of an entry point without information; heaptap knows that a process begins there. */
	if (have.outcome == OUT_OUTERMOST && want.outcome == OUT_NONE && pc >= c->entry &&
	    cfi_find(c->table, pc) == cfi_find(c->table, c->entry))
		return;
	if (have.outcome == OUT_UNKNOWN) { /* a row may always say that it does not know, but not often */
		c->nr_unsupported++;
		is_same = want.outcome == OUT_UNKNOWN || want.outcome == OUT_CALLER;
	}
	if (is_same && have.outcome == OUT_CALLER) {
		c->nr_callers++;
		c->nr_lost += !have.has_fp;
		is_same = want.caller.sp == have.caller.sp && want.caller.pc == have.caller.pc &&
			  (!have.has_fp || (want.has_fp && want.caller.fp == have.caller.fp));
	}
	if (is_same)
		return;
	if (c->nr_wrong++ < 20)
		print_error("%s: %#llx: libdw %d, row %d, rule %#x: sp %llx %llx pc %llx %llx fp %llx %llx\n",
			    c->path, (unsigned long long)pc, want.outcome, have.outcome,
			    cfi_find(c->table, pc), (unsigned long long)want.caller.sp,
			    (unsigned long long)have.caller.sp, (unsigned long long)want.caller.pc,
			    (unsigned long long)have.caller.pc, (unsigned long long)want.caller.fp,
			    (unsigned long long)have.caller.fp);
}

/* At the first and the last address of each row, or of every nth where there are very many. */
static void compare_rows(struct comparison *c)
{
	const struct cfi_table *t = c->table;
	size_t stride = t->nr_rows / MAX_ROWS + 1;

	for (size_t i = 0; i < t->nr_rows; i += stride) {
		compare_at(c, t->text_base + t->rows[i].pc);
		if (t->rows[i].pc)
			compare_at(c, t->text_base + t->rows[i].pc - 1);
	}
	print_message("# %s: %zu places, %zu callers (%zu by .debug_frame), %zu unsupported, %zu without FP, "
		      "%zu wrong\n",
		      c->path, c->nr, c->nr_callers, c->nr_by_debug, c->nr_unsupported, c->nr_lost,
		      c->nr_wrong);
	assert_int_equal(c->nr_wrong, 0);
	assert_true(c->nr_callers > 0);
	assert_true(c->nr_unsupported * 100 <= c->nr);
}

/* False if it is nothing to compare: a script, or no information in it. *@nr_by_debug grows. */
static bool compare_file(const char *path, size_t *nr_by_debug)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	struct comparison c = { .path = path };
	struct cfi_table *table = NULL;
	struct elf *elf = NULL;
	Dwarf *dwarf = NULL;
	Elf *ref;

	assert_true(fd >= 0);
	err = elf_open(&elf, fd);
	if (!err)
		err = cfi_build(&table, elf);
	if (err) {
		print_message("# %s: %s, left out\n", path, strerror(-err));
		elf_close(elf);
		close(fd);
		return false;
	}
	ref = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	c.cfi = dwarf_getcfi_elf(ref);
	if (elf_section(elf, ".debug_frame"))
		dwarf = dwarf_begin_elf(ref, DWARF_C_READ, NULL);
	c.debug = dwarf ? dwarf_getcfi(dwarf) : NULL;
	c.arch = unwind_arch(elf->machine, elf->word_size);
	c.table = table;
	c.entry = elf->entry;
	assert_non_null(c.arch);
	compare_rows(&c);
	*nr_by_debug += c.nr_by_debug;
	dwarf_end(dwarf);
	dwarf_cfi_end(c.cfi);
	elf_end(ref);
	cfi_free(table);
	elf_close(elf);
	close(fd);
	return true;
}

static void test_rows(void **state)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libcrypto.so.3", "libLLVM-14.so.1",
						 NULL };
	static const char *const programs[] = { "bash", "python3", "gdb", "ld", "git", NULL };
	struct elf_files files = { .nr = 0 };
	size_t nr = 0, nr_by_debug = 0;

	(void)state;
	for (const char *const *path = extra_files; *path; path++)
		elf_files_add(&files, *path);
	elf_files_find(&files, libraries, programs);
	for (size_t i = 0; i < files.nr; i++)
		nr += compare_file(files.paths[i], &nr_by_debug);
	assert_true(nr >= 3);	      /* this program, libc, the dynamic linker */
	assert_true(nr_by_debug > 0); /* this program: see the Makefile */
	elf_files_free(&files);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
	};

	extra_files = (const char *const *)argv + (argc > 0);
	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
