/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the file of an address in data by the segments of the files: /proc/PID/maps shows no file for .bss and TLS.
 */
#include "user/names/data_ref.h"

#include <string.h>

#include "arch/regs.h"
#include "user/lib/elf.h"

static const struct code_ref nowhere;

static bool data_ref_holds(const struct mapping *m, taddr_t addr)
{
	struct elf *elf;
	bool is_in;

	if (!m->module || m->module->fd < 0 || elf_open(&elf, m->module->fd))
		return false;
	is_in = elf_segment_at(elf, addr - m->bias) != NULL;
	elf_close(elf);
	return is_in;
}

static size_t data_ref_count_below(const struct mapping_list *list, taddr_t addr)
{
	size_t below = 0;

	while (below < list->nr && list->maps[below].start <= addr)
		below++;
	return below;
}

struct code_ref data_ref(const struct mapping_list *list, taddr_t addr)
{
	size_t below = data_ref_count_below(list, addr);

	/* The data of a file mostly follows its code, and otherwise lies directly before it. */
	for (size_t i = below + 1; i-- > 0 && below - i <= 2;) {
		const struct mapping *m = i < list->nr ? &list->maps[i] : NULL;

		if (m && data_ref_holds(m, addr))
			return (struct code_ref){ .module = m->module->id, .offset = addr - m->bias };
	}
	return nowhere;
}

static const struct mapping *data_ref_program_of(const struct mapping_list *list, const char *exe)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->maps[i].module && exe && !strcmp(list->maps[i].module->path, exe))
			return &list->maps[i];
	return list->nr ? &list->maps[0] : NULL;
}

struct code_ref data_ref_tls(const struct mapping_list *list, const char *exe, taddr_t tp, taddr_t addr)
{
	const struct mapping *m = data_ref_program_of(list, exe);
	struct code_ref ref = nowhere;
	struct elf *elf;

	if (!tp || !m || !m->module || m->module->fd < 0 || elf_open(&elf, m->module->fd))
		return nowhere;
	for (u32 i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *tls = &elf->segments[i];
		taddr_t start = arch_tls_start(elf->word_size, tp, tls->memsz, tls->align);

		if (tls->type == PT_TLS && addr >= start && addr - start < tls->memsz)
			ref = (struct code_ref){ .module = m->module->id, .offset = addr - start };
	}
	elf_close(elf);
	return ref;
}

void data_ref_open(const struct mapping_list *list, const char *exe, taddr_t addr,
		   void (*open)(void *ctx, struct module *m), void *ctx)
{
	size_t below = data_ref_count_below(list, addr);
	const struct mapping *program = data_ref_program_of(list, exe);

	if (program && program->module && program->module->fd < 0)
		open(ctx, program->module);
	for (size_t i = below + 1; i-- > 0 && below - i <= 2;)
		if (i < list->nr && list->maps[i].module && list->maps[i].module->fd < 0)
			open(ctx, list->maps[i].module);
}
