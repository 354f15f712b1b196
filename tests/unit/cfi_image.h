/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Made-up ELF files around call frame information, for tests and fuzzing. */
#pragma once

#include <elf.h>

#include "tests/unit/elf_files.h"

enum {
	IMAGE_TEXT = 0x10000,	  /* ELF virtual address */
	IMAGE_TEXT_SIZE = 0x4000, /* bytes */
	IMAGE_FRAME = 0x20000,
	IMAGE_MAX = 1 << 20,
};

/* Describes the file to make. The frame chooses its addresses itself. */
struct cfi_image {
	u16 machine; /* EM_* */
	const void *frame;
	size_t frame_size;
	u64 frame_vaddr, text_vaddr, text_size; /* 0 = IMAGE_* */
	const char *section;			/* NULL: no section headers, found by PT_GNU_EH_FRAME */
	u64 section_flags;
	const void *debug; /* .debug_frame next to it, if it has a section; NULL = none */
	size_t debug_size;
	const char *build_id; /* NULL or 20 bytes */
};

static inline void image_put(u8 *p, u64 value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (u8)(value >> (8 * i));
}

static inline u8 *image_phdr(u8 *p, bool is_64, const u64 *v) /* type, flags, offset, vaddr, filesz, memsz */
{
	const u64 narrow[] = { v[0], v[2], v[3], v[3], v[4], v[5], v[1], 1 };
	const u64 wide[] = { v[2], v[3], v[3], v[4], v[5], 1 };

	if (!is_64) {
		for (int i = 0; i < 8; i++)
			image_put(p + 4 * i, narrow[i], 4);
		return p + 32;
	}
	image_put(p, v[0], 4);
	image_put(p + 4, v[1], 4);
	for (int i = 0; i < 6; i++)
		image_put(p + 8 + 8 * i, wide[i], 8);
	return p + 56;
}

static inline void image_shdr(u8 *p, bool is_64, const u64 *v) /* name, type, flags, addr, offset, size */
{
	size_t word = is_64 ? 8 : 4;

	image_put(p, v[0], 4);
	image_put(p + 4, v[1], 4);
	for (size_t i = 0; i < 4; i++)
		image_put(p + 8 + word * i, v[2 + i], word);
}

/* Bytes before the frame: header, 4 program headers, eh_frame_hdr, build ID. */
enum { IMAGE_HDR_AT = 0x200, IMAGE_NOTE_AT = 0x220, IMAGE_FRAME_AT = 0x280 };

static inline void image_headers(u8 *file, const struct cfi_image *im, size_t file_size, u64 shoff)
{
	bool is_64 = im->machine != EM_386;
	size_t word = is_64 ? 8 : 4, phoff = is_64 ? 64 : 52;
	u64 frame = im->frame_vaddr ? im->frame_vaddr : IMAGE_FRAME, base = frame - IMAGE_FRAME_AT;
	u64 text = im->text_size ? im->text_vaddr : IMAGE_TEXT;
	u64 text_size = im->text_size ? im->text_size : IMAGE_TEXT_SIZE;
	const u64 segments[4][6] = { { PT_LOAD, PF_R, 0, base, file_size, file_size },
				     { PT_LOAD, PF_R | PF_X, 0, text, 0, text_size },
				     { PT_GNU_EH_FRAME, PF_R, IMAGE_HDR_AT, base + IMAGE_HDR_AT, 16, 16 },
				     { PT_NOTE, PF_R, IMAGE_NOTE_AT, base + IMAGE_NOTE_AT, 36, 36 } };
	u8 *p = file + phoff;

	memcpy(file, ELFMAG, SELFMAG);
	file[EI_CLASS] = is_64 ? ELFCLASS64 : ELFCLASS32;
	file[EI_DATA] = ELFDATA2LSB;
	image_put(file + 16, ET_DYN, 2);
	image_put(file + 18, im->machine, 2);
	image_put(file + 24 + word, phoff, word);
	image_put(file + 24 + 2 * word, shoff, word);
	image_put(file + 24 + 3 * word + 6, is_64 ? 56 : 32, 2);
	image_put(file + 24 + 3 * word + 8, 4, 2);
	image_put(file + 24 + 3 * word + 10, is_64 ? 64 : 40, 2);
	image_put(file + 24 + 3 * word + 12, shoff ? 4 : 0, 2);
	image_put(file + 24 + 3 * word + 14, shoff ? 3 : 0, 2);
	for (int i = 0; i < 4; i++)
		p = image_phdr(p, is_64, segments[i]);
	memcpy(file + IMAGE_HDR_AT, "\1\x1b\xff\xff", 4);
	image_put(file + IMAGE_HDR_AT + 4, frame - (base + IMAGE_HDR_AT + 4), 4);
	if (!im->build_id)
		return;
	memcpy(file + IMAGE_NOTE_AT, "\4\0\0\0\24\0\0\0\3\0\0\0GNU", 16);
	memcpy(file + IMAGE_NOTE_AT + 16, im->build_id, 20);
}

/* A descriptor of the file, or -1. */
static inline int cfi_image_open(const struct cfi_image *im)
{
	bool is_64 = im->machine != EM_386;
	size_t debug = IMAGE_FRAME_AT + im->frame_size, strings = debug + im->debug_size;
	size_t shoff = strings + 64, shdr = is_64 ? 64 : 40;
	size_t size = im->section ? shoff + 4 * shdr : IMAGE_FRAME_AT + im->frame_size;
	u64 frame = im->frame_vaddr ? im->frame_vaddr : IMAGE_FRAME;
	const u64 sections[3][6] = { { 1, SHT_PROGBITS, im->section_flags, frame, IMAGE_FRAME_AT,
				       im->frame_size },
				     { im->debug ? 32 : 0, SHT_PROGBITS, 0, 0, debug, im->debug_size },
				     { 0, SHT_STRTAB, 0, 0, strings, 64 } };
	u8 *file = calloc(1, size + 1);
	int fd;

	if (!file)
		return -1;
	image_headers(file, im, size, im->section ? shoff : 0);
	memcpy(file + IMAGE_FRAME_AT, im->frame, im->frame_size);
	if (im->section) {
		snprintf((char *)file + strings + 1, 31, "%s", im->section);
		strcpy((char *)file + strings + 32, ".debug_frame");
		for (int i = 0; i < 3; i++)
			image_shdr(file + shoff + (i + 1) * shdr, is_64, sections[i]);
		if (im->debug)
			memcpy(file + debug, im->debug, im->debug_size);
	}
	fd = elf_files_memory(file, size);
	free(file);
	return fd;
}
