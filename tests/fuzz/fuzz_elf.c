/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as an ELF file, everything asked of it (D6). */
#include "tests/fuzz/replay.h"
#include "tests/unit/elf_files.h"
#include "user/unwind/cfi.h"
#include "user/lib/elf.h"

static int use_symbol(void *ctx, const struct elf_symbol *sym)
{
	*(size_t *)ctx += strlen(sym->name);
	return 0;
}

static int use_reloc(void *ctx, const struct elf_reloc *reloc)
{
	*(size_t *)ctx += strlen(reloc->symbol);
	return 0;
}

static size_t use_addresses(const struct elf *elf)
{
	u64 value = 0;
	size_t sum = 0;
	u8 buf[64];

	for (u32 i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		sum += elf_read_vaddr(elf, s->vaddr + s->filesz / 2, buf, sizeof(buf)) == 0;
		sum += elf_vaddr_to_offset(elf, s->vaddr + 1, &value) == 0;
		sum += elf_bias(elf, 0x400000, 0x400000 + s->memsz, s->offset, &value) == 0;
		sum += elf_segment_at(elf, s->vaddr) != NULL;
	}
	sum += elf_build_id(elf, buf, sizeof(buf));
	sum += elf_interp(elf, (char *)buf, sizeof(buf)) == 0 ? strlen((char *)buf) : 0;
	return sum + value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = elf_files_memory(data, size);
	size_t sum = 0;
	size_t names = 0;
	struct cfi_table *t;
	struct elf *elf;

	if (fd < 0)
		return 0;
	if (elf_open(&elf, fd) == 0) {
		sum += use_addresses(elf);
		sum += elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, use_symbol, &names) == 0;
		sum += elf_each_reloc(elf, use_reloc, &names) == 0;
		for (u32 i = 0; i < elf->nr_sections; i++)
			sum += strlen(elf->sections[i].name);
		sum += elf_soname(elf) ? strlen(elf_soname(elf)) : 0;
		sum += elf_needed(elf, 0) ? strlen(elf_needed(elf, 0)) : 0;
		if (cfi_build(&t, elf) == 0)
			cfi_free(t);
		elf_close(elf);
	}
	__asm__ volatile("" ::"r"(sum), "r"(names));
	close(fd);
	return 0;
}
