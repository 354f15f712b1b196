/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Before a probe is placed: does a function begin there? A symbol may say anything, and the CPU does not forgive. */
#include <elf.h>

#include "arch/insn.h"
#include "user/lib/elf.h"
#include "user/probe_place.h"

enum {
	TABLE_ENCODING = 0x3b, /* DW_EH_PE_datarel | sdata4: what all linkers write */
	COUNT_ENCODING = 0x03, /* DW_EH_PE_udata4 */
	POINTER_BYTES = 4,     /* of .eh_frame, in all encodings that go with these */
	HEADER_BYTES = 12,
	MAX_DISTANCE = 1 << 16,
};

static u32 get32(const struct elf *elf, const u8 *p)
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
		*out = (struct starts){ elf, s->vaddr, get32(elf, header + 4 + POINTER_BYTES) };
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
	d.start = s->vaddr + (s64)(s32)get32(s->elf, entry);
	at = s->vaddr + (s64)(s32)get32(s->elf, entry + 4);
	/* length, CIE, start, length of the code; the start tells whether they are encoded as usual */
	if (!elf_read_vaddr(s->elf, at, fde, sizeof(fde)) &&
	    at + 8 + (s64)(s32)get32(s->elf, fde + 8) == d.start)
		d.end = d.start + get32(s->elf, fde + 12);
	return d;
}

/* The last one that begins at or before @vaddr. */
static struct described described_before(const struct starts *s, u64 vaddr)
{
	struct described found = { 0 };
	u32 low = 0, high = s->nr;

	while (low < high) {
		u32 mid = low + (high - low) / 2;
		struct described d = described_at(s, mid);

		if (d.start > vaddr) {
			high = mid;
		} else {
			found = d;
			low = mid + 1;
		}
	}
	return found;
}

bool probe_is_entry(const struct elf *elf, u64 vaddr)
{
	u8 code[INSN_MAX_LENGTH];
	struct starts starts;
	struct described d;
	struct insn insn;
	u64 at;

	if (find_starts(&starts, elf))
		return true;
	d = described_before(&starts, vaddr);
	if (!d.start || d.start == vaddr || vaddr - d.start > MAX_DISTANCE)
		return true;
	if (d.end)
		return vaddr >= d.end;
	/* What is not code in between may be a table: then nothing is known. */
	for (at = d.start; at < vaddr; at += insn.length)
		if (elf_read_vaddr(elf, at, code, sizeof(code)) ||
		    insn_decode(&insn, elf->machine, at, code, sizeof(code)))
			return true;
	return at == vaddr;
}

bool probe_is_start(const struct elf *elf, u64 vaddr)
{
	struct starts starts;

	return !find_starts(&starts, elf) && described_before(&starts, vaddr).start == vaddr;
}
