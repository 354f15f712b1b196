/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocator functions behind resolvers. */
#include "user/ifunc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"

/* The search for one function's address in one module's GOT. */
struct search {
	int mem_fd;
	const struct elf *elf;	    /* whose GOT */
	taddr_t bias;		    /* of it */
	const struct mapping *code; /* where the function must lie */
	taddr_t found;
};

static int see_slot(void *ctx, u64 vaddr)
{
	struct search *s = ctx;
	u8 word[8] = { 0 };
	taddr_t addr;

	if (pread(s->mem_fd, word, s->elf->word_size, (off_t)(s->bias + vaddr)) != s->elf->word_size)
		return 0;
	addr = elf_word(s->elf, word);
	if (addr < s->code->start || addr >= s->code->end)
		return 0;
	s->found = addr;
	return 1;
}

/* Where the calls of @symbol in @t lead to, 0 if that is not known yet. */
static taddr_t bound_address(const struct target *t, const struct mapping *code, const char *symbol)
{
	struct search s = { .code = code };
	auto_close int mem_fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", t->pid);
	mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	s.mem_fd = mem_fd;
	for (size_t i = 0; mem_fd >= 0 && !s.found && i < t->maps.nr; i++) {
		const struct mapping *map = &t->maps.maps[i];
		struct elf *elf;

		if (!map->module || map->module->fd < 0 || elf_open(&elf, map->module->fd))
			continue;
		s.elf = elf;
		s.bias = map->bias;
		if (probe_got_slots(elf, symbol, see_slot, &s) < 0)
			debug("probe: %s: relocations cannot be read", map->module->path);
		elf_close(elf);
	}
	return s.found;
}

int ifunc_resolve(struct probe_list *list, struct elf *elf, const struct target *t, const struct mapping *map,
		  const struct probe_options *options)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->nr; i++) {
		struct probe_site *s = &list->sites[i];
		const char *symbol = alloc_fn(s->fn)->symbol;
		taddr_t addr = s->is_ifunc ? bound_address(t, map, symbol) : 0;
		u16 fn = s->fn;

		if (s->is_ifunc) {
			u64 start = addr - map->bias;

			if (!addr || probe_site_init(s, elf, fn, start, start, options, list)) {
				list->nr_skipped++;
				warn("probe: %s: no probe in %s: its code is chosen at run time and not "
				     "known yet",
				     map->module->path, symbol);
				continue;
			}
		}
		list->sites[kept++] = *s;
	}
	list->nr = kept;
	return 0;
}
