/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the headers of mapped files, which nobody may trust: a module's identity and its load bias. */
#include "user/target/image.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/lib/proc_memory.h"

enum { PHDRS_MAX = 2048, NOTES_MAX = 64 << 10, NOTE_SEGMENTS_MAX = 8 };

/* Where the bytes come from. */
struct bytes {
	int fd;				  /* of the file */
	const struct proc_memory *memory; /* NULL = read the file */
	u64 base;			  /* address of the file's first byte in memory, else 0 */
	bool is_swapped;		  /* byte order other than ours */
};

/* A program header of a 32-bit or 64-bit file. */
struct phdr {
	u32 type, flags;
	u64 offset, vaddr, file_size, align;
};

static int image_read_at(const struct bytes *b, u64 pos, void *buf, size_t size)
{
	ssize_t n;
	int err;

	if (pos > (u64)INT64_MAX - size)
		return -ENOEXEC;
	do {
		n = b->memory ? proc_memory_read(b->memory, pos, buf, size)
			      : pread(b->fd, buf, size, (off_t)pos);
		err = n < 0 && !b->memory ? -errno : (int)n;
	} while (err == -EINTR);
	if (n < 0)
		return err;
	return (size_t)n == size ? 0 : -ENOEXEC;
}

static u16 image_get16(const struct bytes *b, u16 v)
{
	return b->is_swapped ? __builtin_bswap16(v) : v;
}

static u32 image_get32(const struct bytes *b, u32 v)
{
	return b->is_swapped ? __builtin_bswap32(v) : v;
}

static u64 image_get64(const struct bytes *b, u64 v)
{
	return b->is_swapped ? __builtin_bswap64(v) : v;
}

static struct phdr get_phdr(const struct bytes *b, bool is_64bit, const u8 *raw)
{
	Elf64_Phdr p64;
	Elf32_Phdr p32;

	if (is_64bit) {
		memcpy(&p64, raw, sizeof(p64));
		return (struct phdr){ .type = image_get32(b, p64.p_type),
				      .flags = image_get32(b, p64.p_flags),
				      .offset = image_get64(b, p64.p_offset),
				      .vaddr = image_get64(b, p64.p_vaddr),
				      .file_size = image_get64(b, p64.p_filesz),
				      .align = image_get64(b, p64.p_align) };
	}
	memcpy(&p32, raw, sizeof(p32));
	return (struct phdr){ .type = image_get32(b, p32.p_type),
			      .flags = image_get32(b, p32.p_flags),
			      .offset = image_get32(b, p32.p_offset),
			      .vaddr = image_get32(b, p32.p_vaddr),
			      .file_size = image_get32(b, p32.p_filesz),
			      .align = image_get32(b, p32.p_align) };
}

/* Round @n up to 4 or 8 bytes; @n is a 32-bit length, so that nothing overflows. */
static u64 image_padded(u64 n, u64 align)
{
	return (n + align - 1) & ~(align - 1);
}

/* Find the build ID among the @size bytes of notes at @notes. */
static void find_build_id(struct image *image, const struct bytes *b, const u8 *notes, u64 size, u64 align)
{
	u64 pos = 0;

	while (size - pos >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note; /* the same in both classes */
		u64 name, desc, name_len, desc_len;

		memcpy(&note, notes + pos, sizeof(note));
		name_len = image_get32(b, note.n_namesz);
		desc_len = image_get32(b, note.n_descsz);
		name = pos + sizeof(note);
		desc = name + image_padded(name_len, align);
		if (desc > size || desc_len > size - desc)
			return;
		if (image_get32(b, note.n_type) == NT_GNU_BUILD_ID && name_len == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0 && desc_len > 0 && desc_len <= IMAGE_BUILD_ID_MAX) {
			memcpy(image->build_id, notes + desc, desc_len);
			image->build_id_len = desc_len;
			return;
		}
		pos = desc + image_padded(desc_len, align);
		if (pos > size)
			return;
	}
}

/* Unreadable notes count as no notes. */
static void read_notes(struct image *image, const struct bytes *b, const struct phdr *p, u64 memory_bias)
{
	u64 size = p->file_size < NOTES_MAX ? p->file_size : NOTES_MAX;
	auto_free u8 *notes = malloc(size + 1);

	if (!notes)
		return;
	if (image_read_at(b, b->memory ? memory_bias + p->vaddr : b->base + p->offset, notes, size))
		return;
	find_build_id(image, b, notes, size, p->align == 8 ? 8 : 4);
}

static void add_load(struct image *image, const struct phdr *p)
{
	if (image->nr_loads == IMAGE_LOADS_MAX || p->file_size == 0)
		return;
	image->loads[image->nr_loads++] = (struct image_load){ .vaddr = p->vaddr,
							       .offset = p->offset,
							       .file_size = p->file_size,
							       .is_executable = p->flags & PF_X };
}

/* A page where two segments meet belongs to both. @want_code decides then, else the first segment has it. */
static taddr_t bias_at(const struct image *image, taddr_t start, u64 offset, bool want_code)
{
	u64 page_mask = sysconf(_SC_PAGESIZE) - 1;
	const struct image_load *found = NULL;

	for (u32 i = 0; i < image->nr_loads; i++) {
		const struct image_load *l = &image->loads[i];
		u64 first = l->offset & ~page_mask;

		if (offset < first || offset - first >= l->file_size + (l->offset & page_mask))
			continue;
		if (!found || (want_code && l->is_executable && !found->is_executable))
			found = l;
	}
	return found ? start - (found->vaddr + offset - found->offset) : start - offset;
}

static int read_phdrs(struct image *image, const struct bytes *b, u64 offset, u32 nr)
{
	size_t size = image->is_64bit ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	auto_free u8 *raw = malloc(nr * size + 1);
	u32 nr_notes = 0;
	u64 bias;
	int err;

	if (!raw)
		return -ENOMEM;
	if (offset > INT64_MAX - b->base)
		return -ENOEXEC;
	err = image_read_at(b, b->base + offset, raw, nr * size);
	if (err)
		return err;
	image->header_hash = hash_bytes(raw, nr * size, image->header_hash);
	for (u32 i = 0; i < nr; i++) {
		struct phdr p = get_phdr(b, image->is_64bit, raw + i * size);

		if (p.type == PT_LOAD)
			add_load(image, &p);
	}
	bias = bias_at(image, b->base, 0, false);
	for (u32 i = 0; i < nr && image->build_id_len == 0; i++) {
		struct phdr p = get_phdr(b, image->is_64bit, raw + i * size);

		if (p.type == PT_NOTE && nr_notes++ < NOTE_SEGMENTS_MAX)
			read_notes(image, b, &p, bias);
	}
	return 0;
}

static int read_image(struct image *image, struct bytes *b)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr e32;
		Elf64_Ehdr e64;
	} h = { .ident = { 0 } };
	u32 nr, size, native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	u64 offset;
	int err;

	*image = (struct image){ 0 };
	err = image_read_at(b, b->base, &h.e32, sizeof(h.e32));
	if (err)
		return err;
	if (memcmp(h.ident, ELFMAG, SELFMAG) != 0 || h.ident[EI_DATA] < ELFDATA2LSB ||
	    h.ident[EI_DATA] > ELFDATA2MSB || h.ident[EI_CLASS] < ELFCLASS32 ||
	    h.ident[EI_CLASS] > ELFCLASS64)
		return -ENOEXEC;
	b->is_swapped = h.ident[EI_DATA] != native;
	image->is_64bit = h.ident[EI_CLASS] == ELFCLASS64;
	if (image->is_64bit) {
		err = image_read_at(b, b->base, &h.e64, sizeof(h.e64));
		if (err)
			return err;
	}
	image->machine = image_get16(b, h.e32.e_machine); /* at the same offset in both classes */
	image->header_hash = hash_bytes(&h, sizeof(h), 0);
	nr = image_get16(b, image->is_64bit ? h.e64.e_phnum : h.e32.e_phnum);
	size = image_get16(b, image->is_64bit ? h.e64.e_phentsize : h.e32.e_phentsize);
	offset = image->is_64bit ? image_get64(b, h.e64.e_phoff) : image_get32(b, h.e32.e_phoff);
	if (nr > PHDRS_MAX || (nr > 0 && size != (image->is_64bit ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr))))
		return -ENOEXEC;
	return read_phdrs(image, b, offset, nr);
}

int image_read_file(struct image *image, int fd)
{
	struct bytes b = { .fd = fd };

	return read_image(image, &b);
}

int image_read_memory(struct image *image, const struct proc_memory *memory, taddr_t start)
{
	struct bytes b = { .fd = -1, .memory = memory, .base = start };

	return read_image(image, &b);
}

bool image_is_same(const struct image *a, const struct image *b)
{
	if (a->build_id_len != b->build_id_len)
		return false;
	if (a->build_id_len > 0)
		return memcmp(a->build_id, b->build_id, a->build_id_len) == 0;
	return a->header_hash == b->header_hash;
}

taddr_t image_bias(const struct image *image, taddr_t start, u64 offset)
{
	return bias_at(image, start, offset, true);
}
