/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the memory of a process that runs on, as far as its mappings allow. */
#include "user/scan/memory_view.h"

#include <errno.h>
#include <stdlib.h>

#include "user/lib/proc_memory.h"
#include "user/scan/snapshot_make.h"
#include "user/scan/snapshot_memory.h"

struct memory_view {
	struct snapshot snapshot;  /* its mappings alone */
	struct proc_memory memory; /* owned */
};

int memory_view_new(struct memory_view **out, pid_t pid)
{
	struct memory_view *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return -ENOMEM;
	v->snapshot.pid = v->snapshot.mem_tid = pid;
	err = proc_memory_open(&v->memory, pid);
	if (!err)
		err = snapshot_read_maps(&v->snapshot);
	if (err) {
		memory_view_free(v);
		return err;
	}
	*out = v;
	return 0;
}

void memory_view_free(struct memory_view *v)
{
	if (!v)
		return;
	proc_memory_close(&v->memory);
	snapshot_fini(&v->snapshot);
	free(v);
}

const struct snapshot_map *memory_view_map(const struct memory_view *v, taddr_t addr)
{
	return snapshot_map_find(&v->snapshot, addr);
}

/* Read within one mapping. A read across a page that cannot be read ends before that page. */
static size_t memory_view_read_some(const struct memory_view *v, taddr_t addr, u8 *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = proc_memory_read(&v->memory, addr + done, buf + done, len - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

size_t memory_view_read(const struct memory_view *v, taddr_t addr, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		const struct snapshot_map *map = memory_view_map(v, addr + done);
		u64 room = map ? map->end - (addr + done) : 0;
		size_t want = len - done < room ? len - done : (size_t)room, got;

		/* /proc/PID/mem would also read what the process has forbidden itself to read. */
		if (!want || !map->is_readable || memory_is_device(map))
			break;
		got = memory_view_read_some(v, addr + done, (u8 *)buf + done, want);
		done += got;
		if (got < want)
			break;
	}
	return done;
}
