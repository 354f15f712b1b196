/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a system call instruction in a held process. */
#include "user/scan/thread_call.h"

#include <errno.h>
#include <string.h>

#include "user/scan/snapshot.h"

static bool is_vdso(const struct snapshot_map *map)
{
	return INJECT_IN_VDSO && !strcmp(map->path, "[vdso]");
}

/* Find an instruction that carries out a system call, in the vDSO. */
static int thread_call_find(taddr_t *insn, const struct snapshot *s)
{
	for (size_t i = 0; i < s->nr_maps; i++)
		if (!strcmp(s->maps[i].path, "[vdso]"))
			return thread_call_find_in(insn, s->mem_tid, s->maps[i].start, s->maps[i].end);
	return -ENOENT;
}

int thread_call_places(struct thread_request *r, const struct snapshot *s)
{
	int err = -ENOENT;

	*r = (struct thread_request){ 0 };
	/* The dynamic linker has all, is small, and is the last file. */
	for (size_t i = s->nr_maps; i-- > 0 && err;) {
		const struct snapshot_map *map = &s->maps[i];

		if (map->is_executable && map->is_readable && (map->ino || is_vdso(map)))
			err = thread_call_find_way_back(&r->back, s->mem_tid, map->start, map->end);
		if (err == -ENOMEM || err == -ESRCH)
			return err;
	}
	return thread_call_find(&r->insn, s);
}
