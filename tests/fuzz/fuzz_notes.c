/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as .note.stapsdt: no crash, texts that end, places in the code, and arguments that are bounded (S1). */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/replay.h"
#include "user/lib/elf.h"
#include "user/probe/notes.h"

enum { TEXT = 0x1000, TEXT_SIZE = 64, NR_SECTIONS = 4 };

static const char names[] = "\0.text\0.note.stapsdt\0.shstrtab";

struct image {
	Elf64_Ehdr head;
	Elf64_Phdr load;
	Elf64_Shdr sections[NR_SECTIONS];
	char names[sizeof(names)];
	u8 text[TEXT_SIZE];
};

/* A program with 64 bytes of code, all nops but the last, and the bytes as its notes. */
static int make_file(u16 machine, const uint8_t *data, size_t size)
{
	struct image im = {
		.head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = machine,
			  .e_version = EV_CURRENT,
			  .e_phoff = offsetof(struct image, load),
			  .e_shoff = offsetof(struct image, sections),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = NR_SECTIONS,
			  .e_shstrndx = 3 },
		.load = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_offset = offsetof(struct image, text),
			  .p_vaddr = TEXT,
			  .p_filesz = TEXT_SIZE,
			  .p_memsz = TEXT_SIZE },
		.sections = { [1] = { .sh_name = 1,
				      .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				      .sh_addr = TEXT,
				      .sh_offset = offsetof(struct image, text),
				      .sh_size = TEXT_SIZE },
			      [2] = { .sh_name = 7,
				      .sh_type = SHT_NOTE,
				      .sh_offset = sizeof(im),
				      .sh_size = size },
			      [3] = { .sh_name = 21,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct image, names),
				      .sh_size = sizeof(names) } },
	};
	int fd = memfd_create("notes", MFD_CLOEXEC);

	memcpy(im.names, names, sizeof(names));
	memset(im.text, 0x90, sizeof(im.text) - 1);
	if (fd >= 0 && (write(fd, &im, sizeof(im)) != sizeof(im) || write(fd, data, size) != (ssize_t)size)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_any(void *ctx, const char *provider, const char *name)
{
	(void)ctx;
	(void)strlen(provider);
	return strlen(name) < 1 << 20;
}

static void check(struct elf *elf, const struct note *n)
{
	if (strnlen(n->provider, sizeof(n->provider)) == sizeof(n->provider) ||
	    strnlen(n->name, sizeof(n->name)) == sizeof(n->name))
		abort();
	if (n->vaddr < TEXT || n->vaddr >= TEXT + TEXT_SIZE)
		abort();
	(void)!note_is_probed(elf, n->vaddr);
}

static void arguments(u16 machine, const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);
	struct note_arg arg;
	const char *next = text;

	if (text && size)
		memcpy(text, data, size);
	for (size_t nr = 0; next; nr++) {
		next = note_arg_parse(&arg, machine, next);
		if (nr > size + 1 || (next && (next < text || next > text + size)))
			abort();
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u16 machines[] = { EM_X86_64, EM_AARCH64, EM_386, EM_ARM, EM_PPC64, EM_RISCV };
	u16 machine = machines[size ? data[0] % ARRAY_SIZE(machines) : 0];
	struct note_list list;
	struct elf *elf;
	int fd;

	if (!size)
		return 0;
	arguments(machine, data + 1, size - 1);
	fd = make_file(machine, data + 1, size - 1);
	if (fd < 0)
		return 0;
	if (!elf_open(&elf, fd)) {
		if (!notes_read(&list, elf, is_any, NULL)) {
			for (size_t i = 0; i < list.nr; i++)
				check(elf, &list.notes[i]);
			notes_fini(&list);
		}
		elf_close(elf);
	}
	close(fd);
	return 0;
}
