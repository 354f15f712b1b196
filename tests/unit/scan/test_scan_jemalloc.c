/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk through the books of jemalloc, and of rpmalloc, in a real process. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/heap/budget.h"
#include "user/heap/cover_map.h"
#include "user/heap/heap.h"
#include "user/scan/jemalloc_tree.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot.h"
#include "tests/unit/skip.h"

enum { BLOCKS = 2000, SIZE = 100 };
#define SLOW_NS (120 * 1000000000ULL)

/* Of jemalloc only. */
extern int mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len)
	__attribute__((weak));

static void *volatile kept[BLOCKS];

/* Write the addresses of blocks, and wait to be killed. The first is NULL without jemalloc. */
static void play(int to)
{
	u64 addrs[BLOCKS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < BLOCKS; i++) {
		kept[i] = malloc(SIZE);
		addrs[i] = mallctl ? (u64)(uintptr_t)kept[i] : 0;
	}
	if (write(to, addrs, sizeof(addrs)) != sizeof(addrs))
		_exit(1);
	memset(addrs, 0, sizeof(addrs));
	for (;;)
		pause();
}

/* The books of jemalloc 5.0 to 5.2: extents of blocks, of the arrays of free blocks of a thread, and of free pages. */
enum {
	LEVEL = 1 << 18,
	BINS = 20,
	BIN = 100,
	STRIDE = 128,
	PAGES = 64,
	ARRAY_PAGES = 5,
	SPARE = PAGES * 4096 - STRIDE
};
static _Alignas(64) u64 roots[2][LEVEL];
static __thread u64 bins[2][BINS][3];
static u64 in_data = 1; /* so that the file has data before the root */

static u64 *pages_new(size_t nr)
{
	u64 *at = mmap(NULL, nr * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(1);
	return at;
}

static void add_extent(u64 *leaf, u64 *extent, u64 start, u64 nr_pages, u64 flags)
{
	/* As 5.2 has it. */
	extent[0] = (flags >> 48) << 18 | (flags & 1) << 12;
	extent[1] = start;
	extent[2] = nr_pages * 4096;
	/* Where no small blocks lie, the first and the last page have a word. */
	for (u64 i = 0; i < nr_pages; i += flags & 1 || i || nr_pages == 1 ? 1 : nr_pages - 1)
		leaf[((start >> 12) + i) % LEVEL] = (u64)(uintptr_t)extent | flags;
}

/* Tell the addresses of blocks, hold the last one alone, and wait to be killed. */
static void hold_last(int to, u64 addrs[BLOCKS])
{
	size_t most = (BLOCKS - 1) * sizeof(*addrs);

	kept[0] = (void *)(uintptr_t)addrs[BLOCKS - 1];
	__asm__ volatile("" : : "r"(roots), "r"(bins) : "memory");
	/* The last address is told when the others are nowhere else. */
	if (write(to, addrs, most) != (ssize_t)most)
		_exit(1);
	explicit_bzero(addrs, most);
	if (write(to, &addrs[BLOCKS - 1], sizeof(*addrs)) != sizeof(*addrs))
		_exit(1);
	for (;;)
		pause();
}

/* The books of allocator @k, with @nr blocks, each of which is in an array, as after its release. */
static void lay_out(int k, u64 *addrs, u64 nr)
{
	u64 *leaf = pages_new(LEVEL / 512), *all = pages_new(PAGES + 2 * ARRAY_PAGES),
	    *extents = pages_new(1);
	u64 start = (u64)(uintptr_t)all, array = start + PAGES * 4096 + 4096 - 64,
	    unused = start + (PAGES + ARRAY_PAGES) * 4096;

	roots[k][start >> 30] = (u64)(uintptr_t)leaf;
	add_extent(leaf, extents, start, PAGES, 1ULL << 48 | 1);
	add_extent(leaf, extents + 32, array, ARRAY_PAGES, 36ULL << 48);
	/* Since a large block was freed there. */
	add_extent(leaf, extents + 64, unused, ARRAY_PAGES, 36ULL << 48);
	extents[64] = 232ULL << 18 | 1 << 16;
	/* The map of free slots: one has an old word. */
	extents[0] |= 1 << 26;
	extents[8] = 1 << 7;
	*(u64 *)(uintptr_t)(start + 7 * 16) = start + 3 * STRIDE;
	for (u64 i = 0; i < nr; i++) {
		addrs[i] = start + i * STRIDE;
		((u64 *)(uintptr_t)array)[i] = ((u64 *)(uintptr_t)unused)[i] = addrs[i];
	}
	/* A thread has one more slot, which was never given out. */
	((u64 *)(uintptr_t)array)[BLOCKS] = addrs[2 * BIN - 1];
	((u64 *)(uintptr_t)array)[2 * BIN - 1] = start + SPARE;
	*(u64 *)(uintptr_t)(start + SPARE) = addrs[2];
	for (u64 i = 0; i < BINS; i++) {
		bins[k][i][0] = (u64)(BIN / 2) << 32;
		bins[k][i][1] = in_data;
		bins[k][i][2] = array + (i + 1) * BIN * 8;
	}
}

/* The first half was given out again, and the last one is held. */
static void play_old(int to, u64 nr_first, bool has_bins)
{
	u64 addrs[BLOCKS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	lay_out(0, addrs, nr_first);
	if (nr_first < BLOCKS)
		lay_out(1, addrs + nr_first, BLOCKS - nr_first);
	if (!has_bins)
		memset(bins, 0, sizeof(bins));
	hold_last(to, addrs);
}

/* Spans of rpmalloc, whose blocks begin in the middle of their slots. Before each one is a link to the next block. */
static void play_spans(int to)
{
	enum {
		SPAN = 64 << 10,
		SLOT = 256,
		HEADER = 128,
		NR = (SPAN - HEADER) / SLOT,
		SPANS = BLOCKS / NR + 1
	};
	u64 start = (u64)(uintptr_t)pages_new((SPANS + 1) * SPAN / 4096), addrs[BLOCKS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	start = (start + SPAN - 1) / SPAN * SPAN;
	for (u64 i = 0; i < SPANS; i++) {
		u64 *header = (u64 *)(uintptr_t)(start + i * SPAN);

		header[1] = NR | 20ULL << 32;
		header[2] = NR | (u64)NR << 32;
		header[4] = (u64)SLOT << 32;
		header[5] = 1ULL << 32;
		header[8] = (u64)(uintptr_t)roots;
	}
	for (u64 i = 0; i < BLOCKS; i++) {
		u64 slot = start + i / NR * SPAN + HEADER + i % NR * SLOT;

		addrs[i] = slot + SLOT / 2;
		if (i)
			*(u64 *)(uintptr_t)(slot - (i % NR ? SLOT : SPAN - (NR - 1) * SLOT)) = addrs[i];
	}
	hold_last(to, addrs);
}

static int for_each(const void *ctx, int (*visit)(void *visit_ctx, const struct heap_block *block),
		    void *visit_ctx)
{
	const u64 *addrs = ctx;
	int err = 0;

	for (int i = 0; i < BLOCKS && !err; i++)
		err = visit(visit_ctx, &(struct heap_block){ .addr = addrs[i], .size = SIZE });
	return err;
}

static bool find(const void *ctx, taddr_t addr, struct heap_block *out)
{
	const u64 *addrs = ctx;

	for (int i = 0; i < BLOCKS; i++) {
		if (addrs[i] != addr)
			continue;
		*out = (struct heap_block){ .addr = addr, .size = SIZE };
		return true;
	}
	return false;
}

static pid_t start_as(u64 addrs[BLOCKS], const char *library, const char *what)
{
	size_t len = 0, all = BLOCKS * sizeof(*addrs);
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		setenv("LD_PRELOAD", library, 1);
		execl("/proc/self/exe", "test_scan_jemalloc", what, NULL);
		_exit(1);
	}
	close(fds[1]);
	while (len < all) {
		ssize_t nr = read(fds[0], (char *)addrs + len, all - len);

		assert_true(nr > 0);
		len += (size_t)nr;
	}
	close(fds[0]);
	return pid;
}

static pid_t start(u64 addrs[BLOCKS], const char *library)
{
	return start_as(addrs, library, "play");
}

static struct cover_map cover;

static const struct cover_map *cover_of(const void *ctx)
{
	(void)ctx;
	return &cover;
}

/* Half of the blocks of the child @what must have @verdict, and the last one must be held. */
static void first_half_is(const char *verdict, const char *what, bool is_attached)
{
	u64 addrs[BLOCKS];
	const struct scan_books books = {
		.ctx = addrs, .nr_blocks = BLOCKS, .for_each = for_each, .find = find, .cover = cover_of
	};
	const struct snapshot_options so = { .max_pause_ns = SLOW_NS };
	const struct scan_options options = { .is_partial = is_attached, .keeps_freed = is_attached };
	struct heap_event moving = { .h.kind = EVENT_REALLOC_BEGIN };
	struct scan_block_info info;
	struct budget budget = { 0 };
	struct snapshot *snap;
	struct scan *scan;
	pid_t pid;

	if (sizeof(void *) != 8)
		skip_because("in 32-bit programs neither is searched for");
	pid = start_as(addrs, "", what);
	moving.old_addr = addrs[BLOCKS / 2];
	cover_map_init(&cover, &budget);
	for (int i = 0; i < BLOCKS; i++)
		cover_map_add(&cover, addrs[i], SIZE);
	assert_int_equal(scan_new(&scan, &books, &options), 0);
	if (strcmp(verdict, "definite") != 0)
		assert_int_equal(scan_event(scan, &moving), 0);
	assert_int_equal(snapshot_stop_new(&snap, pid, &so), 0);
	assert_int_equal(scan_read(scan, snap), 0);
	assert_int_equal(scan_judge(scan), 0);
	/* The description of an extent has the address of the first one. */
	for (int i = 1; i < BLOCKS / 2; i++) {
		if (i == BLOCKS / 4)
			continue;
		assert_true(scan_find(scan, addrs[i], &info));
		assert_string_equal(scan_verdict_name(info.verdict), verdict);
	}
	assert_true(scan_find(scan, addrs[BLOCKS - 1], &info));
	assert_string_equal(scan_verdict_name(info.verdict), "reachable");
	snapshot_free(snap);
	scan_free(scan);
	cover_map_fini(&cover);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The arrays of a thread, free slots in them, and free extents are no roots, before 5.3 either (T8). */
static void old_arrays(void **state)
{
	(void)state;
	first_half_is("definite", "old", true);
}

/* A second one in the process has such arrays, too (T8). */
static void two_of_them(void **state)
{
	(void)state;
	first_half_is("definite", "twice", false);
}

/* Where all blocks are known, memory in use that has none is jemalloc's own (T8). */
static void memory_without_blocks(void **state)
{
	(void)state;
	first_half_is("definite", "cached", false);
}

/* But the new copy of a realloc that has not returned may lie there. */
static void memory_of_a_copy(void **state)
{
	(void)state;
	first_half_is("reachable", "cached", false);
}

/* The begin of a slot that has had a block is no root (T8). */
static void slots_of_rpmalloc(void **state)
{
	(void)state;
	first_half_is("definite", "spans", true);
}

static int read_at_most(pid_t pid, const struct scan_books *books, u64 deadline_ns)
{
	const struct snapshot_options so = { .max_pause_ns = SLOW_NS };
	const struct scan_options none = { 0 };
	struct snapshot *snap;
	struct scan *scan;
	int err;

	assert_int_equal(scan_new(&scan, books, &none), 0);
	assert_int_equal(snapshot_stop_new(&snap, pid, &so), 0);
	assert_true(snap->deadline_ns != 0);
	if (deadline_ns)
		snap->deadline_ns = deadline_ns;
	err = scan_read(scan, snap);
	snapshot_free(snap);
	scan_free(scan);
	return err;
}

/* A walk that takes longer than the process may be stopped is given up. */
static void late(void **state)
{
	u64 addrs[BLOCKS];
	const struct scan_books books = {
		.ctx = addrs, .nr_blocks = BLOCKS, .for_each = for_each, .find = find
	};
	pid_t pid = start(addrs, "libjemalloc.so.2");

	(void)state;
	if (addrs[0]) {
		assert_int_equal(read_at_most(pid, &books, 1), -ETIME);
		assert_int_equal(read_at_most(pid, &books, 0), 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!addrs[0])
		skip_because("libjemalloc.so.2 is not installed");
}

/* The search for a tree is given up, too, in a program that has none. */
static void late_without(void **state)
{
	u64 addrs[BLOCKS];
	const struct scan_books books = {
		.ctx = addrs, .nr_blocks = BLOCKS, .for_each = for_each, .find = find
	};
	pid_t pid;

	(void)state;
	if (sizeof(void *) != 8)
		skip_because("in 32-bit programs no tree is searched for");
	pid = start(addrs, "");
	assert_int_equal(read_at_most(pid, &books, 1), -ETIME);
	assert_int_equal(read_at_most(pid, &books, 0), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A table of pointers, each of which could lead to a tree, and no tree. */
static void play_table(int to)
{
	u64 step = 4 << 20, nr = 1024;
	char *all = mmap(NULL, nr * step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			 -1, 0);

	for (u64 i = 0; all != MAP_FAILED && i < nr; i++) {
		u64 addr = (u64)(uintptr_t)all + i * 389 % nr * step;

		*(u64 *)(uintptr_t)addr = 1;
		roots[0][i] = addr;
	}
	play(to);
}

/* The search for a tree looks at so many pages only, whatever the data of the program looks like. */
static void few_looks(void **state)
{
	const struct snapshot_options so = { .max_pause_ns = SLOW_NS };
	struct jemalloc_tree tree = { .max_looks = 64 };
	u64 addrs[BLOCKS];
	struct snapshot *snap;
	pid_t pid;

	(void)state;
	if (sizeof(void *) != 8)
		skip_because("in 32-bit programs no tree is searched for");
	pid = start_as(addrs, "", "table");
	assert_int_equal(snapshot_stop_new(&snap, pid, &so), 0);
	assert_int_equal(jemalloc_tree_find(&tree, snap, 0, 0), -ENOENT);
	assert_in_range(tree.nodes.nr_looks, 0, 128);
	snapshot_free(snap);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_looks),	    cmocka_unit_test(late),
		cmocka_unit_test(late_without),	    cmocka_unit_test(old_arrays),
		cmocka_unit_test(two_of_them),	    cmocka_unit_test(memory_without_blocks),
		cmocka_unit_test(memory_of_a_copy), cmocka_unit_test(slots_of_rpmalloc)
	};

	if (argc > 1 && (!strcmp(argv[1], "old") || !strcmp(argv[1], "cached")))
		play_old(STDOUT_FILENO, BLOCKS, strcmp(argv[1], "cached") != 0);
	if (argc > 1 && !strcmp(argv[1], "twice"))
		play_old(STDOUT_FILENO, BLOCKS / 4, true);
	if (argc > 1 && !strcmp(argv[1], "table"))
		play_table(STDOUT_FILENO);
	if (argc > 1 && !strcmp(argv[1], "spans"))
		play_spans(STDOUT_FILENO);
	if (argc > 1)
		play(STDOUT_FILENO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
