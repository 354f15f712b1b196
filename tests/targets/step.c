/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does what it is told on stdin and answers "ok": alloc N SIZE, free N, lose N, threads NR N, worker SIZE NAME (a
 * thread that stays), burst N, shuffle N, paths BITS, mark NAME, pause, resume, check, confine, copy, headless (its
 * main thread ends), drop (the pages of libc's code), quit. At rest between commands, so that an attach in between sees
 * all or nothing of each.
 */
#include "include/heaptap.h"
#include "tests/targets/truth.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_BLOCKS = 1 << 20 };

static void *blocks[MAX_BLOCKS];
static int nr_blocks;

FN static void step_allocates(int n, int size)
{
	while (n-- > 0 && nr_blocks < MAX_BLOCKS)
		blocks[nr_blocks++] = malloc(size);
}

/* The newest first. */
FN static void step_frees(int n)
{
	while (n-- > 0 && nr_blocks > 0)
		free(blocks[--nr_blocks]);
}

/* As step_frees(), but nobody frees them. */
static void step_loses(int n)
{
	while (n-- > 0 && nr_blocks > 0)
		blocks[--nr_blocks] = NULL;
}

FN static void step_burst(int n)
{
	while (n-- > 0) {
		void *p = malloc(32);

		keep(p);
		free(p);
	}
}

/* Replaces blocks at random by ones of other sizes: no two events are alike. All are freed in the end. */
FN static void step_shuffle(int n)
{
	static void *some[4096];
	const unsigned nr = sizeof(some) / sizeof(*some);
	unsigned x = 1;

	while (n-- > 0) {
		x = x * 1103515245 + 12345;
		free(some[x >> 8 & (nr - 1)]);
		some[x >> 8 & (nr - 1)] = malloc(16 + (x >> 20) % 1000);
	}
	for (unsigned i = 0; i < nr; i++) {
		free(some[i]);
		some[i] = NULL;
	}
}

/* Calls itself from one of two places for each bit of @path, so each path has a call stack of its own. */
FN static void step_path(unsigned path, int nr_bits)
{
	if (!nr_bits)
		step_burst(1);
	else if (path & 1)
		step_path(path >> 1, nr_bits - 1);
	else
		step_path(path / 2, nr_bits - 1);
	__asm__ volatile("");
}

static void step_paths(int nr_bits)
{
	for (unsigned path = 0; path < 1U << nr_bits; path++)
		step_path(path, nr_bits);
}

static void *burst(void *arg)
{
	step_burst((int)(long)arg);
	return NULL;
}

static void start_threads(int nr, int n)
{
	pthread_t threads[256];

	for (int i = 0; i < nr && i < 256; i++)
		if (pthread_create(&threads[i], NULL, burst, (void *)(long)n))
			abort();
	for (int i = 0; i < nr && i < 256; i++)
		pthread_join(threads[i], NULL);
}

struct worker {
	int size;
	const char *name;
	pthread_barrier_t barrier;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	prctl(PR_SET_NAME, w->name);
	keep(arg);
	blocks[nr_blocks++] = malloc(w->size);
	pthread_barrier_wait(&w->barrier);
	pause();
	return NULL;
}

static void start_worker(int size, const char *name)
{
	struct worker w = { .size = size, .name = name };
	pthread_t thread;

	if (pthread_barrier_init(&w.barrier, NULL, 2) || pthread_create(&thread, NULL, work, &w))
		abort();
	pthread_barrier_wait(&w.barrier);
}

/* "mark NAME", "pause", "resume", "check": a marker. False for other lines. */
static bool mark(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, "mark ", 5))
		HEAPTAP_MARK(line + 5);
	else if (!strcmp(line, "pause"))
		HEAPTAP_PAUSE();
	else if (!strcmp(line, "resume"))
		HEAPTAP_RESUME();
	else if (!strcmp(line, "check"))
		HEAPTAP_LEAK_CHECK();
	else
		return false;
	return true;
}

/* From now on nobody here may map memory, make a file of memory, or wait for another thread. */
static void confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* A child that does nothing, and ends with its parent. */
static void copy(void)
{
	pid_t pid = fork();

	if (pid < 0)
		abort();
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* The kernel reads the pages from the file again, without the breakpoints that were there. */
static void drop_code(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], how[8], path[256];
	unsigned long start, end;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &start, &end, how, path) == 4 &&
		    how[2] == 'x' && strstr(path, "/libc") &&
		    madvise((void *)start, end - start, MADV_DONTNEED))
			abort();
	if (f)
		fclose(f);
}

int main(int argc, char **argv);

/* Goes on in place of the main thread, once that has ended. */
static void *take_over(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	printf("ok\n");
	fflush(stdout);
	main(0, NULL);
	exit(0);
}

static void leave_main_thread(void)
{
	static pthread_t self;
	pthread_t thread;

	self = pthread_self();
	if (pthread_create(&thread, NULL, take_over, &self))
		abort();
	pthread_exit(NULL);
}

/* Without arguments it goes on as another thread: callers of the functions above are always called main. */
int main(int argc, char **argv)
{
	static char in[4096];
	char line[128], name[16];
	int a, b;

	(void)argv;
	if (argc) {
		truth_begin();
		setvbuf(stdin, in, _IOLBF, sizeof(in));
		printf("ready\n");
		fflush(stdout);
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "alloc %d %d", &a, &b) == 2)
			step_allocates(a, b);
		else if (sscanf(line, "free %d", &a) == 1)
			step_frees(a);
		else if (sscanf(line, "lose %d", &a) == 1)
			step_loses(a);
		else if (sscanf(line, "burst %d", &a) == 1)
			step_burst(a);
		else if (sscanf(line, "shuffle %d", &a) == 1)
			step_shuffle(a);
		else if (!strcmp(line, "confine\n"))
			confine();
		else if (!strcmp(line, "headless\n"))
			leave_main_thread();
		else if (!strcmp(line, "copy\n"))
			copy();
		else if (!strcmp(line, "drop\n"))
			drop_code();
		else if (sscanf(line, "paths %d", &a) == 1)
			step_paths(a);
		else if (sscanf(line, "threads %d %d", &a, &b) == 2)
			start_threads(a, b);
		else if (sscanf(line, "worker %d %15s", &a, name) == 2)
			start_worker(a, name);
		else if (!mark(line))
			break;
		printf("ok\n");
		fflush(stdout);
	}
	return 0;
}
