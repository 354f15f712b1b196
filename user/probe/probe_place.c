/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cheapest place in a function that sees every call, and how its end can be seen. */
#include "user/probe/probe_place.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/insn.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/hash_index.h"
#include "user/target/allocator_kind.h"

enum {
	MAX_PROLOGUE = 96,  /* bytes from the entry in which a place is searched */
	MAX_BODY = 16384,   /* bytes of a function that are decoded, at most */
	UNSIZED_BODY = 256, /* of a symbol without size */
	MAX_WALK = 4096,    /* instructions followed in search of returns */
	MAX_RETS = 64,
	MAX_SCANNED = 64 << 20, /* bytes of code that are searched for calls, at most */
	PIECE_BYTES =
		64 << 10, /* that are read at once: more would need memory that is not in the CPU's cache */
	MOST_INSN_BYTES = 16,
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

/* Decode the instruction at offset @at of the body. False at the end of the body and where no instruction is. */
static bool body_insn(const struct body *b, size_t at, struct insn *insn)
{
	return at < b->len && !insn_decode(insn, b->elf->machine, b->start + at, b->code + at, b->len - at);
}

/*
 * Follow the arguments through one instruction. Bit n - 1 of @held[a] says that the register of argument n of a call
 * now holds argument a. False if an argument that @fn needs is in no register.
 */
static bool follow_args(u8 held[5], const struct alloc_fn *fn, const struct insn *insn)
{
	const u8 args[] = { fn->size_arg, fn->count_arg, fn->old_arg, fn->out_arg, fn->align_arg };

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

/* Does a jump in the function lead back to code between the entry and @place? Then one call could hit twice. */
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
 * Place the probe at the first instruction that the kernel emulates, if every call reaches it with its arguments in
 * registers and its return address at the stack pointer, otherwise at the entry. The instruction may be a branch, but
 * no branch may come before it.
 */
static void probe_place_find_place(struct probe_site *site, const struct body *b)
{
	struct insn insn;
	u8 held[5] = { 0, 1, 2, 4, 8 };

	for (u32 i = 0; i < ARRAY_SIZE(held); i++)
		site->arg_at[i] = i;
	site->place = site->start;
	site->is_emulated = false;
	for (size_t at = 0; at < MAX_PROLOGUE && body_insn(b, at, &insn); at += insn.length) {
		if (insn.is_emulated) {
			if (at && is_loop_target(b, b->start + at))
				return;
			site->place = b->start + at;
			site->is_emulated = true;
			for (u32 i = 1; i < ARRAY_SIZE(held); i++)
				site->arg_at[i] = held[i] ? (u32)__builtin_ctz(held[i]) + 1 : i;
			return;
		}
		if (insn.kind != INSN_OTHER && insn.kind != INSN_NOP)
			return;
		if (insn.moves_return || !follow_args(held, site->row, &insn))
			return;
	}
}

struct slot_name {
	u64 slot;
	const char *symbol;
};

static int probe_place_see_slot(void *ctx, const struct elf_reloc *reloc)
{
	struct slot_name *s = ctx;

	if (reloc->offset != s->slot)
		return 0;
	s->symbol = reloc->symbol;
	return 1;
}

/* The symbol whose address is in the GOT slot @slot, or "". */
static const char *slot_symbol(struct elf *elf, u64 slot)
{
	struct slot_name s = { .slot = slot, .symbol = "" };

	return slot && elf_each_reloc(elf, probe_place_see_slot, &s) == 1 ? s.symbol : "";
}

/* The allocator function whose address is in the GOT slot @slot, NULL if it holds another function. */
static const struct alloc_fn *fn_of_slot(struct elf *elf, const struct probe_list *list, u64 slot)
{
	u16 fn = alloc_fn_find(list->fns, slot_symbol(elf, slot));

	return fn ? alloc_fn(list->fns, fn) : NULL;
}

/* The GOT slot through which the code at @target jumps, if the code is a PLT entry; else 0. */
static u64 stub_slot(struct elf *elf, u64 target)
{
	u8 code[INSN_STUB_BYTES];

	if (elf_read_vaddr(elf, target, code, sizeof(code)))
		return 0;
	return insn_stub_slot(elf->machine, target, code, sizeof(code));
}

/* The allocator function that a call of @target reaches, directly or through the PLT; else NULL. */
static const struct alloc_fn *fn_at(struct elf *elf, const struct probe_list *list, u64 target)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->sites[i].start == target)
			return list->sites[i].row;
	return fn_of_slot(elf, list, stub_slot(elf, target));
}

/* Does @insn call or jump to another probed function of the same sort, outside this function? */
static bool leads_to_same_sort(const struct probe_site *site, struct elf *elf, const struct probe_list *list,
			       const struct insn *insn)
{
	const struct alloc_fn *fn = NULL;

	if (insn->target && (insn->target < site->start || insn->target >= site->end))
		fn = fn_at(elf, list, insn->target);
	else if (insn->slot)
		fn = fn_of_slot(elf, list, insn->slot);
	return fn && (fn->kind == ALLOC_FREE) == (site->row->kind == ALLOC_FREE);
}

/* Does the function hand its work on by an instruction of kind @kind: to another function of the same sort? */
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
	if (site->nr_rets == MAX_RETS)
		return -ENOSYS;
	if (array_extend(site->rets, site->nr_rets))
		return -ENOMEM;
	site->rets[site->nr_rets++] = addr;
	return 0;
}

/* A walk through the code of a function: instructions that were seen, and addresses still to follow. */
struct code_walk {
	struct elf *elf;
	const struct probe_list *list;
	bool hands_on; /* a path ends by a jump to another allocator function, which returns to the caller */
	u64 seen[MAX_WALK];
	u64 todo[MAX_WALK];
	size_t nr_seen, nr_todo;
	struct hash_index index; /* of seen */
};

/* Mark @addr as seen. 1 if it is new, 0, or -errno: -ENOSYS after too many instructions. */
static int walk_mark(struct code_walk *w, u64 addr)
{
	u64 hash = hash_u64(addr);
	u32 item, at = 0;

	while ((item = hash_index_next(&w->index, hash, &at)) != HASH_NO_ITEM)
		if (w->seen[item] == addr)
			return 0;
	if (w->nr_seen == MAX_WALK)
		return -ENOSYS;
	if (hash_index_add(&w->index, hash, (u32)w->nr_seen))
		return -ENOMEM;
	w->seen[w->nr_seen++] = addr;
	return 1;
}

static int walk_later(struct code_walk *w, u64 addr)
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

/* The target of a jump in this file, perhaps through the PLT; 0 if it is in another file or not known. */
static u64 probe_place_jump_target(struct elf *elf, const struct insn *insn)
{
	u64 slot = insn->target ? stub_slot(elf, insn->target) : insn->slot;
	struct definition d = { .symbol = slot_symbol(elf, slot) };

	if (!*d.symbol)
		return insn->target;
	return elf_each_symbol(elf, ELF_DYNSYM, see_definition, &d) == 1 ? d.value : 0;
}

/*
 * Follow the jump @insn at @addr. Jumps whose target is known only at run time are accepted outside the function
 * itself: they belong to handlers of rare cases (tcmalloc's for lack of memory). A call that ends there counts as lost.
 */
static int walk_jump(struct code_walk *w, struct probe_site *site, u64 addr, const struct insn *insn)
{
	u64 target = probe_place_jump_target(w->elf, insn);

	if (target)
		return walk_later(w, target);
	if (addr >= site->start && addr < site->end)
		return -ENOSYS;
	site->has_unseen_end = true;
	return 0;
}

/* Did the function of the call at @call end with it? Then the call never returns. @addr lies behind it. */
static bool is_last_call(const struct elf *elf, u64 call, u64 addr)
{
	u64 start, end;

	return probe_is_start(elf, addr) || (probe_function_of(elf, call, &start, &end) && addr >= end);
}

/* Follow the code from @addr until it returns, jumps away or meets known code. */
static int walk_path(struct code_walk *w, struct probe_site *site, u64 addr)
{
	u64 call = 0; /* only padding lies between this call and the address; 0 = none */
	u8 code[INSN_MAX_LENGTH];
	struct insn insn;
	int err;

	while ((err = walk_mark(w, addr)) > 0) {
		if (call && is_last_call(w->elf, call, addr))
			return 0;
		if (elf_read_vaddr(w->elf, addr, code, sizeof(code)) ||
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
		if (insn.kind == INSN_CALL)
			call = addr;
		else if (insn.kind != INSN_NOP)
			call = 0;
		addr += insn.length;
	}
	return err;
}

/*
 * Find the ret instructions of a function and of the functions that it jumps to. Calls from elsewhere may end there,
 * too, but have another stack pointer. Code behind a call that never returns may be walked needlessly, which costs only
 * time. But the walk must not enter the next function, whose calls would all hit the probes: glibc's free is one.
 */
static int find_rets(struct probe_site *site, struct elf *elf, const struct probe_list *list, bool *hands_on)
{
	auto_free struct code_walk *w = calloc(1, sizeof(*w));
	int err = 0;

	if (!w)
		return -ENOMEM;
	w->elf = elf;
	w->list = list;
	w->todo[w->nr_todo++] = site->start;
	while (w->nr_todo && !err)
		err = walk_path(w, site, w->todo[--w->nr_todo]);
	hash_index_fini(&w->index);
	*hands_on = w->hands_on;
	if (err)
		return err;
	return site->nr_rets || w->hands_on ? 0 : -ENOSYS;
}

static bool probe_place_is_operator(const struct probe_site *site)
{
	return site->row->family == FAMILY_NEW || site->row->family == FAMILY_NEW_ARRAY;
}

/* An operator of a program, which may allocate for itself: a log, a table of blocks. */
static bool is_own_operator(const struct probe_site *site, const struct probe_list *list)
{
	return probe_place_is_operator(site) && !list->is_runtime && site->flags & PROBE_RETURNS;
}

/* May it allocate and release for itself: what belongs to a heap that ends, or a path that it copies? */
static bool probe_place_has_own(const struct alloc_fn *fn)
{
	return alloc_kind_ends_heap(fn->kind) || (fn->kind == ALLOC_MALLOC && fn->out_arg);
}

/* How the end of a call is seen, if it must be seen. */
static u8 find_flags(const struct probe_site *site, struct elf *elf, const struct probe_list *list,
		     const struct probe_options *options, const struct body *b)
{
	const struct alloc_fn *fn = site->row;
	bool is_cpp = probe_place_is_operator(site);
	bool is_own_release = list->own_kind && fn->family == FAMILY_CUSTOM && fn->kind == ALLOC_FREE;

	/*
	 * A program's own operators may keep a header before the block: only their return tells its address. The work
	 * may lie in a file without probes.
	 */
	if ((is_cpp ? list->is_runtime : is_own_release) && !options->is_partial &&
	    (leaves_work(site, elf, list, b, INSN_CALL) || leaves_work(site, elf, list, b, INSN_JUMP)))
		return PROBE_DELEGATES;
	if (probe_place_has_own(fn))
		return PROBE_RETURNS;
	/* A free may call munmap or the free of another allocator, which are no requests of the program. */
	if (alloc_kind_releases(fn->kind) && !is_cpp && allocator_is(list->kind, ALLOCATOR_IS_LEAF) &&
	    !options->want_mmap)
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
 * See the end of the function's calls without a uretprobe. If the function ends by a jump to another allocator
 * function, the end of that one is the end of both, with the same result. But a function that it *calls* may return
 * another block than it returns itself: -ENOSYS if the function does both. Only of an operator all blocks are known
 * (PROBE_WRAPS).
 */
static int see_ends(struct probe_site *site, struct elf *elf, const struct probe_list *list,
		    const struct probe_options *options, const struct body *b)
{
	bool hands_on = false;
	int err = find_rets(site, elf, list, &hands_on);

	if (!err && hands_on && !is_own_operator(site, list) && leaves_work(site, elf, list, b, INSN_CALL))
		err = -ENOSYS;
	/* A breakpoint at the return address sees all ends. */
	if (!IS_AGENT && options->rare_ends && err != -ENOMEM)
		err = -ENOSYS;
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

/*
 * Like see_ends(), but accept a uretprobe where see_ends() finds no other way. A uretprobe only hides callers: from the
 * allocator's own walk, and from the stacks of what an operator allocates for itself.
 */
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

/* The size of a symbol may be wrong, or 0. */
static void limit_end(struct probe_site *site, const struct elf_segment *seg, const struct body *b)
{
	u64 left = seg->filesz - (site->start - seg->vaddr);

	if (site->end <= site->start)
		site->end = site->start + b->len;
	else if (site->end - site->start > left)
		site->end = site->start + left;
}

/* Code that cannot be decoded: the probe is at the entry, and ends are seen at the return address. */
static int place_unread(struct probe_site *site, const struct elf *elf, const struct probe_list *list,
			const struct probe_options *options)
{
	const struct elf_segment *seg = elf_segment_at(elf, site->start);
	const struct alloc_fn *fn = site->row;
	bool is_leaf = fn->kind == ALLOC_MUNMAP ||
		       (fn->kind == ALLOC_FREE && allocator_is(list->kind, ALLOCATOR_IS_LEAF) &&
			!options->want_mmap);

	if (!options->has_return_places)
		return -ENOTSUP;
	if (!seg || !(seg->flags & PF_X))
		return -EINVAL;
	site->place = site->start;
	for (u32 i = 0; i < ARRAY_SIZE(site->arg_at); i++)
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
	bool is_own;
	int err;

	if (!insn_is_supported(elf->machine))
		return place_unread(site, elf, list, options);
	if (!probe_is_entry(elf, site->start))
		return -EILSEQ;
	err = body_read(&b, elf, site->start, site->end);
	if (err)
		return err;
	limit_end(site, seg, &b);
	probe_place_find_place(site, &b);
	site->flags = find_flags(site, elf, list, options, &b);
	is_own = is_own_operator(site, list);
	/* The unwinder of an exception would meet the kernel's trampoline and end the program. */
	if (site->flags & PROBE_RETURNS && (site->row->can_throw || options->no_uretprobe))
		err = see_ends(site, elf, list, options, &b);
	else if (site->flags & PROBE_RETURNS &&
		 (list->walks_stack || (is_own && site->row->kind != ALLOC_FREE) ||
		  (site->row->kind == ALLOC_MALLOC && probe_place_has_own(site->row))))
		err = try_ends(site, elf, list, options, &b);
	/* Without its end, what it releases counts as releases of the program: better than no probe. */
	if (err == -ENOSYS && alloc_kind_ends_heap(site->row->kind)) {
		site->flags = 0;
		err = 0;
	}
	if (elf->word_size == 4)
		site->flags |= PROBE_32BIT;
	if (is_own || (probe_place_has_own(site->row) && site->flags & PROBE_RETURNS))
		site->flags |= PROBE_WRAPS;
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

static bool probe_place_is_among(const u64 *list, size_t nr, u64 addr)
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

		if (seg && seg->flags & PF_X && !probe_place_is_among(out, nr, insn.address))
			out[nr++] = insn.address;
	}
	free(b.code);
	return (int)nr;
}

/* Code from @vaddr on. An instruction that begins in its first PIECE_BYTES is in it as a whole. */
struct code_piece {
	u64 vaddr;
	const u8 *code;
	u64 len;
};

/* The calls of @target that begin in the first PIECE_BYTES of @piece. */
static int find_calls_in(const struct elf *elf, const struct code_piece *piece, u64 target, u64 **calls,
			 size_t *nr)
{
	for (u64 at = 0; *nr < MAX_INTERNAL_CALLS; at++) {
		at += insn_next_call(elf->machine, piece->vaddr + at, piece->code + at, piece->len - at,
				     target);
		if (at >= piece->len || at >= PIECE_BYTES)
			return 0;
		if (array_extend(*calls, *nr))
			return -ENOMEM;
		/* Bit 0 of an address marks Thumb code. */
		(*calls)[(*nr)++] = (piece->vaddr + at) | (elf->machine == EM_ARM ? target & 1 : 0);
	}
	return 0;
}

int probe_find_calls(struct elf *elf, u64 start, u64 end, u64 target, u64 **calls, size_t *nr)
{
	auto_free u8 *code = NULL;

	if (!insn_has_calls(elf->machine) || end <= start || end - start > MAX_SCANNED)
		return 0;
	code = malloc(PIECE_BYTES + MOST_INSN_BYTES);
	if (!code)
		return -ENOMEM;
	for (; start < end; start += PIECE_BYTES) {
		u64 left = end - start, most = PIECE_BYTES + MOST_INSN_BYTES;
		const struct code_piece piece = { start, code, left < most ? left : most };
		int err = elf_read_vaddr(elf, start, code, piece.len);

		if (!err)
			err = find_calls_in(elf, &piece, target, calls, nr);
		if (err)
			return err;
	}
	return 0;
}
