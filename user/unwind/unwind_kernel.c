/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwind tables in maps of the kernel, for the BPF walk. */
#include "user/unwind/unwind_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/maps.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"

/* One map with mappings of processes, which the kernel and heaptap share. */
struct slab {
	struct unwind_maps *mem; /* mapped; SLAB_PROCESSES of them */
	int fd;			 /* owned */
};

struct slots {
	u32 *nrs; /* owned */
	size_t nr, max;
};

struct kernel_memory {
	struct unwind_kernel_maps maps;
	struct slab slabs[MAX_SLABS];
	size_t nr_slabs;
	int shard_fds[MAX_SHARDS]; /* owned */
	size_t nr_shards;
	struct slots unused;
	struct slots resting; /* a walk that began before something else was published may still be in them */
};

/* Map @nr values of @size bytes of the map @fd at *@mem. 0 or -errno. */
static int map_inner(int fd, size_t size, u32 nr, void **mem)
{
	*mem = mmap(NULL, size * nr, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return *mem == MAP_FAILED ? -errno : 0;
}

/* Make a map with @nr values of @size bytes, mapped at *@mem. Returns its descriptor, or -errno. */
static int new_inner_map(const char *name, size_t size, u32 nr, void **mem)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(u32), size, nr, &opts);
	int err = fd < 0 ? -errno : map_inner(fd, size, nr, mem);

	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

static int unwind_kernel_open_shard(void *ctx, u32 nr, struct shard **out)
{
	struct kernel_memory *k = ctx;
	auto_close int fd = -1;
	void *mem = NULL;
	int err;

	if (nr < k->nr_shards) {
		err = map_inner(k->shard_fds[nr], sizeof(struct shard), 1, &mem);
		*out = mem;
		return err;
	}
	if (nr == MAX_SHARDS)
		return -ENOSPC;
	fd = new_inner_map("shard", sizeof(struct shard), 1, &mem);
	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(k->maps.shards_fd, &nr, &fd, BPF_ANY)) {
		err = errno == E2BIG ? -ENOSPC : -errno;
		munmap(mem, sizeof(struct shard));
		return err;
	}
	k->shard_fds[k->nr_shards++] = take_fd(fd);
	*out = mem;
	return 0;
}

static void unwind_kernel_close_shard(void *ctx, struct shard *shard)
{
	(void)ctx;
	munmap(shard, sizeof(*shard));
}

/* Tell the programs of slab @nr. Returns after a grace period of the kernel: walks of before are over. */
static int publish_slab(const struct kernel_memory *k, u32 nr)
{
	return bpf_map_update_elem(k->maps.slabs_fd, &nr, &k->slabs[nr].fd, BPF_ANY) ? -errno : 0;
}

static int unwind_kernel_add_slab(struct kernel_memory *k)
{
	struct slab *slab = &k->slabs[k->nr_slabs];
	u32 nr = (u32)k->nr_slabs;
	void *mem = NULL;
	int err;

	if (k->nr_slabs == MAX_SLABS)
		return -ENOSPC;
	slab->fd = new_inner_map("slab", sizeof(struct unwind_maps), SLAB_PROCESSES, &mem);
	if (slab->fd < 0)
		return slab->fd;
	slab->mem = mem;
	err = publish_slab(k, nr);
	if (err) {
		munmap(mem, sizeof(struct unwind_maps) * SLAB_PROCESSES);
		close(slab->fd);
		return err;
	}
	k->nr_slabs++;
	for (u32 i = 0; i < SLAB_PROCESSES; i++)
		k->unused.nrs[k->unused.nr++] = nr * SLAB_PROCESSES + i;
	return 0;
}

/* No slot is unused. The one wait for walks of before serves for all slots that rest. */
static int find_slots(struct kernel_memory *k)
{
	size_t nr = k->resting.nr + SLAB_PROCESSES;
	int err = array_reserve(k->unused.nrs, k->unused.max, nr);
	bool is_enough;

	if (err)
		return err;
	is_enough = k->resting.nr >= SLAB_PROCESSES || (k->resting.nr && k->nr_slabs == MAX_SLABS);
	err = is_enough ? publish_slab(k, 0) : unwind_kernel_add_slab(k);
	if (err)
		return err;
	while (k->resting.nr)
		k->unused.nrs[k->unused.nr++] = k->resting.nrs[--k->resting.nr];
	return 0;
}

static int unwind_kernel_publish(void *ctx, pid_t pid, const struct unwind_maps *maps,
				 struct unwind_maps **out)
{
	struct kernel_memory *k = ctx;
	u32 key = (u32)pid, slot, before;
	bool has_before = !bpf_map_lookup_elem(k->maps.slots_fd, &key, &before);
	struct unwind_maps *to;
	int err = k->unused.nr ? 0 : find_slots(k);

	/* Room to give the slot back. */
	if (!err)
		err = array_reserve(k->resting.nrs, k->resting.max, k->nr_slabs * SLAB_PROCESSES);
	if (err)
		return err;
	slot = k->unused.nrs[k->unused.nr - 1];
	to = &k->slabs[slot / SLAB_PROCESSES].mem[slot % SLAB_PROCESSES];
	memcpy(to, maps, sizeof(*maps));
	to->slot = slot;
	if (bpf_map_update_elem(k->maps.slots_fd, &key, &slot, BPF_ANY))
		return -errno;
	*out = to;
	k->unused.nr--;
	if (has_before)
		k->resting.nrs[k->resting.nr++] = before;
	return 0;
}

static void unwind_kernel_drop_maps(void *ctx, pid_t pid, struct unwind_maps *maps)
{
	struct kernel_memory *k = ctx;
	u32 key = (u32)pid, slot;

	(void)maps;
	if (bpf_map_lookup_elem(k->maps.slots_fd, &key, &slot))
		return;
	bpf_map_delete_elem(k->maps.slots_fd, &key);
	k->resting.nrs[k->resting.nr++] = slot;
}

/* The update of any slab waits. */
static int unwind_kernel_settle(void *ctx)
{
	const struct kernel_memory *k = ctx;

	return k->nr_slabs ? publish_slab(k, 0) : 0;
}

static void unwind_kernel_end(void *ctx)
{
	struct kernel_memory *k = ctx;

	for (size_t i = 0; i < k->nr_shards; i++)
		close(k->shard_fds[i]);
	for (size_t i = 0; i < k->nr_slabs; i++) {
		munmap(k->slabs[i].mem, sizeof(struct unwind_maps) * SLAB_PROCESSES);
		close(k->slabs[i].fd);
	}
	free(k->unused.nrs);
	free(k->resting.nrs);
	free(k);
}

int unwind_tables_new(struct unwind_tables **out, const struct unwind_kernel_maps *maps)
{
	const struct unwind_mappings none = { .list = &(struct mapping_list){ 0 } };
	struct kernel_memory *k = calloc(1, sizeof(*k));
	const struct unwind_memory memory = { .ctx = k,
					      .open_shard = unwind_kernel_open_shard,
					      .close_shard = unwind_kernel_close_shard,
					      .publish = unwind_kernel_publish,
					      .drop_maps = unwind_kernel_drop_maps,
					      .settle = unwind_kernel_settle,
					      .end = unwind_kernel_end };
	struct unwind_tables *u;
	int err = k ? unwind_tables_new_in(&u, &memory) : -ENOMEM;

	if (err) {
		free(k);
		return err;
	}
	k->maps = *maps;
	err = unwind_tables_set(u, NO_MAPS_PID, &none);
	if (err)
		unwind_tables_free(u);
	else
		*out = u;
	return err;
}
