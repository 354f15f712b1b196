/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks for the notes of a sampler, before a source is chosen. */
#include "user/probe/own_sampler.h"

#include <string.h>

#include "user/lib/elf.h"
#include "user/probe/notes.h"
#include "user/target/module.h"

static bool own_sampler_is_wanted(void *ctx, const char *provider, const char *name)
{
	(void)ctx;
	return !strcmp(provider, OWN_SAMPLER_PROVIDER) && !strcmp(name, "alloc");
}

bool own_sampler_in_file(int fd)
{
	struct note_list list;
	struct elf *elf;
	bool is_found = false;

	if (elf_open(&elf, fd))
		return false;
	if (!notes_read(&list, elf, own_sampler_is_wanted, NULL)) {
		is_found = list.nr;
		notes_fini(&list);
	}
	elf_close(elf);
	return is_found;
}

bool own_sampler_in_process(pid_t pid)
{
	struct mapping_list maps = { 0 };
	struct module_table *modules;
	bool is_found = false;

	if (module_table_new(&modules))
		return false;
	if (mapping_list_read(&maps, modules, pid) >= 0)
		for (size_t i = 0; i < maps.nr && !is_found; i++) {
			const struct module *m = maps.maps[i].module;

			is_found = m && m->fd >= 0 && own_sampler_in_file(m->fd);
		}
	mapping_list_fini(&maps);
	module_table_free(modules);
	return is_found;
}
