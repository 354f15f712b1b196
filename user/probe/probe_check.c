/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does a function begin at an address? Symbols may be wrong, and a probe inside an instruction breaks the program. */
#include <elf.h>

#include "arch/insn.h"
#include "user/lib/array.h"
#include "user/lib/elf.h"
#include "user/probe/probe_place.h"

enum {
	TABLE_ENCODING = 0x3b, /* DW_EH_PE_datarel | sdata4: all linkers write this */
	COUNT_ENCODING = 0x03, /* DW_EH_PE_udata4 */
	POINTER_BYTES = 4,     /* of the pointer to .eh_frame, in all encodings that occur with these */
	HEADER_BYTES = 12,
	MAX_DISTANCE = 1 << 16,
};

static u32 probe_check_get32(const struct elf *elf, const u8 *p)
{
	u32 low = p[0] | p[1] << 8, high = p[2] | p[3] << 8;
	u32 value = low | high << 16;

	return elf->is_big ? __builtin_bswap32(value) : value;
}

/* The binary search table of .eh_frame_hdr. */
struct starts {
	const struct elf *elf;
	u64 vaddr; /* of the section; entries are relative to it */
	u32 nr;
};

static int find_starts(struct starts *out, const struct elf *elf)
{
	u8 header[HEADER_BYTES];

	for (u32 i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_GNU_EH_FRAME || s->filesz < HEADER_BYTES)
			continue;
		if (elf_read_vaddr(elf, s->vaddr, header, sizeof(header)) || header[0] != 1 ||
		    header[2] != COUNT_ENCODING || header[3] != TABLE_ENCODING)
			return -1;
		*out = (struct starts){ elf, s->vaddr, probe_check_get32(elf, header + 4 + POINTER_BYTES) };
		return (s->filesz - HEADER_BYTES) / 8 < out->nr ? -1 : 0;
	}
	return -1;
}

/* A function that has call frame information. */
struct described {
	u64 start, end; /* end 0 = not known */
};

/* Entry @i; start 0 if it cannot be read. */
static struct described described_at(const struct starts *s, u32 i)
{
	struct described d = { 0 };
	u8 entry[8], fde[16];
	u64 at;

	if (elf_read_vaddr(s->elf, s->vaddr + HEADER_BYTES + 8 * (u64)i, entry, sizeof(entry)))
		return d;
	d.start = s->vaddr + (s64)(s32)probe_check_get32(s->elf, entry);
	at = s->vaddr + (s64)(s32)probe_check_get32(s->elf, entry + 4);
	/* The FDE holds: length, CIE, start, length of the code. If start is as expected, the encoding is as usual. */
	if (!elf_read_vaddr(s->elf, at, fde, sizeof(fde)) &&
	    at + 8 + (s64)(s32)probe_check_get32(s->elf, fde + 8) == d.start)
		d.end = d.start + probe_check_get32(s->elf, fde + 12);
	return d;
}

/* The last function with call frame information that begins at or before @vaddr. */
static struct described described_before(const struct starts *s, u64 vaddr)
{
	size_t nr = array_search(i, 0, s->nr, described_at(s, (u32)i).start <= vaddr);

	return nr ? described_at(s, (u32)nr - 1) : (struct described){ 0 };
}

enum reached { REACHED, STEPPED_OVER, NOT_CODE };

/* Decode from @at, where an instruction begins, on to @vaddr: does one begin there too? */
static enum reached probe_check_reach(const struct elf *elf, u64 at, u64 vaddr)
{
	u8 code[INSN_MAX_LENGTH];
	struct insn insn;

	for (; at < vaddr; at += insn.length)
		if (elf_read_vaddr(elf, at, code, sizeof(code)) ||
		    insn_decode(&insn, elf->machine, at, code, sizeof(code)))
			return NOT_CODE;
	return at == vaddr ? REACHED : STEPPED_OVER;
}

/* The function that begins last before @vaddr, by its symbol. */
struct neighbour {
	u64 vaddr, start, size;
};

static int see_neighbour(void *ctx, const struct elf_symbol *sym)
{
	struct neighbour *n = ctx;

	if (sym->type == STT_FUNC && sym->value < n->vaddr && sym->value >= n->start) {
		n->start = sym->value;
		n->size = sym->size;
	}
	return 0;
}

/*
 * Where no call frame information says what begins at @vaddr: decode from the function below. A symbol inside another
 * function must at least name the beginning of an instruction there; between functions may lie tables.
 */
static bool is_entry_by_symbols(struct elf *elf, u64 vaddr)
{
	struct neighbour n = { .vaddr = vaddr };
	enum reached reached;
	u64 end;

	if (elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, see_neighbour, &n) || !n.start)
		return true;
	end = n.size < MAX_DISTANCE ? n.start + n.size : n.start;
	if (vaddr - n.start > MAX_DISTANCE)
		return true;
	if (end > n.start && end <= vaddr)
		return probe_check_reach(elf, end, vaddr) != STEPPED_OVER;
	reached = probe_check_reach(elf, n.start, vaddr);
	return reached == REACHED || (reached == NOT_CODE && end == n.start);
}

bool probe_is_entry(struct elf *elf, u64 vaddr)
{
	struct starts starts;
	struct described d;

	if (find_starts(&starts, elf))
		return is_entry_by_symbols(elf, vaddr);
	d = described_before(&starts, vaddr);
	if (d.start == vaddr)
		return true;
	if (!d.start || vaddr - d.start > MAX_DISTANCE || (d.end && vaddr >= d.end))
		return is_entry_by_symbols(elf, vaddr);
	/* Inside a function. Where its end is not known, a table may lie between: then nothing is known. */
	return !d.end && probe_check_reach(elf, d.start, vaddr) != STEPPED_OVER;
}

bool probe_is_start(const struct elf *elf, u64 vaddr)
{
	struct starts starts;

	return !find_starts(&starts, elf) && described_before(&starts, vaddr).start == vaddr;
}

bool probe_function_of(const struct elf *elf, u64 vaddr, u64 *start, u64 *end)
{
	struct described d = { 0 };
	struct starts starts;

	if (!find_starts(&starts, elf))
		d = described_before(&starts, vaddr);
	*start = d.start;
	*end = d.end;
	return d.start && vaddr >= d.start && vaddr < d.end;
}

bool probe_is_instruction(struct elf *elf, u64 vaddr)
{
	struct neighbour n = { .vaddr = vaddr + 1 };
	struct described d = { 0 };
	struct starts starts;

	if (!find_starts(&starts, elf))
		d = described_before(&starts, vaddr);
	/* Newer symbols are nearer: some functions have one entry for several parts. */
	if (!elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, see_neighbour, &n) && n.start > d.start)
		d.start = n.start;
	return !d.start || vaddr - d.start > MAX_DISTANCE ||
	       probe_check_reach(elf, d.start, vaddr) != STEPPED_OVER;
}
