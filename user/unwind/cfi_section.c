/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds and reads .eh_frame or .debug_frame, with and without section headers, compressed or not. */
#include "user/unwind/cfi_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/names/decompress.h"
#include "user/lib/cleanup.h"

enum { EH_FRAME_HDR_BYTES = 24 };

static int cfi_section_read_at(struct cfi_section *s, u64 offset, u64 size)
{
	int err;

	if (size > CFI_MAX_FRAME_BYTES) {
		size = CFI_MAX_FRAME_BYTES;
		s->is_cut = true;
	}
	if (offset > s->elf->file_size)
		return -EIO;
	if (size > s->elf->file_size - offset)
		size = s->elf->file_size - offset;
	s->data = malloc(size + 1);
	if (!s->data)
		return -ENOMEM;
	s->size = size;
	err = elf_read_offset(s->elf, offset, s->data, size);
	if (err) {
		free(s->data);
		s->data = NULL;
	}
	return err;
}

/* The address of .eh_frame from PT_GNU_EH_FRAME; 0 if it is not given. */
static u64 eh_frame_by_header(const struct cfi_section *s, const struct elf_segment *header)
{
	u8 raw[EH_FRAME_HDR_BYTES] = { 0 };
	struct cfi_section window = *s;
	struct cfi_cursor c = { .section = &window, .p = raw + 4, .end = raw + sizeof(raw) };
	size_t size = header->filesz < sizeof(raw) ? header->filesz : sizeof(raw);
	u64 vaddr;

	if (size < 8 || elf_read_vaddr(s->elf, header->vaddr, raw, size) || raw[0] != 1)
		return 0;
	window.data = raw;
	window.size = size;
	window.vaddr = window.data_base = header->vaddr;
	vaddr = cursor_pointer(&c, raw[1]);
	return c.is_bad ? 0 : vaddr;
}

static int read_eh_frame(struct cfi_section *s)
{
	const struct elf_section *section = elf_section(s->elf, ".eh_frame");
	u64 vaddr = 0, offset;

	elf_dynamic(s->elf, DT_PLTGOT, &s->data_base);
	if (section && section->type != SHT_NOBITS && section->flags & SHF_ALLOC) {
		s->vaddr = section->addr;
		s->is_sized = true;
		return cfi_section_read_at(s, section->offset, section->size);
	}
	for (u32 i = 0; i < s->elf->nr_segments && !vaddr; i++)
		if (s->elf->segments[i].type == PT_GNU_EH_FRAME)
			vaddr = eh_frame_by_header(s, &s->elf->segments[i]);
	if (!vaddr || elf_vaddr_to_offset(s->elf, vaddr, &offset))
		return -ENOENT;
	s->vaddr = vaddr;
	for (u32 i = 0; i < s->elf->nr_segments; i++) {
		const struct elf_segment *load = &s->elf->segments[i];

		if (load->type == PT_LOAD && vaddr >= load->vaddr && vaddr - load->vaddr < load->filesz)
			return cfi_section_read_at(s, offset, load->filesz - (vaddr - load->vaddr));
	}
	return -ENOENT;
}

/* Replace the compressed contents (by @how), which begin at @header, by @size plain bytes. */
static int cfi_section_replace(struct cfi_section *s, size_t header, u64 size, u32 how)
{
	auto_free u8 *plain = NULL;
	int err;

	if (size > CFI_MAX_FRAME_BYTES)
		return -EFBIG;
	plain = malloc(size + 1);
	if (!plain)
		return -ENOMEM;
	err = decompress(plain, size, s->data + header, s->size - header, how);
	if (err)
		return err;
	free(s->data);
	s->data = take_ptr(plain);
	s->size = size;
	return 0;
}

static int decompress_section(struct cfi_section *s, const struct elf_section *section)
{
	size_t header = s->elf->word_size == 8 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
	u64 size = 0;

	if (!(section->flags & SHF_COMPRESSED)) { /* the older form: "ZLIB", the size big endian */
		if (section->name[1] != 'z')
			return 0;
		if (s->size < 12 || memcmp(s->data, "ZLIB", 4))
			return -EIO;
		for (int i = 0; i < 8; i++)
			size = size << 8 | s->data[4 + i];
		return cfi_section_replace(s, 12, size, ELFCOMPRESS_ZLIB);
	}
	if (s->size < header)
		return -EIO;
	size = elf_word(s->elf, s->data + s->elf->word_size); /* ch_size: behind a type as large as a word */
	return cfi_section_replace(s, header, size, elf_u32(s->elf, s->data));
}

/*
 * .debug_frame of Go is not used. Go has functions in assembler that change the stack (asmcgocall, mcall,
 * systemstack), and its entries say that the stack stays. A walk would continue at a random place. Frame pointers
 * lead as far, and end where they are unknown.
 */
static const struct elf_section *find_debug_frame(const struct elf *elf)
{
	const struct elf_section *section = elf_section(elf, ".debug_frame");

	if (elf_section(elf, ".gopclntab") || elf_section(elf, ".note.go.buildid"))
		return NULL;
	if (!section)
		section = elf_section(elf, ".zdebug_frame");
	return section && section->type != SHT_NOBITS ? section : NULL;
}

bool cfi_has_debug_frame(const struct elf *elf)
{
	return find_debug_frame(elf);
}

static int read_debug_frame(struct cfi_section *s)
{
	const struct elf_section *section = find_debug_frame(s->elf);
	int err;

	if (!section)
		return -ENOENT;
	s->is_debug = true;
	s->is_sized = true;
	err = cfi_section_read_at(s, section->offset, section->size);
	if (!err)
		err = decompress_section(s, section);
	return err;
}

int cfi_section_read(struct cfi_section *out, const struct elf *elf, bool want_debug)
{
	struct cfi_section s = { .elf = elf };
	int err = want_debug ? read_debug_frame(&s) : read_eh_frame(&s);

	if (err)
		free(s.data);
	else
		*out = s;
	return err;
}
