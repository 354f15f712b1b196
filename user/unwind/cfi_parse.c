/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entries of .eh_frame and .debug_frame: CIEs, FDEs, encoded pointers. */
#include "user/unwind/cfi_parse.h"

#include <string.h>

/* Pointer encodings (LSB, "DWARF exception header encoding"). */
enum {
	PE_ABSPTR = 0x00,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_ALIGNED = 0x50,
	PE_RELATIVE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

const u8 *cursor_skip(struct cfi_cursor *c, u64 size)
{
	const u8 *p = c->p;

	if (size > (u64)(c->end - c->p)) {
		c->is_bad = true;
		c->p = c->end;
		return NULL;
	}
	c->p += size;
	return p;
}

u64 cursor_fixed(struct cfi_cursor *c, size_t size)
{
	const struct elf *elf = c->section->elf;
	const u8 *p = cursor_skip(c, size);

	if (!p)
		return 0;
	switch (size) {
	case 1:
		return *p;
	case 2:
		return elf_u16(elf, p);
	case 4:
		return elf_u32(elf, p);
	default:
		return elf_u64(elf, p);
	}
}

/* Bits above 64 are dropped; more than 10 bytes are damage. */
static u64 cursor_leb(struct cfi_cursor *c, unsigned int *bits, u8 *last)
{
	u64 value = 0;

	*bits = 0;
	*last = 0;
	while (c->p < c->end && *bits < 70) {
		u8 byte = *c->p++;

		if (*bits < 64)
			value |= (u64)(byte & 0x7f) << *bits;
		*bits += 7;
		*last = byte;
		if (!(byte & 0x80))
			return value;
	}
	c->is_bad = true;
	return 0;
}

u64 cursor_uleb(struct cfi_cursor *c)
{
	unsigned int bits;
	u8 last;

	return cursor_leb(c, &bits, &last);
}

s64 cursor_sleb(struct cfi_cursor *c)
{
	unsigned int bits;
	u8 last;
	u64 value = cursor_leb(c, &bits, &last);

	if (last & 0x40 && !c->is_bad && bits < 64)
		value |= ~0ULL << bits;
	return (s64)value;
}

/* The bare value, in one of the formats of PE_FORMAT. */
static u64 cursor_format(struct cfi_cursor *c, u8 encoding)
{
	switch (encoding & PE_FORMAT) {
	case 0x00:
		return cursor_fixed(c, c->section->elf->word_size);
	case 0x01:
		return cursor_uleb(c);
	case 0x02:
		return cursor_fixed(c, 2);
	case 0x03:
		return cursor_fixed(c, 4);
	case 0x04:
	case 0x0c:
		return cursor_fixed(c, 8);
	case 0x09:
		return (u64)cursor_sleb(c);
	case 0x0a:
		return (u64)(s64)(s16)cursor_fixed(c, 2);
	case 0x0b:
		return (u64)(s64)(s32)cursor_fixed(c, 4);
	default:
		c->is_bad = true;
		return 0;
	}
}

u64 cursor_pointer(struct cfi_cursor *c, u8 encoding)
{
	const struct cfi_section *s = c->section;
	u64 here = s->vaddr + (u64)(c->p - s->data), word = s->elf->word_size, value;

	if (encoding == PE_OMIT || encoding & PE_INDIRECT) {
		c->is_bad = true;
		return 0;
	}
	if (encoding == PE_ALIGNED) {
		cursor_skip(c, -here & (word - 1));
		return cursor_fixed(c, word);
	}
	value = cursor_format(c, encoding);
	if ((encoding & PE_RELATIVE) == PE_PCREL)
		value += here;
	else if ((encoding & PE_RELATIVE) == PE_DATAREL)
		value += s->data_base;
	else if (encoding & PE_RELATIVE)
		c->is_bad = true;
	return word == 4 ? (u32)value : value;
}

enum cfi_entry cfi_entry_read(const struct cfi_section *s, size_t offset, struct cfi_cursor *body,
			      size_t *cie, size_t *next)
{
	struct cfi_cursor c = { .section = s, .p = s->data + offset, .end = s->data + s->size };
	u64 length, id, id_at;
	size_t id_size = 4;

	if (s->size - offset < 4)
		return ENTRY_END;
	length = cursor_fixed(&c, 4);
	if (length == 0 && !s->is_debug) { /* the terminator; linkers leave some in the middle */
		*next = offset + 4;
		return s->is_sized ? ENTRY_BAD : ENTRY_END;
	}
	if (length == 0xffffffff) {
		length = cursor_fixed(&c, 8);
		id_size = s->is_debug ? 8 : 4;
	}
	if (c.is_bad || length > (u64)(c.end - c.p))
		return ENTRY_END; /* the start of the next entry is unknown */
	*body = c;
	body->end = c.p + length;
	*next = (size_t)(body->end - s->data);
	if (length < id_size)
		return ENTRY_BAD;
	id_at = (u64)(body->p - s->data);
	id = cursor_fixed(body, id_size);
	if (s->is_debug) {
		if (id == (id_size == 8 ? ~0ULL : 0xffffffff))
			return ENTRY_CIE;
		*cie = id;
		return id < s->size ? ENTRY_FDE : ENTRY_BAD;
	}
	if (id == 0)
		return ENTRY_CIE;
	*cie = id_at - id;
	return id <= id_at ? ENTRY_FDE : ENTRY_BAD;
}

/* The letters behind "z". False for a letter whose data has an unknown length. */
static bool read_augmentation(struct cfi_cie *cie, const char *letters, struct cfi_cursor *c)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = (u8)cursor_fixed(c, 1);
			break;
		case 'P': {
			/* The handler is not needed, so an indirect pointer is fine. */
			u8 encoding = (u8)cursor_fixed(c, 1);

			if (encoding != PE_OMIT)
				cursor_pointer(c, encoding & ~PE_INDIRECT);
			break;
		}
		case 'L':
			cursor_fixed(c, 1);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B': /* aarch64: return addresses signed with the other key */
		case 'G': /* aarch64: memory tagging */
			break;
		default:
			return false;
		}
	}
	return !c->is_bad;
}

static bool read_cie_header(const struct cfi_section *s, struct cfi_cursor *c, struct cfi_cie *cie)
{
	u8 version = (u8)cursor_fixed(c, 1);
	const char *letters = (const char *)c->p;
	const u8 *end_of_letters = memchr(c->p, 0, (size_t)(c->end - c->p));

	if (c->is_bad || !end_of_letters || (version != 1 && version != 3 && version != 4))
		return false;
	c->p = end_of_letters + 1;
	if (!strncmp(letters, "eh", 2)) { /* gcc 2: an unused pointer */
		cursor_fixed(c, s->elf->word_size);
		letters += 2;
	}
	/* Version 4 contains the sizes of an address and of a segment selector. */
	if (version == 4 && (cursor_fixed(c, 1) != s->elf->word_size || cursor_fixed(c, 1) != 0))
		return false;
	cie->code_align = cursor_uleb(c);
	cie->data_align = cursor_sleb(c);
	cie->ra = version == 1 ? cursor_fixed(c, 1) : cursor_uleb(c);
	if (c->is_bad)
		return false;
	if (letters[0] == 'z') {
		u64 size = cursor_uleb(c);
		struct cfi_cursor augmentation = *c;

		if (!cursor_skip(c, size))
			return false;
		augmentation.end = c->p;
		cie->has_augmentation = true;
		return read_augmentation(cie, letters + 1, &augmentation);
	}
	return letters[0] == '\0';
}

void cfi_cie_read(const struct cfi_section *s, const struct unwind_arch *arch, size_t offset,
		  struct cfi_cie *cie)
{
	struct cfi_cursor body;
	struct cfi_run run = { .arch = arch, .cie = cie };
	size_t parent, next;

	*cie = (struct cfi_cie){ .offset = offset };
	if (offset >= s->size || cfi_entry_read(s, offset, &body, &parent, &next) != ENTRY_CIE ||
	    !read_cie_header(s, &body, cie))
		return;
	cie->size = next - offset;
	cie->program = body;
	cie->is_valid = cfi_program_run(&run, body, &cie->initial) == 0;
}

bool cfi_fde_read(const struct cfi_cie *cie, struct cfi_cursor *body, u64 *start, u64 *length)
{
	*start = cursor_pointer(body, cie->pointer_encoding);
	*length = cursor_format(body, cie->pointer_encoding);
	if (body->section->elf->word_size == 4)
		*length = (u32)*length;
	if (cie->has_augmentation)
		cursor_skip(body, cursor_uleb(body));
	return !body->is_bad;
}
