/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of variables for the command `print`, from the symbol tables of mapped files. */
#include "user/console/console_variable.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "user/lib/elf.h"
#include "user/target/target.h"

struct variable {
	const char *name;
	u64 value, size;
};

/* 1 = found. */
static int variable_take(void *ctx, const struct elf_symbol *sym)
{
	struct variable *v = ctx;

	if (sym->type != STT_OBJECT || sym->shndx == SHN_UNDEF || strcmp(sym->name, v->name) != 0)
		return 0;
	v->value = sym->value;
	v->size = sym->size;
	return 1;
}

static int variable_in(const struct module *m, struct variable *v)
{
	struct elf *elf;
	int err = m->fd < 0 ? -ENOENT : elf_open(&elf, m->fd);

	if (err)
		return err == -ENOMEM ? err : 0;
	err = elf_each_symbol(elf, ELF_SYMTAB | ELF_DYNSYM, variable_take, v);
	elf_close(elf);
	return err == -ENOMEM || err == 1 ? err : 0;
}

int console_variable(const struct target *t, const char *name, taddr_t *addr, u64 *size)
{
	const struct mapping_list *list = &t->maps;
	struct variable v = { .name = name };

	for (size_t i = 0; i < list->nr; i++) {
		const struct mapping *map = &list->maps[i];
		int err;

		/* Each file once: its mappings follow each other. */
		if (!map->module || (i && list->maps[i - 1].module == map->module))
			continue;
		err = variable_in(map->module, &v);
		if (err < 0)
			return err;
		if (!err)
			continue;
		*addr = map->bias + v.value;
		*size = v.size;
		return 0;
	}
	return -ENOENT;
}
