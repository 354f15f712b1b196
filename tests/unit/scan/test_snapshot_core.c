/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cores that map files: what the core left out comes from the file, and each file is opened once. */
#include "user/scan/snapshot_core.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, NR = 300, NR_FILES = 40, FEW = 32 };

#define START 0x10000000ULL

static u32 nr_interrupted;

/* Each second read is interrupted. */
ssize_t pread(int fd, void *buf, size_t len, off_t at)
{
	const struct iovec part = { buf, len };

	if (nr_interrupted++ % 2) {
		errno = EINTR;
		return -1;
	}
	return preadv(fd, &part, 1, at);
}

static void fill(u8 *page, u32 file, u32 nr)
{
	memset(page, 'a' + (int)(nr % 26), PAGE);
	memcpy(page, &file, sizeof(file));
	memcpy(page + sizeof(file), &nr, sizeof(nr));
}

/* A file of @nr pages that all differ. Its name is kept. */
static void write_file(char *name, u32 file, u32 nr)
{
	int fd;

	snprintf(name, 64, "/tmp/heaptap-core-XXXXXX");
	fd = mkstemp(name);
	assert_true(fd >= 0);
	for (u32 i = 0; i < nr; i++) {
		u8 page[PAGE];

		fill(page, file, i);
		assert_int_equal(write(fd, page, PAGE), PAGE);
	}
	close(fd);
}

/* A core of @nr_files files with @nr pages each, one mapping for a page. The core has the first page of each file. */
static int write_core(const char (*names)[64], u32 nr_files, u32 nr)
{
	u32 all = nr_files * nr;
	size_t desc = 16 + 24 * (size_t)all + 64 * (size_t)all, used = 16 + 24 * (size_t)all;
	u64 notes = sizeof(Elf64_Ehdr) + (all + 1) * sizeof(Elf64_Phdr), data;
	Elf64_Ehdr head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
			    .e_type = ET_CORE,
			    .e_machine = EM_X86_64,
			    .e_phoff = sizeof(head),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = (Elf64_Half)(all + 1) };
	struct {
		Elf64_Nhdr head;
		char name[8];
	} note = { { 5, 0, NT_FILE }, "CORE" };
	u64 *words = calloc(1, desc);
	int fd = memfd_create("core", MFD_CLOEXEC);

	assert_non_null(words);
	assert_true(fd >= 0);
	words[0] = all;
	words[1] = PAGE;
	for (u32 i = 0; i < all; i++) {
		words[2 + 3 * i] = START + (u64)i * PAGE;
		words[3 + 3 * i] = START + (u64)(i + 1) * PAGE;
		words[4 + 3 * i] = i % nr;
		used += strlen(strcpy((char *)words + used, names[i / nr])) + 1;
	}
	used = (used + 3) & ~3UL;
	note.head.n_descsz = (Elf64_Word)used;
	assert_int_equal(pwrite(fd, &note, sizeof(note), (off_t)notes), sizeof(note));
	assert_int_equal(pwrite(fd, words, used, (off_t)(notes + sizeof(note))), used);
	used += sizeof(note);
	data = (notes + used + PAGE - 1) / PAGE * PAGE;
	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	for (u32 i = 0; i <= all; i++) {
		u64 at = data + (u64)(i / nr) * PAGE;
		Elf64_Phdr ph = { .p_type = PT_LOAD,
				  .p_flags = PF_R,
				  .p_offset = at,
				  .p_vaddr = START + (u64)i * PAGE,
				  .p_filesz = i % nr ? 0 : PAGE,
				  .p_memsz = PAGE };
		u8 page[PAGE];

		if (i == all)
			ph = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = notes, .p_filesz = used };
		assert_int_equal(pwrite(fd, &ph, sizeof(ph), (off_t)(sizeof(head) + i * sizeof(ph))),
				 sizeof(ph));
		fill(page, i / nr, 0);
		if (ph.p_filesz == PAGE && i < all)
			assert_int_equal(pwrite(fd, page, PAGE, (off_t)at), PAGE);
	}
	free(words);
	return fd;
}

static u32 count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	u32 nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* All pages are read, and at most @most descriptors stay open. */
static void check(u32 nr_files, u32 nr, u32 most)
{
	char names[NR_FILES][64];
	struct core_facts facts;
	struct snapshot *s = NULL;
	u32 before;
	int fd;

	for (u32 i = 0; i < nr_files; i++)
		write_file(names[i], i, nr);
	fd = write_core((const char(*)[64])names, nr_files, nr);
	before = count_open();
	assert_int_equal(snapshot_core_new(&s, fd, NULL, &facts), 0);
	assert_int_equal(s->nr_maps, nr_files * nr);
	for (u32 round = 0; round < 2; round++)
		for (u32 i = 0; i < nr_files * nr; i++) {
			u8 want[PAGE], have[PAGE];

			fill(want, i / nr, i % nr);
			assert_int_equal(snapshot_peek(s, START + (u64)i * PAGE, have, PAGE), 0);
			assert_memory_equal(have, want, PAGE);
		}
	assert_true(count_open() <= before + most);
	snapshot_free(s);
	assert_int_equal(count_open(), before);
	close(fd);
	for (u32 i = 0; i < nr_files; i++)
		unlink(names[i]);
}

static void one_file(void **state)
{
	(void)state;
	check(1, NR, 1);
}

/* With few descriptors all files are read, and half of the descriptors stay for others. */
static void few_descriptors(void **state)
{
	struct rlimit limit, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){ .rlim_cur = FEW, .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	check(NR_FILES, 3, FEW / 2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_file),
		cmocka_unit_test(few_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
