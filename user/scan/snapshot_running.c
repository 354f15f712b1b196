/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings and memory of a process that runs on, for questions that need no consistent answer. */
#include "user/scan/snapshot_running.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "user/lib/proc_memory.h"
#include "user/scan/page_scan.h"
#include "user/scan/snapshot_make.h"

struct running_snapshot {
	struct snapshot base;
	struct proc_memory memory; /* owned */
	int pagemap;		   /* owned; -1 = none */
};

static int running_read(struct snapshot *s, const struct snapshot_visitor *visitor)
{
	(void)s;
	(void)visitor;
	return -ENOTSUP;
}

static int running_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	const struct running_snapshot *rs = (struct running_snapshot *)s;
	const struct snapshot_map *map = snapshot_map_find(s, addr);

	if (!map || !map->is_readable || len > map->end - addr)
		return -EIO;
	if (snapshot_map_is_own(map))
		return page_scan_read(rs->pagemap, &rs->memory, addr, buf, len);
	if (!page_scan_is_there(rs->pagemap, addr, len))
		return -ENODATA;
	return proc_memory_read(&rs->memory, addr, buf, len) == (ssize_t)len ? 0 : -EIO;
}

static void running_resume(struct snapshot *s)
{
	(void)s;
}

static void running_free(struct snapshot *s)
{
	struct running_snapshot *rs = (struct running_snapshot *)s;

	proc_memory_close(&rs->memory);
	if (rs->pagemap >= 0)
		close(rs->pagemap);
	snapshot_fini(s);
	free(rs);
}

static const struct snapshot_ops running_ops = {
	.name = "running",
	.read = running_read,
	.peek = running_peek,
	.resume = running_resume,
	.free = running_free,
};

int snapshot_running_new(struct snapshot **out, pid_t pid, u8 word_size)
{
	struct running_snapshot *rs = calloc(1, sizeof(*rs));
	const u16 one = 1;
	char path[32];
	int err;

	if (!rs)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	rs->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	rs->base.ops = &running_ops;
	rs->base.pid = rs->base.mem_tid = pid;
	rs->base.word_size = word_size;
	rs->base.is_big_endian = *(const u8 *)&one == 0;
	err = proc_memory_open(&rs->memory, pid);
	if (!err)
		err = snapshot_read_maps(&rs->base);
	if (err) {
		running_free(&rs->base);
		return err;
	}
	*out = &rs->base;
	return 0;
}
