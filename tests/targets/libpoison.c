/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into heaptap: libdw crashes on each file with a section ".poison". HEAPTAP_POISON says where: "dwarf" = in
 * its debug information, "symbols" = in its symbol table, too.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwfl.h>

static bool is_poisoned(Dwfl_Module *mod)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(mod, &bias);
	Elf_Scn *scn = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;

		if (name && !strcmp(name, ".poison"))
			return true;
	}
	return false;
}

static void crash_if(Dwfl_Module *mod, const char *where)
{
	const char *wanted = getenv("HEAPTAP_POISON");

	if (wanted && (!strcmp(wanted, where) || !strcmp(wanted, "symbols")) && is_poisoned(mod))
		*(volatile int *)8 = 1;
}

Dwarf *dwfl_module_getdwarf(Dwfl_Module *mod, Dwarf_Addr *bias)
{
	Dwarf *(*next)(Dwfl_Module *, Dwarf_Addr *) = dlsym(RTLD_NEXT, "dwfl_module_getdwarf");

	crash_if(mod, "dwarf");
	return next(mod, bias);
}

int dwfl_module_getsymtab(Dwfl_Module *mod)
{
	int (*next)(Dwfl_Module *) = dlsym(RTLD_NEXT, "dwfl_module_getsymtab");

	crash_if(mod, "symbols");
	return next(mod);
}
