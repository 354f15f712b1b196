/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads ELF files of targets, with checked bounds, through a descriptor: segments, sections, symbols, relocations. */
#pragma once

#include <elf.h>

#include "user/lib/types.h"

/*
 * Files come from targets, so nothing in them is trusted. Contents are copied by pread, never mapped: a file that
 * shrinks gives -EIO instead of a signal. Both word sizes and byte orders are read; values become u64 in the byte
 * order of this machine. Needs libc alone.
 */

struct elf_segment {
	u32 type, flags; /* PT_*, PF_* */
	u64 offset, vaddr, filesz, memsz, align;
};

struct elf_section {
	const char *name; /* never NULL; valid until elf_close() */
	u32 type, link;	  /* SHT_*, index of the section it refers to */
	u64 flags, addr, offset, size, entsize;
};

struct elf_dyn {
	u64 tag, value; /* DT_* */
};

struct elf_strings {
	char *data; /* owned; size + 1 bytes, the last is NUL */
	u64 size;
};

/* Plain data for reading; only elf*.c changes it. */
struct elf {
	int fd;		   /* borrowed */
	u64 file_size;	   /* bytes, at elf_open() */
	u8 word_size;	   /* bytes of an address: 4 or 8 */
	bool is_big;	   /* byte order */
	u16 machine, type; /* EM_*, ET_* */
	u64 entry;
	struct elf_segment *segments; /* owned */
	struct elf_section *sections; /* owned; NULL for a file without section headers */
	struct elf_dyn *dyns;	      /* owned; PT_DYNAMIC up to DT_NULL */
	u32 nr_segments, nr_sections, nr_dyns;
	u64 nr_skipped; /* symbols and relocations left out because they are damaged or beyond a limit */
	struct elf_strings section_names, dynstr, strtab; /* owned; the last two are read when needed */
};

enum { ELF_DYNSYM = 1, ELF_SYMTAB = 2 };

struct elf_symbol {
	const char *name; /* never NULL; valid until elf_close() */
	u64 value, size;  /* value of a Thumb function has bit 0 set */
	u8 type, bind;	  /* STT_*, STB_* */
	u16 shndx;	  /* SHN_UNDEF: used here, but not defined */
	u16 version;	  /* index of its version, 0 = none */
	bool is_hidden;	  /* an old version, to which new programs are not linked */
	bool is_dynamic;  /* from .dynsym */
};

enum elf_reloc_kind {
	ELF_RELOC_OTHER,     /* anything else that names a symbol */
	ELF_RELOC_JUMP_SLOT, /* PLT's slot in the GOT */
	ELF_RELOC_GLOB_DAT,  /* slot in the GOT */
	ELF_RELOC_ABSOLUTE,  /* pointer in data */
	ELF_RELOC_IRELATIVE, /* slot filled by the resolver at addend */
};

struct elf_reloc {
	enum elf_reloc_kind kind;
	u32 type;	    /* R_* of the machine */
	u64 offset;	    /* ELF virtual address of the slot */
	const char *symbol; /* "" for ELF_RELOC_IRELATIVE; valid until elf_close() */
	s64 addend;	    /* 0 for the REL form, which keeps the addend in the slot */
};

/*
 * Read the headers of the file behind @fd. @fd must stay open until elf_close(), and stays the caller's. *@out is
 * owned by the caller. -ENOEXEC: not an ELF file; -EINVAL: headers that make no sense; -EIO: shorter than its headers
 * say; -ENOMEM. Damaged section headers are ignored.
 */
int elf_open(struct elf **out, int fd) __must_check;
void elf_close(struct elf *elf); /* NULL is fine */

/* Read exactly @len bytes at a file offset. 0, or -EIO if the file ends before them. */
int elf_read_offset(const struct elf *elf, u64 offset, void *buf, size_t len) __must_check;
/* Read exactly @len bytes at an ELF virtual address that the file backs (not .bss). -EFAULT: in no segment. */
int elf_read_vaddr(const struct elf *elf, u64 vaddr, void *buf, size_t len) __must_check;

/* The file offset of @vaddr. 0, or -EFAULT if the file does not back it. */
int elf_vaddr_to_offset(const struct elf *elf, u64 vaddr, u64 *offset) __must_check;
/* *@bias = address - ELF virtual address, for a mapping of the file's bytes from @file_offset at [@start, @end). */
int elf_bias(const struct elf *elf, u64 start, u64 end, u64 file_offset, u64 *bias) __must_check;
/* The PT_LOAD that holds @vaddr (memsz counts), or NULL. */
const struct elf_segment *elf_segment_at(const struct elf *elf, u64 vaddr);

/* The first section called @name, or NULL. */
const struct elf_section *elf_section(const struct elf *elf, const char *name);
/* Copy a section; *@data is the caller's. -EFBIG above @max bytes, -ENODATA for SHT_NOBITS, -EIO, -ENOMEM. */
int elf_read_section(const struct elf *elf, const struct elf_section *s, u64 max, void **data,
		     size_t *size) __must_check;

/*
 * Copy the build ID to @buf. Returns its length, or 0 if the file has no build ID or the build ID is longer than
 * @size.
 */
size_t elf_build_id(const struct elf *elf, u8 *buf, size_t size);

/* The value of the first @tag in PT_DYNAMIC. */
bool elf_dynamic(const struct elf *elf, u64 tag, u64 *value);
/* DT_SONAME, or the @nth DT_NEEDED, from 0. NULL if the file lacks it. Valid until elf_close(). */
const char *elf_soname(struct elf *elf);
const char *elf_needed(struct elf *elf, u32 nth);
/* Copy PT_INTERP to @buf. -ENOENT if the file has no PT_INTERP. */
int elf_interp(const struct elf *elf, char *buf, size_t size) __must_check;

/*
 * Call @fn for each symbol of @tables (ELF_DYNSYM | ELF_SYMTAB), in the order of the file. A result other than 0 ends
 * the loop and is returned. .dynsym is found without section headers too. A missing table is empty. -ENOMEM, -EIO.
 */
int elf_each_symbol(struct elf *elf, int tables, int (*fn)(void *ctx, const struct elf_symbol *sym),
		    void *ctx) __must_check;

/* Like elf_each_symbol(), for relocations that name a dynamic symbol, or are IRELATIVE. */
int elf_each_reloc(struct elf *elf, int (*fn)(void *ctx, const struct elf_reloc *reloc),
		   void *ctx) __must_check;

/* Fixed-width values in the byte order of the file. @p need not be aligned. */
u16 elf_u16(const struct elf *elf, const void *p);
u32 elf_u32(const struct elf *elf, const void *p);
u64 elf_u64(const struct elf *elf, const void *p);
u64 elf_word(const struct elf *elf, const void *p); /* word_size bytes */
