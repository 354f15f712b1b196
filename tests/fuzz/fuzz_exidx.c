/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as .ARM.exidx with what it leads to: no crash, and a table that is in order. */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/cfi_rule.h"
#include "tests/fuzz/replay.h"
#include "user/cfi.h"
#include "user/lib/elf.h"

#ifndef PT_ARM_EXIDX
#define PT_ARM_EXIDX 0x70000001
#endif

enum { BASE = 0x10000 };

struct image {
	Elf32_Ehdr head;
	Elf32_Phdr load, exidx;
};

/* The first two bytes say how long the table is; what follows it is there to be led to. */
static int make_file(const uint8_t *data, size_t size)
{
	struct image im = {
		.head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_ARM,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(Elf32_Ehdr),
			  .e_ehsize = sizeof(Elf32_Ehdr),
			  .e_phentsize = sizeof(Elf32_Phdr),
			  .e_phnum = 2 },
		.load = { .p_type = PT_LOAD, .p_vaddr = BASE, .p_flags = PF_R | PF_X },
		.exidx = { .p_type = PT_ARM_EXIDX, .p_offset = sizeof(im), .p_vaddr = BASE + sizeof(im) },
	};
	size_t table = (size_t)data[0] | (size_t)data[1] << 8;
	int fd = memfd_create("exidx", MFD_CLOEXEC);

	size -= 2;
	im.load.p_filesz = im.load.p_memsz = (u32)(sizeof(im) + size);
	im.exidx.p_filesz = im.exidx.p_memsz = (u32)(table < size ? table : size);
	if (fd >= 0 &&
	    (write(fd, &im, sizeof(im)) != sizeof(im) || write(fd, data + 2, size) != (ssize_t)size)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void check(const struct cfi_table *t)
{
	if (!t->nr_rows || cfi_kind(t->rows[t->nr_rows - 1].rule) != CFI_NONE)
		abort();
	for (size_t i = 0; i < t->nr_rows; i++)
		if (cfi_kind(t->rows[i].rule) >= NR_CFI_KINDS || (i && t->rows[i].pc <= t->rows[i - 1].pc) ||
		    cfi_find(t, t->text_base + t->rows[i].pc) != t->rows[i].rule)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_table *t;
	struct elf *elf;
	int fd;

	if (size < 2)
		return 0;
	fd = make_file(data, size);
	if (fd >= 0 && elf_open(&elf, fd) == 0) {
		if (cfi_build(&t, elf) == 0) {
			check(t);
			cfi_free(t);
		}
		elf_close(elf);
	}
	if (fd >= 0)
		close(fd);
	return 0;
}
