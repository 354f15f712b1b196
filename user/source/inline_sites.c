/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the probes of a file to the places where its code leads to the piece. */
#include "user/source/inline_sites.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "arch/insn.h"
#include "user/inject/code.h"
#include "user/inject/plan.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/probe/probe_place.h"

enum {
	TRIAL_DISTANCE = 1 << 20,
	SHORT_REACH = 127,	 /* bytes from the end of a short jump, at most */
	MAX_FUNCTION = 64 << 10, /* bytes that are decoded to find the last instruction of a function */
	CODE_ALIGNMENT = 16,
};

/* @site as the piece sees it: at the first instruction of the function, and without single steps. */
static struct call_probe probe_at_start(const struct probe_site *site)
{
	struct probe_site at = *site;

	at.place = site->start;
	at.is_emulated = true;
	for (u8 i = 0; i < ARRAY_SIZE(at.arg_at); i++)
		at.arg_at[i] = i;
	return probe_site_describe(&at);
}

/* Fill in *@out as @point asks for. False: the piece needs nothing there. */
static bool site_of(const struct probed_file *f, const struct probe_point *point, struct inject_site *out)
{
	static const enum piece_kind kinds[] = { [POINT_INTERNAL_CALL] = PIECE_INTERNAL_CALL,
						 [POINT_FREE] = PIECE_FREE,
						 [POINT_RET] = PIECE_RET,
						 [POINT_ALLOC] = PIECE_ALLOC,
						 [POINT_END] = PIECE_END };
	bool is_call = point->kind == POINT_INTERNAL_CALL, is_ret = point->kind == POINT_RET;
	u32 nr = is_call ? (u32)f->list.internal_site : point->probe - f->first_probe;
	const struct probe_site *site = &f->list.sites[nr];

	/* The piece itself sees to return addresses. */
	if (point->kind == POINT_RETURN || point->kind >= POINT_NOTE)
		return false;
	if (point->kind == POINT_END) {
		*out = (struct inject_site){ .addr = point->vaddr,
					     .start = point->vaddr,
					     .len = f->list.end_len,
					     .kind = PIECE_END,
					     .name = "_exit" };
		return true;
	}
	*out = (struct inject_site){ .addr = is_call || is_ret ? point->vaddr : site->start,
				     .start = is_call ? point->vaddr : site->start,
				     .len = is_call ? code_native()->jump_bytes : site->end - site->start,
				     .index = f->first_probe + nr,
				     .kind = kinds[point->kind],
				     .call = probe_at_start(site),
				     .name = site->row->name };
	out->seen_at = is_call || is_ret ? 0 : (u16)(point->vaddr - site->start);
	return true;
}

/* A function may end by a ret of another one, to which it has jumped. */
static void move_to_function_of_ret(const struct elf *elf, struct inject_site *site)
{
	u64 start, end;

	if (site->kind != PIECE_RET || (site->addr >= site->start && site->addr < site->start + site->len))
		return;
	if (!probe_function_of(elf, site->addr, &start, &end))
		return;
	site->start = start;
	site->len = end - start;
}

static int list_sites(struct inject_site *sites, size_t *nr, const struct probed_file *f,
		      const struct elf *elf)
{
	for (u32 i = 0; i < f->nr_points; i++) {
		struct inject_site *site = &sites[*nr];
		int err;

		if (!site_of(f, &f->points[i], site))
			continue;
		move_to_function_of_ret(elf, site);
		err = elf_read_vaddr(elf, site->start, site->code, sizeof(site->code));
		if (err)
			return err;
		(*nr)++;
	}
	return 0;
}

/* ---- functions without room ---- */

static int inline_sites_read_file(void *ctx, taddr_t addr, void *bytes, size_t len)
{
	return elf_read_vaddr(ctx, addr, bytes, len);
}

/* The beginning of the next function, as far as symbols know it. */
struct next_function {
	u64 after, start;
};

static int see_function(void *ctx, const struct elf_symbol *sym)
{
	struct next_function *next = ctx;

	if (sym->shndx != SHN_UNDEF && sym->value >= next->after && sym->value < next->start)
		next->start = sym->value;
	return 0;
}

/*
 * Note the bytes between the function of @site and the next one: at most up to where linkers begin functions. False:
 * there are none, or they are noted already.
 */
static bool find_room(struct inject_site *site, struct elf *elf)
{
	const struct elf_segment *seg = elf_segment_at(elf, site->start);
	u64 end = site->start + site->len, room = 0;
	struct next_function next = { .after = end, .start = (end | (INJECT_MAX_ROOM - 1)) + 1 };

	if (site->kind == PIECE_INTERNAL_CALL || site->room || !seg || !(end % INJECT_MAX_ROOM) ||
	    elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, see_function, &next))
		return false;
	while (end + room < next.start && end + room < seg->vaddr + seg->filesz &&
	       !probe_is_start(elf, end + room))
		room++;
	site->room = room;
	return room;
}

/* ---- padding that a short jump reaches ---- */

/*
 * Where the function in [@start, @end) ends by an instruction that is not followed by the next one: the first byte of
 * the padding that a thread cannot return to, else 0. A call at the end does not return, but its return address is on
 * a stack.
 */
static u64 padding_behind(const struct elf *elf, u64 start, u64 end)
{
	u64 len = end - start;
	auto_free u8 *code = len && len <= MAX_FUNCTION ? malloc(len) : NULL;
	struct insn insn = { .kind = INSN_OTHER };

	if (!code || elf_read_vaddr(elf, start, code, len))
		return 0;
	for (u64 at = 0; at < len; at += insn.length)
		if (insn_decode(&insn, elf->machine, start + at, code + at, len - at))
			return 0;
	if (insn.kind == INSN_RETURN || insn.kind == INSN_JUMP || insn.kind == INSN_TRAP)
		return end;
	return insn.kind == INSN_CALL ? end + 1 : 0;
}

/*
 * The end of the padding that begins at @from, behind a function: it has room for one jump, or more. 0: no padding, or
 * something may begin there that neither symbols nor call frame information tell of.
 */
static u64 padding_end(struct elf *elf, u64 from)
{
	struct next_function next = { .after = from, .start = (from | (CODE_ALIGNMENT - 1)) + 1 };
	u8 code[2 * CODE_ALIGNMENT];
	struct insn insn;
	u64 start, end, at;

	if (!(from % CODE_ALIGNMENT) || elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, see_function, &next) ||
	    elf_read_vaddr(elf, from, code, sizeof(code)))
		return 0;
	for (at = from; at < next.start && !probe_function_of(elf, at, &start, &end);)
		at++;
	next.start = at;
	for (at = from; at < next.start; at += insn.length)
		if (insn_decode(&insn, elf->machine, at, code + (at - from), sizeof(code) - (at - from)) ||
		    (insn.kind != INSN_NOP && insn.kind != INSN_TRAP))
			return 0;
	return next.start;
}

/*
 * Have @site lead to padding near it by a short jump: to the next place after those that were tried. Padding is used
 * from its end on, because functions that have no room themselves need its beginning. False: there is no such place.
 */
static bool find_hop(struct inject_site *site, struct elf *elf)
{
	const u64 reach = SHORT_REACH + code_native()->hop_bytes, jump = code_native()->jump_bytes;
	u64 at = site->addr < reach ? 0 : site->addr - reach;
	u64 start, end, first, hop;
	u32 nr = 0;

	if (site->kind == PIECE_INTERNAL_CALL || !code_native()->hop_bytes)
		return false;
	while (at <= site->addr + reach) {
		if (!probe_function_of(elf, at, &start, &end)) {
			at++;
			continue;
		}
		at = end;
		first = padding_behind(elf, start, end);
		hop = first ? padding_end(elf, end) : 0;
		for (; first + jump <= hop; nr++) {
			hop -= jump;
			if (nr < site->nr_hops)
				continue;
			site->nr_hops++;
			site->hop = hop;
			return !elf_read_vaddr(elf, hop, site->hop_code, sizeof(site->hop_code));
		}
	}
	site->hop = 0;
	return false;
}

/* ---- ends that are seen elsewhere ---- */

/* The program would see our address where the allocator walks its own call stack, or where an unwinder comes by. */
static bool is_convertible(const struct inject_site *sites, size_t nr, const struct inject_site *bad,
			   const struct probed_file *f)
{
	const struct probe_site *site = &f->list.sites[bad->index - f->first_probe];

	if (f->list.walks_stack || site->row->can_throw || !(site->flags & PROBE_RETURNS) ||
	    site->flags & PROBE_DELEGATES)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (sites[i].index == bad->index && sites[i].kind == PIECE_RET)
			return true;
	return false;
}

/* The end of calls of function @index is seen where they return to, and no longer at its ret instructions. */
static void see_at_return(struct inject_site *sites, size_t *nr, u32 index)
{
	size_t kept = 0;

	for (size_t i = 0; i < *nr; i++) {
		if (sites[i].index == index && sites[i].kind == PIECE_RET)
			continue;
		sites[kept] = sites[i];
		if (sites[kept].index == index)
			sites[kept].call.flags |= PROBE_AT_RETURN;
		kept++;
	}
	*nr = kept;
}

/* Try to lead all sites to the piece, without changing anything. *@bad: the one that refuses. */
static int try_sites(const struct inject_site *sites, size_t nr, struct elf *elf, size_t *bad, char *why)
{
	const struct inject_island island = { .start = sites->start + TRIAL_DISTANCE,
					      .bytes = inject_plan_bytes(nr) };
	const struct code_ways none = { 0 };
	struct inject_plan plan;
	int err = inject_plan_make(&plan, sites, nr, &island, &none, inline_sites_read_file, elf, why);

	*bad = plan.bad;
	inject_plan_fini(&plan);
	if (err)
		debug("inline: %s", why);
	return err;
}

int inline_sites_find(struct inject_site *out, size_t *nr, const struct probed_file *f, struct elf *elf,
		      char why[INJECT_WHY_LEN])
{
	size_t bad;
	int err;

	*nr = 0;
	err = list_sites(out, nr, f, elf);
	while (!err && *nr) {
		err = try_sites(out, *nr, elf, &bad, why);
		if (err != -EOPNOTSUPP)
			return err;
		err = 0;
		if (find_room(&out[bad], elf))
			continue;
		if (out[bad].kind == PIECE_END)
			out[bad] = out[--*nr];
		else if (is_convertible(out, *nr, &out[bad], f))
			see_at_return(out, nr, out[bad].index);
		else if (!find_hop(&out[bad], elf))
			return -ENOTSUP;
	}
	return err;
}
