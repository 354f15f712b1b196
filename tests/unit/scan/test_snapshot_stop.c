/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stop a process while its mappings change, and while its threads wait in the kernel. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/lib/types.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot.h"

enum { BLOCKS = 500, BLOCK_SIZE = 40, ROUNDS = 40, MAX_WAITS = 16, LONG_S = 100000 };

/* Shared with the child. Addresses are stored inverted, so that they are not pointers. */
struct shared {
	volatile int nr_moves, nr_churns, nr_begun;
	volatile int returned[MAX_WAITS]; /* errno + 1 of a call that has ended */
	u64 hidden[BLOCKS];
};

static struct shared *shared;

static void nap(void)
{
	usleep(1000);
}

/* ---- a child whose mappings change all the time ---- */

static void *churn(void *unused)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)unused;
	for (size_t i = 1;; i++) {
		size_t len = page * (1 + i % 40);
		char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			_exit(9);
		memset(p, 1, len);
		madvise(p, len / 2, MADV_DONTNEED);
		mprotect(p, page, PROT_NONE);
		munmap(p, len);
		shared->nr_churns++;
	}
	return NULL;
}

/* The only pointers lie in memory that moves between two places. The other place stays mapped, but empty. */
static void moving_child(void)
{
	size_t len = 1 << 16;
	char *places = mmap(NULL, 2 * len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void **held =
		mmap(places, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	pthread_t t;

	if (places == MAP_FAILED || held == MAP_FAILED || pthread_create(&t, NULL, churn, NULL))
		_exit(9);
	for (int i = 0; i < BLOCKS; i++) {
		held[i] = calloc(1, BLOCK_SIZE);
		shared->hidden[i] = ~(u64)(uintptr_t)held[i];
	}
	for (int i = 1;; i++) {
		held = mremap(held, len, len, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
			      places + (i % 2 ? len : 0));
		if (held == MAP_FAILED)
			_exit(9);
		shared->nr_moves++;
	}
}

/* ---- a child that waits in every way that Linux restarts after a stop ---- */

static int empty_pipe[2], full_pipe[2], sockets[2], listener, lock_file;
static int word;

static long in_read(void)
{
	char c;

	return read(empty_pipe[0], &c, 1);
}

/* A call that has written a part returns the length of that part, as after SIGCONT. */
static long in_write(void)
{
	static char much[4096];

	fcntl(full_pipe[1], F_SETPIPE_SZ, sizeof(much));
	while (write(full_pipe[1], much, sizeof(much)) == sizeof(much))
		;
	return -1;
}

static long in_recv(void)
{
	char c;

	return recv(sockets[0], &c, 1, 0);
}

static long in_accept(void)
{
	return accept(listener, NULL, NULL);
}

static long in_poll(void)
{
	struct pollfd p = { .fd = sockets[0], .events = POLLIN };

	return poll(&p, 1, -1);
}

static long in_poll_timeout(void)
{
	struct pollfd p = { .fd = sockets[0], .events = POLLIN };

	return poll(&p, 1, LONG_S * 1000);
}

static long in_select(void)
{
	struct timeval tv = { .tv_sec = LONG_S };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(sockets[0], &set);
	return select(sockets[0] + 1, &set, NULL, NULL, &tv);
}

static long in_nanosleep(void)
{
	struct timespec ts = { .tv_sec = LONG_S };

	return nanosleep(&ts, NULL);
}

static long in_clock_nanosleep(void)
{
	struct timespec ts = { .tv_sec = LONG_S };

	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	return errno ? -1 : 0;
}

static long in_futex(void)
{
	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static long in_futex_timeout(void)
{
	struct timespec ts = { .tv_sec = LONG_S };

	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
}

static long in_wait(void)
{
	return waitpid(-1, NULL, 0);
}

static long in_lock(void)
{
	struct flock lock = { .l_type = F_WRLCK };

	return fcntl(lock_file, F_SETLKW, &lock);
}

static long in_pause(void)
{
	return pause();
}

static long (*const waits[])(void) = {
	in_read,      in_write,		  in_recv,  in_accept,	      in_poll, in_poll_timeout, in_select,
	in_nanosleep, in_clock_nanosleep, in_futex, in_futex_timeout, in_wait, in_lock,		in_pause,
};
_Static_assert(ARRAY_SIZE(waits) <= MAX_WAITS, "room for all");

static void *waiter(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	__atomic_add_fetch(&shared->nr_begun, 1, __ATOMIC_SEQ_CST);
	errno = 0;
	waits[i]();
	shared->returned[i] = errno + 1;
	for (;;)
		pause();
	return NULL;
}

/* A process that holds a lock on the file, and lives as long as its parent: for in_wait() and in_lock(). */
static void start_holder(void)
{
	struct flock lock = { .l_type = F_WRLCK };
	char name[] = "/tmp/heaptap-lock.XXXXXX";
	int ready[2];
	char c = 0;

	lock_file = mkstemp(name);
	unlink(name);
	if (lock_file < 0 || pipe(ready) != 0)
		_exit(9);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fcntl(lock_file, F_SETLK, &lock) != 0 || write(ready[1], &c, 1) != 1)
			_exit(9);
		for (;;)
			pause();
	}
	if (read(ready[0], &c, 1) != 1)
		_exit(9);
}

static void waiting_child(void)
{
	struct sockaddr_storage any = { .ss_family = AF_UNIX };
	pthread_t t;

	start_holder();
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (pipe(empty_pipe) != 0 || pipe(full_pipe) != 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0 ||
	    bind(listener, (struct sockaddr *)&any, sizeof(sa_family_t)) != 0 || listen(listener, 1) != 0)
		_exit(9);
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		if (pthread_create(&t, NULL, waiter, (void *)(uintptr_t)i) != 0)
			_exit(9);
	for (;;)
		pause();
}

/* ---- the parent's side ---- */

static pid_t start(void (*child)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child();
	_exit(8);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool is_alive(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static struct snapshot *take(pid_t pid)
{
	const struct snapshot_options options = { .max_pause_ns = LONG_S * 1000000000ULL };
	struct snapshot *snap = NULL;

	assert_int_equal(snapshot_stop_new(&snap, pid, &options), 0);
	assert_int_equal(snap->nr_unstopped, 0);
	return snap;
}

static int each_block(const void *ctx, int (*visit)(void *, const struct heap_block *), void *visit_ctx)
{
	int err = 0;

	(void)ctx;
	for (int i = 0; i < BLOCKS && !err; i++) {
		struct heap_block b = { .addr = ~shared->hidden[i], .size = BLOCK_SIZE };

		err = visit(visit_ctx, &b);
	}
	return err;
}

/* Mappings and memory are those of one moment (H2). */
static void mappings_change(void **state)
{
	const struct scan_books books = { .for_each = each_block };
	const struct scan_options options = { 0 };
	pid_t pid;

	(void)state;
	memset(shared, 0, sizeof(*shared));
	pid = start(moving_child);
	for (int i = 0; i < ROUNDS; i++) {
		int nr_moves = shared->nr_moves, nr_churns = shared->nr_churns;
		struct scan_result result;
		struct snapshot *snap;
		struct scan *scan;

		while ((shared->nr_moves <= nr_moves || shared->nr_churns <= nr_churns) && is_alive(pid))
			nap();
		assert_int_equal(scan_new(&scan, &books, &options), 0);
		snap = take(pid);
		assert_int_equal(scan_read(scan, snap), 0);
		snapshot_resume(snap);
		assert_int_equal(scan_judge(scan), 0);
		result = scan_result(scan);
		assert_true(result.is_complete);
		assert_int_equal(result.sums.of[SCAN_REACHABLE].blocks, BLOCKS);
		scan_free(scan);
		snapshot_free(snap);
	}
	assert_true(is_alive(pid));
	stop(pid);
}

/* True if every thread of @pid waits: its state is 'S'. */
static bool all_wait(pid_t pid)
{
	char path[64], text[256];
	bool is_all = true;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && is_all && (entry = readdir(dir))) {
		FILE *f;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stat", pid, entry->d_name);
		f = fopen(path, "re");
		is_all = f && fgets(text, sizeof(text), f) && strstr(text, ") S ");
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return dir && is_all;
}

/* No call ends because the process was stopped: all still wait (H4). */
static void calls_go_on(void **state)
{
	pid_t pid;

	(void)state;
	memset(shared, 0, sizeof(*shared));
	pid = start(waiting_child);
	while (shared->nr_begun < (int)ARRAY_SIZE(waits) && is_alive(pid))
		nap();
	for (int i = 0; i < ROUNDS; i++) {
		while (!all_wait(pid) && is_alive(pid))
			nap();
		snapshot_free(take(pid));
	}
	while (!all_wait(pid) && is_alive(pid))
		nap();
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		if (shared->returned[i])
			fail_msg("call %zu came back: %s", i, strerror(shared->returned[i] - 1));
	assert_true(is_alive(pid));
	stop(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_change),
		cmocka_unit_test(calls_go_on),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 99;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
