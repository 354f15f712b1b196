/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which functions of a file are allocators. */
#include "user/probe/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/insn.h"
#include "user/lib/array.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/probe/probe_place.h"
#include "user/target/own_api.h"

/* Each allocator defines a symbol that no other one defines. The first match counts. */
static const struct {
	const char *symbol, *kind;
	bool is_runtime; /* its operators new return the addresses of malloc unchanged */
} kinds[] = {
	{ "mallctl", "jemalloc", true },
	{ "tc_malloc", "tcmalloc", true },
	{ "TCMallocInternalMalloc", "tcmalloc", true },
	{ "mi_malloc", "mimalloc", true },
	{ "rpmalloc", "rpmalloc", true },	      /* also defines __libc_malloc */
	{ "__malloc_end_pointer", "snmalloc", true }, /* has a copy of libstdc++ */
	{ "__scudo_print_stats", "scudo", true },
	{ "xxmalloc", "Hoard", true },
	{ "__libc_malloc_impl", "musl", false }, /* also defines __libc_malloc */
	{ "__libc_malloc", "glibc", false },
	{ "__dls3", "musl", false },
	{ "_ZSt15get_new_handlerv", "libstdc++", true },
	{ "_ZSt15set_new_handlerPFvvE", "libc++", true },
};

struct finder {
	struct elf *elf;
	const char *name;
	const struct probe_options *options;
	struct probe_list *list;
	size_t capacity;
	struct own_api_list own;
	u64 clone, masks[2],
		action; /* functions of these names, which may be others than those of a C library */
	bool is_libc;
	size_t kind; /* index of the best match in kinds, ARRAY_SIZE(kinds) = none */
	int err;
};

/* Does @object of --alloc, a path or a file name, mean the file @name? */
static bool is_object(const char *object, const char *name)
{
	return !strcmp(path_name(object), name);
}

/* Is the custom function @fn wanted in this file? Then note that it is found. */
static bool is_custom_wanted(const struct finder *f, u16 fn)
{
	for (size_t i = 0; i < f->options->nr_custom; i++) {
		struct probe_custom *c = &f->options->custom[i];

		if (c->fn == fn && (!c->object || is_object(c->object, f->name)))
			return c->is_found = true;
	}
	return false;
}

/* Is row @fn wanted in this file? */
static bool probe_is_wanted(const struct finder *f, u16 fn)
{
	switch (alloc_fn(f->list->fns, fn)->family) {
	case FAMILY_MMAP:
		return f->options->want_mmap && !f->options->sees_system_calls;
	case FAMILY_NEW:
	case FAMILY_NEW_ARRAY:
		return f->options->want_cpp;
	case FAMILY_CUSTOM:
		return is_custom_wanted(f, fn);
	default:
		return true;
	}
}

static struct probe_site *site_at(const struct probe_list *list, u64 start)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->sites[i].start == start)
			return &list->sites[i];
	return NULL;
}

static int probe_add_site(struct finder *f, const struct elf_symbol *sym, u16 fn)
{
	const struct alloc_fn *row = alloc_fn(f->list->fns, fn);
	struct probe_site *s = site_at(f->list, sym->value);

	if (s) {
		/* Aliases and weak names: one probe, under both names or the one that comes first in the table. */
		u16 joint = alloc_fn_join(f->list->fns, s->fn, fn);

		s->is_vague |= row->size_arg != s->row->size_arg || row->align_arg != s->row->align_arg;
		s->is_blurred |= row->family != s->row->family ||
				 alloc_fn_is_aligned_operator(row) != alloc_fn_is_aligned_operator(s->row);
		fn = joint ? joint : fn;
		if (fn < s->fn) {
			s->fn = fn;
			s->row = alloc_fn(f->list->fns, fn);
		}
		if (sym->size && s->end == s->start)
			s->end = s->start + sym->size;
		return 0;
	}
	if (array_reserve(f->list->sites, f->capacity, f->list->nr + 1))
		return -ENOMEM;
	s = &f->list->sites[f->list->nr++];
	memset(s, 0, sizeof(*s));
	s->fn = fn;
	s->row = row;
	s->start = sym->value;
	s->end = sym->value + sym->size;
	s->is_ifunc = sym->type == STT_GNU_IFUNC;
	return 0;
}

/* Does the file import a function that walks the call stack (glibc, the compiler's runtime, libunwind)? */
static bool walks_stack(const struct elf_symbol *sym)
{
	static const char *const names[] = { "backtrace",      "_Unwind_Backtrace", "unw_backtrace",
					     "_Ux86_64_step",  "_ULx86_64_step",    "_Uaarch64_step",
					     "_ULaarch64_step" };

	for (size_t i = 0; sym->shndx == SHN_UNDEF && i < ARRAY_SIZE(names); i++)
		if (!strcmp(sym->name, names[i]))
			return true;
	return false;
}

/*
 * Breakpoints must be out before LeakSanitizer looks for leaks: at exit, or when its functions are called. clone() can
 * make a process that no tracer is told of. And a thread that blocks SIGTRAP must block it again after a breakpoint.
 */
static void see_place(struct finder *f, const struct elf_symbol *sym)
{
	struct probe_list *list = f->list;

	if (!strcmp(sym->name, "exit"))
		list->exit = sym->value;
	else if (!strcmp(sym->name, "clone"))
		f->clone = sym->value;
	else if (!IS_AGENT && !strcmp(sym->name, "sigprocmask"))
		f->masks[0] = sym->value;
	else if (!IS_AGENT && !strcmp(sym->name, "pthread_sigmask"))
		f->masks[1] = sym->value;
	else if (!IS_AGENT && !strcmp(sym->name, "sigaction"))
		f->action = sym->value;
	else if (!strcmp(sym->name, "__libc_start_main"))
		f->is_libc = true;
	else if (!strcmp(sym->name, "__lsan_do_leak_check"))
		list->leak_checks[0] = sym->value;
	else if (!strcmp(sym->name, "__lsan_do_recoverable_leak_check"))
		list->leak_checks[1] = sym->value;
}

/* Functions that are markers: those of LeakSanitizer that say what is no leak, and those that execute a program. */
static void see_marked(const struct finder *f, const struct elf_symbol *sym)
{
	/* clang-format off */
	static const char *const names[] = { "__lsan_ignore_object", "__lsan_disable", "__lsan_enable",
					     OF_HOST("execve", "execveat", "fexecve") };
	/* clang-format on */
	bool may_be = !strncmp(sym->name, "__lsan_", 7) ||
		      (!IS_AGENT && f->options->wants_exec && (*sym->name == 'e' || *sym->name == 'f'));

	_Static_assert(ARRAY_SIZE(names) == ARRAY_SIZE(f->list->marked), "a place for each");
	for (size_t i = 0; may_be && i < ARRAY_SIZE(names); i++)
		if (!strcmp(sym->name, names[i]))
			f->list->marked[i] = sym->value;
}

/* A function whose name means something here, whether it allocates or not. */
static void see_named(struct finder *f, const struct elf_symbol *sym)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(sym->name, kinds[i].symbol))
			continue;
		f->kind = i < f->kind ? i : f->kind;
		f->list->is_runtime |= kinds[i].is_runtime;
	}
	if (!strcmp(sym->name, "_dl_debug_state"))
		f->list->linker_hook = sym->value;
	if (f->options->wants_tracers && f->elf->word_size == 8 && sym->type == STT_FUNC &&
	    !strcmp(sym->name, "ptrace"))
		f->list->ptrace = sym->value;
	if (!IS_AGENT && f->options->wants_end && sym->type == STT_FUNC && !strcmp(sym->name, "_exit")) {
		f->list->end = sym->value;
		f->list->end_len = sym->size;
	}
	if ((IS_AGENT || f->options->wants_exits) && sym->type == STT_FUNC)
		see_place(f, sym);
	see_marked(f, sym);
}

/* Nearly all names of large libraries are those of C++: two of the standard library mean something here. */
static bool may_be_named(const char *name)
{
	return IS_AGENT || name[0] != '_' || name[1] != 'Z' || !strncmp(name, "_ZSt15", 6);
}

static int see_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct finder *f = ctx;
	bool has_meaning = may_be_named(sym->name);
	u16 fn;

	f->list->walks_stack |= has_meaning && walks_stack(sym);
	if (sym->type == STT_OBJECT && sym->shndx != SHN_UNDEF && !strcmp(sym->name, "_r_debug"))
		f->list->linker_state = sym->value + (f->elf->word_size == 8 ? 24 : 12);
	if (sym->shndx == SHN_UNDEF || !sym->value ||
	    (sym->type != STT_FUNC && sym->type != STT_GNU_IFUNC && sym->type != STT_NOTYPE))
		return 0;
	if (has_meaning)
		see_named(f, sym);
	if (!IS_AGENT && has_meaning)
		own_api_see(&f->own, sym->name);
	fn = alloc_fn_find(f->list->fns, sym->name);
	return fn && probe_is_wanted(f, fn) ? probe_add_site(f, sym, fn) : 0;
}

/* Functions of allocators' own APIs. Those that are malloc, or another known function, by another name have a probe. */
static int see_own(void *ctx, const struct elf_symbol *sym)
{
	struct finder *f = ctx;
	const char *kind;
	int fn;

	if (sym->shndx == SHN_UNDEF || !sym->value || sym->type != STT_FUNC)
		return 0;
	fn = own_api_row(&f->own, f->options->fns, sym->name, &kind);
	if (fn == -ENOMEM)
		return fn;
	if (fn)
		f->list->own_kind = kind;
	f->list->lacks_own |= fn < 0;
	return fn > 0 && !site_at(f->list, sym->value) ? probe_add_site(f, sym, (u16)fn) : 0;
}

/* The dynamic linker has a small allocator of its own, for the time before libc is loaded. */
static bool is_dynamic_linker(struct elf *elf, const struct probe_list *list)
{
	const char *soname = elf_soname(elf);

	/* Other libraries may also be called ld-something. */
	return list->linker_hook && soname && !strncmp(soname, "ld", 2) &&
	       (soname[2] == '-' || soname[2] == '6' || soname[2] == '.');
}

static void drop_all_sites(struct probe_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		free(list->sites[i].rets);
	list->nr = 0;
}

/* Find the place of each probe. Functions that cannot be probed are left out and counted. */
static int probe_place_all(struct finder *f)
{
	struct probe_list *list = f->list;
	size_t kept = 0;

	for (size_t i = 0; i < list->nr; i++) {
		struct probe_site s = list->sites[i];
		int err = s.is_ifunc ? 0 : probe_place(&s, f->elf, list, f->options);

		if (err == -ENOMEM || err == -ENOTSUP) {
			list->nr = i;
			return err;
		}
		if (err) {
			list->nr_skipped++;
			list->lacks_own |= list->own_kind && s.row->family == FAMILY_CUSTOM;
			warn("probe: %s: no probe in %s: %s", f->name, s.row->symbol,
			     err == -EILSEQ ? "no function begins where its symbol says" : strerror(-err));
			continue;
		}
		list->sites[kept++] = s;
	}
	list->nr = kept;
	return 0;
}

/*
 * In static programs all calls of free are direct, also those of the program. Only in this function glibc calls free
 * for itself.
 */
static int see_cache_shutdown(void *ctx, const struct elf_symbol *sym)
{
	struct probe_site *range = ctx;

	if (sym->type != STT_FUNC || (strcmp(sym->name, "__malloc_arena_thread_freeres") &&
				      strcmp(sym->name, "tcache_thread_shutdown")))
		return 0;
	range->start = sym->value;
	range->end = sym->value + sym->size;
	return 1;
}

static int find_internal_calls(struct probe_list *list, struct elf *elf)
{
	const struct elf_segment *seg;
	struct probe_site range = { 0 };
	size_t i = 0;

	while (i < list->nr && strcmp(list->sites[i].row->symbol, "free"))
		i++;
	if (i == list->nr || strcmp(list->kind, "glibc"))
		return 0;
	seg = elf_segment_at(elf, list->sites[i].start);
	if (elf_soname(elf)) {
		range.start = seg->vaddr;
		range.end = seg->vaddr + seg->filesz;
	} else if (elf_each_symbol(elf, ELF_SYMTAB, see_cache_shutdown, &range) != 1) {
		return 0;
	}
	list->internal_site = i;
	return probe_find_calls(elf, range.start, range.end, list->sites[i].start, &list->internal_calls,
				&list->nr_internal_calls);
}

int probe_list_init(struct probe_list *out, struct elf *elf, const char *name,
		    const struct probe_options *options)
{
	struct finder f = {
		.elf = elf, .name = name, .options = options, .list = out, .kind = ARRAY_SIZE(kinds)
	};
	int err;

	memset(out, 0, sizeof(*out));
	out->fns = options->fns;
	err = elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, see_symbol, &f);
	out->clone = f.is_libc ? f.clone : 0;
	if (!IS_AGENT && f.is_libc) {
		memcpy(out->masks, f.masks, sizeof(out->masks));
		out->action = f.action;
	}
	if (!IS_AGENT && !err && options->fns && own_api_settle(&f.own))
		err = elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, see_own, &f);
	if (err)
		goto undo_sites;
	if (is_dynamic_linker(elf, out))
		drop_all_sites(out);
	/* Uprobes are limited to code of this machine's CPU, breakpoints are not. */
	err = (out->nr || out->linker_hook) && !options->has_return_places &&
			      !insn_is_probed_here(elf->machine)
		      ? -ENOTSUP
		      : 0;
	if (err)
		goto undo_sites;
	if (!out->nr)
		return 0;
	out->kind = f.kind < ARRAY_SIZE(kinds) ? kinds[f.kind].kind
		    : out->own_kind	       ? out->own_kind
					       : "custom";
	/* jemalloc walks the stack only to profile, and not all of its ret instructions can be found. */
	out->walks_stack &= f.kind == ARRAY_SIZE(kinds) && !out->own_kind;
	err = probe_place_all(&f);
	if (!err)
		err = find_internal_calls(out, elf);
	if (!err)
		return 0;
undo_sites:
	probe_list_fini(out);
	return err;
}

int probe_site_init(struct probe_site *out, struct elf *elf, u16 fn, u64 start, u64 end,
		    const struct probe_options *options, const struct probe_list *list)
{
	memset(out, 0, sizeof(*out));
	out->fn = fn;
	out->row = alloc_fn(options->fns, fn);
	out->start = start;
	out->end = end;
	return probe_place(out, elf, list, options);
}

struct slot_finder {
	const struct elf *elf;
	const char *symbol;
	u64 resolver;
	int (*fn)(void *ctx, u64 vaddr);
	void *ctx;
};

/* The resolver of an IRELATIVE slot; the REL form keeps the address in the slot. */
static u64 slot_resolver(const struct elf *elf, const struct elf_reloc *reloc)
{
	u8 word[8];

	if (reloc->addend || elf_read_vaddr(elf, reloc->offset, word, elf->word_size))
		return reloc->addend;
	return elf_word(elf, word);
}

static int see_reloc(void *ctx, const struct elf_reloc *reloc)
{
	const struct slot_finder *f = ctx;

	if (reloc->kind == ELF_RELOC_IRELATIVE)
		return f->resolver && slot_resolver(f->elf, reloc) == f->resolver
			       ? f->fn(f->ctx, reloc->offset)
			       : 0;
	if (reloc->kind != ELF_RELOC_JUMP_SLOT && reloc->kind != ELF_RELOC_GLOB_DAT)
		return 0;
	return strcmp(reloc->symbol, f->symbol) ? 0 : f->fn(f->ctx, reloc->offset);
}

int probe_got_slots(struct elf *elf, const char *symbol, u64 resolver, int (*fn)(void *ctx, u64 vaddr),
		    void *ctx)
{
	struct slot_finder f = { elf, symbol, resolver, fn, ctx };

	return elf_each_reloc(elf, see_reloc, &f);
}

struct call_probe probe_site_describe(const struct probe_site *site)
{
	const struct alloc_fn *fn = site->row;
	/* A new(nothrow) that catches an exception of another new, before any allocator was called, has failed. */
	bool catches =
		fn->kind == ALLOC_MALLOC && (fn->family == FAMILY_NEW || fn->family == FAMILY_NEW_ARRAY);
	bool throws = (fn->can_throw || catches) && !site->has_unseen_end;
	/* A release under several names has a size only in some calls, and any function an alignment. */
	bool has_size = !(site->is_vague && fn->kind == ALLOC_FREE);
	bool ends_at_return = site->flags & PROBE_RETURNS && !site->nr_rets;

	return (struct call_probe){
		.fn = site->fn,
		.kind = fn->kind,
		.flags = site->flags | (throws ? PROBE_THROWS : 0) | (ends_at_return ? PROBE_AT_RETURN : 0) |
			 (site->is_emulated ? 0 : PROBE_STEPPED),
		.size_arg = has_size ? site->arg_at[fn->size_arg] : 0,
		.count_arg = site->arg_at[fn->count_arg],
		.old_arg = site->arg_at[fn->old_arg],
		.out_arg = site->arg_at[fn->out_arg],
		.align_arg = site->is_vague ? 0 : site->arg_at[fn->align_arg],
		.own_before = (u32)(site->place - site->own_start),
		.own_after = (u32)(site->own_end - site->place),
	};
}

void probe_list_fini(struct probe_list *list)
{
	drop_all_sites(list);
	free(list->internal_calls);
	free(list->sites);
	memset(list, 0, sizeof(*list));
}

void probe_list_note_blurred(const struct probe_list *list, u64 blurred[ALLOC_MAX_FNS / 64])
{
	for (size_t i = 0; i < list->nr; i++) {
		const struct probe_site *s = &list->sites[i];

		if (s->is_blurred)
			blurred[s->fn / 64] |= 1ULL << s->fn % 64;
	}
}
