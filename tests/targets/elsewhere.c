/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Grows where a line on standard input says: "held BYTES", "freed BYTES", "mapped BYTES", "threads COUNT"... */
#include "tests/targets/truth.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { PIECE = 1000, STACK = 128 << 10 };

static void *held, *last;

/* Memory that is not touched is not resident. */
static void *touched(void *p, size_t bytes)
{
	if (p && p != MAP_FAILED)
		memset(p, 0x5a, bytes);
	return p;
}

FN static void elsewhere_holds(long bytes)
{
	for (; bytes > 0; bytes -= PIECE) {
		void **p = touched(malloc(PIECE), PIECE);

		*p = held;
		held = p;
	}
}

/* A block at the end keeps what is free before it. */
FN static void elsewhere_frees(long bytes)
{
	void *before = held;

	elsewhere_holds(bytes);
	last = malloc(64);
	while (held != before) {
		void *p = held;

		held = *(void **)p;
		free(p);
	}
}

FN static void elsewhere_maps(long bytes, int flags)
{
	void *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	touched(p, (size_t)bytes);
}

FN static void elsewhere_maps_raw(long bytes)
{
	long p = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);

	touched((void *)p, (size_t)bytes);
}

FN static void elsewhere_sbrks(long bytes)
{
	touched(sbrk(bytes), (size_t)bytes);
}

static void *elsewhere_thread(void *arg)
{
	char room[STACK];

	touched(room, sizeof(room));
	keep(arg);
	return NULL;
}

/* Start threads that nobody joins. */
FN static void elsewhere_starts(long nr)
{
	for (long i = 0; i < nr; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, elsewhere_thread, NULL))
			abort();
	}
	/* Not in the list of threads any more. */
	while (access("/proc/self/task", F_OK) == 0) {
		char path[64];

		snprintf(path, sizeof(path), "ls /proc/%d/task | wc -l | grep -qx 1", (int)getpid());
		if (!system(path))
			return;
	}
}

int main(void)
{
	static char line[64];

	truth_begin();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long n = strchr(line, ' ') ? atol(strchr(line, ' ')) : 0;

		if (!strncmp(line, "held", 4))
			elsewhere_holds(n);
		else if (!strncmp(line, "freed", 5))
			elsewhere_frees(n);
		else if (!strncmp(line, "mapped", 6))
			elsewhere_maps(n, MAP_PRIVATE);
		else if (!strncmp(line, "shared", 6))
			elsewhere_maps(n, MAP_SHARED);
		else if (!strncmp(line, "brk", 3))
			elsewhere_sbrks(n);
		else if (!strncmp(line, "reserved", 8)) /* without a page, beside memory that is free */
			mmap(NULL, 2 * (size_t)n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				elsewhere_frees(n);
		else if (!strncmp(line, "raw", 3))
			elsewhere_maps_raw(n);
		else if (!strncmp(line, "trim", 4))
			malloc_trim(0);
		else
			elsewhere_starts(n);
		puts("ok");
		fflush(stdout);
	}
	return 0;
}
