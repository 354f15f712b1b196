/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process's mappings in the map that the BPF programs search. Needs the right to make BPF maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/maps.h"
#include "tests/unit/cfi_image.h"
#include "user/unwind/unwind_tables.h"
#include "tests/unit/skip.h"

enum { PID = 4711 };

struct world {
	struct unwind_tables *tables;
	struct unwind_maps *seen; /* what the programs would find */
	int shards_fd, slabs_fd, slots_fd;
};

static int outer_map(u32 nr, u32 inner_nr, u32 value_size)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", 4, value_size, inner_nr, &opts);
	int fd;

	if (inner < 0)
		return -errno;
	opts.map_flags = 0;
	opts.inner_map_fd = inner;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "outer", 4, 4, nr, &opts);
	if (fd < 0)
		fd = -errno;
	close(inner);
	return fd;
}

static int new_tables(struct world *w)
{
	return unwind_tables_new(&w->tables,
				 &(struct unwind_kernel_maps){ w->shards_fd, w->slabs_fd, w->slots_fd });
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	w->seen = calloc(1, sizeof(*w->seen));
	w->shards_fd = outer_map(MAX_SHARDS, 1, sizeof(struct shard));
	w->slabs_fd = outer_map(MAX_SLABS, SLAB_PROCESSES, sizeof(struct unwind_maps));
	w->slots_fd = bpf_map_create(BPF_MAP_TYPE_HASH, "slots", 4, 4, MAX_PROCESSES, NULL);
	*state = w;
	if (w->shards_fd == -EPERM || w->slabs_fd == -EPERM)
		return 0; /* world_of() says so */
	return w->seen ? new_tables(w) : -1;
}

static int teardown(void **state)
{
	struct world *w = *state;

	unwind_tables_free(w->tables);
	if (w->shards_fd >= 0)
		close(w->shards_fd);
	if (w->slabs_fd >= 0)
		close(w->slabs_fd);
	if (w->slots_fd >= 0)
		close(w->slots_fd);
	free(w->seen);
	free(w);
	return 0;
}

static struct world *world_of(void **state)
{
	struct world *w = *state;

	if (w->shards_fd == -EPERM || w->slabs_fd == -EPERM)
		skip_because("no right to make BPF maps");
	assert_true(w->shards_fd >= 0 && w->slabs_fd >= 0 && w->slots_fd >= 0);
	return w;
}

static void see_slot(struct world *w, u32 slot)
{
	u32 id, slab = slot / SLAB_PROCESSES, place = slot % SLAB_PROCESSES;
	int fd;

	assert_int_equal(bpf_map_lookup_elem(w->slabs_fd, &slab, &id), 0);
	fd = bpf_map_get_fd_by_id(id);
	assert_true(fd >= 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &place, w->seen), 0);
	close(fd);
}

static u32 slot_of(const struct world *w, u32 pid)
{
	u32 slot;

	assert_int_equal(bpf_map_lookup_elem(w->slots_fd, &pid, &slot), 0);
	return slot;
}

/* Read what the programs would see of @pid. */
static void see(struct world *w, u32 pid)
{
	see_slot(w, slot_of(w, pid));
}

static u32 nr_slabs(const struct world *w)
{
	u32 nr = 0, id;

	for (u32 slab = 0; slab < MAX_SLABS; slab++)
		nr += !bpf_map_lookup_elem(w->slabs_fd, &slab, &id);
	return nr;
}

/* Set the mappings and read what the programs would see. */
static void set_maps(struct world *w, struct mapping *maps, size_t nr)
{
	struct mapping_list list = { .maps = maps, .nr = nr };

	assert_int_equal(unwind_tables_set(w->tables, PID, &(struct unwind_mappings){ &list, 8, 3, 1 }), 0);
	see(w, PID);
}

/* As the programs search: comparisons by the sign of the difference. */
static const struct unwind_map *search(const struct unwind_maps *maps, u64 pc)
{
	u64 i = 0;

	for (u64 half = MAX_UNWIND_MAPS / 2; half; half /= 2)
		if ((s64)(pc - maps->maps[i + half].start) >= 0)
			i += half;
	return pc - maps->maps[i].start < maps->maps[i].end - maps->maps[i].start ? &maps->maps[i] : NULL;
}

static void test_all_are_found(void **state)
{
	struct world *w = world_of(state);
	struct mapping maps[40] = { 0 };

	for (size_t nr = 1; nr <= ARRAY_SIZE(maps); nr++) {
		maps[nr - 1].start = nr * 0x10000;
		maps[nr - 1].end = nr * 0x10000 + 0x1000;
		set_maps(w, maps, nr);
		for (size_t i = 0; i < nr; i++) {
			assert_non_null(search(w->seen, maps[i].start));
			assert_int_equal(search(w->seen, maps[i].end - 1)->start, maps[i].start);
			assert_null(search(w->seen, maps[i].end));
		}
		assert_null(search(w->seen, 0));
		assert_null(search(w->seen, UINT64_MAX));
	}
}

/* The kernel's half of the addresses is beyond the programs' comparisons: it must hide nothing else. */
static void test_vsyscall_hides_nothing(void **state)
{
	struct world *w = world_of(state);
	struct mapping maps[33] = { 0 };

	for (size_t nr = 1; nr < ARRAY_SIZE(maps); nr++) {
		maps[nr - 1] = (struct mapping){ .start = nr * 0x10000, .end = nr * 0x10000 + 0x1000 };
		maps[nr] = (struct mapping){ .start = 0xffffffffff600000, .end = 0xffffffffff601000 };
		set_maps(w, maps, nr + 1);
		for (size_t i = 0; i < nr; i++)
			assert_non_null(search(w->seen, maps[i].start));
		assert_null(search(w->seen, 0xffffffffff600000));
	}
}

/* Beyond the limit those in the middle are counted and marked; the first and the last are there. */
static void test_more_than_fit(void **state)
{
	struct world *w = world_of(state);
	static struct mapping maps[MAX_UNWIND_MAPS + 100];
	const size_t half = MAX_UNWIND_MAPS / 2, nr = ARRAY_SIZE(maps);

	for (size_t i = 0; i < nr; i++) {
		maps[i].start = (i + 1) * 0x10000;
		maps[i].end = maps[i].start + 0x8000;
	}
	set_maps(w, maps, MAX_UNWIND_MAPS);
	assert_int_equal(unwind_tables_stats(w->tables).nr_skipped_maps, 0);
	for (size_t i = 0; i < MAX_UNWIND_MAPS; i++)
		assert_int_equal(search(w->seen, maps[i].end - 1)->shard, NO_SHARD);
	set_maps(w, maps, nr);
	assert_int_equal(w->seen->nr, MAX_UNWIND_MAPS);
	assert_int_equal(unwind_tables_stats(w->tables).nr_skipped_maps, 101);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(search(w->seen, maps[i].start)->shard,
				 i < half - 1 || i >= nr - half ? NO_SHARD : LIMIT_SHARD);
	assert_null(search(w->seen, maps[0].end));
	assert_null(search(w->seen, maps[nr - 1].end));
	/* When they are gone, so is what was there. */
	set_maps(w, maps, 1);
	assert_int_equal(w->seen->nr, 1);
	assert_null(search(w->seen, maps[1].start));
}

/* A file of one function whose stack pointer moves at each of @nr bytes. */
static int open_file_of_rows(u32 nr)
{
	struct cfi_image im = { .machine = EM_X86_64, .text_vaddr = IMAGE_MAX * 2, .text_size = IMAGE_MAX };
	static const u8 cie[] = "\x14\0\0\0\0\0\0\0\1zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1\0";
	const size_t fde_at = sizeof(cie), rows_at = fde_at + 17;
	u8 *frame = calloc(1, rows_at + 3 * nr);
	int fd;

	assert_non_null(frame);
	memcpy(frame, cie, sizeof(cie));
	image_put(frame + fde_at, 13 + 3 * nr, 4);
	image_put(frame + fde_at + 4, fde_at + 4, 4);
	image_put(frame + fde_at + 8, im.text_vaddr - (IMAGE_FRAME + fde_at + 8), 4);
	image_put(frame + fde_at + 12, IMAGE_MAX, 4);
	for (u32 i = 0; i < nr; i++)
		memcpy(frame + rows_at + 3 * i, i % 2 ? "\x41\x0e\x08" : "\x41\x0e\x10", 3);
	im.frame = frame;
	im.frame_size = rows_at + 3 * nr;
	fd = cfi_image_open(&im);
	free(frame);
	return fd;
}

/* Room for one shard: what does not fit into it is marked, and so is the next file. */
static void test_more_rows_than_fit(void **state)
{
	struct world *w = world_of(state);
	struct module modules[2] = { { .id = 1, .path = (char *)"/many" },
				     { .id = 2, .path = (char *)"/more" } };
	struct mapping maps[2] = { 0 };
	const u64 text = IMAGE_MAX * 2, nr = SHARD_ROWS + 1000;

	unwind_tables_free(w->tables);
	close(w->shards_fd);
	w->shards_fd = outer_map(1, 1, sizeof(struct shard));
	assert_int_equal(new_tables(w), 0);
	for (int i = 0; i < 2; i++) {
		modules[i].fd = open_file_of_rows(nr);
		assert_true(modules[i].fd >= 0);
		maps[i].module = &modules[i];
		maps[i].bias = (i + 1) * 0x10000000;
		maps[i].start = maps[i].bias + text;
		maps[i].end = maps[i].start + IMAGE_MAX;
	}
	set_maps(w, maps, 2);
	assert_int_equal(unwind_tables_stats(w->tables).nr_rows, SHARD_ROWS);
	assert_int_equal(unwind_tables_stats(w->tables).nr_skipped_rows, 1002 + nr + 2);
	assert_int_equal(search(w->seen, maps[0].start)->shard, 0);
	assert_int_equal(search(w->seen, maps[0].start + SHARD_ROWS - 1)->nr, SHARD_ROWS);
	assert_int_equal(search(w->seen, maps[0].start + SHARD_ROWS)->shard, LIMIT_SHARD);
	assert_int_equal(search(w->seen, maps[0].end - 1)->shard, LIMIT_SHARD);
	assert_int_equal(search(w->seen, maps[1].start)->shard, LIMIT_SHARD);
	assert_int_equal(search(w->seen, maps[1].end - 1)->shard, LIMIT_SHARD);
	close(modules[0].fd);
	close(modules[1].fd);
}

/* Programs come and go for months: the rows of those that are gone make room, and those of the others stay. */
static void test_rows_are_used_again(void **state)
{
	enum { NR = 12 };
	struct world *w = world_of(state);
	struct module modules[NR + 1] = { 0 };
	struct mapping maps[2] = { 0 };
	struct unwind_map stays = { 0 };
	const u32 nr = SHARD_ROWS / 2 + 1000;

	unwind_tables_free(w->tables);
	close(w->shards_fd);
	w->shards_fd = outer_map(2, 1, sizeof(struct shard));
	assert_int_equal(new_tables(w), 0);
	for (u32 i = 0; i <= NR; i++) {
		struct mapping *m = &maps[!!i];
		bool is_used[NR + 2] = { [1] = true };

		modules[i] =
			(struct module){ .id = i + 1, .path = (char *)"/many", .fd = open_file_of_rows(nr) };
		assert_true(modules[i].fd >= 0);
		m->module = &modules[i];
		m->bias = (i + 1) * 0x10000000ULL;
		m->start = m->bias + IMAGE_MAX * 2;
		m->end = m->start + IMAGE_MAX;
		set_maps(w, maps, i ? 2 : 1);
		if (!i)
			stays = *search(w->seen, maps[0].start);
		assert_int_equal(search(w->seen, maps[0].start)->shard, stays.shard);
		assert_int_equal(search(w->seen, maps[0].start)->first, stays.first);
		assert_int_not_equal(search(w->seen, m->start + nr - 1)->shard, LIMIT_SHARD);
		is_used[i + 1] = true;
		unwind_tables_keep(w->tables, is_used);
		assert_int_equal(unwind_tables_stats(w->tables).nr_rows, (i ? 2 : 1) * (nr + 2));
		close(modules[i].fd);
	}
	assert_int_equal(unwind_tables_stats(w->tables).nr_skipped_rows, 0);
}

/* Memories of a thread's last walk hold for one number only, which is even when all is in place. */
static void test_changes_are_numbered(void **state)
{
	struct world *w = world_of(state);
	struct mapping maps[2] = { { .start = 0x1000, .end = 0x2000 }, { .start = 0x4000, .end = 0x5000 } };
	u32 seq;

	set_maps(w, maps, 1);
	seq = w->seen->seq;
	assert_int_equal(seq & 1, 0);
	set_maps(w, maps, 2);
	assert_int_equal(w->seen->seq & 1, 0);
	assert_int_not_equal(w->seen->seq, seq);
}

/* A walk that began before a change goes on with the mappings of before. */
static void test_changes_disturb_no_walk(void **state)
{
	struct world *w = world_of(state);
	struct mapping maps[2] = { { .start = 0x1000, .end = 0x2000 }, { .start = 0x4000, .end = 0x5000 } };
	u32 before, seq;

	set_maps(w, maps, 1);
	before = slot_of(w, PID);
	seq = w->seen->seq;
	set_maps(w, maps, 2);
	assert_non_null(search(w->seen, 0x4000));
	see_slot(w, before);
	assert_int_equal(w->seen->seq, seq);
	assert_null(search(w->seen, 0x4000));
	assert_non_null(search(w->seen, 0x1000));
}

/* The memory of earlier mappings is used again. */
static void test_many_changes(void **state)
{
	struct world *w = world_of(state);
	u32 before = ~0U;

	for (u32 i = 1; i <= 1000; i++) {
		struct mapping map = { .start = i * 0x1000, .end = i * 0x1000 + 0x1000 };

		set_maps(w, &map, 1);
		assert_non_null(search(w->seen, i * 0x1000));
		assert_int_not_equal(slot_of(w, PID), before);
		before = slot_of(w, PID);
	}
	assert_int_equal(nr_slabs(w), 2);
}

/* Mappings hold for the counts that they were read for. A later reading without changes confirms them (D1). */
static void test_confirmed(void **state)
{
	struct world *w = world_of(state);
	struct mapping map = { .start = 0x1000, .end = 0x2000 };

	set_maps(w, &map, 1);
	assert_int_equal(w->seen->removals, 3);
	assert_int_equal(w->seen->execs, 1);
	assert_false(unwind_tables_confirm(w->tables, PID, 3));
	assert_true(unwind_tables_confirm(w->tables, PID, 4));
	assert_false(unwind_tables_confirm(w->tables, PID, 4));
	assert_false(unwind_tables_confirm(w->tables, PID + 1, 4));
}

static void test_forgotten(void **state)
{
	struct world *w = world_of(state);
	struct mapping map = { .start = 0x1000, .end = 0x2000 };
	u32 pid = PID, slot;

	set_maps(w, &map, 1);
	unwind_tables_forget(w->tables, PID);
	assert_int_not_equal(bpf_map_lookup_elem(w->slots_fd, &pid, &slot), 0);
	/* The number may come again. */
	set_maps(w, &map, 1);
	assert_non_null(search(w->seen, 0x1000));
}

/* Slots of processes that have ended are used again, but not the last ones: a walk may still be in them. */
static void test_slots_are_used_again(void **state)
{
	struct world *w = world_of(state);
	u32 last = ~0U;

	for (u32 pid = 1; pid <= 1000; pid++) {
		struct mapping map = { .start = pid * 0x1000, .end = pid * 0x1000 + 0x1000 };
		const struct mapping_list list = { .maps = &map, .nr = 1 };

		assert_int_equal(
			unwind_tables_set(w->tables, (pid_t)pid, &(struct unwind_mappings){ &list, 8, 3, 1 }),
			0);
		see(w, pid);
		assert_non_null(search(w->seen, pid * 0x1000));
		assert_null(search(w->seen, (pid - 1) * 0x1000));
		assert_int_not_equal(slot_of(w, pid), last);
		last = slot_of(w, pid);
		unwind_tables_forget(w->tables, (pid_t)pid);
	}
	assert_int_equal(nr_slabs(w), 2);
}

/* As many processes as there can be have mappings at one time. */
static void test_all_processes(void **state)
{
	struct world *w = world_of(state);
	const struct mapping_list none = { 0 };

	for (u32 pid = 1; pid < MAX_PROCESSES; pid++)
		assert_int_equal(
			unwind_tables_set(w->tables, (pid_t)pid, &(struct unwind_mappings){ &none, 8, 3, 1 }),
			0);
	see(w, MAX_PROCESSES - 1);
	assert_int_equal(w->seen->execs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_are_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vsyscall_hides_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_than_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_rows_than_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_are_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changes_are_numbered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_confirmed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slots_are_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changes_disturb_no_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_processes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
