/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The suppressions that a program has in itself for LeakSanitizer: __lsan_default_suppressions(). */
#include "user/scan/suppress_program.h"

#include <errno.h>
#include <string.h>

#include "arch/insn.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"

enum { MAX_CODE = 64, MAX_TEXT = 64 << 10 };

static int take_function(void *ctx, const struct elf_symbol *sym)
{
	u64 *vaddr = ctx;

	if (sym->shndx == SHN_UNDEF || strcmp(sym->name, "__lsan_default_suppressions") != 0)
		return 0;
	*vaddr = sym->value;
	return 1;
}

/* The only address that the code of a function names before it returns. 0 if it does more than return that. */
static u64 returned_address(const struct elf *elf, u64 vaddr)
{
	u8 code[MAX_CODE];
	size_t len = sizeof(code);
	u64 address = 0;
	struct insn insn;

	/* The function may be the last one of the file. */
	while (len && elf_read_vaddr(elf, vaddr, code, len))
		len--;
	for (size_t at = 0; at < len; at += insn.length) {
		if (insn_decode(&insn, elf->machine, vaddr + at, code + at, len - at))
			return 0;
		if (insn.kind == INSN_RETURN)
			return address;
		if ((insn.kind != INSN_OTHER && insn.kind != INSN_NOP && insn.kind != INSN_PUSH) ||
		    (insn.address && address))
			return 0;
		address = insn.address ? insn.address : address;
	}
	return 0;
}

/* Read a string. Its length, or -1. */
static ssize_t read_string(const struct elf *elf, u64 vaddr, char *text)
{
	for (size_t len = 0; len < MAX_TEXT; len++) {
		if (elf_read_vaddr(elf, vaddr + len, &text[len], 1))
			return -1;
		if (!text[len])
			return (ssize_t)len;
	}
	return -1;
}

int suppress_add_program(struct suppress_list *list, struct elf *elf)
{
	auto_free char *text = malloc(MAX_TEXT);
	u64 function = 0, vaddr;
	ssize_t len;
	int err = elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, take_function, &function);

	if (!text)
		return -ENOMEM;
	if (err <= 0)
		return err ? err : -ENOENT;
	vaddr = returned_address(elf, function);
	len = vaddr ? read_string(elf, vaddr, text) : -1;
	if (len < 0)
		return -ENOTSUP;
	return suppress_add_text(list, "__lsan_default_suppressions", text, (size_t)len);
}
