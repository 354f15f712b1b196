/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of sites and places of probes, on functions in assembly in this program and on real libraries. */
#include "user/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/event.h"
#include "tests/unit/elf_files.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/probe/probe_place.h"
#include "tests/unit/skip.h"

/*
 * Functions that nobody calls. The symbol NAME_at stands where the probe must be, NAME_ret... where it
 * returns. Local labels would not get into the symbol table.
 */
#define CODE(name, body)                                                                                     \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name ":\n" body          \
		"\n.size " #name ", . - " #name "\n")

#ifdef __x86_64__
CODE(t_endbr, "endbr64\n t_endbr_at: push %rbx\n pop %rbx\n ret");
CODE(t_push, "t_push_at: push %r12\n pop %r12\n ret");
CODE(t_test, "test %rdi,%rdi\n t_test_at: je 1f\n nop\n 1: ret");
CODE(t_sub, "t_sub_at: sub $24,%rsp\n je 1f\n 1: add $24,%rsp\n ret");
CODE(t_clobber, "t_clobber_at: xor %edi,%edi\n push %rbx\n pop %rbx\n ret");
CODE(t_clobber_other, "xor %edx,%edx\n t_clobber_other_at: push %rbx\n pop %rbx\n ret");
CODE(t_moved, "mov %rdi,%rsi\n xor %edi,%edi\n t_moved_at: push %rbx\n pop %rbx\n ret");
CODE(t_moved_half, "t_moved_half_at: mov %edi,%esi\n xor %edi,%edi\n push %rbx\n pop %rbx\n ret");
CODE(t_moved_on, "mov %rdi,%rsi\n mov %rsi,%rdx\n xor %esi,%esi\n xor %edi,%edi\n"
		 "t_moved_on_at: push %rbx\n pop %rbx\n ret");
CODE(t_loop, "t_loop_at: test %rdi,%rdi\n 1: push %rbx\n pop %rbx\n dec %rdi\n jne 1b\n ret");
CODE(t_loop_entry, "t_loop_entry_at: push %rbx\n pop %rbx\n dec %rdi\n jne t_loop_entry\n ret");
CODE(t_call, "t_call_at: call t_push\n ret");
CODE(t_jump, "t_jump_at: jmp t_push");
CODE(t_jump_far, "t_jump_far_at: jmp *free@GOTPCREL(%rip)");
CODE(t_nop, "t_nop_at: nopl 0(%rax,%rax)\n push %rbx\n pop %rbx\n ret");
CODE(t_ret, "t_ret_at: ret");
CODE(t_loop_insn, "t_loop_insn_at: mov %rdi,%rax\n 1: loop 1b\n ret");
CODE(t_bad, "t_bad_at: .byte 0x06, 0x06\n ret");
CODE(t_far_place, ".rept 100\n mov %rax,%rax\n .endr\n push %rbx\n pop %rbx\n ret");

CODE(t_32_ebx, ".code32\n inc %eax\n xor %esi,%esi\n t_32_ebx_at: push %ebx\n pop %ebx\n ret\n .code64");
CODE(t_32_sub, ".code32\n sub $24,%esp\n push %ebx\n pop %ebx\n ret\n .code64");

/* Aliases: one address, three names. */
CODE(t_first, "push %rbx\n pop %rbx\n ret");
__asm__(".globl t_alias\n.set t_alias, t_first\n.weak t_weak\n.set t_weak, t_first\n");

/* Symbols that a hostile file may have. */
__asm__(".data\n.globl t_in_data\n.type t_in_data,@function\nt_in_data: .quad 0x9090909090909090\n"
	".size t_in_data, 8\n.text\n");
__asm__(".globl t_nowhere\n.type t_nowhere,@function\n.set t_nowhere, 0x7ffffff00000\n");
__asm__(".globl t_object\n.type t_object,@object\nt_object: nop\n");
CODE(t_huge, "t_huge_at: push %rbx\n pop %rbx\n ret");
__asm__(".size t_huge, 0x7fffffffffffffff\n");
CODE(t_wraps, "t_wraps_at: push %rbx\n pop %rbx\n ret");
__asm__(".size t_wraps, 0xfffffffffffffff0\n");

/* A symbol in the middle of an instruction, and one between two, of a function without call frame information. */
CODE(t_outer, "movabs $0x5b53909090909090,%rax\n push %rbx\n t_boundary_at: pop %rbx\n ret");
__asm__(".globl t_middle\n.type t_middle,@function\n.set t_middle, t_outer + 2\n.size t_middle, 8\n");
__asm__(".globl t_boundary\n.type t_boundary,@function\n.set t_boundary, t_boundary_at\n.size t_boundary, 2\n");

/* Operators. */
CODE(t_new_calls, "push %rbx\n call malloc@PLT\n pop %rbx\n ret");
CODE(t_new_calls_got, "push %rbx\n call *malloc@GOTPCREL(%rip)\n pop %rbx\n ret");
CODE(t_new_jumps, "test %rdi,%rdi\n jne 1f\n inc %rdi\n 1: jmp malloc@PLT");
CODE(t_new_both, "push %rbx\n call malloc@PLT\n pop %rbx\n test %rax,%rax\n je 1f\n ret\n 1: jmp malloc@PLT");
CODE(t_new_pool, "test %rdi,%rdi\n jne 1f\n t_new_pool_ret: ret\n 1: jmp malloc@PLT");
CODE(t_new_own, "test %rdi,%rdi\n je 1f\n t_new_own_ret: ret\n 1: jmp t_new_rest");
CODE(t_new_rest, "push %rbx\n pop %rbx\n t_new_rest_ret: ret");
CODE(t_new_unknown, "test %rdi,%rdi\n je 1f\n ret\n 1: jmp *%rax");
CODE(t_new_rarely, "test %rdi,%rdi\n je 1f\n jmp t_new_handled\n 1: jmp t_new_rest");
CODE(t_new_handled, "jmp *%rax");
CODE(t_new_handled_only, "jmp t_new_handled");
CODE(t_new_never, "t_new_never_at: ud2");
CODE(t_new_asserts, "test %rdi,%rdi\n je 1f\n t_new_asserts_ret: ret\n 1: push %rbx\n call t_new_never");
CODE(t_new_next, ".cfi_startproc\n push %rbx\n pop %rbx\n ret\n .cfi_endproc");
CODE(t_new_quits, ".cfi_startproc\n je 1f\n ret\n 1: call t_new_never\n .cfi_endproc\n ret");
CODE(t_delete_jumps, "t_delete_jumps_at: jmp free@PLT");
CODE(t_delete_calls, "push %rbx\n call free@PLT\n pop %rbx\n ret");
CODE(t_delete_mallocs, "push %rbx\n call malloc@PLT\n pop %rbx\n ret");
CODE(t_delete_local, "jmp t_push");
#endif

struct fixture {
	int fd;
	struct elf *elf;
};

static struct alloc_table *fns; /* of all tests; with the functions that they name */
static struct probe_options plain = { .want_cpp = true };

static u64 value_of(struct elf *elf, const char *name);

/* A row of the table for a function of ours. */
static u16 row(const char *symbol, enum alloc_kind kind, enum alloc_family family, u8 arg)
{
	struct alloc_fn fn = { symbol, symbol, kind, family };
	u16 known = alloc_fn_find(fns, symbol);
	int nr;

	if (known)
		return known;
	if (kind == ALLOC_FREE)
		fn.old_arg = arg;
	else
		fn.size_arg = arg;
	fn.can_throw = family == FAMILY_NEW && kind == ALLOC_MALLOC;
	nr = alloc_fn_add(fns, &fn);
	assert_true(nr > 0);
	return nr;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	f->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return f->fd < 0 ? -1 : elf_open(&f->elf, f->fd);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	elf_close(f->elf);
	close(f->fd);
	free(f);
	return 0;
}

struct wanted {
	const char *name;
	u64 value, size;
};

static int see(void *ctx, const struct elf_symbol *sym)
{
	struct wanted *w = ctx;

	if (sym->shndx == SHN_UNDEF || strcmp(sym->name, w->name))
		return 0;
	w->value = sym->value;
	w->size = sym->size;
	return 1;
}

static u64 value_of(struct elf *elf, const char *name)
{
	struct wanted w = { .name = name };

	if (elf_each_symbol(elf, ELF_SYMTAB | ELF_DYNSYM, see, &w) != 1)
		fail_msg("no symbol %s", name);
	return w.value;
}

static u64 size_of(struct elf *elf, const char *name)
{
	struct wanted w = { .name = name };

	return elf_each_symbol(elf, ELF_SYMTAB, see, &w) == 1 ? w.size : 0;
}

/* Place a probe on @name as on row @fn, in a file whose list is @list. */
static int place(struct elf *elf, struct probe_site *site, const char *name, u16 fn,
		 const struct probe_list *list, const struct probe_options *options)
{
	u64 start = value_of(elf, name);

	return probe_site_init(site, elf, fn, start, start + size_of(elf, name), options, list);
}

static struct probe_site placed(struct elf *elf, const char *name, u16 fn)
{
	static const struct probe_list none;
	struct probe_site site;

	assert_int_equal(place(elf, &site, name, fn, &none, &plain), 0);
	free(site.rets);
	return site;
}

#ifdef __x86_64__
/* ---- places ---- */

static void test_places(void **state)
{
	static const struct {
		const char *name;
		bool is_emulated;
	} cases[] = {
		{ "t_endbr", true },	   { "t_push", true },	     { "t_test", true },
		{ "t_sub", false },	   { "t_clobber", false },   { "t_clobber_other", true },
		{ "t_moved_half", false }, { "t_loop", false },	     { "t_loop_entry", true },
		{ "t_call", true },	   { "t_jump", true },	     { "t_jump_far", false },
		{ "t_ret", false },	   { "t_loop_insn", false }, { "t_bad", false },
	};
	struct fixture *f = *state;
	u16 fn = row("t_any_free", ALLOC_FREE, FAMILY_CUSTOM, 1);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct probe_site s = placed(f->elf, cases[i].name, fn);
		char at[64];

		snprintf(at, sizeof(at), "%s_at", cases[i].name);
		if (s.place != value_of(f->elf, at) || s.is_emulated != cases[i].is_emulated)
			fail_msg("%s: probe at +%d, emulated %d", cases[i].name, (int)(s.place - s.start),
				 s.is_emulated);
		assert_int_equal(s.arg_at[1], 1);
	}
}

/* Too far from the entry: better the entry, however dear. */
static void test_prologue_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct probe_site s = placed(f->elf, "t_far_place", row("t_any_free", ALLOC_FREE, FAMILY_CUSTOM, 1));

	assert_true(s.place == s.start);
	assert_false(s.is_emulated);
}

static void test_moved_arguments(void **state)
{
	struct fixture *f = *state;
	u16 fn = row("t_any_free", ALLOC_FREE, FAMILY_CUSTOM, 1);
	struct probe_site s = placed(f->elf, "t_moved", fn);

	assert_true(s.place == value_of(f->elf, "t_moved_at"));
	assert_int_equal(s.arg_at[1], 2);
	s = placed(f->elf, "t_moved_on", fn);
	assert_true(s.place == value_of(f->elf, "t_moved_on_at"));
	assert_int_equal(s.arg_at[1], 3);
}

/* Only what the function needs matters. */
static void test_other_argument(void **state)
{
	struct fixture *f = *state;
	struct probe_site s = placed(f->elf, "t_clobber", row("t_second", ALLOC_MALLOC, FAMILY_CUSTOM, 2));

	assert_true(s.is_emulated);
	assert_true(s.place > s.start);
	assert_int_equal(s.arg_at[2], 2);
	s = placed(f->elf, "t_moved", row("t_second", ALLOC_MALLOC, FAMILY_CUSTOM, 2));
	assert_true(s.place == s.start);
}

/* Arguments are on the stack; the bytes of REX prefixes are inc and dec. */
static void test_32bit(void **state)
{
	static const struct probe_list none;
	struct fixture *f = *state;
	u64 ebx = value_of(f->elf, "t_32_ebx"), sub = value_of(f->elf, "t_32_sub");
	u64 at = value_of(f->elf, "t_32_ebx_at");
	u16 fn = row("t_any_free", ALLOC_FREE, FAMILY_CUSTOM, 1);
	struct probe_site s;

	f->elf->machine = EM_386;
	f->elf->word_size = 4;
	assert_int_equal(probe_site_init(&s, f->elf, fn, ebx, ebx + 8, &plain, &none), 0);
	assert_int_equal(s.flags, PROBE_32BIT | PROBE_RETURNS);
	assert_true(s.place == at && s.is_emulated);
	assert_int_equal(s.arg_at[1], 1);
	assert_int_equal(probe_site_init(&s, f->elf, fn, sub, sub + 8, &plain, &none), 0);
	assert_true(s.place == s.start && !s.is_emulated);
}

static void test_other_cpu(void **state)
{
	struct fixture *f = *state;
	static const struct probe_list none;
	struct probe_site s;

	f->elf->machine = EM_SPARC;
	assert_int_equal(place(f->elf, &s, "t_push", 1, &none, &plain), -ENOTSUP);
	f->elf->machine = EM_X86_64;
}

/* Argument numbers of --alloc that no register of ours has must not be read from beyond the table. */
static void test_argument_numbers(void **state)
{
	struct fixture *f = *state;

	for (u8 arg = 1; arg <= 4; arg++) {
		char name[32];
		struct probe_site s;

		snprintf(name, sizeof(name), "t_nth%d", arg);
		s = placed(f->elf, "t_push", row(name, ALLOC_MALLOC, FAMILY_CUSTOM, arg));
		assert_int_equal(s.arg_at[arg], arg);
	}
}

/* ---- how the end is seen ---- */

/* Of a program's own operators. */
enum { OWN_RETURNS = PROBE_RETURNS | PROBE_WRAPS, OWN_DELEGATES = PROBE_DELEGATES | PROBE_WRAPS };
enum { NOT_RUNTIME, RUNTIME };
/* Flags of @name as an operator in a file that is a runtime or not. -errno as it comes. */
static int flags_of(struct elf *elf, struct probe_site *site, const char *name, enum alloc_kind kind,
		    bool is_runtime)
{
	struct probe_list list = { .is_runtime = is_runtime, .kind = is_runtime ? "libstdc++" : "custom" };
	char symbol[64];
	int err;

	snprintf(symbol, sizeof(symbol), "op_%s", name);
	err = place(elf, site, name, row(symbol, kind, FAMILY_NEW, 1), &list, &plain);
	free(site->rets);
	site->rets = NULL;
	return err ? err : site->flags;
}

static void test_runtime_operators_delegate(void **state)
{
	struct fixture *f = *state;
	struct probe_site s;

	assert_int_equal(flags_of(f->elf, &s, "t_new_calls", ALLOC_MALLOC, RUNTIME), PROBE_DELEGATES);
	assert_true(s.own_start == s.start && s.own_end == s.end);
	assert_int_equal(flags_of(f->elf, &s, "t_new_calls_got", ALLOC_MALLOC, RUNTIME), PROBE_DELEGATES);
	assert_int_equal(flags_of(f->elf, &s, "t_new_jumps", ALLOC_MALLOC, RUNTIME), PROBE_DELEGATES);
	assert_int_equal(flags_of(f->elf, &s, "t_delete_jumps", ALLOC_FREE, RUNTIME), PROBE_DELEGATES);
	assert_int_equal(flags_of(f->elf, &s, "t_delete_calls", ALLOC_FREE, RUNTIME), PROBE_DELEGATES);
	/* A delete that only allocates does not delegate. */
	assert_int_equal(flags_of(f->elf, &s, "t_delete_mallocs", ALLOC_FREE, RUNTIME), PROBE_RETURNS);
}

/* Straight to a function of the same file, which has a site. */
static void test_delegate_in_same_file(void **state)
{
	struct fixture *f = *state;
	struct probe_site target = { .row = alloc_fn(fns, row("t_local_free", ALLOC_FREE, FAMILY_MALLOC, 1)),
				     .start = value_of(f->elf, "t_push") };
	struct probe_list list = { .sites = &target, .nr = 1, .is_runtime = true };
	struct probe_site s;

	assert_int_equal(place(f->elf, &s, "t_delete_local", row("op_local", ALLOC_FREE, FAMILY_NEW, 1),
			       &list, &plain),
			 0);
	assert_int_equal(s.flags, PROBE_DELEGATES);
	free(s.rets);
}

/* The program's own operator new may add a header to what malloc gives: its own return counts ... */
static void test_own_new_returns(void **state)
{
	struct fixture *f = *state;
	struct probe_site s;

	assert_int_equal(flags_of(f->elf, &s, "t_new_calls", ALLOC_MALLOC, NOT_RUNTIME), OWN_RETURNS);
	assert_int_equal(s.nr_rets, 1);
}

/* ... but not when it jumps on into malloc: nothing can come after that. */
static void test_own_new_jumps_on(void **state)
{
	struct fixture *f = *state;
	struct probe_site s;

	assert_int_equal(flags_of(f->elf, &s, "t_new_jumps", ALLOC_MALLOC, NOT_RUNTIME), OWN_DELEGATES);
	assert_int_equal(s.nr_rets, 0);
	assert_true(s.own_start == s.start && s.own_end == s.end);
	/* Some calls end here, some in malloc. */
	assert_int_equal(flags_of(f->elf, &s, "t_new_pool", ALLOC_MALLOC, NOT_RUNTIME), OWN_DELEGATES);
	assert_int_equal(s.nr_rets, 1);
	/* A malloc that may be given a header, and one that is not: the result tells which one it was. */
	assert_int_equal(flags_of(f->elf, &s, "t_new_both", ALLOC_MALLOC, NOT_RUNTIME), OWN_DELEGATES);
}

static void test_own_delete(void **state)
{
	struct fixture *f = *state;
	struct probe_site s;

	assert_int_equal(flags_of(f->elf, &s, "t_delete_jumps", ALLOC_FREE, NOT_RUNTIME), OWN_RETURNS);
	assert_int_equal(flags_of(f->elf, &s, "t_delete_calls", ALLOC_FREE, NOT_RUNTIME), OWN_RETURNS);
}

static bool has_ret(const struct probe_site *s, u64 addr)
{
	for (size_t i = 0; i < s->nr_rets; i++)
		if (s->rets[i] == addr)
			return true;
	return false;
}

static void test_rets(void **state)
{
	struct fixture *f = *state;
	static const struct probe_list none;
	struct probe_site s;

	assert_int_equal(
		place(f->elf, &s, "t_new_own", row("op_own", ALLOC_MALLOC, FAMILY_NEW, 1), &none, &plain), 0);
	assert_int_equal(s.flags, OWN_RETURNS);
	assert_int_equal(s.nr_rets, 2);
	assert_true(has_ret(&s, value_of(f->elf, "t_new_own_ret")));
	assert_true(has_ret(&s, value_of(f->elf, "t_new_rest_ret")));
	free(s.rets);
}

/* Behind a call that never returns another function begins, described or not: its ends are none of ours. */
static void test_rets_stay_inside(void **state)
{
	static const struct probe_list none;
	const struct fixture *f = *state;
	u16 fn = row("op_asserts", ALLOC_MALLOC, FAMILY_NEW, 1);
	struct probe_site s;

	assert_int_equal(place(f->elf, &s, "t_new_asserts", fn, &none, &plain), 0);
	assert_true(s.nr_rets == 1 && has_ret(&s, value_of(f->elf, "t_new_asserts_ret")));
	free(s.rets);
	assert_int_equal(place(f->elf, &s, "t_new_quits", fn, &none, &plain), 0);
	assert_true(s.nr_rets == 1 && has_ret(&s, s.start + 2));
	free(s.rets);
}

/* Ends that cannot be seen: refused, and nothing leaks (the sanitizer tells). */
static void test_unseen_ends(void **state)
{
	struct fixture *f = *state;
	static const struct probe_list none;
	struct probe_site s;
	u16 fn = row("op_any", ALLOC_MALLOC, FAMILY_NEW, 1);

	assert_int_equal(place(f->elf, &s, "t_new_unknown", fn, &none, &plain), -ENOSYS);
	assert_null(s.rets);
	assert_int_equal(s.nr_rets, 0);
	assert_int_equal(place(f->elf, &s, "t_new_handled_only", fn, &none, &plain), -ENOSYS);
	assert_int_equal(place(f->elf, &s, "t_new_never", fn, &none, &plain), -ENOSYS);
	assert_null(s.rets);
}

/* A rare end that cannot be seen is no reason to see none. */
static void test_mostly_seen_ends(void **state)
{
	struct fixture *f = *state;
	static const struct probe_list none;
	struct probe_site s;

	assert_int_equal(
		place(f->elf, &s, "t_new_rarely", row("op_any", ALLOC_MALLOC, FAMILY_NEW, 1), &none, &plain),
		0);
	assert_int_equal(s.nr_rets, 1);
	assert_true(s.has_unseen_end);
	free(s.rets);
}

/* Where uretprobes kill programs, all ends are seen by rets; a delete that jumps on into free ends there. */
static void test_without_uretprobes(void **state)
{
	const struct probe_options options = { .fns = fns, .want_cpp = true, .no_uretprobe = true };
	static const struct probe_list none;
	struct fixture *f = *state;
	struct probe_site s;

	assert_int_equal(
		place(f->elf, &s, "t_endbr", row("t_any", ALLOC_MALLOC, FAMILY_MALLOC, 1), &none, &options),
		0);
	assert_int_equal(s.nr_rets, 1);
	free(s.rets);
	assert_int_equal(place(f->elf, &s, "t_delete_jumps", row("op_delete", ALLOC_FREE, FAMILY_NEW, 1),
			       &none, &options),
			 0);
	assert_int_equal(s.flags, OWN_DELEGATES);
	free(s.rets);
}

/* ---- lists ---- */

static const struct probe_site *site_of(const struct probe_list *list, u64 start)
{
	const struct probe_site *found = NULL;

	for (size_t i = 0; i < list->nr; i++) {
		if (list->sites[i].start != start)
			continue;
		assert_null(found); /* one for each address */
		found = &list->sites[i];
	}
	return found;
}

/* The list of this program with functions named in @names. */
static void list_of(struct probe_list *list, struct elf *elf, const char *const *names, const char *object)
{
	struct probe_custom custom[16];
	struct probe_options options = { .fns = fns, .custom = custom };

	for (; names[options.nr_custom]; options.nr_custom++)
		custom[options.nr_custom] =
			(struct probe_custom){ row(names[options.nr_custom], ALLOC_FREE, FAMILY_CUSTOM, 1),
					       object };
	assert_int_equal(probe_list_init(list, elf, "test_probe", &options), 0);
}

static void test_aliases(void **state)
{
	static const char *const names[] = { "t_alias", "t_first", "t_weak", NULL };
	struct fixture *f = *state;
	const struct probe_site *s;
	struct probe_list list;

	list_of(&list, f->elf, names, NULL);
	s = site_of(&list, value_of(f->elf, "t_first"));
	assert_non_null(s);
	/* The name that comes first in the table. */
	assert_string_equal(s->row->symbol, "t_alias");
	assert_string_equal(list.kind, "custom");
	probe_list_fini(&list);
}

/* --alloc names a file by its path or by the last part of it. */
static void test_object(void **state)
{
	static const char *const names[] = { "t_object_fn", "t_push", NULL };
	static const struct {
		const char *object;
		bool is_this;
	} cases[] = {
		{ "test_probe", true }, { "/somewhere/test_probe", true }, { "other", false },
		{ "test_prob", false }, { "/test_probe/other", false },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct probe_list list;

		list_of(&list, f->elf, names, cases[i].object);
		if (!!site_of(&list, value_of(f->elf, "t_push")) != cases[i].is_this)
			fail_msg("object=%s", cases[i].object);
		probe_list_fini(&list);
	}
}

static void test_hostile_symbols(void **state)
{
	static const char *const names[] = {
		"t_in_data", "t_nowhere", "t_object", "t_huge", "t_wraps", NULL
	};
	struct fixture *f = *state;
	const struct elf_segment *text = elf_segment_at(f->elf, value_of(f->elf, "t_huge"));
	struct probe_list list;

	log_set_level(LOG_ERROR);
	list_of(&list, f->elf, names, NULL);
	log_set_level(LOG_INFO);
	assert_int_equal(list.nr_skipped, 2);
	assert_null(site_of(&list, value_of(f->elf, "t_in_data")));
	assert_null(site_of(&list, value_of(f->elf, "t_nowhere")));
	for (int i = 0; i < 2; i++) {
		const struct probe_site *s = site_of(&list, value_of(f->elf, i ? "t_wraps" : "t_huge"));

		assert_non_null(s);
		assert_true(s->place >= s->start && s->place < s->end);
		assert_true(s->end <= text->vaddr + text->memsz);
		assert_true(s->own_start <= s->start && s->own_end >= s->end);
	}
	assert_null(site_of(&list, value_of(f->elf, "t_object")));
	probe_list_fini(&list);
}

static void test_middle_of_instruction(void **state)
{
	struct fixture *f = *state;
	static const struct probe_list none;
	struct probe_site site;

	assert_int_equal(place(f->elf, &site, "t_middle", row("t_middle", ALLOC_FREE, FAMILY_MALLOC, 1),
			       &none, &plain),
			 -EILSEQ);
	assert_int_equal(placed(f->elf, "t_boundary", row("t_boundary", ALLOC_FREE, FAMILY_MALLOC, 1)).place,
			 value_of(f->elf, "t_boundary_at"));
}

static void test_failed_site_leaves_others(void **state)
{
	const struct probe_options options = { .fns = fns, .want_cpp = true };
	struct fixture *f = *state;
	struct probe_list list;

	row("t_new_unknown", ALLOC_MALLOC, FAMILY_NEW, 1);
	row("t_new_own", ALLOC_MALLOC, FAMILY_NEW, 1);
	log_set_level(LOG_ERROR);
	assert_int_equal(probe_list_init(&list, f->elf, "test_probe", &options), 0);
	log_set_level(LOG_INFO);
	assert_int_equal(list.nr_skipped, 1);
	assert_null(site_of(&list, value_of(f->elf, "t_new_unknown")));
	assert_int_equal(site_of(&list, value_of(f->elf, "t_new_own"))->nr_rets, 2);
	probe_list_fini(&list);
}
#endif

/* ---- real libraries ---- */

static int list_of_file(struct probe_list *list, const char *path, const struct probe_options *options)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf *elf;
	int err;

	assert_true(fd >= 0);
	assert_int_equal(elf_open(&elf, fd), 0);
	err = probe_list_init(list, elf, strrchr(path, '/') + 1, options);
	for (size_t i = 0; !err && i < list->nr; i++) {
		const struct probe_site *s = &list->sites[i];
		const struct elf_segment *seg = elf_segment_at(elf, s->start);

		assert_true(s->place >= s->start && s->place < s->end);
		assert_true(seg && s->end <= seg->vaddr + seg->memsz);
	}
	elf_close(elf);
	close(fd);
	return err;
}

/* Where the dynamic linker's cache says that @soname is; not loaded: it may be another malloc. */
static bool path_of(char path[4096], const char *soname)
{
	char command[128];
	FILE *p;
	bool is_found;

	snprintf(command, sizeof(command),
		 "PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's|^\t%s .*64.* => ||p'", soname);
	p = popen(command, "r");
	assert_non_null(p);
	is_found = fgets(path, 4096, p);
	pclose(p);
	path[strcspn(path, "\n")] = '\0';
	return is_found;
}

static void list_of_library(struct probe_list *list, const char *soname, const struct probe_options *options)
{
	char path[4096];

	if (!path_of(path, soname))
		skip_because("%s is not installed", soname);
	assert_int_equal(list_of_file(list, path, options), 0);
}

static const struct probe_site *site_named(const struct probe_list *list, const char *symbol)
{
	for (size_t i = 0; i < list->nr; i++)
		if (!strncmp(list->sites[i].row->symbol, symbol, strlen(symbol)))
			return &list->sites[i];
	return NULL;
}

static void test_libc(void **state)
{
	static const char *const all[] = { "malloc", "calloc",	       "realloc",
					   "free",   "posix_memalign", "aligned_alloc" };
	static const struct probe_options with_mmap = { .want_cpp = true, .want_mmap = true };
	struct probe_list list;

	(void)state;
	list_of_library(&list, "libc.so.6", &plain);
	assert_string_equal(list.kind, "glibc");
	assert_int_equal(list.nr_skipped, 0);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!site_named(&list, all[i]))
			fail_msg("no site for %s", all[i]);
	assert_null(site_named(&list, "mmap"));
	/* libc's free calls no other allocator: no probe is needed at its end. */
	assert_int_equal(site_named(&list, "free")->flags, 0);
	assert_int_equal(site_named(&list, "malloc")->flags, PROBE_RETURNS);
	probe_list_fini(&list);

	list_of_library(&list, "libc.so.6", &with_mmap);
	assert_non_null(site_named(&list, "mmap"));
	assert_non_null(site_named(&list, "munmap"));
	assert_non_null(site_named(&list, "mremap"));
	assert_int_equal(site_named(&list, "free")->flags, PROBE_RETURNS);
	probe_list_fini(&list);
}

static void test_dynamic_linker(void **state)
{
	struct probe_list list;

	(void)state;
	list_of_library(&list, "ld-linux-x86-64.so.2", &plain);
	assert_int_equal(list.nr, 0);
	assert_null(list.kind);
	assert_true(list.linker_hook != 0);
	probe_list_fini(&list);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *soname, *kind;
	} cases[] = {
		{ "libstdc++.so.6", "libstdc++" },
		{ "libjemalloc.so.2", "jemalloc" },
		{ "libtcmalloc_minimal.so.4", "tcmalloc" },
		{ "libmimalloc.so.2", "mimalloc" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct probe_list list;
		char path[4096];

		if (!path_of(path, cases[i].soname))
			continue;
		assert_int_equal(list_of_file(&list, path, &plain), 0);
		assert_string_equal(list.kind, cases[i].kind);
		assert_true(list.nr > 0);
		assert_int_equal(list.nr_skipped, 0);
		probe_list_fini(&list);
	}
}

/* The operators of libstdc++ are malloc and free by another name. */
static void test_libstdcxx(void **state)
{
	static const struct probe_options no_cpp = { .want_cpp = false };
	struct probe_list list;

	(void)state;
	list_of_library(&list, "libstdc++.so.6", &plain);
	assert_int_equal(site_named(&list, "_Znwm")->flags, PROBE_DELEGATES);
	assert_int_equal(site_named(&list, "_ZdlPv")->flags, PROBE_DELEGATES);
	probe_list_fini(&list);
	list_of_library(&list, "libstdc++.so.6", &no_cpp);
	assert_int_equal(list.nr, 0);
	assert_null(list.kind);
	probe_list_fini(&list);
}

static int make_table(void **state)
{
	int err = alloc_table_new(&fns);

	(void)state;
	plain.fns = fns;
	return err;
}

static int free_table(void **state)
{
	(void)state;
	alloc_table_free(fns);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prologue_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved_arguments, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_argument, setup, teardown),
		cmocka_unit_test_setup_teardown(test_32bit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_argument_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runtime_operators_delegate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_delegate_in_same_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_new_returns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_new_jumps_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_delete, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rets_stay_inside, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unseen_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mostly_seen_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_uretprobes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_aliases, setup, teardown),
		cmocka_unit_test_setup_teardown(test_object, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_symbols, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_site_leaves_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_middle_of_instruction, setup, teardown),
#endif
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_dynamic_linker),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_libstdcxx),
	};

	return cmocka_run_group_tests(tests, make_table, free_table);
}
