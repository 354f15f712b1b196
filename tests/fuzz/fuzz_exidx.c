/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as .ARM.exidx with what it leads to: no crash, and a table that is in order (C4). */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/cfi_try.h"
#include "tests/fuzz/replay.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	cfi_try(make_file(data, size));
	return 0;
}
