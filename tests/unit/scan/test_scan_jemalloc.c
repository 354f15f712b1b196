/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk through the books of jemalloc in a real process. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

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

static pid_t start(u64 addrs[BLOCKS], const char *library)
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
		execl("/proc/self/exe", "test_scan_jemalloc", "play", NULL);
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(late), cmocka_unit_test(late_without) };

	(void)argv;
	if (argc > 1)
		play(STDOUT_FILENO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
