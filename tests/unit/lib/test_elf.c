/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ELF reader against libelf on real files, and against damaged and hand-made ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <gelf.h>
#include <sys/stat.h>

#include "tests/unit/elf_files.h"
#include "user/lib/elf.h"

static struct elf_files files;

static int find_files(void **state)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libcrypto.so.3", NULL };
	static const char *const programs[] = { "bash", "gdb", "ld", NULL };

	(void)state;
	elf_version(EV_CURRENT);
	elf_files_find(&files, libraries, programs);
	return 0;
}

static int free_files(void **state)
{
	(void)state;
	elf_files_free(&files);
	return 0;
}

struct symbol_check {
	Elf_Data *data;
	Elf *elf;
	size_t strings;
	int next;
};

static int check_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct symbol_check *c = ctx;
	GElf_Sym want;

	assert_non_null(gelf_getsym(c->data, c->next++, &want));
	assert_string_equal(sym->name, elf_strptr(c->elf, c->strings, want.st_name));
	assert_int_equal(sym->value, want.st_value);
	assert_int_equal(sym->size, want.st_size);
	assert_int_equal(sym->type, GELF_ST_TYPE(want.st_info));
	assert_int_equal(sym->bind, GELF_ST_BIND(want.st_info));
	assert_int_equal(sym->shndx, want.st_shndx);
	return 0;
}

/* Every symbol of @table is that of libelf's @type section. */
static void check_symbols(struct elf *elf, Elf *ref, int table, u32 type)
{
	struct symbol_check c = { .elf = ref, .next = 1 };
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(ref, scn)) && gelf_getshdr(scn, &shdr) && shdr.sh_type != type)
		;
	if (scn) {
		c.data = elf_getdata(scn, NULL);
		c.strings = shdr.sh_link;
	}
	assert_int_equal(elf_each_symbol(elf, table, check_symbol, &c), 0);
	assert_int_equal(c.next, scn ? (int)(shdr.sh_size / shdr.sh_entsize) : 1);
}

static void check_headers(const struct elf *elf, Elf *ref)
{
	size_t nr;
	GElf_Phdr phdr;

	assert_int_equal(elf_getphdrnum(ref, &nr), 0);
	assert_int_equal(elf->nr_segments, nr);
	for (u32 i = 0; i < nr; i++) {
		assert_non_null(gelf_getphdr(ref, (int)i, &phdr));
		assert_int_equal(elf->segments[i].type, phdr.p_type);
		assert_int_equal(elf->segments[i].flags, phdr.p_flags);
		assert_int_equal(elf->segments[i].vaddr, phdr.p_vaddr);
		assert_int_equal(elf->segments[i].offset, phdr.p_offset);
		assert_int_equal(elf->segments[i].filesz, phdr.p_filesz);
		assert_int_equal(elf->segments[i].memsz, phdr.p_memsz);
	}
	assert_int_equal(elf_getshdrnum(ref, &nr), 0);
	assert_int_equal(elf->nr_sections, nr);
}

static void test_real_files(void **state)
{
	(void)state;
	assert_true(files.nr >= 3);
	for (size_t i = 0; i < files.nr; i++) {
		int fd = open(files.paths[i], O_RDONLY | O_CLOEXEC);
		Elf *ref = elf_begin(fd, ELF_C_READ, NULL);
		struct elf *elf;

		print_message("# %s\n", files.paths[i]);
		if (elf_kind(ref) != ELF_K_ELF) { /* a script of that name */
			assert_int_equal(elf_open(&elf, fd), -ENOEXEC);
		} else {
			assert_int_equal(elf_open(&elf, fd), 0);
			check_headers(elf, ref);
			check_symbols(elf, ref, ELF_DYNSYM, SHT_DYNSYM);
			check_symbols(elf, ref, ELF_SYMTAB, SHT_SYMTAB);
			assert_int_equal(elf->nr_skipped, 0);
			elf_close(elf);
		}
		elf_end(ref);
		close(fd);
	}
}

static void *read_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size);
	assert_non_null(data);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	close(fd);
	*size = (size_t)st.st_size;
	return data;
}

struct collected {
	u64 hash;
	size_t nr;
	bool has_malloc;
};

static int collect_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct collected *c = ctx;

	c->nr++;
	c->hash = c->hash * 31 + sym->value + strlen(sym->name) + sym->version * 7 + sym->is_hidden;
	c->has_malloc |= !strcmp(sym->name, "malloc") && sym->type == STT_FUNC && sym->shndx != SHN_UNDEF;
	return 0;
}

static int collect_reloc(void *ctx, const struct elf_reloc *reloc)
{
	struct collected *c = ctx;

	c->nr++;
	c->hash = c->hash * 31 + reloc->offset + reloc->type + (u64)reloc->addend + strlen(reloc->symbol);
	c->has_malloc |= !strcmp(reloc->symbol, "malloc") &&
			 (reloc->kind == ELF_RELOC_JUMP_SLOT || reloc->kind == ELF_RELOC_GLOB_DAT);
	return 0;
}

static void clear_sections(char *data)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)data;

	ehdr->e_shoff = 0;
	ehdr->e_shnum = 0;
	ehdr->e_shstrndx = 0;
}

/* Like the file at @path after sstrip: no section headers. */
static struct collected check_without_sections(const char *path)
{
	struct collected with = { 0 }, without = { 0 }, relocs = { 0 }, relocs_without = { 0 };
	size_t size;
	char *data = read_file(path, &size);
	int fd = elf_files_memory(data, size), bare_fd;
	struct elf *elf, *bare;

	clear_sections(data);
	bare_fd = elf_files_memory(data, size);
	assert_int_equal(elf_open(&elf, fd), 0);
	assert_int_equal(elf_open(&bare, bare_fd), 0);
	assert_int_equal(bare->nr_sections, 0);
	assert_int_equal(elf_each_symbol(elf, ELF_DYNSYM, collect_symbol, &with), 0);
	assert_int_equal(elf_each_symbol(bare, ELF_DYNSYM | ELF_SYMTAB, collect_symbol, &without), 0);
	assert_int_equal(with.nr, without.nr);
	assert_int_equal(with.hash, without.hash);
	assert_int_equal(elf_each_reloc(elf, collect_reloc, &relocs), 0);
	assert_int_equal(elf_each_reloc(bare, collect_reloc, &relocs_without), 0);
	assert_true(relocs.nr > 0);
	assert_int_equal(relocs.nr, relocs_without.nr);
	assert_int_equal(relocs.hash, relocs_without.hash);
	assert_true(!elf_soname(elf) || !strcmp(elf_soname(bare), elf_soname(elf)));
	elf_close(elf);
	elf_close(bare);
	close(fd);
	close(bare_fd);
	free(data);
	return without;
}

static void test_without_sections(void **state)
{
	size_t nr = 0, nr_malloc = 0;

	(void)state;
	for (size_t i = 0; i < files.nr; i++) {
		if (!strstr(files.paths[i], ".so"))
			continue;
		nr_malloc += check_without_sections(files.paths[i]).has_malloc;
		nr++;
	}
	assert_true(nr > 2);
	assert_true(nr_malloc >= 1); /* libc's, at least */
}

static int find_self(struct dl_phdr_info *object, size_t size, void *ctx)
{
	(void)size;
	*(u64 *)ctx = object->dlpi_addr;
	return 1; /* the program is the first */
}

/* Addresses and contents of this program as the kernel mapped it. */
static void test_addresses(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	u64 self, vaddr, offset, bias, page = (u64)sysconf(_SC_PAGESIZE), start;
	char code[32];
	struct elf *elf;

	(void)state;
	dl_iterate_phdr(find_self, &self);
	assert_int_equal(elf_open(&elf, fd), 0);
	vaddr = (u64)(uintptr_t)test_addresses - self;
	assert_int_equal(elf_vaddr_to_offset(elf, vaddr, &offset), 0);
	assert_int_equal(elf_read_vaddr(elf, vaddr, code, sizeof(code)), 0);
	assert_memory_equal(code, (void *)(uintptr_t)test_addresses, sizeof(code));
	assert_true(elf_segment_at(elf, vaddr)->flags & PF_X);
	start = (self + vaddr) & ~(page - 1);
	assert_int_equal(elf_bias(elf, start, start + page, offset & ~(page - 1), &bias), 0);
	assert_int_equal(bias, self);
	assert_int_equal(elf_read_vaddr(elf, 1ULL << 40, code, 1), -EFAULT);
	elf_close(elf);
	close(fd);
}

/* Read the dynamic section of this program. */
static void test_dynamic(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct collected relocs = { 0 };
	char interp[256];
	struct elf *elf;
	u8 id[64];

	(void)state;
	assert_int_equal(elf_open(&elf, fd), 0);
	assert_int_equal(elf_interp(elf, interp, sizeof(interp)), 0);
	assert_int_equal(access(interp, R_OK), 0);
	assert_int_equal(elf_interp(elf, interp, 2), -ENAMETOOLONG);
	assert_non_null(elf_needed(elf, 0));
	assert_null(elf_needed(elf, 1000));
	assert_null(elf_soname(elf));
	assert_int_equal(elf_each_reloc(elf, collect_reloc, &relocs), 0);
	assert_true(relocs.has_malloc);
	assert_true(elf_build_id(elf, id, sizeof(id)) >= 8 || !elf_section(elf, ".note.gnu.build-id"));
	elf_close(elf);
	close(fd);
}

/* A small image of any class and byte order: header, LOAD, DYNAMIC, NOTE, hash, symbols, relocations. */
struct image {
	u8 bytes[1024];
	bool is_64, is_big;
	u16 machine;
	u8 jump_slot, irelative;
};

static void put(struct image *im, size_t at, size_t size, u64 value)
{
	for (size_t i = 0; i < size; i++)
		im->bytes[at + (im->is_big ? size - 1 - i : i)] = (u8)(value >> (8 * i));
}

/* Values one after the other: @sizes holds a digit for each, 'w' is a word. Returns where they end. */
static size_t put_all(struct image *im, size_t at, const char *sizes, const u64 *values)
{
	for (; *sizes; sizes++, values++) {
		size_t size = *sizes == 'w' ? (im->is_64 ? 8 : 4) : (size_t)(*sizes - '0');

		put(im, at, size, *values);
		at += size;
	}
	return at;
}

enum {
	BASE = 0x10000,
	DYNAMIC = 0x100,
	NOTE = 0x220,
	HASH = 0x250,
	SYMS = 0x280,
	STRS = 0x2e0,
	RELS = 0x300,
	SLOTS = 0x380,
};

static void put_headers(struct image *im)
{
	u64 phdr = im->is_64 ? 64 : 52;
	const u64 ehdr[] = {
		ET_DYN, im->machine, 1, BASE, phdr, 0, 0, phdr, im->is_64 ? 56 : 32, 3, 0, 0, 0
	};
	const u64 segments[][3] = { { PT_LOAD, 0, sizeof(im->bytes) },
				    { PT_DYNAMIC, DYNAMIC, 0x120 },
				    { PT_NOTE, NOTE, 0x20 } };

	memcpy(im->bytes, ELFMAG, SELFMAG);
	im->bytes[EI_CLASS] = im->is_64 ? ELFCLASS64 : ELFCLASS32;
	im->bytes[EI_DATA] = im->is_big ? ELFDATA2MSB : ELFDATA2LSB;
	put_all(im, 16, "224www4222222", ehdr);
	for (int i = 0; i < 3; i++) {
		u64 t = segments[i][0], o = segments[i][1], n = segments[i][2], v = BASE + o;
		const u64 narrow[] = { t, o, v, v, n, n, PF_R | PF_X, 4096 };
		const u64 wide[] = { t, PF_R | PF_X, o, v, v, n, n, 4096 };

		phdr = put_all(im, phdr, im->is_64 ? "44wwwwww" : "4wwwww44", im->is_64 ? wide : narrow);
	}
}

static void put_symbol(struct image *im, size_t at, u64 name, u64 value)
{
	const u64 size = 0x20, kind = STT_FUNC | STB_GLOBAL << 4;
	const u64 wide[] = { name, kind, 0, 5, value, size }, narrow[] = { name, value, size, kind, 0, 5 };

	put_all(im, at, im->is_64 ? "4112ww" : "4ww112", im->is_64 ? wide : narrow);
}

static void make_image(struct image *im)
{
	const u64 dyn[] = { DT_SYMTAB, BASE + SYMS, DT_STRTAB,	 BASE + STRS,	      DT_STRSZ,	 0x20,
			    DT_HASH,   BASE + HASH, DT_JMPREL,	 BASE + RELS,	      DT_PLTREL, DT_RELA,
			    DT_SONAME, 8,	    DT_PLTRELSZ, im->is_64 ? 48 : 24, 0,	 0 };
	const u64 hash[] = { 1, 3, 1, 0, 0, 0 }, note[] = { 4, 6, NT_GNU_BUILD_ID };
	const u64 first = 1ULL << (im->is_64 ? 32 : 8) | im->jump_slot;
	const u64 relocs[] = { BASE + SLOTS, first, 0, BASE + SLOTS + 8, im->irelative, (u64)-8 };

	put_headers(im);
	put_all(im, DYNAMIC, "wwwwwwwwwwwwwwwwww", dyn);
	put_all(im, NOTE, "444", note);
	memcpy(im->bytes + NOTE + 12, "GNU\0abcdef", 11);
	put_all(im, HASH, "444444", hash);
	memcpy(im->bytes + STRS, "\0malloc\0libx.so\0free", 21);
	put_symbol(im, SYMS + (im->is_64 ? 24 : 16), 1, 0x10100);
	put_symbol(im, SYMS + (im->is_64 ? 48 : 32), 16, 0x10101);
	put_all(im, RELS, "wwwwww", relocs);
}

static int check_made_reloc(void *ctx, const struct elf_reloc *r)
{
	int *nr = ctx;

	assert_int_equal(r->kind, *nr ? ELF_RELOC_IRELATIVE : ELF_RELOC_JUMP_SLOT);
	assert_int_equal(r->offset, BASE + SLOTS + 8 * *nr);
	assert_string_equal(r->symbol, *nr ? "" : "malloc");
	assert_int_equal(r->addend, *nr ? -8 : 0);
	(*nr)++;
	return 0;
}

static int check_made_symbol(void *ctx, const struct elf_symbol *sym)
{
	int *nr = ctx;

	assert_string_equal(sym->name, *nr ? "free" : "malloc");
	assert_int_equal(sym->value, 0x10100 + *nr);
	assert_int_equal(sym->size, 0x20);
	assert_int_equal(sym->type, STT_FUNC);
	assert_int_equal(sym->bind, STB_GLOBAL);
	(*nr)++;
	return 0;
}

static const struct image makes[] = {
	{ .is_64 = true,
	  .machine = EM_X86_64,
	  .jump_slot = R_X86_64_JUMP_SLOT,
	  .irelative = R_X86_64_IRELATIVE },
	{ .machine = EM_386, .jump_slot = R_386_JMP_SLOT, .irelative = R_386_IRELATIVE },
	{ .is_big = true, .machine = EM_PPC, .jump_slot = R_PPC_JMP_SLOT, .irelative = R_PPC_IRELATIVE },
	{ .is_64 = true,
	  .is_big = true,
	  .machine = EM_PPC64,
	  .jump_slot = R_PPC64_JMP_SLOT,
	  .irelative = R_PPC64_IRELATIVE },
};

static void check_made(const struct image *im)
{
	int fd = elf_files_memory(im->bytes, sizeof(im->bytes)), nr = 0;
	struct elf *elf;
	u8 id[32];

	assert_int_equal(elf_open(&elf, fd), 0);
	assert_int_equal(elf->machine, im->machine);
	assert_int_equal(elf->word_size, im->is_64 ? 8 : 4);
	assert_int_equal(elf->entry, BASE);
	assert_int_equal(elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, check_made_symbol, &nr), 0);
	assert_int_equal(nr, 2);
	nr = 0;
	assert_int_equal(elf_each_reloc(elf, check_made_reloc, &nr), 0);
	assert_int_equal(nr, 2);
	assert_string_equal(elf_soname(elf), "libx.so");
	assert_int_equal(elf_build_id(elf, id, sizeof(id)), 6);
	assert_memory_equal(id, "abcdef", 6);
	assert_int_equal(elf_build_id(elf, id, 5), 0);
	elf_close(elf);
	close(fd);
}

static void test_classes_and_byte_orders(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(makes); i++) {
		struct image im = makes[i];

		make_image(&im);
		check_made(&im);
	}
}

static int touch_symbol(void *ctx, const struct elf_symbol *sym)
{
	*(size_t *)ctx += strlen(sym->name);
	return 0;
}

static int touch_reloc(void *ctx, const struct elf_reloc *reloc)
{
	*(size_t *)ctx += strlen(reloc->symbol);
	return 0;
}

/* Use everything; the sanitizers are the judges. Result of opening and listing. */
static int use_image(const void *bytes, size_t size)
{
	int fd = elf_files_memory(bytes, size), err;
	size_t sum = 0;
	struct elf *elf;
	char buf[64];

	assert_true(fd >= 0);
	err = elf_open(&elf, fd);
	if (!err) {
		err = elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, touch_symbol, &sum);
		if (!err)
			err = elf_each_reloc(elf, touch_reloc, &sum);
		if (elf_interp(elf, buf, sizeof(buf)) == 0)
			sum += strlen(buf);
		sum += elf_build_id(elf, (u8 *)buf, sizeof(buf));
		sum += elf_soname(elf) ? strlen(elf_soname(elf)) : 0;
		sum += elf_needed(elf, 1) != NULL;
		elf_close(elf);
	}
	assert_true(sum < 4096);
	close(fd);
	return err;
}

/* A file that is cut off at any byte is refused or read without harm (D6). */
static void test_truncated_at_every_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(makes); i++) {
		struct image im = makes[i];
		size_t headers = im.is_64 ? 64 + 56 * 3 : 52 + 32 * 3;

		make_image(&im);
		for (size_t size = 0; size < headers; size++)
			assert_true(use_image(im.bytes, size) < 0);
		for (size_t size = headers; size < sizeof(im.bytes); size++)
			assert_int_equal(use_image(im.bytes, size), 0);
	}
}

/* A file with any byte changed is refused or read without harm (D6). */
static void test_every_byte_changed(void **state)
{
	static const u8 values[] = { 0x00, 0x7f, 0x80, 0xff };
	int nr_refused = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(makes) * sizeof(makes[0].bytes) * ARRAY_SIZE(values); i++) {
		struct image im = makes[i % ARRAY_SIZE(makes)];

		make_image(&im);
		im.bytes[i / ARRAY_SIZE(makes) / ARRAY_SIZE(values)] =
			values[i / ARRAY_SIZE(makes) % ARRAY_SIZE(values)];
		nr_refused += use_image(im.bytes, sizeof(im.bytes)) != 0;
	}
	assert_true(nr_refused > 0);
}

/* A file that is no ELF file is refused (D6). */
static void test_not_elf(void **state)
{
	struct elf *elf;
	int fd[2];

	(void)state;
	assert_int_equal(use_image("", 0), -ENOEXEC);
	assert_int_equal(use_image("#!/bin/sh\nexit 0\n........", 24), -ENOEXEC);
	assert_int_equal(use_image("\177ELF\003\001..............", 20), -EINVAL);
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(elf_open(&elf, fd[0]), -ENOEXEC);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_without_sections),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_dynamic),
		cmocka_unit_test(test_classes_and_byte_orders),
		cmocka_unit_test(test_truncated_at_every_byte),
		cmocka_unit_test(test_every_byte_changed),
		cmocka_unit_test(test_not_elf),
	};

	return cmocka_run_group_tests(tests, find_files, free_files);
}
