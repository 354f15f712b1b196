/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that forks for heaptap: its copy shows the moment, while the process goes on and notices nothing. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/log.h"
#include "user/lib/types.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot.h"

enum {
	BLOCKS = 2000,
	SLOTS = BLOCKS / 4,
	SLOW_PAUSE_MS = 20000,
	WAIT_MS = 20000,
	NR_ROUNDS = 20,
	SHARED_BYTES = 300 << 20
};

/* Where the pointers to the blocks are: a fourth of the blocks each. */
enum place { IN_PRIVATE, IN_SHARED, IN_NOT_FORKED, NOWHERE };

/* Shared with the child. Addresses are stored inverted, so that they are not pointers. */
static struct shared {
	volatile int is_ready, shall_move, has_moved, may_go, nr_rounds, nr_signals, nr_wrong;
	u64 hidden[BLOCKS];
} * shared;

static void **slots[NOWHERE];

static void nap(void)
{
	usleep(1000);
}

static void *map_slots(int flags)
{
	void *p = mmap(NULL, SLOTS * sizeof(void *), PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(9);
	return p;
}

static void build(void)
{
	slots[IN_PRIVATE] = map_slots(MAP_PRIVATE);
	slots[IN_SHARED] = map_slots(MAP_SHARED);
	slots[IN_NOT_FORKED] = map_slots(MAP_PRIVATE);
	madvise(slots[IN_NOT_FORKED], SLOTS * sizeof(void *), MADV_DONTFORK);
	for (int i = 0; i < BLOCKS; i++) {
		void *p = malloc(40);

		shared->hidden[i] = ~(u64)(uintptr_t)p;
		if (i % 4 != NOWHERE)
			slots[i % 4][i / 4] = p;
	}
}

/* Lose all blocks, and find those that were lost. */
static void turn_round(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *p = (void *)(uintptr_t)~shared->hidden[i];

		if (i % 4 != NOWHERE)
			slots[i % 4][i / 4] = NULL;
		else
			slots[IN_PRIVATE][i / 4] = p;
	}
}

/* The process would notice a child, or an interrupted system call. */
static void look_round(void)
{
	const struct timespec tick = { .tv_nsec = 1000000 };

	if (nanosleep(&tick, NULL) || waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		shared->nr_wrong++;
}

static void count_signal(int sig)
{
	(void)sig;
	shared->nr_signals++;
}

static void quiet_child(void)
{
	signal(SIGCHLD, count_signal);
	build();
	shared->is_ready = 1;
	while (!shared->may_go) {
		if (shared->shall_move && !shared->has_moved) {
			turn_round();
			shared->has_moved = 1;
		}
		look_round();
		shared->nr_rounds++;
	}
	_exit(shared->nr_wrong ? 4 : 3);
}

static void busy_child(void)
{
	signal(SIGRTMIN, count_signal);
	signal(SIGCHLD, count_signal);
	build();
	shared->is_ready = 1;
	while (!shared->may_go)
		shared->nr_rounds++;
	_exit(3);
}

/* clone() kills this process. */
static void strict_child(void)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { ARRAY_SIZE(code), (struct sock_filter *)code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(9);
	quiet_child();
}

static pid_t start(void (*child)(void))
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child();
		_exit(8);
	}
	while (!shared->is_ready)
		nap();
	return pid;
}

/* The child goes on, and ends as it would without us. It has no child, living or dead. */
static void assert_goes_on(pid_t pid)
{
	int status, before = shared->nr_rounds;
	char path[64], text[64] = "";
	FILE *f;

	for (int i = 0; i < WAIT_MS && shared->nr_rounds == before; i++)
		nap();
	assert_true(shared->nr_rounds != before);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	if (f) {
		assert_null(fgets(text, sizeof(text), f));
		fclose(f);
	}
	shared->may_go = 1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
}

static struct snapshot *take(pid_t pid)
{
	struct snapshot_options options = { .max_pause_ns = SLOW_PAUSE_MS * 1000000ULL,
					    .way = SNAPSHOT_FORK };
	struct snapshot *snap = NULL;

	assert_int_equal(snapshot_stop_new(&snap, pid, &options), 0);
	return snap;
}

/* A copy; NULL if this machine makes none. */
static struct snapshot *take_copy(pid_t pid)
{
	struct snapshot *snap = take(pid);
	int err = snapshot_copy(snap);

	if (!err)
		return snap;
	snapshot_free(snap);
	if (err != -ENOTSUP)
		fail_msg("snapshot_copy: %s", strerror(-err));
	assert_goes_on(pid);
	return NULL;
}

static int each_block(const void *ctx, int (*visit)(void *, const struct heap_block *), void *visit_ctx)
{
	(void)ctx;
	for (int i = 0; i < BLOCKS; i++) {
		struct heap_block b = { .addr = ~shared->hidden[i], .size = 40 };
		int err = visit(visit_ctx, &b);

		if (err)
			return err;
	}
	return 0;
}

/* The verdicts are those of the moment, although the process turns all of them round before its copy is read. */
static void shows_the_moment(void **state)
{
	const struct scan_books books = { .for_each = each_block };
	const struct scan_options options = { 0 };
	pid_t pid = start(quiet_child);
	struct snapshot *snap = take_copy(pid);
	struct scan *scan;

	(void)state;
	if (!snap)
		skip();
	assert_int_equal(scan_new(&scan, &books, &options), 0);
	shared->shall_move = 1;
	for (int i = 0; i < WAIT_MS && !shared->has_moved; i++)
		nap();
	assert_true(shared->has_moved);
	assert_int_equal(scan_read(scan, snap), 0);
	assert_int_equal(scan_judge(scan), 0);
	assert_true(scan_result(scan).is_complete);
	for (int i = 0; i < BLOCKS; i++) {
		struct scan_block_info info;

		assert_true(scan_find(scan, ~shared->hidden[i], &info));
		assert_int_equal(info.verdict, i % 4 == NOWHERE ? SCAN_DEFINITE : SCAN_REACHABLE);
	}
	scan_free(scan);
	snapshot_free(snap);
	assert_int_equal(shared->nr_signals, 0);
	assert_goes_on(pid);
}

/* Again and again, while it sleeps in the kernel: no system call is interrupted, no zombie stays (A12). */
static void leaves_nothing(void **state)
{
	pid_t pid = start(quiet_child);

	(void)state;
	for (int i = 0; i < NR_ROUNDS; i++) {
		struct snapshot *snap = take_copy(pid);

		if (!snap)
			skip();
		assert_true(snap->pause_ns > 0);
		snapshot_resume(snap);
		snapshot_free(snap);
	}
	assert_int_equal(shared->nr_signals, 0);
	assert_goes_on(pid);
}

/* Signals at any moment are delivered, each once. */
static void signals_are_kept(void **state)
{
	enum { EACH = 5 };
	pid_t pid = start(busy_child);

	(void)state;
	for (int i = 0; i < NR_ROUNDS; i++) {
		struct snapshot *snap;

		for (int k = 0; k < EACH; k++)
			sigqueue(pid, SIGRTMIN, (union sigval){ .sival_int = i });
		snap = take(pid);
		/* A thread that is about to take a signal does not fork: then the process stays stopped. */
		if (snapshot_copy(snap) == -ENOTSUP)
			skip();
		snapshot_free(snap);
	}
	for (int i = 0; i < WAIT_MS && shared->nr_signals < NR_ROUNDS * EACH; i++)
		nap();
	assert_int_equal(shared->nr_signals, NR_ROUNDS * EACH);
	assert_goes_on(pid);
}

/* This child shares more memory than heaptap keeps. */
static void sharing_child(void)
{
	char *p = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE,
		       -1, 0);

	if (p == MAP_FAILED)
		_exit(9);
	memset(p, 1, SHARED_BYTES);
	quiet_child();
}

/* A copy that is given up after the fork leaves nothing either, and the process can be read as it stands. */
static void given_up(void **state)
{
	const struct scan_books books = { .for_each = each_block };
	const struct scan_options options = { 0 };
	pid_t pid = start(sharing_child);
	struct snapshot *snap = take(pid);
	int err = snapshot_copy(snap);
	struct scan *scan;

	(void)state;
	assert_true(err == -EFBIG || err == -ENOTSUP);
	assert_int_equal(scan_new(&scan, &books, &options), 0);
	assert_int_equal(scan_read(scan, snap), 0);
	assert_int_equal(scan_judge(scan), 0);
	assert_true(scan_result(scan).is_complete);
	scan_free(scan);
	snapshot_free(snap);
	assert_int_equal(shared->nr_signals, 0);
	assert_goes_on(pid);
}

/* A seccomp filter that kills for a fork: root suspends it, others get no copy. The process lives (B6). */
static void seccomp_filter(void **state)
{
	pid_t pid = start(strict_child);
	struct snapshot *snap = take(pid);
	int err = snapshot_copy(snap);

	(void)state;
	assert_true(err == -ENOTSUP || err == (geteuid() ? -EPERM : 0));
	snapshot_free(snap);
	assert_goes_on(pid);
}

/* A stopped process is not made to run for a fork. */
static void stopped_stays_stopped(void **state)
{
	pid_t pid = start(quiet_child);
	struct snapshot *snap;
	int status, err;

	(void)state;
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	snap = take(pid);
	err = snapshot_copy(snap);
	assert_true(err == -EBUSY || err == -ENOTSUP);
	snapshot_free(snap);
	kill(pid, SIGCONT);
	assert_goes_on(pid);
}

/* The state of the first child of @pid, as /proc shows it; 0 = it has none. */
static char state_of_child(pid_t pid)
{
	char path[64], text[512] = "";
	const char *end = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	if (!text[0])
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", atoi(text));
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f))
		end = strrchr(text, ')');
	if (f)
		fclose(f);
	return end ? end[2] : 0;
}

/* kill -9 of the scanner: the process goes on, and the copy is dead (A12). */
static void scanner_killed(void **state)
{
	pid_t pid = start(quiet_child), scanner;

	(void)state;
	scanner = fork();
	assert_true(scanner >= 0);
	if (scanner == 0) {
		struct snapshot *snap = take(pid);

		shared->shall_move = snapshot_copy(snap) ? 2 : 1;
		for (;;)
			pause();
	}
	for (int i = 0; i < WAIT_MS && !shared->shall_move; i++)
		nap();
	kill(scanner, SIGKILL);
	assert_int_equal(waitpid(scanner, NULL, 0), scanner);
	for (int i = 0; i < WAIT_MS && state_of_child(pid) && state_of_child(pid) != 'Z'; i++)
		nap();
	assert_true(!state_of_child(pid) || state_of_child(pid) == 'Z');
	for (int i = 0, before = shared->nr_rounds; i < WAIT_MS && shared->nr_rounds == before; i++)
		nap();
	shared->may_go = 1;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(shared->nr_signals, 0);
}

/* The fork of this child takes some milliseconds. */
static void large_child(void)
{
	char *p = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, SHARED_BYTES, MADV_NOHUGEPAGE))
		_exit(9);
	memset(p, 1, SHARED_BYTES);
	quiet_child();
}

static void copy_for_ever(pid_t pid)
{
	for (;;) {
		struct snapshot *snap = take(pid);

		shared->shall_move = 2; /* the scanner works */
		if (snapshot_copy(snap) == -ENOTSUP)
			_exit(0);
		snapshot_free(snap);
	}
}

/* kill -9 of the scanner at any moment, also while a thread of the process carries out its calls (A12). */
static void killed_at_any_moment(void **state)
{
	const char *wanted = getenv("HEAPTAP_ROUNDS");
	int nr = wanted ? atoi(wanted) : 10;
	pid_t pid = start(large_child);

	(void)state;
	srand(1);
	for (int i = 0; i < nr; i++) {
		pid_t scanner;

		shared->shall_move = 0;
		scanner = fork();
		assert_true(scanner >= 0);
		if (scanner == 0)
			copy_for_ever(pid);
		for (int k = 0; k < WAIT_MS && !shared->shall_move; k++)
			nap();
		usleep((useconds_t)(rand() % 30000));
		kill(scanner, SIGKILL);
		assert_int_equal(waitpid(scanner, NULL, 0), scanner);
		for (int before = shared->nr_rounds, k = 0; k < WAIT_MS && shared->nr_rounds == before; k++)
			nap();
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	}
	shared->may_go = 1;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(shared->nr_signals, 0);
	assert_int_equal(shared->nr_wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_the_moment), cmocka_unit_test(leaves_nothing),
		cmocka_unit_test(signals_are_kept), cmocka_unit_test(given_up),
		cmocka_unit_test(seccomp_filter),   cmocka_unit_test(stopped_stays_stopped),
		cmocka_unit_test(scanner_killed),   cmocka_unit_test(killed_at_any_moment),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
