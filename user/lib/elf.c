/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ELF headers, contents and addresses; the symbols are in elf_symbols.c. */
#include "user/lib/elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/elf_field.h"
#include "user/lib/file_at.h"

u16 elf_u16(const struct elf *elf, const void *p)
{
	return (u16)elf_value(elf, p, 2);
}

u32 elf_u32(const struct elf *elf, const void *p)
{
	return (u32)elf_value(elf, p, 4);
}

u64 elf_u64(const struct elf *elf, const void *p)
{
	return elf_value(elf, p, 8);
}

u64 elf_word(const struct elf *elf, const void *p)
{
	return elf_value(elf, p, elf->word_size);
}

int elf_read_offset(const struct elf *elf, u64 offset, void *buf, size_t len)
{
	/* The size is read once, when the file is opened. If the file shrinks later, reads fail with -EIO. */
	if (offset > elf->file_size || len > elf->file_size - offset)
		return -EIO;
	return file_read_at(elf->fd, buf, len, offset) == (ssize_t)len ? 0 : -EIO;
}

int elf_strings_read(const struct elf *elf, u64 offset, u64 size, u64 max, struct elf_strings *out)
{
	auto_free char *data = NULL;
	int err;

	if (offset >= elf->file_size)
		return -EIO;
	if (size > elf->file_size - offset)
		size = elf->file_size - offset;
	if (size > max)
		size = max;
	data = malloc(size + 1);
	if (!data)
		return -ENOMEM;
	err = elf_read_offset(elf, offset, data, size);
	if (err)
		return err;
	data[size] = '\0';
	out->data = take_ptr(data);
	out->size = size;
	return 0;
}

const char *elf_string(const struct elf_strings *strings, u64 index)
{
	return index < strings->size ? strings->data + index : NULL;
}

static int read_segments(struct elf *elf, const u8 *ehdr, const u8 *first_section)
{
	u64 offset = ELF_FIELD(elf, ehdr, Ehdr, e_phoff), nr = ELF_FIELD(elf, ehdr, Ehdr, e_phnum);
	size_t size = ELF_SIZEOF(elf, Phdr);
	auto_free u8 *raw = NULL;
	int err;

	if (nr == PN_XNUM && first_section)
		nr = ELF_FIELD(elf, first_section, Shdr, sh_info);
	if (nr == 0)
		return 0;
	if (nr > ELF_MAX_SEGMENTS || ELF_FIELD(elf, ehdr, Ehdr, e_phentsize) != size)
		return -EINVAL;
	raw = malloc(nr * size);
	elf->segments = calloc(nr, sizeof(*elf->segments));
	if (!raw || !elf->segments)
		return -ENOMEM;
	err = elf_read_offset(elf, offset, raw, nr * size);
	if (err)
		return err;
	elf->nr_segments = (u32)nr;
	for (u32 i = 0; i < nr; i++) {
		struct elf_segment *s = &elf->segments[i];
		const u8 *p = raw + i * size;

		s->type = (u32)ELF_FIELD(elf, p, Phdr, p_type);
		s->flags = (u32)ELF_FIELD(elf, p, Phdr, p_flags);
		s->offset = ELF_FIELD(elf, p, Phdr, p_offset);
		s->vaddr = ELF_FIELD(elf, p, Phdr, p_vaddr);
		s->filesz = ELF_FIELD(elf, p, Phdr, p_filesz);
		s->memsz = ELF_FIELD(elf, p, Phdr, p_memsz);
		s->align = ELF_FIELD(elf, p, Phdr, p_align);
	}
	return 0;
}

static void name_sections(struct elf *elf, const u8 *raw, size_t size, u64 names)
{
	if (names < elf->nr_sections && elf->sections[names].type != SHT_NOBITS &&
	    elf_strings_read(elf, elf->sections[names].offset, elf->sections[names].size, ELF_MAX_NAME_BYTES,
			     &elf->section_names))
		elf->section_names.size = 0; /* sections without names are still of use */
	for (u32 i = 0; i < elf->nr_sections; i++) {
		const char *name =
			elf_string(&elf->section_names, ELF_FIELD(elf, raw + i * size, Shdr, sh_name));

		elf->sections[i].name = name ? name : "";
	}
}

/* Sections are optional: a file with a damaged section table is treated as a file without one. */
static int read_sections(struct elf *elf, const u8 *ehdr, const u8 *first_section)
{
	u64 nr = ELF_FIELD(elf, ehdr, Ehdr, e_shnum), names = ELF_FIELD(elf, ehdr, Ehdr, e_shstrndx);
	size_t size = ELF_SIZEOF(elf, Shdr);
	auto_free u8 *raw = NULL;

	if (!first_section)
		return 0;
	if (nr == 0)
		nr = ELF_FIELD(elf, first_section, Shdr, sh_size);
	if (names == SHN_XINDEX)
		names = ELF_FIELD(elf, first_section, Shdr, sh_link);
	if (nr == 0 || nr > ELF_MAX_SECTIONS)
		return 0;
	raw = malloc(nr * size);
	if (!raw)
		return -ENOMEM;
	if (elf_read_offset(elf, ELF_FIELD(elf, ehdr, Ehdr, e_shoff), raw, nr * size))
		return 0;
	elf->sections = calloc(nr, sizeof(*elf->sections));
	if (!elf->sections)
		return -ENOMEM;
	elf->nr_sections = (u32)nr;
	for (u32 i = 0; i < nr; i++) {
		struct elf_section *s = &elf->sections[i];
		const u8 *p = raw + i * size;

		s->type = (u32)ELF_FIELD(elf, p, Shdr, sh_type);
		s->link = (u32)ELF_FIELD(elf, p, Shdr, sh_link);
		s->flags = ELF_FIELD(elf, p, Shdr, sh_flags);
		s->addr = ELF_FIELD(elf, p, Shdr, sh_addr);
		s->offset = ELF_FIELD(elf, p, Shdr, sh_offset);
		s->size = ELF_FIELD(elf, p, Shdr, sh_size);
		s->entsize = ELF_FIELD(elf, p, Shdr, sh_entsize);
	}
	name_sections(elf, raw, size, names);
	return 0;
}

static int read_dynamic(struct elf *elf)
{
	size_t size = ELF_SIZEOF(elf, Dyn);
	const struct elf_section *section = elf_section(elf, ".dynamic");
	const struct elf_segment *dynamic = NULL;
	auto_free u8 *raw = NULL;
	u64 nr;

	for (u32 i = 0; i < elf->nr_segments && !dynamic; i++)
		if (elf->segments[i].type == PT_DYNAMIC)
			dynamic = &elf->segments[i];
	/* A file of debug information keeps the program headers of its program, but not the contents. */
	if (!dynamic || (section && section->type == SHT_NOBITS))
		return 0;
	if (dynamic->offset >= elf->file_size)
		return 0;
	nr = dynamic->filesz;
	if (nr > elf->file_size - dynamic->offset)
		nr = elf->file_size - dynamic->offset;
	nr /= size;
	if (nr > ELF_MAX_DYNS)
		nr = ELF_MAX_DYNS;
	raw = malloc(nr * size + 1);
	elf->dyns = calloc(nr + 1, sizeof(*elf->dyns));
	if (!raw || !elf->dyns)
		return -ENOMEM;
	if (elf_read_offset(elf, dynamic->offset, raw, nr * size))
		return 0;
	for (u32 i = 0; i < nr; i++) {
		const u8 *p = raw + i * size;
		struct elf_dyn d = { ELF_FIELD(elf, p, Dyn, d_tag), ELF_FIELD(elf, p, Dyn, d_un.d_val) };

		if (d.tag == DT_NULL)
			break;
		elf->dyns[elf->nr_dyns++] = d;
	}
	return 0;
}

static int elf_read_headers(struct elf *elf)
{
	u8 ehdr[sizeof(Elf64_Ehdr)], shdr[sizeof(Elf64_Shdr)], *first_section = NULL;
	u64 shoff;
	int err;

	if (elf_read_offset(elf, 0, ehdr, EI_NIDENT) || memcmp(ehdr, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if ((ehdr[EI_CLASS] != ELFCLASS32 && ehdr[EI_CLASS] != ELFCLASS64) ||
	    (ehdr[EI_DATA] != ELFDATA2LSB && ehdr[EI_DATA] != ELFDATA2MSB))
		return -EINVAL;
	elf->word_size = ehdr[EI_CLASS] == ELFCLASS64 ? 8 : 4;
	elf->is_big = ehdr[EI_DATA] == ELFDATA2MSB;
	err = elf_read_offset(elf, 0, ehdr, ELF_SIZEOF(elf, Ehdr));
	if (err)
		return err;
	elf->type = (u16)ELF_FIELD(elf, ehdr, Ehdr, e_type);
	elf->machine = (u16)ELF_FIELD(elf, ehdr, Ehdr, e_machine);
	elf->entry = ELF_FIELD(elf, ehdr, Ehdr, e_entry);
	shoff = ELF_FIELD(elf, ehdr, Ehdr, e_shoff);
	/* The first section header holds the counts that do not fit into the file's header. */
	if (shoff && ELF_FIELD(elf, ehdr, Ehdr, e_shentsize) == ELF_SIZEOF(elf, Shdr) &&
	    !elf_read_offset(elf, shoff, shdr, ELF_SIZEOF(elf, Shdr)))
		first_section = shdr;
	err = read_segments(elf, ehdr, first_section);
	if (!err)
		err = read_sections(elf, ehdr, first_section);
	return err ? err : read_dynamic(elf);
}

int elf_open(struct elf **out, int fd)
{
	struct elf *elf;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	elf = calloc(1, sizeof(*elf));
	if (!elf)
		return -ENOMEM;
	elf->fd = fd;
	elf->file_size = (u64)st.st_size;
	err = elf_read_headers(elf);
	if (err) {
		elf_close(elf);
		return err;
	}
	*out = elf;
	return 0;
}

void elf_close(struct elf *elf)
{
	if (!elf)
		return;
	free(elf->segments);
	free(elf->sections);
	free(elf->dyns);
	free(elf->section_names.data);
	free(elf->dynstr.data);
	free(elf->strtab.data);
	free(elf);
}

u64 elf_backed(const struct elf *elf, u64 vaddr, u64 *offset)
{
	for (u32 i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		u64 at = vaddr - s->vaddr;

		if (s->type != PT_LOAD || vaddr < s->vaddr || at >= s->filesz)
			continue;
		if (s->offset >= elf->file_size || at >= elf->file_size - s->offset)
			continue;
		*offset = s->offset + at;
		if (s->filesz - at < elf->file_size - *offset)
			return s->filesz - at;
		return elf->file_size - *offset;
	}
	return 0;
}

int elf_read_vaddr(const struct elf *elf, u64 vaddr, void *buf, size_t len)
{
	u64 offset;

	if (elf_backed(elf, vaddr, &offset) < len)
		return -EFAULT;
	return len ? elf_read_offset(elf, offset, buf, len) : 0;
}

int elf_vaddr_to_offset(const struct elf *elf, u64 vaddr, u64 *offset)
{
	return elf_backed(elf, vaddr, offset) ? 0 : -EFAULT;
}

/* The PT_LOAD with most of the file's bytes in [@start, @end). An executable one is preferred. */
static const struct elf_segment *segment_of_file(const struct elf *elf, u64 start, u64 end)
{
	const struct elf_segment *best = NULL;
	u64 best_size = 0;

	for (u32 i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		u64 from = s->offset > start ? s->offset : start, to = s->offset + s->filesz;
		bool is_code = s->flags & PF_X, best_is_code = best && best->flags & PF_X;

		if (s->type != PT_LOAD || to < s->offset)
			continue;
		to = to < end ? to : end;
		if (to <= from || (best_is_code && !is_code))
			continue;
		if (to - from > best_size || (is_code && !best_is_code)) {
			best = s;
			best_size = to - from;
		}
	}
	return best;
}

int elf_bias(const struct elf *elf, u64 start, u64 end, u64 file_offset, u64 *bias)
{
	const struct elf_segment *s;

	if (end <= start || file_offset + (end - start) < file_offset)
		return -EFAULT;
	s = segment_of_file(elf, file_offset, file_offset + (end - start));
	if (!s)
		return -EFAULT;
	*bias = start - (s->vaddr + (file_offset - s->offset));
	return 0;
}

const struct elf_segment *elf_segment_at(const struct elf *elf, u64 vaddr)
{
	for (u32 i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && vaddr >= s->vaddr && vaddr - s->vaddr < s->memsz)
			return s;
	}
	return NULL;
}

const struct elf_section *elf_section(const struct elf *elf, const char *name)
{
	for (u32 i = 0; i < elf->nr_sections; i++)
		if (!strcmp(elf->sections[i].name, name))
			return &elf->sections[i];
	return NULL;
}

int elf_read_section(const struct elf *elf, const struct elf_section *s, u64 max, void **data, size_t *size)
{
	auto_free void *buf = NULL;
	int err;

	if (s->type == SHT_NOBITS)
		return -ENODATA;
	if (s->offset > elf->file_size || s->size > elf->file_size - s->offset)
		return -EIO;
	if (s->size > max)
		return -EFBIG;
	buf = malloc(s->size + 1);
	if (!buf)
		return -ENOMEM;
	err = elf_read_offset(elf, s->offset, buf, s->size);
	if (err)
		return err;
	*data = take_ptr(buf);
	*size = s->size;
	return 0;
}

/* The build ID among the notes at @offset. */
static size_t build_id_in(const struct elf *elf, u64 offset, u64 size, u8 *buf, size_t buf_size)
{
	struct elf_strings notes = { 0 }; /* any bytes */
	size_t at = 0, len = 0;

	if (elf_strings_read(elf, offset, size, ELF_MAX_NOTE_BYTES, &notes))
		return 0;
	while (notes.size - at >= sizeof(Elf32_Nhdr)) {
		const char *note = notes.data + at;
		u64 name_size = elf_u32(elf, note), desc_size = elf_u32(elf, note + 4);
		u64 desc = at + sizeof(Elf32_Nhdr) + ((name_size + 3) & ~3ULL);

		if (desc > notes.size || desc_size > notes.size - desc)
			break;
		if (elf_u32(elf, note + 8) == NT_GNU_BUILD_ID && name_size == sizeof("GNU") &&
		    !memcmp(note + sizeof(Elf32_Nhdr), "GNU", sizeof("GNU"))) {
			len = desc_size <= buf_size ? desc_size : 0;
			memcpy(buf, notes.data + desc, len);
			break;
		}
		at = desc + ((desc_size + 3) & ~3ULL);
		if (at > notes.size)
			break;
	}
	free(notes.data);
	return len;
}

size_t elf_build_id(const struct elf *elf, u8 *buf, size_t size)
{
	const struct elf_section *section = elf_section(elf, ".note.gnu.build-id");
	size_t len = 0;

	if (section && section->type == SHT_NOTE)
		len = build_id_in(elf, section->offset, section->size, buf, size);
	for (u32 i = 0; i < elf->nr_segments && !len; i++)
		if (elf->segments[i].type == PT_NOTE)
			len = build_id_in(elf, elf->segments[i].offset, elf->segments[i].filesz, buf, size);
	return len;
}

int elf_interp(const struct elf *elf, char *buf, size_t size)
{
	for (u32 i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		int err;

		if (s->type != PT_INTERP || s->filesz == 0)
			continue;
		if (s->filesz > size)
			return -ENAMETOOLONG;
		err = elf_read_offset(elf, s->offset, buf, s->filesz);
		buf[s->filesz - 1] = '\0';
		return err;
	}
	return -ENOENT;
}
