/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots of real processes: what is read, what stays unchanged, and verdicts on blocks that are known. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/lib/log.h"
#include "user/scan/scan.h"
#include "user/scan/snapshot.h"

enum { MAX_TRUTHS = 4096, SLOW_PAUSE_MS = 20000 };

/* The blocks as the child knows them. Addresses are stored inverted, so that they are not pointers. */
struct truth {
	u64 hidden;
	u64 size;
	enum scan_verdict verdict;
	const char *what; /* a string that both processes have */
};

struct shared {
	volatile int is_ready, may_go, nr_done;
	volatile int nr_signals, nr_rounds;
	int nr;
	struct truth truths[MAX_TRUTHS];
};

static struct shared *shared;

static void sleep_ms(int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

/* ---- the child's side ---- */

/* Note a block of the child. */
static __attribute__((noinline)) void *block(size_t size, enum scan_verdict verdict, const char *what)
{
	void **p = calloc(1, size);

	if (!p || shared->nr == MAX_TRUTHS)
		_exit(9);
	shared->truths[shared->nr++] = (struct truth){
		.hidden = ~(u64)(uintptr_t)p, .size = size, .verdict = verdict, .what = what
	};
	return p;
}

/* volatile, because no code reads them, but they hold blocks. */
static void *volatile global_head, *volatile global_middle, *volatile global_big;
static __thread void *volatile tls_head;
static void **volatile mapped;
static u64 hidden_register, hidden_vector;
static pthread_barrier_t barrier;

static __attribute__((noinline)) void *list(int nr, enum scan_verdict head, enum scan_verdict rest,
					    const char *what)
{
	void **first = block(32, head, what), **last = first;

	for (int i = 1; i < nr; i++) {
		last[1] = block(32, rest, what);
		last = last[1];
	}
	return first;
}

static __attribute__((noinline)) void *tree(int depth, enum scan_verdict head, enum scan_verdict rest,
					    const char *what)
{
	void **node = block(48, head, what);

	if (depth) {
		node[2] = tree(depth - 1, rest, rest, what);
		node[3] = tree(depth - 1, rest, rest, what);
	}
	return node;
}

/* Wait in the kernel with the only pointers in one general and one vector register. */
static void *holds_in_registers(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&barrier);
	__asm__ volatile("mov %0, %%r12\n\t"
			 "not %%r12\n\t"
			 "mov %1, %%rbx\n\t"
			 "not %%rbx\n\t"
			 "movq %%rbx, %%xmm9\n\t"
			 "xor %%ebx, %%ebx\n\t"
			 "1: mov $34, %%eax\n\t" /* pause */
			 "syscall\n\t"
			 "jmp 1b"
			 :
			 : "m"(hidden_register), "m"(hidden_vector)
			 : "rax", "rbx", "rcx", "r11", "r12", "xmm9", "memory");
	return NULL;
}

static void *holds_on_stack(void *unused)
{
	void *volatile kept = list(10, SCAN_REACHABLE, SCAN_REACHABLE, "thread's stack");

	(void)unused;
	tls_head = list(10, SCAN_REACHABLE, SCAN_REACHABLE, "thread's TLS");
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return kept;
}

static ucontext_t main_context, coroutine_context;

static void coroutine(void)
{
	void *volatile kept = list(10, SCAN_REACHABLE, SCAN_REACHABLE, "coroutine's stack");

	swapcontext(&coroutine_context, &main_context);
	free(kept);
}

static void start_coroutine(void)
{
	void *stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = 1 << 16;
	makecontext(&coroutine_context, coroutine, 0);
	swapcontext(&main_context, &coroutine_context);
}

static void add_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0), fds[2];

	if (pipe(fds) != 0)
		_exit(9);
	ev.data.ptr = list(5, SCAN_REACHABLE, SCAN_REACHABLE, "epoll data");
	epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &ev);
}

static __attribute__((noinline)) void build(void)
{
	void **cycle, **entry, *a, *b;

	global_head = tree(6, SCAN_REACHABLE, SCAN_REACHABLE, "global");
	global_middle = (char *)block(64, SCAN_POSSIBLE, "middle") + 24;
	*(void **)(void *)((char *)global_middle - 24) = block(64, SCAN_POSSIBLE, "behind middle");
	global_big = block(1 << 20, SCAN_REACHABLE, "large");
	((void **)global_big)[70000] = list(10, SCAN_REACHABLE, SCAN_REACHABLE, "in large");
	tls_head = list(10, SCAN_REACHABLE, SCAN_REACHABLE, "TLS");
	mapped = mmap(NULL, 1 << 24, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	mapped[1 << 20] = list(10, SCAN_REACHABLE, SCAN_REACHABLE, "shared memory");
	mapped = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mapped[5000] = list(10, SCAN_REACHABLE, SCAN_REACHABLE, "mapped");
	list(50, SCAN_DEFINITE, SCAN_INDIRECT, "lost list");
	tree(7, SCAN_DEFINITE, SCAN_INDIRECT, "lost tree");
	cycle = list(20, SCAN_DEFINITE, SCAN_INDIRECT, "lost cycle");
	for (entry = cycle; entry[1]; entry = entry[1])
		;
	entry[1] = cycle;
	a = block(200000, SCAN_DEFINITE, "lost large");
	*(void **)a = block(100, SCAN_INDIRECT, "in lost large");
	for (int i = 0; i < 100; i++)
		block(24, SCAN_DEFINITE, "lost single");
	b = malloc(64); /* freed, and the block that only it led to is lost */
	((void **)b)[5] = block(40, SCAN_DEFINITE, "in freed");
	free(b);
	hidden_register = ~(u64)(uintptr_t)list(10, SCAN_REACHABLE, SCAN_REACHABLE, "register");
	hidden_vector = ~(u64)(uintptr_t)list(10, SCAN_REACHABLE, SCAN_REACHABLE, "vector register");
}

/* Overwrite pointers that earlier calls have left on the stack. */
static __attribute__((noinline)) void scrub(void)
{
	volatile char deep[16384];

	for (size_t i = 0; i < sizeof(deep); i++)
		deep[i] = 0;
}

static void truth_child(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&barrier, NULL, 3);
	build();
	scrub();
	add_epoll();
	start_coroutine();
	pthread_create(&threads[0], NULL, holds_in_registers, NULL);
	pthread_create(&threads[1], NULL, holds_on_stack, NULL);
	pthread_barrier_wait(&barrier);
	scrub();
	shared->is_ready = 1;
	while (!shared->may_go)
		sleep_ms(1);
	shared->nr_done = 1;
	_exit(0);
}

static void count_signal(int sig)
{
	(void)sig;
	shared->nr_signals++;
}

static void busy_child(void)
{
	signal(SIGRTMIN, count_signal);
	shared->is_ready = 1;
	while (!shared->may_go)
		shared->nr_rounds++;
	_exit(3);
}

static void quiet_child(void)
{
	shared->is_ready = 1;
	while (!shared->may_go) {
		sleep_ms(1);
		shared->nr_rounds++;
	}
	_exit(3);
}

static void *sleeps(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static void crowd_child(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < 200; i++)
		pthread_create(&t, &attr, sleeps, NULL);
	quiet_child();
}

static void *goes_on(void *unused)
{
	(void)unused;
	sleep_ms(20);
	quiet_child();
	return NULL;
}

static void leaderless_child(void)
{
	pthread_t t;

	pthread_create(&t, NULL, goes_on, NULL);
	pthread_exit(NULL);
}

/* Much address space but few pages. Some cannot or must not be read. */
static void sparse_child(void)
{
	u64 size = 1ULL << 40;
	char *p =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *none = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || none == MAP_FAILED)
		_exit(9);
	for (u64 i = 0; i < size; i += size / 64)
		p[i] = 1;
	memset(none, 1, 1 << 20);
	mprotect(none, 1 << 20, PROT_NONE);
	quiet_child();
}

static void blind_child(void)
{
	char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(9);
	memset(p, 1, 65536);
	mprotect(p, 65536, PROT_WRITE);
	quiet_child();
}

static void large_child(void)
{
	char *p = mmap(NULL, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		       -1, 0);

	if (p == MAP_FAILED)
		_exit(9);
	for (size_t i = 0; i < 256 << 20; i += 4096)
		p[i] = 1;
	quiet_child();
}

static void *vforks(void *unused)
{
	(void)unused;
	if (vfork() == 0)
		for (;;) {
			if (shared->may_go)
				_exit(0);
			sched_yield();
		}
	return NULL;
}

static void vfork_child(void)
{
	pthread_t t;

	pthread_create(&t, NULL, vforks, NULL);
	sleep_ms(50);
	quiet_child();
}

/* ---- the parent's side ---- */

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
		sleep_ms(1);
	return pid;
}

static char state_of(pid_t pid)
{
	char path[32], text[512] = "";
	FILE *f;
	char *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	p = strrchr(text, ')');
	return p ? p[2] : 0;
}

/* The child still runs, and ends as it would without a snapshot. */
static void assert_goes_on(pid_t pid, int expected)
{
	int status, before = shared->nr_rounds;

	for (int i = 0; i < 2000 && shared->nr_rounds == before && !shared->nr_done; i++)
		sleep_ms(1);
	assert_true(shared->nr_rounds != before || expected != 3);
	shared->may_go = 1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), expected);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct snapshot *take(pid_t pid)
{
	struct snapshot_options options = { .max_pause_ns = SLOW_PAUSE_MS * 1000000ULL };
	struct snapshot *snap = NULL;

	assert_int_equal(snapshot_stop_new(&snap, pid, &options), 0);
	return snap;
}

/* Checks how memory is shown: pieces and chunks ascend, and no part has two pieces at once. */
struct shown {
	taddr_t first[SNAPSHOT_PARTS], end[SNAPSHOT_PARTS]; /* of the piece; end = 0: the part has no piece */
	taddr_t last;					    /* end of the last piece */
	unsigned int sleep_ms;				    /* in each look */
};

static int look(void *ctx, u32 part, const struct snapshot_chunk *chunk)
{
	struct shown *shown = ctx;

	if (part >= SNAPSHOT_PARTS || !chunk->len || chunk->len > SNAPSHOT_MAX_CHUNK ||
	    chunk->addr < shown->end[part])
		return -EPROTO;
	if (!shown->end[part])
		shown->first[part] = chunk->addr;
	shown->end[part] = chunk->addr + chunk->len;
	if (shown->sleep_ms)
		sleep_ms(shown->sleep_ms);
	return 0;
}

static int done(void *ctx, u32 part)
{
	struct shown *shown = ctx;

	bool is_wrong = shown->end[part] && shown->first[part] < shown->last;

	if (shown->end[part])
		shown->last = shown->end[part];
	shown->end[part] = 0;
	return is_wrong ? -EPROTO : 0;
}

static int read_all(struct snapshot *snap)
{
	struct shown shown = { 0 };
	const struct snapshot_visitor visitor = { &shown, look, done };

	return snapshot_read(snap, &visitor);
}

static int each_truth(const void *ctx, int (*visit)(void *, const struct heap_block *), void *visit_ctx)
{
	(void)ctx;
	for (int i = 0; i < shared->nr; i++) {
		struct heap_block b = { .addr = ~shared->truths[i].hidden, .size = shared->truths[i].size };
		int err;

		b.time_ns = (u64)i * 1000000;
		err = visit(visit_ctx, &b);
		if (err)
			return err;
	}
	return 0;
}

/* Verdicts on a process that runs again afterwards (A12). */
static void truth(void **state)
{
	const struct scan_books books = { .for_each = each_truth };
	const struct scan_options options = { 0 };
	pid_t pid = start(truth_child);
	struct snapshot *snap;
	struct scan *scan;
	int nr_wrong = 0;

	(void)state;
	sleep_ms(50); /* time for the threads to wait in the kernel */
	assert_int_equal(scan_new(&scan, &books, &options), 0);
	snap = take(pid);
	assert_int_equal(snap->nr_threads, 3);
	assert_int_equal(snap->nr_unstopped, 0);
	assert_int_equal(scan_read(scan, snap), 0);
	snapshot_resume(snap);
	assert_int_equal(scan_judge(scan), 0);
	assert_true(scan_result(scan).is_complete);
	for (int i = 0; i < shared->nr; i++) {
		const struct truth *t = &shared->truths[i];
		struct scan_block_info info;

		assert_true(scan_find(scan, ~t->hidden, &info));
		if (info.verdict == t->verdict)
			continue;
		nr_wrong++;
		print_error("%s: %s, is %s\n", t->what, scan_verdict_name(t->verdict),
			    scan_verdict_name(info.verdict));
	}
	assert_true(snap->read_bytes < 16 << 20); /* no holes of shared memory */
	scan_free(scan);
	snapshot_free(snap);
	assert_int_equal(nr_wrong, 0);
	assert_goes_on(pid, 0);
}

/* A stopped process stays stopped, and can be continued (A12). */
static void stopped_stays_stopped(void **state)
{
	pid_t pid = start(quiet_child);
	struct snapshot *snap;

	(void)state;
	kill(pid, SIGSTOP);
	while (state_of(pid) != 'T')
		sleep_ms(1);
	snap = take(pid);
	assert_int_equal(read_all(snap), 0);
	snapshot_free(snap);
	sleep_ms(20);
	assert_int_equal(state_of(pid), 'T');
	kill(pid, SIGCONT);
	assert_goes_on(pid, 3);
}

/* A signal that comes at any moment is delivered, and only once. */
static void signals_are_kept(void **state)
{
	enum { SIGNALS = 300, ROUNDS = 60 };
	pid_t pid = start(busy_child);

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct snapshot *snap;

		for (int k = 0; k < SIGNALS / ROUNDS; k++)
			sigqueue(pid, SIGRTMIN, (union sigval){ .sival_int = i });
		snap = take(pid);
		snapshot_free(snap);
	}
	for (int i = 0; i < 2000 && shared->nr_signals < SIGNALS; i++)
		sleep_ms(1);
	assert_int_equal(shared->nr_signals, SIGNALS);
	assert_goes_on(pid, 3);
}

/* Another process traces it (A11). */
static void other_tracer(void **state)
{
	struct snapshot_options options = { 0 };
	pid_t pid = start(quiet_child), tracer;
	struct snapshot *snap = NULL;

	(void)state;
	shared->nr_done = 0;
	tracer = fork();
	assert_true(tracer >= 0);
	if (tracer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_SEIZE, pid, NULL, NULL);
		shared->nr_done = 1;
		for (;;)
			pause();
	}
	while (!shared->nr_done)
		sleep_ms(1);
	log_set_level(LOG_ERROR);
	assert_int_equal(snapshot_stop_new(&snap, pid, &options), -EPERM);
	shared->nr_done = 0;
	stop(tracer);
	assert_goes_on(pid, 3);
}

/* kill -9 of the scanner leaves the process running. */
static void scanner_killed(void **state)
{
	pid_t pid = start(quiet_child), scanner;

	(void)state;
	shared->nr_done = 0;
	scanner = fork();
	assert_true(scanner >= 0);
	if (scanner == 0) {
		take(pid);
		shared->nr_done = 1;
		for (;;)
			pause();
	}
	while (!shared->nr_done)
		sleep_ms(1);
	assert_int_equal(state_of(pid), 't');
	shared->nr_done = 0;
	stop(scanner);
	assert_goes_on(pid, 3);
}

/* The process dies while it is read (A2). */
static void target_killed(void **state)
{
	pid_t pid = start(large_child);
	struct snapshot *snap = take(pid);

	(void)state;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(read_all(snap), -ESRCH);
	snapshot_free(snap);
	assert_int_equal(snapshot_stop_new(&snap, pid, &(struct snapshot_options){ 0 }), -ESRCH);
}

/* The work depends on resident pages only. Memory that the process cannot read is not read (H1, H6). */
static void sparse(void **state)
{
	pid_t pid = start(sparse_child);
	struct snapshot *snap = take(pid);

	(void)state;
	assert_int_equal(read_all(snap), 0);
	assert_true(snap->read_bytes < 64 << 20);
	for (int i = 0; i < NR_SNAPSHOT_SKIPS; i++)
		assert_int_equal(snap->skipped_bytes[i], 0);
	snapshot_free(snap);
	assert_goes_on(pid, 3);
}

/* Memory that cannot be read is counted (H1). */
static void unreadable_is_counted(void **state)
{
	pid_t pid = start(blind_child);
	struct snapshot *snap = take(pid);

	(void)state;
	assert_int_equal(read_all(snap), 0);
	assert_int_equal(snap->skipped_bytes[SKIP_UNREADABLE], 65536);
	snapshot_free(snap);
	assert_goes_on(pid, 3);
}

/* Past the pause the scan gives up, and the process runs again (H5). */
static void given_up(void **state)
{
	/* A quarter of the pause is for stopping, which takes long on a busy machine. */
	struct snapshot_options options = { .max_pause_ns = 2000 * 1000000ULL };
	pid_t pid = start(large_child);
	struct shown shown = { .sleep_ms = 2100 };
	const struct snapshot_visitor visitor = { &shown, look, done };
	struct snapshot *snap = NULL;

	(void)state;
	assert_int_equal(snapshot_stop_new(&snap, pid, &options), 0);
	assert_int_equal(snapshot_read(snap, &visitor), -ETIME);
	snapshot_resume(snap);
	assert_true(snap->pause_ns >= options.max_pause_ns);
	snapshot_free(snap);
	assert_goes_on(pid, 3);
}

static void many_threads(void **state)
{
	pid_t pid = start(crowd_child);
	struct snapshot *snap = take(pid);

	(void)state;
	assert_int_equal(snap->nr_threads, 201);
	assert_int_equal(snap->nr_unstopped, 0);
	for (size_t i = 0; i < snap->nr_threads; i++) {
		assert_non_null(snapshot_map_find(snap, snap->threads[i].sp));
		assert_true(snap->threads[i].tp != 0);
	}
	snapshot_free(snap);
	assert_goes_on(pid, 3);
}

/* There is no time to ask all threads to stop: none stays stopped (H5). */
static void too_many_threads(void **state)
{
	struct snapshot_options options = { .max_pause_ns = 4 * 50000ULL };
	pid_t pid = start(crowd_child);
	struct snapshot *snap = NULL;

	(void)state;
	assert_int_equal(snapshot_stop_new(&snap, pid, &options), -ETIME);
	assert_goes_on(pid, 3);
}

/* The main thread has ended, others still run (B18). */
static void leaderless(void **state)
{
	pid_t pid = start(leaderless_child);
	struct snapshot *snap = take(pid);

	(void)state;
	assert_int_equal(snap->nr_threads, 1);
	assert_true(snap->nr_maps > 0);
	assert_int_equal(read_all(snap), 0);
	assert_true(snap->read_bytes > 0);
	snapshot_free(snap);
	assert_goes_on(pid, 3);
}

/* A thread in vfork cannot be stopped. The snapshot counts it, and does not leave it stopped later (H3). */
static void unstoppable(void **state)
{
	struct snapshot_options options = { .max_pause_ns = 2000 * 1000000ULL };
	pid_t pid = start(vfork_child);
	struct snapshot *snap = NULL;

	(void)state;
	assert_int_equal(snapshot_stop_new(&snap, pid, &options), 0);
	assert_int_equal(snap->nr_unstopped, 1);
	assert_int_equal(snap->nr_threads, 1);
	snapshot_free(snap);
	assert_goes_on(pid, 3);
}

/* As in run: this process is the tracer, and the process is stopped before its end. */
static void before_the_end(void **state)
{
	struct snapshot_options options = { .max_pause_ns = SLOW_PAUSE_MS * 1000000ULL,
					    .by = STOP_BY_TRACER };
	pid_t pid = start(quiet_child);
	struct snapshot *snap = NULL;
	int status;

	(void)state;
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACEEXIT), 0);
	shared->may_go = 1;
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(status >> 16, PTRACE_EVENT_EXIT);
	assert_int_equal(snapshot_stop_new(&snap, pid, &options), 0);
	assert_int_equal(snap->nr_threads, 1);
	assert_int_equal(read_all(snap), 0);
	assert_true(snap->read_bytes > 0);
	snapshot_free(snap);
	assert_int_equal(state_of(pid), 't'); /* this process still traces it */
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truth),
		cmocka_unit_test(stopped_stays_stopped),
		cmocka_unit_test(signals_are_kept),
		cmocka_unit_test(other_tracer),
		cmocka_unit_test(scanner_killed),
		cmocka_unit_test(target_killed),
		cmocka_unit_test(sparse),
		cmocka_unit_test(unreadable_is_counted),
		cmocka_unit_test(given_up),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(too_many_threads),
		cmocka_unit_test(leaderless),
		cmocka_unit_test(unstoppable),
		cmocka_unit_test(before_the_end),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 99;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
