/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks what libelf and libdw trust in a file. Runs in the reader. */
#include "user/names/file_check.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <gelf.h>

enum { SECTIONS_MAX = 1 << 20 };

static void file_check_add(u64 *sum, u64 size)
{
	*sum = size > UINT64_MAX - *sum ? UINT64_MAX : *sum + size;
}

/* The old way of GNU: ".zdebug_info" begins with "ZLIB" and the size in 8 bytes, the highest one first. */
static u64 zdebug_size(int fd, const GElf_Shdr *shdr)
{
	u8 head[12];
	u64 size = 0;

	if (pread(fd, head, sizeof(head), (off_t)shdr->sh_offset) != sizeof(head) || memcmp(head, "ZLIB", 4))
		return 0;
	for (size_t i = 4; i < sizeof(head); i++)
		size = size << 8 | head[i];
	return size;
}

/* Count the section if it is compressed. @name may be NULL. */
static int count_unpacked(int fd, Elf_Scn *scn, const GElf_Shdr *shdr, const char *name, u64 *sizes)
{
	bool is_old = name && !strncmp(name, ".zdebug", 7);
	bool is_debug = is_old || (name && !strncmp(name, ".debug", 6));
	GElf_Chdr chdr = { 0 };

	if (shdr->sh_type == SHT_NOBITS || (!is_old && !(shdr->sh_flags & SHF_COMPRESSED)))
		return 0;
	if (shdr->sh_flags & SHF_COMPRESSED && !gelf_getchdr(scn, &chdr))
		return -ENOEXEC;
	file_check_add(&sizes[is_debug ? READER_SIZE_DEBUG : READER_SIZE_TABLES],
		       is_old ? zdebug_size(fd, shdr) : chdr.ch_size);
	if (is_debug)
		file_check_add(&sizes[READER_SIZE_PACKED], shdr->sh_size);
	return 0;
}

/* Check the values that libelf and libdw trust: ends of string tables, sizes of compressed sections. */
static int check_sections(int fd, Elf *elf, u64 *sizes)
{
	Elf_Scn *scn = NULL;
	size_t nr, names;
	char last;

	if (elf_kind(elf) != ELF_K_ELF || elf_getshdrnum(elf, &nr) != 0 || nr > SECTIONS_MAX)
		return -ENOEXEC;
	if (elf_getshdrstrndx(elf, &names))
		names = 0;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) ||
		    count_unpacked(fd, scn, &shdr, names ? elf_strptr(elf, names, shdr.sh_name) : NULL,
				   sizes))
			return -ENOEXEC;
		if (shdr.sh_type == SHT_STRTAB && shdr.sh_size > 0) {
			if (shdr.sh_offset > INT64_MAX - shdr.sh_size ||
			    pread(fd, &last, 1, shdr.sh_offset + shdr.sh_size - 1) != 1 || last != '\0')
				return -ENOEXEC;
		}
	}
	return 0;
}

int file_check(int fd, u64 sizes[NR_READER_SIZES])
{
	Elf *elf;
	int err;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -ENOEXEC;
	err = check_sections(fd, elf, sizes);
	elf_end(elf);
	return err;
}
