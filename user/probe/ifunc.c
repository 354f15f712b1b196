/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocator functions behind resolvers. */
#include "user/probe/ifunc.h"

#include <errno.h>
#include <stdlib.h>

#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/lib/proc_memory.h"
#include "user/probe/probe_place.h"

enum { MAX_CHOICES = 16 }; /* of one resolver */

/* The search for one function's address in one module's GOT. */
struct search {
	const struct proc_memory *memory; /* of the target */
	const struct elf *elf;		  /* that has the GOT */
	taddr_t bias;			  /* of elf */
	const struct mapping *code;	  /* where the function must lie */
	taddr_t found;
};

/* The word of a GOT slot in the file, before the dynamic linker has bound it. */
static u64 ifunc_unbound(const struct elf *elf, u64 vaddr)
{
	u8 word[8];

	return elf_read_vaddr(elf, vaddr, word, elf->word_size) ? 0 : elf_word(elf, word);
}

static int ifunc_see_slot(void *ctx, u64 vaddr)
{
	struct search *s = ctx;
	u64 before = ifunc_unbound(s->elf, vaddr);
	u8 word[8] = { 0 };
	taddr_t addr;

	if (proc_memory_read(s->memory, s->bias + vaddr, word, s->elf->word_size) != s->elf->word_size)
		return 0;
	addr = elf_word(s->elf, word);
	/* A slot that is bound at the first call holds an address in the PLT until then. */
	if (addr < s->code->start || addr >= s->code->end || addr == before || addr == before + s->bias)
		return 0;
	s->found = addr;
	return 1;
}

/* Address of the function that the resolver @site has chosen in @t, 0 if that is not known yet. */
static taddr_t bound_address(const struct target *t, const struct mapping *code,
			     const struct probe_site *site)
{
	struct search s = { .code = code };
	struct proc_memory memory;

	if (proc_memory_open(&memory, t->pid))
		return 0;
	s.memory = &memory;
	for (size_t i = 0; !s.found && i < t->maps.nr; i++) {
		const struct mapping *map = &t->maps.maps[i];
		u64 resolver = map->module == code->module ? site->start : 0;
		struct elf *elf;

		if (!map->module || map->module->fd < 0 || elf_open(&elf, map->module->fd))
			continue;
		s.elf = elf;
		s.bias = map->bias;
		if (probe_got_slots(elf, site->row->symbol, resolver, ifunc_see_slot, &s) < 0)
			debug("probe: %s: relocations cannot be read", map->module->path);
		elf_close(elf);
	}
	proc_memory_close(&memory);
	return s.found;
}

static bool has_site(const struct probe_site *sites, size_t nr, u64 start)
{
	while (nr)
		if (sites[--nr].start == start)
			return true;
	return false;
}

/* The functions that the resolver @site has chosen or, before, may choose. Returns their number, or -errno. */
static int ifunc_choices(const struct probe_site *site, const struct elf *elf, const struct target *t,
			 const struct mapping *map, u64 *out)
{
	taddr_t addr = bound_address(t, map, site);

	if (!addr)
		return probe_choices(site, elf, out, MAX_CHOICES);
	*out = addr - map->bias;
	return 1;
}

/* Append the sites of the functions chosen to @sites, unless they have one. False if no function is known. */
static bool add_chosen(const struct probe_list *list, size_t i, struct elf *elf, const struct target *t,
		       const struct mapping *map, const struct probe_options *options,
		       struct probe_site *sites, size_t *nr)
{
	const struct probe_site *resolver = &list->sites[i];
	u64 starts[MAX_CHOICES];
	int nr_choices = ifunc_choices(resolver, elf, t, map, starts);
	bool is_any = false;

	for (int k = 0; k < nr_choices; k++) {
		/* Two resolvers may choose one function, and a function may have a name of its own. */
		if (has_site(list->sites, list->nr, starts[k]) || has_site(sites, *nr, starts[k])) {
			is_any = true;
		} else if (!probe_site_init(&sites[*nr], elf, resolver->fn, starts[k], starts[k], options,
					    list)) {
			is_any = true;
			++*nr;
		}
	}
	return is_any;
}

int ifunc_resolve(struct probe_list *list, struct elf *elf, const struct target *t, const struct mapping *map,
		  const struct probe_options *options)
{
	struct probe_site *sites;
	size_t nr = 0, nr_resolvers = 0, internal_site = 0;

	for (size_t i = 0; i < list->nr; i++)
		nr_resolvers += list->sites[i].is_ifunc;
	if (!nr_resolvers)
		return 0;
	sites = calloc(list->nr + nr_resolvers * MAX_CHOICES, sizeof(*sites));
	if (!sites)
		return -ENOMEM;
	for (size_t i = 0; i < list->nr; i++) {
		if (list->sites[i].is_ifunc)
			continue;
		if (i == list->internal_site)
			internal_site = nr;
		sites[nr++] = list->sites[i];
	}
	for (size_t i = 0; i < list->nr; i++) {
		if (!list->sites[i].is_ifunc || add_chosen(list, i, elf, t, map, options, sites, &nr))
			continue;
		list->nr_skipped++;
		warn("probe: %s: no probe in %s: its code is chosen at run time and not known yet",
		     map->module->path, list->sites[i].row->symbol);
	}
	free(list->sites);
	list->sites = sites;
	list->nr = nr;
	list->internal_site = internal_site;
	return 0;
}
