/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cheapest place in a function that sees every call, and how its end can be seen. */
#include "user/probe_place.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/insn.h"
#include "bpf/event.h"
#include "bpf/maps.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"

enum {
	MAX_PROLOGUE = 96,  /* bytes from the entry in which a place is looked for */
	MAX_BODY = 16384,   /* bytes of a function that are decoded */
	UNSIZED_BODY = 256, /* of a symbol without size */
	MAX_WALK = 4096,    /* instructions followed in search of returns */
	MAX_RETS = 64,
	MAX_SCANNED = 64 << 20, /* bytes of code looked through for calls */
	MAX_INTERNAL_CALLS = 64,
};

/* A function's code in memory. */
struct body {
	const struct elf *elf;
	u64 start;
	size_t len;
	u8 *code; /* owned */
};

static int body_read(struct body *b, const struct elf *elf, u64 start, u64 end)
{
	const struct elf_segment *seg = elf_segment_at(elf, start);
	u64 len = end > start ? end - start : UNSIZED_BODY;
	u64 left;
	int err;

	if (!seg || !(seg->flags & PF_X) || start - seg->vaddr >= seg->filesz)
		return -EINVAL;
	left = seg->filesz - (start - seg->vaddr);
	if (len > MAX_BODY)
		len = MAX_BODY;
	if (len > left)
		len = left;
	b->elf = elf;
	b->start = start;
	b->len = len;
	b->code = malloc(len);
	if (!b->code)
		return -ENOMEM;
	err = elf_read_vaddr(elf, start, b->code, len);
	if (err) {
		free(b->code);
		b->code = NULL;
	}
	return err;
}

/* Decode the instruction at @at (offset in the body). False at its end and at what is no instruction. */
static bool body_insn(const struct body *b, size_t at, struct insn *insn)
{
	return at < b->len && !insn_decode(insn, b->elf->machine, b->start + at, b->code + at, b->len - at);
}

/*
 * Follow the arguments through one instruction: bit n - 1 of @held[a] says that argument a is still in the
 * register where argument n of a call is. False if one that @fn needs is lost.
 */
static bool follow_args(u8 held[5], const struct alloc_fn *fn, const struct insn *insn)
{
	const u8 args[] = { fn->size_arg, fn->count_arg, fn->old_arg, fn->out_arg };

	for (u8 a = 1; a < 5; a++) {
		bool is_copied = insn->moves_from && held[a] & 1 << (insn->moves_from - 1);

		held[a] &= ~insn->writes_args;
		if (is_copied)
			held[a] |= 1 << (insn->moves_to - 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(args); i++)
		if (args[i] && !held[args[i]])
			return false;
	return true;
}

/* Does anything in the function jump back to between its entry and @place? Then one call could hit twice. */
static bool is_loop_target(const struct body *b, u64 place)
{
	struct insn insn;

	for (size_t at = 0; body_insn(b, at, &insn); at += insn.length)
		if ((insn.kind == INSN_JUMP || insn.kind == INSN_BRANCH) && insn.target > b->start &&
		    insn.target <= place)
			return true;
	return false;
}

/*
 * The first instruction that the kernel emulates, if every call passes it with its arguments still in
 * their registers and its return address at the stack pointer; else the entry. A branch may be that
 * instruction, but nothing may have branched before.
 */
static void find_place(struct probe_site *site, const struct body *b)
{
	struct insn insn;
	u8 held[5] = { 0, 1, 2, 4, 8 };

	for (u8 i = 0; i < ARRAY_SIZE(held); i++)
		site->arg_at[i] = i;
	site->place = site->start;
	site->is_emulated = false;
	for (size_t at = 0; at < MAX_PROLOGUE && body_insn(b, at, &insn); at += insn.length) {
		if (insn.is_emulated) {
			if (at && is_loop_target(b, b->start + at))
				return;
			site->place = b->start + at;
			site->is_emulated = true;
			for (u8 i = 1; i < ARRAY_SIZE(held); i++)
				site->arg_at[i] = held[i] ? __builtin_ctz(held[i]) + 1 : i;
			return;
		}
		if (insn.kind != INSN_OTHER && insn.kind != INSN_NOP)
			return;
		if (insn.moves_return || !follow_args(held, alloc_fn(site->fn), &insn))
			return;
	}
}

struct slot_name {
	u64 slot;
	const char *symbol;
};

static int see_slot(void *ctx, const struct elf_reloc *reloc)
{
	struct slot_name *s = ctx;

	if (reloc->offset != s->slot)
		return 0;
	s->symbol = reloc->symbol;
	return 1;
}

/* The symbol whose address is in the GOT slot @slot, "" if there is none. */
static const char *slot_symbol(struct elf *elf, u64 slot)
{
	struct slot_name s = { .slot = slot, .symbol = "" };

	return slot && elf_each_reloc(elf, see_slot, &s) == 1 ? s.symbol : "";
}

/* Row of the function whose address is in the GOT slot @slot, 0 if it is no allocator. */
static u16 fn_of_slot(struct elf *elf, u64 slot)
{
	return alloc_fn_find(slot_symbol(elf, slot));
}

/* The GOT slot through which the code at @target jumps, if that is a PLT entry; else 0. */
static u64 stub_slot(struct elf *elf, u64 target)
{
	u8 code[INSN_STUB_BYTES];

	if (elf_read_vaddr(elf, target, code, sizeof(code)))
		return 0;
	return insn_stub_slot(elf->machine, target, code, sizeof(code));
}

/* Row of the allocator that a call or jump to @target leads to: directly, or through the PLT. */
static u16 fn_at(struct elf *elf, const struct probe_list *list, u64 target)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->sites[i].start == target)
			return list->sites[i].fn;
	return fn_of_slot(elf, stub_slot(elf, target));
}

/* Does @insn lead out of the function and to another probed one of the same sort? */
static bool leads_to_same_sort(const struct probe_site *site, struct elf *elf, const struct probe_list *list,
			       const struct insn *insn)
{
	u16 fn = 0;

	if (insn->target && (insn->target < site->start || insn->target >= site->end))
		fn = fn_at(elf, list, insn->target);
	else if (insn->slot)
		fn = fn_of_slot(elf, insn->slot);
	return fn && (alloc_fn(fn)->kind == ALLOC_FREE) == (alloc_fn(site->fn)->kind == ALLOC_FREE);
}

/* Is there such an instruction of kind @kind in the function's own body? */
static bool leaves_work(const struct probe_site *site, struct elf *elf, const struct probe_list *list,
			const struct body *b, enum insn_kind kind)
{
	struct insn insn;

	for (size_t at = 0; body_insn(b, at, &insn); at += insn.length)
		if (insn.kind == kind && leads_to_same_sort(site, elf, list, &insn))
			return true;
	return false;
}

static int add_ret(struct probe_site *site, u64 addr)
{
	u64 *rets;

	if (site->nr_rets == MAX_RETS)
		return -ENOSYS;
	rets = reallocarray(site->rets, site->nr_rets + 1, sizeof(*rets));
	if (!rets)
		return -ENOMEM;
	site->rets = rets;
	rets[site->nr_rets++] = addr;
	return 0;
}

/* Instructions seen on the way through a function, as a hash set, and places still to go to. */
struct walk {
	struct elf *elf;
	const struct probe_list *list;
	bool hands_on; /* a path ends by a jump to another allocator, which returns for it */
	u64 seen[2 * MAX_WALK];
	u64 todo[MAX_WALK];
	size_t nr_seen, nr_todo;
};

/* True if @addr is new. */
static bool walk_mark(struct walk *w, u64 addr)
{
	size_t at = addr * 0x9e3779b97f4a7c15ULL >> 40;

	for (;; at++) {
		u64 *slot = &w->seen[at % ARRAY_SIZE(w->seen)];

		if (*slot == addr)
			return false;
		if (!*slot) {
			*slot = addr;
			w->nr_seen++;
			return true;
		}
	}
}

static int walk_later(struct walk *w, u64 addr)
{
	if (w->nr_todo == ARRAY_SIZE(w->todo))
		return -ENOSYS;
	w->todo[w->nr_todo++] = addr;
	return 0;
}

struct definition {
	const char *symbol;
	u64 value;
};

static int see_definition(void *ctx, const struct elf_symbol *sym)
{
	struct definition *d = ctx;

	if (sym->shndx == SHN_UNDEF || sym->type != STT_FUNC || strcmp(sym->name, d->symbol))
		return 0;
	d->value = sym->value;
	return 1;
}

/* Where a jump goes: in this file, perhaps by way of its PLT; 0 if it leaves it or cannot be known. */
static u64 jump_target(struct elf *elf, const struct insn *insn)
{
	u64 slot = insn->target ? stub_slot(elf, insn->target) : insn->slot;
	struct definition d = { .symbol = slot_symbol(elf, slot) };

	if (!*d.symbol)
		return insn->target;
	return elf_each_symbol(elf, ELF_DYNSYM, see_definition, &d) == 1 ? d.value : 0;
}

/*
 * Go on where the jump @insn at @addr leads. Where to may be known only at run time: outside of the function itself
 * those are handlers of rare cases (tcmalloc's for no memory), and a call that ends there counts as lost.
 */
static int walk_jump(struct walk *w, struct probe_site *site, u64 addr, const struct insn *insn)
{
	u64 target = jump_target(w->elf, insn);

	if (target)
		return walk_later(w, target);
	if (addr >= site->start && addr < site->end)
		return -ENOSYS;
	site->has_unseen_end = true;
	return 0;
}

/* Follow the code from @addr until it returns, jumps away or meets known code. */
static int walk_path(struct walk *w, struct probe_site *site, u64 addr)
{
	u8 code[INSN_MAX_LENGTH];
	bool is_behind_call = false; /* with nothing but padding in between */
	struct insn insn;
	int err;

	while (walk_mark(w, addr)) {
		/* A call that never returns was the last thing in its function. */
		if (is_behind_call && probe_is_start(w->elf, addr))
			return 0;
		if (w->nr_seen >= MAX_WALK || elf_read_vaddr(w->elf, addr, code, sizeof(code)) ||
		    insn_decode(&insn, w->elf->machine, addr, code, sizeof(code)))
			return -ENOSYS;
		if (insn.kind == INSN_RETURN)
			return add_ret(site, addr);
		if (insn.kind == INSN_TRAP)
			return 0;
		if (insn.kind == INSN_JUMP && leads_to_same_sort(site, w->elf, w->list, &insn)) {
			w->hands_on = true;
			return 0;
		}
		if (insn.kind == INSN_JUMP)
			return walk_jump(w, site, addr, &insn);
		if (insn.kind == INSN_BRANCH) {
			err = walk_later(w, insn.target);
			if (err)
				return err;
		}
		is_behind_call = insn.kind == INSN_CALL || (is_behind_call && insn.kind == INSN_NOP);
		addr += insn.length;
	}
	return 0;
}

/*
 * Return instructions of a function and of those that it jumps on into. Other callers of those do no
 * harm: what returns is known by its stack pointer. Code behind a call that never returns may be walked
 * into needlessly, which costs time; not on into the next function, though: glibc's free is one such, and would
 * stop at each of its ends.
 */
static int find_rets(struct probe_site *site, struct elf *elf, const struct probe_list *list, bool *hands_on)
{
	auto_free struct walk *w = calloc(1, sizeof(*w));
	int err = 0;

	if (!w)
		return -ENOMEM;
	w->elf = elf;
	w->list = list;
	w->todo[w->nr_todo++] = site->start;
	while (w->nr_todo && !err)
		err = walk_path(w, site, w->todo[--w->nr_todo]);
	*hands_on = w->hands_on;
	if (err)
		return err;
	return site->nr_rets || w->hands_on ? 0 : -ENOSYS;
}

/* Allocators whose free() calls no other one's. */
static bool is_leaf_free(const struct probe_list *list)
{
	static const char *const leaves[] = { "glibc", "musl", "jemalloc", "tcmalloc", "mimalloc" };

	for (size_t i = 0; list->kind && i < ARRAY_SIZE(leaves); i++)
		if (!strcmp(list->kind, leaves[i]))
			return true;
	return false;
}

/* How the end of a call is seen, if it must be. */
static u8 find_flags(const struct probe_site *site, struct elf *elf, const struct probe_list *list,
		     const struct probe_options *options, const struct body *b)
{
	const struct alloc_fn *fn = alloc_fn(site->fn);
	bool is_cpp = fn->family == FAMILY_NEW || fn->family == FAMILY_NEW_ARRAY;
	bool is_release = fn->kind == ALLOC_FREE || fn->kind == ALLOC_MUNMAP;

	/* A program's own operators may keep a header before the block: only their return tells its address. */
	if (is_cpp && list->is_runtime &&
	    (leaves_work(site, elf, list, b, INSN_CALL) || leaves_work(site, elf, list, b, INSN_JUMP)))
		return PROBE_DELEGATES;
	/* A free may call munmap, or somebody else's free: those are not the program's requests. */
	if (is_release && !is_cpp && is_leaf_free(list) && !options->want_mmap)
		return 0;
	if (fn->kind == ALLOC_MUNMAP)
		return 0;
	return PROBE_RETURNS;
}

static void drop_rets(struct probe_site *site)
{
	free(site->rets);
	site->rets = NULL;
	site->nr_rets = 0;
}

/*
 * See the end of the function's calls without a uretprobe. Where it jumps on into another allocator, that
 * one's end is the end of both, and nothing can have been done to the block since. But then the result of
 * an allocator that it *calls* must not be taken for its own: -ENOSYS if it does that, too.
 */
static int see_ends(struct probe_site *site, struct elf *elf, const struct probe_list *list,
		    const struct probe_options *options, const struct body *b)
{
	bool hands_on = false;
	int err = find_rets(site, elf, list, &hands_on);

	if (!err && hands_on && leaves_work(site, elf, list, b, INSN_CALL))
		err = -ENOSYS;
	/* Where it returns to tells as much, and of all ends. */
	if (options->has_return_places && (err == -ENOSYS || (site->has_unseen_end && !hands_on))) {
		site->has_unseen_end = false;
		drop_rets(site);
		return 0;
	}
	if (!err && hands_on)
		site->flags = (site->flags & ~PROBE_RETURNS) | PROBE_DELEGATES;
	if (err)
		drop_rets(site);
	return err;
}

/* The same if it can be had: a uretprobe does no worse than to hide callers from the allocator's own walk. */
static int try_ends(struct probe_site *site, struct elf *elf, const struct probe_list *list,
		    const struct probe_options *options, const struct body *b)
{
	u8 flags = site->flags;
	int err = see_ends(site, elf, list, options, b);

	if (err == -ENOMEM || (!err && !site->has_unseen_end))
		return err;
	site->flags = flags;
	site->has_unseen_end = false;
	drop_rets(site);
	return 0;
}

/* Symbols may say any size, or none. */
static void limit_end(struct probe_site *site, const struct elf_segment *seg, const struct body *b)
{
	u64 left = seg->filesz - (site->start - seg->vaddr);

	if (site->end <= site->start)
		site->end = site->start + b->len;
	else if (site->end - site->start > left)
		site->end = site->start + left;
}

/* Code that is not decoded: a place at the entry, and where calls return to. A nested call is known by own code. */
static int place_unread(struct probe_site *site, const struct elf *elf, const struct probe_list *list,
			const struct probe_options *options)
{
	const struct elf_segment *seg = elf_segment_at(elf, site->start);
	const struct alloc_fn *fn = alloc_fn(site->fn);
	bool is_leaf = fn->kind == ALLOC_MUNMAP ||
		       (fn->kind == ALLOC_FREE && is_leaf_free(list) && !options->want_mmap);

	if (!options->has_return_places)
		return -ENOTSUP;
	if (!seg || !(seg->flags & PF_X))
		return -EINVAL;
	site->place = site->start;
	for (u8 i = 0; i < ARRAY_SIZE(site->arg_at); i++)
		site->arg_at[i] = i;
	site->flags = (is_leaf ? 0 : PROBE_RETURNS) | (elf->word_size == 4 ? PROBE_32BIT : 0);
	site->own_start = seg->vaddr;
	site->own_end = seg->vaddr + seg->memsz;
	return 0;
}

int probe_place(struct probe_site *site, struct elf *elf, const struct probe_list *list,
		const struct probe_options *options)
{
	const struct elf_segment *seg = elf_segment_at(elf, site->start);
	struct body b = { 0 };
	int err;

	if (!insn_is_supported(elf->machine))
		return place_unread(site, elf, list, options);
	if (!probe_is_entry(elf, site->start))
		return -EILSEQ;
	err = body_read(&b, elf, site->start, site->end);
	if (err)
		return err;
	limit_end(site, seg, &b);
	find_place(site, &b);
	site->flags = find_flags(site, elf, list, options, &b);
	/* The unwinder of an exception would meet the kernel's trampoline and end the program. */
	if (site->flags & PROBE_RETURNS && (alloc_fn(site->fn)->can_throw || options->no_uretprobe))
		err = see_ends(site, elf, list, options, &b);
	else if (site->flags & PROBE_RETURNS && list->walks_stack)
		err = try_ends(site, elf, list, options, &b);
	if (elf->word_size == 4)
		site->flags |= PROBE_32BIT;
	if (site->flags & PROBE_DELEGATES) {
		site->own_start = site->start;
		site->own_end = site->end;
	} else {
		site->own_start = seg->vaddr;
		site->own_end = seg->vaddr + seg->memsz;
	}
	free(b.code);
	return err;
}

static bool is_among(const u64 *list, size_t nr, u64 addr)
{
	while (nr)
		if (list[--nr] == addr)
			return true;
	return false;
}

int probe_choices(const struct probe_site *site, const struct elf *elf, u64 *out, size_t max)
{
	struct body b;
	struct insn insn;
	size_t nr = 0;
	int err = insn_is_supported(elf->machine) ? body_read(&b, elf, site->start, site->end) : -ENOTSUP;

	if (err)
		return err;
	for (size_t at = 0; nr < max && body_insn(&b, at, &insn); at += insn.length) {
		const struct elf_segment *seg = insn.address ? elf_segment_at(elf, insn.address) : NULL;

		if (seg && seg->flags & PF_X && !is_among(out, nr, insn.address))
			out[nr++] = insn.address;
	}
	free(b.code);
	return (int)nr;
}

int probe_find_calls(struct elf *elf, u64 start, u64 end, u64 target, u64 **calls, size_t *nr)
{
	auto_free u8 *code = NULL;
	u64 len = end - start, at = 0;
	int err;

	if (!insn_has_calls(elf->machine) || end <= start || len > MAX_SCANNED)
		return 0;
	code = malloc(len);
	if (!code)
		return -ENOMEM;
	err = elf_read_vaddr(elf, start, code, len);
	if (err)
		return err;
	for (; *nr < MAX_INTERNAL_CALLS; at++) {
		u64 *list;

		at += insn_next_call(elf->machine, start + at, code + at, len - at, target);
		if (at == len)
			return 0;
		list = reallocarray(*calls, *nr + 1, sizeof(*list));
		if (!list)
			return -ENOMEM;
		/* Bit 0 of an address in Thumb code says so. */
		list[(*nr)++] = (start + at) | (elf->machine == EM_ARM ? target & 1 : 0);
		*calls = list;
	}
	return 0;
}
