/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of a process, by a fork of its own or made ahead: they show the moment, and the process notices nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

#include "user/heap/heap.h"
#include "user/lib/log.h"
#include "user/lib/types.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot.h"
#include "user/scan/snapshot_plan.h"
#include "tests/unit/rounds.h"
#include "tests/unit/skip.h"

enum {
	BLOCKS = 2000,
	SLOTS = BLOCKS / 5,
	SLOW_PAUSE_MS = 120000,
	WAIT_MS = 20000,
	NR_TRIES = 20,
	SHARED_BYTES = 300 << 20,
	GUARD_INSTALL = 102, /* MADV_GUARD_INSTALL */
};

/* Where the pointers to the blocks are: a fifth of the blocks each. */
enum place { IN_PRIVATE, IN_SHARED, IN_NOT_FORKED, IN_WIPED, NOWHERE, NR_PLACES };

/* Shared with the child. Addresses are stored inverted, so that they are not pointers. */
static struct shared {
	volatile int is_ready, shall_move, has_moved, may_go, nr_rounds, nr_signals, nr_wrong;
	u64 hidden[BLOCKS];
	u64 truth; /* address of the changes of changing_child() */
} * shared;

static void **slots[NOWHERE];
static u32 nr_started;

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

/* Block @i. No two children have blocks at the same addresses: they inherit what this process remembers of others. */
static void *make_block(int i)
{
	static uintptr_t hidden;

	if (!hidden) {
		uintptr_t at = 0x20000000 + ((uintptr_t)nr_started << 20);

		if (mmap((void *)at, (size_t)BLOCKS * 48, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			_exit(9);
		hidden = ~at;
	}
	return (char *)~hidden + (size_t)i * 48;
}

static void build(void)
{
	slots[IN_PRIVATE] = map_slots(MAP_PRIVATE);
	slots[IN_SHARED] = map_slots(MAP_SHARED);
	slots[IN_NOT_FORKED] = map_slots(MAP_PRIVATE);
	slots[IN_WIPED] = map_slots(MAP_PRIVATE);
	/* No program can read such a page: nothing is missed there. Older kernels than 6.13 have none. */
	madvise(map_slots(MAP_PRIVATE), SLOTS * sizeof(void *), GUARD_INSTALL);
	madvise(slots[IN_NOT_FORKED], SLOTS * sizeof(void *), MADV_DONTFORK);
	madvise(slots[IN_WIPED], SLOTS * sizeof(void *), MADV_WIPEONFORK);
	for (int i = 0; i < BLOCKS; i++) {
		void *p = make_block(i);

		shared->hidden[i] = ~(u64)(uintptr_t)p;
		if (i % NR_PLACES != NOWHERE)
			slots[i % NR_PLACES][i / NR_PLACES] = p;
	}
}

/* Lose all blocks, and find those that were lost. */
static void turn_round(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *p = (void *)(uintptr_t)~shared->hidden[i];

		if (i % NR_PLACES != NOWHERE)
			slots[i % NR_PLACES][i / NR_PLACES] = NULL;
		else
			slots[IN_PRIVATE][i / NR_PLACES] = p;
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

/* The calls that copies need kill this process. */
static void strict_child(void)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 1, 0),
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
	nr_started++;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGSEGV, SIG_DFL);
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

/* The way of this test, and what take() planned. */
static enum snapshot_way way;
static struct snapshot_plan plan;
static u64 max_copy;

static int choose(void **state)
{
	way = **(const enum snapshot_way **)state;
	return 0;
}

static struct snapshot *take(pid_t pid)
{
	const struct snapshot_plan_options po = {
		.pid = pid, .way = way, .max_copy = max_copy, .max_pause_ns = SLOW_PAUSE_MS * 1000000ULL
	};
	struct snapshot_options options = { .max_pause_ns = SLOW_PAUSE_MS * 1000000ULL };
	struct snapshot *snap = NULL;

	snapshot_plan_make(&plan, &po);
	options.way = plan.way;
	options.precopy = plan.precopy;
	assert_int_equal(snapshot_stop_new(&snap, pid, &options), 0);
	return snap;
}

/* snapshot_copy(). -ENOTSUP also if this machine has no such way. */
static int copy(struct snapshot *snap)
{
	int err = snapshot_copy(snap);

	snapshot_plan_free(&plan);
	return err == -ECANCELED ? -ENOTSUP : err;
}

/* A copy; NULL if this machine makes none. A thread may be in a state in which it can carry out no call. */
static struct snapshot *take_copy(pid_t pid)
{
	for (int i = 0; i < NR_TRIES; i++) {
		struct snapshot *snap = take(pid);
		int err = copy(snap);

		if (!err || way == SNAPSHOT_STOP)
			return snap;
		snapshot_free(snap);
		if (err != -ENOTSUP && err != -EBUSY)
			fail_msg("snapshot_copy: %s", strerror(-err));
		nap();
	}
	assert_goes_on(pid);
	return NULL;
}

/* Nothing of a precopy is left: no userfaultfd, no mapping that it watches. */
static bool is_clean(pid_t pid)
{
	char path[64], line[512];
	bool is_found = false;
	struct dirent *entry;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, line, sizeof(line) - 1);

		line[len > 0 ? len : 0] = '\0';
		is_found = is_found || strstr(line, "userfaultfd");
	}
	if (dir)
		closedir(dir);
	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		is_found = is_found || (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " uw"));
	if (f)
		fclose(f);
	return !is_found;
}

static void assert_clean(pid_t pid)
{
	for (int i = 0; i < WAIT_MS && !is_clean(pid); i++)
		nap();
	assert_true(is_clean(pid));
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
		skip_because("no copy can be made here");
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
		assert_int_equal(info.verdict, i % NR_PLACES == NOWHERE ? SCAN_DEFINITE : SCAN_REACHABLE);
	}
	scan_free(scan);
	snapshot_free(snap);
	assert_int_equal(shared->nr_signals, 0);
	assert_clean(pid);
	assert_goes_on(pid);
}

/* Again and again, while it sleeps in the kernel: no system call is interrupted, no zombie stays (A12). */
static void leaves_nothing(void **state)
{
	pid_t pid = start(quiet_child);

	(void)state;
	for (int i = 0; i < 2 * rounds(); i++) {
		struct snapshot *snap = take_copy(pid);

		if (!snap)
			skip_because("no copy can be made here");
		assert_true(snap->pause_ns > 0);
		snapshot_resume(snap);
		snapshot_free(snap);
		assert_true(is_clean(pid));
	}
	assert_int_equal(shared->nr_signals, 0);
	assert_goes_on(pid);
}

/* Signals at any moment are delivered, each once. */
static void signals_are_kept(void **state)
{
	enum { EACH = 5 };
	pid_t pid = start(busy_child);
	int nr = 2 * rounds();

	(void)state;
	for (int i = 0; i < nr; i++) {
		struct snapshot *snap;

		for (int k = 0; k < EACH; k++)
			sigqueue(pid, SIGRTMIN, (union sigval){ .sival_int = i });
		snap = take(pid);
		/* A thread that is about to take a signal does not fork: then the process stays stopped. */
		copy(snap);
		snapshot_free(snap);
	}
	for (int i = 0; i < WAIT_MS && shared->nr_signals < nr * EACH; i++)
		nap();
	assert_int_equal(shared->nr_signals, nr * EACH);
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
	int err = copy(snap);
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
	int err = copy(snap);

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
	err = copy(snap);
	assert_true(err == -EBUSY || err == -ENOTSUP);
	snapshot_free(snap);
	assert_clean(pid);
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

		shared->shall_move = copy(snap) ? 2 : 1;
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
	assert_clean(pid);
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
		struct snapshot *snap;

		shared->shall_move = 2; /* the scanner works */
		snap = take(pid);
		if (copy(snap) == -ENOTSUP)
			_exit(0);
		snapshot_free(snap);
	}
}

/* kill -9 of the scanner at any moment, also while a thread of the process carries out its calls (A12). */
static void killed_at_any_moment(void **state)
{
	int nr = rounds();
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
		usleep((useconds_t)(rand() % (way == SNAPSHOT_FORK ? 30000 : 300000)));
		kill(scanner, SIGKILL);
		assert_int_equal(waitpid(scanner, NULL, 0), scanner);
		for (int before = shared->nr_rounds, k = 0; k < WAIT_MS && shared->nr_rounds == before; k++)
			nap();
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		assert_clean(pid);
	}
	shared->may_go = 1;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(shared->nr_signals, 0);
	assert_int_equal(shared->nr_wrong, 0);
}

/* The blocks of the changing child. The truth is in its own memory, so that each moment has its own. */
struct changes {
	void **slots[BLOCKS]; /* on a page of its own each */
	volatile u8 is_lost[BLOCKS];
	volatile u16 busy[8]; /* the blocks of the last changes: registers may still point to them */
};

static struct changes *changes;
static int advice;

static void *map_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(9);
	if (advice)
		madvise(p, len, advice);
	return p;
}

/* Slots move to another mapping; both lead to the same blocks meanwhile. */
static void move_slots(int first, int nr)
{
	enum { PAGE = 4096 };
	char *p = map_pages((size_t)nr * PAGE);

	for (int i = 0; i < nr; i++) {
		void **old = changes->slots[first + i];
		void **slot = (void **)(void *)(p + (size_t)i * PAGE);

		*slot = *old;
		changes->slots[first + i] = slot;
		munmap((void *)((uintptr_t)old & ~(uintptr_t)(PAGE - 1)), PAGE);
	}
}

/* Loses blocks and finds them again, as fast as it can, in memory of which each page is written. */
static void changing_child(void)
{
	u64 random = 88172645463325252ULL;

	changes = map_pages(sizeof(*changes));
	for (int i = 0; i < BLOCKS; i++) {
		static char *pages;

		pages = pages ? pages : map_pages((size_t)BLOCKS * 4096);
		changes->slots[i] = (void **)(void *)(pages + (size_t)i * 4096);
		*changes->slots[i] = make_block(i);
		shared->hidden[i] = ~(u64)(uintptr_t)*changes->slots[i];
	}
	shared->truth = (u64)(uintptr_t)changes;
	shared->is_ready = 1;
	for (u64 nr = 0; !shared->may_go; nr++) {
		u16 i;

		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		i = (u16)(random % BLOCKS);
		changes->busy[nr % 8] = i;
		changes->is_lost[i] = !changes->is_lost[i];
		*(u64 volatile *)changes->slots[i] = changes->is_lost[i] ? 0 : ~shared->hidden[i];
		if (nr % 10000 == 0)
			move_slots((int)((random >> 20) % (BLOCKS - 10)), 10);
		shared->nr_rounds++;
	}
	_exit(3);
}

static void huge_child(void)
{
	advice = MADV_HUGEPAGE;
	changing_child();
}

static void locked_child(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		shared->nr_wrong++; /* more than this user may lock */
	changing_child();
}

static bool is_busy(const struct changes *c, int block)
{
	for (size_t i = 0; i < ARRAY_SIZE(c->busy); i++)
		if (c->busy[i] == block)
			return true;
	return false;
}

/* All verdicts are those of one moment, at which the child was somewhere between two changes. */
static void compare_with_truth(struct snapshot *snap)
{
	const struct scan_books books = { .for_each = each_block };
	const struct scan_options options = { 0 };
	struct changes *truth = malloc(sizeof(*truth));
	struct scan *scan;

	assert_non_null(truth);
	assert_int_equal(scan_new(&scan, &books, &options), 0);
	for (int i = 0, before = shared->nr_rounds; way != SNAPSHOT_STOP && i < WAIT_MS; i++) {
		if (shared->nr_rounds - before > 10000)
			break;
		nap();
	}
	assert_int_equal(snapshot_fetch(snap, shared->truth, truth, sizeof(*truth)), 0);
	assert_int_equal(scan_read(scan, snap), 0);
	assert_int_equal(scan_judge(scan), 0);
	assert_true(scan_result(scan).is_complete);
	for (int i = 0; i < BLOCKS; i++) {
		struct scan_block_info info;

		assert_true(scan_find(scan, ~shared->hidden[i], &info));
		if (!is_busy(truth, i))
			assert_int_equal(info.verdict, truth->is_lost[i] ? SCAN_DEFINITE : SCAN_REACHABLE);
	}
	scan_free(scan);
	free(truth);
}

static void change_under(void (*child)(void))
{
	pid_t pid = start(child);

	for (int i = 0; i < rounds(); i++) {
		struct snapshot *snap = take_copy(pid);

		if (!snap)
			skip_because("no copy can be made here");
		compare_with_truth(snap);
		snapshot_free(snap);
	}
	assert_clean(pid);
	assert_goes_on(pid);
}

/* The process writes all the time: the verdicts are exactly those of the moment. */
static void while_it_changes(void **state)
{
	(void)state;
	change_under(changing_child);
}

static void while_huge_pages_change(void **state)
{
	(void)state;
	change_under(huge_child);
}

static void while_locked_memory_changes(void **state)
{
	(void)state;
	change_under(locked_child);
}

/* This child has a userfaultfd of its own. */
static void watching_child(void)
{
	if (syscall(SYS_userfaultfd, O_CLOEXEC | 1) < 0)
		_exit(9);
	quiet_child();
}

/* Two protections of pages could not be told apart: no precopy, and the descriptor of the process stays. */
static void own_userfaultfd(void **state)
{
	pid_t pid = start(watching_child);
	struct snapshot *snap = take(pid);

	(void)state;
	assert_int_equal(plan.way, SNAPSHOT_STOP);
	assert_null(plan.precopy);
	snapshot_free(snap);
	assert_goes_on(pid);
}

/* A copy that may take more memory than allowed is not made, whatever the way. */
static void too_dear(void **state)
{
	static const enum snapshot_way ways[] = { SNAPSHOT_FORK, SNAPSHOT_PRECOPY, SNAPSHOT_AUTO };
	pid_t pid = start(large_child);

	(void)state;
	max_copy = 1 << 20;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct snapshot *snap;

		way = ways[i];
		snap = take(pid);
		assert_int_equal(plan.way, SNAPSHOT_STOP);
		assert_int_equal(copy(snap), -ENOTSUP);
		snapshot_free(snap);
	}
	max_copy = 0;
	assert_clean(pid);
	assert_goes_on(pid);
}

#define BY(test, which)                                                                                      \
	cmocka_unit_test_prestate_setup_teardown(test, choose, NULL, &(enum snapshot_way){ which })
#define EACH_WAY(test) BY(test, SNAPSHOT_FORK), BY(test, SNAPSHOT_PRECOPY)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH_WAY(shows_the_moment),
		EACH_WAY(leaves_nothing),
		EACH_WAY(signals_are_kept),
		EACH_WAY(given_up),
		EACH_WAY(seccomp_filter),
		EACH_WAY(stopped_stays_stopped),
		EACH_WAY(scanner_killed),
		EACH_WAY(killed_at_any_moment),
		BY(while_it_changes, SNAPSHOT_STOP),
		EACH_WAY(while_it_changes),
		BY(while_huge_pages_change, SNAPSHOT_STOP),
		EACH_WAY(while_huge_pages_change),
		EACH_WAY(while_locked_memory_changes),
		BY(own_userfaultfd, SNAPSHOT_PRECOPY),
		cmocka_unit_test(too_dear),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
