/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breakpoints in one address space. */
#include "fallback/places.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fallback/code_memory.h"
#include "user/lib/array.h"

enum { MAX_BREAKPOINTS = 65536 };

void places_init(struct places *p, const struct cpu *cpu, struct cpu_memory memory)
{
	*p = (struct places){ .cpu = cpu, .memory = memory };
}

void places_fini(struct places *p)
{
	free(p->list);
	hash_index_fini(&p->index);
	free(p->ghosts);
	*p = (struct places){ .memory = code_by_file(-1) };
}

int places_copy(struct places *p, const struct places *from)
{
	int err = array_reserve(p->list, p->max, from->nr);

	if (!err)
		err = array_reserve(p->ghosts, p->max_ghosts, from->nr_ghosts);
	if (!err)
		err = hash_index_copy(&p->index, &from->index);
	if (err)
		return err;
	if (from->nr)
		memcpy(p->list, from->list, from->nr * sizeof(*p->list));
	if (from->nr_ghosts)
		memcpy(p->ghosts, from->ghosts, from->nr_ghosts * sizeof(*p->ghosts));
	p->nr = from->nr;
	p->nr_ghosts = from->nr_ghosts;
	return 0;
}

struct breakpoint *places_find(const struct places *p, taddr_t addr)
{
	u32 item, at = 0;

	while ((item = hash_index_next(&p->index, hash_u64(addr), &at)) != HASH_NO_ITEM)
		if (p->list[item].addr == addr)
			return &p->list[item];
	return NULL;
}

bool places_have(const struct places *p, u32 kind)
{
	for (size_t i = 0; i < p->nr; i++)
		for (u8 k = 0; k < p->list[i].nr_uses; k++)
			if (p->list[i].uses[k].kind == kind)
				return true;
	return false;
}

/* Was there a breakpoint at @addr before? */
static bool is_ghost(const struct places *p, taddr_t addr)
{
	for (size_t i = 0; i < p->nr_ghosts; i++)
		if (p->ghosts[i] == addr)
			return true;
	return false;
}

taddr_t places_address(const struct places *p, taddr_t pc)
{
	return p->cpu->machine == EM_ARM ? pc & ~1ULL : pc;
}

bool places_hit(const struct places *p, struct cpu_regs *regs, taddr_t *addr)
{
	taddr_t pc = cpu_get(p->cpu, regs, CPU_PC) - p->cpu->trap_skip;

	*addr = places_address(p, pc);
	if (!places_find(p, *addr) && !is_ghost(p, *addr))
		return false;
	cpu_set(p->cpu, regs, CPU_PC, pc);
	return true;
}

/* Room for one more, so that adding it cannot fail. */
static int places_grow(struct places *p)
{
	int err;

	if (p->nr >= MAX_BREAKPOINTS)
		return -ENOSPC;
	err = array_reserve(p->list, p->max, p->nr + 1);
	return err ? err : hash_index_reserve(&p->index, p->nr + 1);
}

/* Replace the bytes of breakpoint @b in @code, which was read from [@addr, @addr + @len), by the program's. */
static void places_hide(const struct breakpoint *b, taddr_t addr, u8 *code, size_t len)
{
	for (size_t i = 0; i < b->length; i++)
		if (b->addr + i - addr < len)
			code[b->addr + i - addr] = b->original[i];
}

size_t places_read_code(const struct places *p, taddr_t addr, u8 *code, size_t len)
{
	size_t in_page = 4096 - (addr & 4095);
	int err = p->memory.read(p->memory.ctx, addr, code, len);

	/* The rest may be in a page that is not mapped. */
	if (err && len > in_page) {
		len = in_page;
		err = p->memory.read(p->memory.ctx, addr, code, len);
	}
	if (err)
		return 0;
	for (size_t at = 0; at < len + CPU_BREAKPOINT_BYTES - 1; at++) {
		const struct breakpoint *b = places_find(p, addr + at - (CPU_BREAKPOINT_BYTES - 1));

		if (b)
			places_hide(b, addr, code, len);
	}
	return len;
}

int places_lift(const struct places *p, const struct breakpoint *b)
{
	return p->memory.write(p->memory.ctx, b->addr, b->original, b->length);
}

int places_lower(const struct places *p, const struct breakpoint *b)
{
	return p->memory.write(p->memory.ctx, b->addr, b->code, b->length);
}

static int add_use(struct breakpoint *b, u32 kind, u32 probe)
{
	u8 at = 0;

	for (u8 i = 0; i < b->nr_uses; i++)
		if (b->uses[i].kind == kind && b->uses[i].probe == probe)
			return 0;
	if (b->nr_uses == PLACES_AT_ONE)
		return -ENOSPC;
	while (at < b->nr_uses && b->uses[at].kind <= kind)
		at++;
	memmove(&b->uses[at + 1], &b->uses[at], (b->nr_uses - at) * sizeof(b->uses[0]));
	b->uses[at] = (struct place_use){ .probe = probe, .kind = kind };
	b->nr_uses++;
	return 0;
}

static void forget_ghost(struct places *p, taddr_t addr)
{
	for (size_t i = 0; i < p->nr_ghosts; i++)
		if (p->ghosts[i] == addr)
			p->ghosts[i] = p->ghosts[--p->nr_ghosts];
}

int places_add(struct places *p, const struct place *place)
{
	bool is_thumb = place->addr & 1 && p->cpu->machine == EM_ARM;
	struct breakpoint b = { .addr = is_thumb ? place->addr & ~1ULL : place->addr, .is_thumb = is_thumb };
	struct breakpoint *there = places_find(p, b.addr);
	int err;

	if (!b.addr)
		return -EFAULT;
	if (there)
		return add_use(there, place->kind, place->probe);
	err = places_grow(p);
	if (err)
		return err;
	b.length = (u8)cpu_breakpoint(p->cpu, place->addr, b.code);
	b.nr_original = (u8)places_read_code(p, b.addr, b.original, sizeof(b.original));
	if (b.nr_original < b.length)
		return -EFAULT;
	if (!memcmp(b.original, b.code, b.length))
		return -EEXIST;
	err = add_use(&b, place->kind, place->probe);
	if (!err)
		err = places_lower(p, &b);
	if (err)
		return err;
	forget_ghost(p, b.addr);
	err = hash_index_add(&p->index, hash_u64(b.addr), (u32)p->nr);
	if (!err)
		p->list[p->nr++] = b;
	return err;
}

static void add_ghost(struct places *p, taddr_t addr)
{
	if (!array_reserve(p->ghosts, p->max_ghosts, p->nr_ghosts + 1))
		p->ghosts[p->nr_ghosts++] = addr;
}

/* Take @b out of the list; the last one takes its place. */
static void places_forget(struct places *p, struct breakpoint *b)
{
	struct breakpoint *last = &p->list[--p->nr];
	u32 item = (u32)(b - p->list);

	add_ghost(p, b->addr);
	hash_index_del(&p->index, hash_u64(b->addr), item);
	if (b == last)
		return;
	hash_index_renumber(&p->index, hash_u64(last->addr), (u32)p->nr, item);
	*b = *last;
}

/* Is @code, of the length of @b, where @b is? */
static bool places_is_code(const struct breakpoint *b, const u8 *code, const struct cpu_memory *memory)
{
	u8 there[CPU_BREAKPOINT_BYTES];

	return !memory->read(memory->ctx, b->addr, there, b->length) && !memcmp(there, code, b->length);
}

bool places_is_in_code(const struct places *p, taddr_t addr)
{
	const struct breakpoint *b = p->nr ? places_find(p, places_address(p, addr)) : NULL;

	return b && places_is_code(b, b->code, &p->memory);
}

/* Code that cannot be written was unmapped. */
static void put_back(const struct breakpoint *b, const struct cpu_memory *memory)
{
	if (places_is_code(b, b->code, memory) && memory->write(memory->ctx, b->addr, b->original, b->length))
		return;
}

void places_remove(struct places *p, taddr_t addr, u32 kind, u32 probe)
{
	struct breakpoint *b = places_find(p, addr);

	for (u8 i = 0; b && i < b->nr_uses; i++) {
		if (b->uses[i].kind != kind || b->uses[i].probe != probe)
			continue;
		memmove(&b->uses[i], &b->uses[i + 1], (b->nr_uses - i - 1u) * sizeof(b->uses[0]));
		b->nr_uses--;
		break;
	}
	if (!b || b->nr_uses)
		return;
	put_back(b, &p->memory);
	places_forget(p, b);
}

void places_remove_range(struct places *p, taddr_t start, taddr_t end)
{
	for (size_t i = 0; i < p->nr;) {
		struct breakpoint *b = &p->list[i];

		if (b->addr < start || b->addr >= end) {
			i++;
			continue;
		}
		put_back(b, &p->memory);
		/* Another breakpoint may have taken its place. */
		places_forget(p, b);
	}
}

u32 places_repair(const struct places *p)
{
	u32 nr = 0;

	for (size_t i = 0; i < p->nr; i++) {
		const struct breakpoint *b = &p->list[i];

		if (places_is_code(b, b->original, &p->memory) && !places_lower(p, b))
			nr++;
	}
	return nr;
}

void places_clean(const struct places *p, const struct cpu_memory *memory)
{
	for (size_t i = 0; i < p->nr; i++)
		put_back(&p->list[i], memory);
}
