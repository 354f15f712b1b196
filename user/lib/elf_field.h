/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One field of an ELF structure of either word size; for elf*.c only. */
#pragma once

#include <string.h>

#include "user/lib/elf.h"

#define ELF_IS_BIG_HERE (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

enum {
	ELF_MAX_SEGMENTS = 512,
	ELF_MAX_SECTIONS = 65535,
	ELF_MAX_DYNS = 4096,
	ELF_MAX_SYMBOLS = 4 << 20, /* in .symtab; keeps the time for all tables below a second */
	ELF_MAX_DYNSYMS = 1 << 20,
	ELF_MAX_RELOCS = 2 << 20, /* per table */
	ELF_MAX_DYNSYM_BYTES = 12 << 20,
	ELF_MAX_NAME_BYTES = 4 << 20,
	ELF_MAX_STRING_BYTES = 20 << 20, /* bytes per table; keeps all tables together below 64 MiB */
	ELF_MAX_NOTE_BYTES = 64 << 10,
};

/* @size bytes (1, 2, 4 or 8) at @p. Tables have many fields: the size is known to the compiler. */
static inline u64 elf_value(const struct elf *elf, const void *p, size_t size)
{
	u64 value = 0;

	memcpy((char *)&value + (ELF_IS_BIG_HERE ? sizeof(value) - size : 0), p, size);
	return elf->is_big == ELF_IS_BIG_HERE ? value : __builtin_bswap64(value) >> (64 - 8 * size);
}

#define ELF_FIELD_OF(elf, p, T, f)                                                                           \
	elf_value(elf, (const char *)(p) + offsetof(T, f), sizeof(((const T *)NULL)->f))

/* ELF_FIELD(elf, p, Phdr, p_type): field of Elf32_Phdr or Elf64_Phdr at @p. */
#define ELF_FIELD(elf, p, T, f)                                                                              \
	((elf)->word_size == 8 ? ELF_FIELD_OF(elf, p, Elf64_##T, f) : ELF_FIELD_OF(elf, p, Elf32_##T, f))

#define ELF_SIZEOF(elf, T) ((elf)->word_size == 8 ? sizeof(Elf64_##T) : sizeof(Elf32_##T))

/* Read @size bytes at @offset as terminated strings. The end of the file and @max limit the size. */
int elf_strings_read(const struct elf *elf, u64 offset, u64 size, u64 max,
		     struct elf_strings *out) __must_check;
/* NULL if @index is outside of the strings. */
const char *elf_string(const struct elf_strings *strings, u64 index);

/* Bytes that the file backs from @vaddr on, and their file offset; 0 if it backs none. */
u64 elf_backed(const struct elf *elf, u64 vaddr, u64 *offset);
