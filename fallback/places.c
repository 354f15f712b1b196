/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breakpoints in one address space. */
#include "fallback/places.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIN_SLOTS = 64, MAX_BREAKPOINTS = 65536 };

void places_init(struct places *p, const struct cpu *cpu, int mem_fd)
{
	*p = (struct places){ .cpu = cpu, .mem_fd = mem_fd };
}

void places_fini(struct places *p)
{
	free(p->table);
	free(p->ghosts);
	*p = (struct places){ .mem_fd = -1 };
}

int places_copy(struct places *p, const struct places *from)
{
	struct breakpoint *table = calloc(from->nr_slots + 1, sizeof(*table));
	taddr_t *ghosts = calloc(from->nr_ghosts + 1, sizeof(*ghosts));

	if (!table || !ghosts) {
		free(table);
		free(ghosts);
		return -ENOMEM;
	}
	if (from->nr_slots)
		memcpy(table, from->table, from->nr_slots * sizeof(*table));
	if (from->nr_ghosts)
		memcpy(ghosts, from->ghosts, from->nr_ghosts * sizeof(*ghosts));
	p->table = table;
	p->ghosts = ghosts;
	p->nr = from->nr;
	p->nr_slots = from->nr_slots;
	p->nr_ghosts = from->nr_ghosts;
	return 0;
}

static size_t slot_of(const struct places *p, taddr_t addr)
{
	return (addr * 0x9e3779b97f4a7c15ULL >> 32) & (p->nr_slots - 1);
}

struct breakpoint *places_find(const struct places *p, taddr_t addr)
{
	for (size_t i = p->nr_slots ? slot_of(p, addr) : 0; p->nr_slots; i++) {
		struct breakpoint *b = &p->table[i & (p->nr_slots - 1)];

		if (!b->addr)
			return NULL;
		if (b->addr == addr)
			return b;
	}
	return NULL;
}

bool places_is_ghost(const struct places *p, taddr_t addr)
{
	for (size_t i = 0; i < p->nr_ghosts; i++)
		if (p->ghosts[i] == addr)
			return true;
	return false;
}

static struct breakpoint *free_slot(const struct places *p, taddr_t addr)
{
	size_t i = slot_of(p, addr);

	while (p->table[i & (p->nr_slots - 1)].addr)
		i++;
	return &p->table[i & (p->nr_slots - 1)];
}

/* Room for one more, at most half full. */
static int grow(struct places *p)
{
	struct places larger = *p;

	if (p->nr >= MAX_BREAKPOINTS)
		return -ENOSPC;
	if (p->nr * 2 + 2 <= p->nr_slots)
		return 0;
	larger.nr_slots = p->nr_slots ? p->nr_slots * 2 : MIN_SLOTS;
	larger.table = calloc(larger.nr_slots, sizeof(*larger.table));
	if (!larger.table)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_slots; i++)
		if (p->table[i].addr)
			*free_slot(&larger, p->table[i].addr) = p->table[i];
	free(p->table);
	*p = larger;
	return 0;
}

/* Of a breakpoint that lies in [@addr, @addr + @len): the program's bytes into @code. */
static void hide(const struct breakpoint *b, taddr_t addr, u8 *code, size_t len)
{
	for (size_t i = 0; i < b->length; i++)
		if (b->addr + i - addr < len)
			code[b->addr + i - addr] = b->original[i];
}

size_t places_read_code(const struct places *p, taddr_t addr, u8 *code, size_t len)
{
	ssize_t nr = pread(p->mem_fd, code, len, (off_t)addr);

	/* Perhaps the rest is in a page that is not there. */
	if (nr <= 0 && (addr & 4095) + len > 4096)
		nr = pread(p->mem_fd, code, 4096 - (addr & 4095), (off_t)addr);
	if (nr <= 0)
		return 0;
	for (size_t at = 0; at < (size_t)nr + CPU_BREAKPOINT_BYTES - 1; at++) {
		const struct breakpoint *b = places_find(p, addr + at - (CPU_BREAKPOINT_BYTES - 1));

		if (b)
			hide(b, addr, code, (size_t)nr);
	}
	return (size_t)nr;
}

static int write_code(int mem_fd, taddr_t addr, const u8 *code, size_t len)
{
	ssize_t nr = pwrite(mem_fd, code, len, (off_t)addr);

	if (nr < 0)
		return -errno;
	return nr == (ssize_t)len ? 0 : -EIO;
}

int places_lift(const struct places *p, const struct breakpoint *b)
{
	return write_code(p->mem_fd, b->addr, b->original, b->length);
}

int places_lower(const struct places *p, const struct breakpoint *b)
{
	return write_code(p->mem_fd, b->addr, b->code, b->length);
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
	err = grow(p);
	if (err)
		return err;
	b.length = (u8)p->cpu->breakpoint(place->addr, b.code);
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
	*free_slot(p, b.addr) = b;
	p->nr++;
	return 0;
}

static void add_ghost(struct places *p, taddr_t addr)
{
	taddr_t *ghosts = reallocarray(p->ghosts, p->nr_ghosts + 1, sizeof(*ghosts));

	if (!ghosts)
		return;
	p->ghosts = ghosts;
	ghosts[p->nr_ghosts++] = addr;
}

/* Take a breakpoint out of the table; those behind it in the same run move up. */
static void forget(struct places *p, taddr_t addr)
{
	size_t mask = p->nr_slots - 1;
	size_t i = (size_t)(places_find(p, addr) - p->table);

	add_ghost(p, addr);
	p->table[i] = (struct breakpoint){ 0 };
	p->nr--;
	for (size_t k = (i + 1) & mask; p->table[k].addr; k = (k + 1) & mask) {
		struct breakpoint b = p->table[k];

		p->table[k].addr = 0;
		*free_slot(p, b.addr) = b;
	}
}

/* Is our breakpoint still in the code? */
static bool is_in_code(const struct breakpoint *b, int mem_fd)
{
	u8 code[CPU_BREAKPOINT_BYTES];

	return pread(mem_fd, code, b->length, (off_t)b->addr) == b->length &&
	       !memcmp(code, b->code, b->length);
}

/* What cannot be written has gone with its mapping. */
static void put_back(const struct breakpoint *b, int mem_fd)
{
	if (is_in_code(b, mem_fd) && write_code(mem_fd, b->addr, b->original, b->length))
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
	put_back(b, p->mem_fd);
	forget(p, addr);
}

void places_remove_range(struct places *p, taddr_t start, taddr_t end)
{
	for (size_t i = 0; i < p->nr_slots;) {
		struct breakpoint *b = &p->table[i];

		if (!b->addr || b->addr < start || b->addr >= end) {
			i++;
			continue;
		}
		put_back(b, p->mem_fd);
		/* Another one may have moved up. */
		forget(p, b->addr);
	}
}

u32 places_repair(const struct places *p)
{
	u8 code[CPU_BREAKPOINT_BYTES];
	u32 nr = 0;

	for (size_t i = 0; i < p->nr_slots; i++) {
		const struct breakpoint *b = &p->table[i];

		if (b->addr && pread(p->mem_fd, code, b->length, (off_t)b->addr) == b->length &&
		    !memcmp(code, b->original, b->length) && !places_lower(p, b))
			nr++;
	}
	return nr;
}

void places_clean(const struct places *p, int mem_fd)
{
	for (size_t i = 0; i < p->nr_slots; i++)
		if (p->table[i].addr)
			put_back(&p->table[i], mem_fd);
}
