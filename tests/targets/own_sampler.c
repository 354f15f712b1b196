/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * own_sampler ROUNDS [wait [end|fork]]: samples its blocks itself, one byte of 16 KiB, and tells of it by notes of
 * otel_memory. It loses a block of 2000 bytes in each 20th round, and prints the bytes that it has allocated, and those
 * that are lost. wait: begins after a line from stdin. end: waits for one more at its end. fork: as end, and before its
 * rounds it makes a child that does nothing. Built with GUARDED, it samples only while somebody listens.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { DISTANCE = 16384, MOST = 1 << 16 };

#ifdef GUARDED
#define SEMAPHORE "otel_listeners"
__attribute__((section(".probes"), used)) unsigned short otel_listeners;
#define IS_HEARD (*(volatile unsigned short *)&otel_listeners)
#else
#define SEMAPHORE "0"
#define IS_HEARD  1
#endif

#define NOTE(name, arguments)                                                                                \
	"991:\tnop\n"                                                                                        \
	"\t.pushsection .note.stapsdt,\"?\",\"note\"\n"                                                      \
	"\t.balign 4\n"                                                                                      \
	"\t.4byte 993f-992f, 995f-994f, 3\n"                                                                 \
	"992:\t.asciz \"stapsdt\"\n"                                                                         \
	"993:\t.balign 4\n"                                                                                  \
	"994:\t.8byte 991b, _.stapsdt.base, " SEMAPHORE "\n"                                                 \
	"\t.asciz \"otel_memory\", \"" name "\", \"" arguments "\"\n"                                        \
	"995:\t.balign 4\n"                                                                                  \
	"\t.popsection\n"                                                                                    \
	"\t.ifndef _.stapsdt.base\n"                                                                         \
	"\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                            \
	"\t.weak _.stapsdt.base\n"                                                                           \
	"\t.hidden _.stapsdt.base\n"                                                                         \
	"_.stapsdt.base:\t.space 1\n"                                                                        \
	"\t.size _.stapsdt.base, 1\n"                                                                        \
	"\t.popsection\n"                                                                                    \
	"\t.endif\n"

static unsigned long sampled[MOST]; /* addresses, turned over: they are no pointers */
static double left = DISTANCE;
static unsigned long allocated, lost;
static void *volatile last;

static double next_distance(void)
{
	return -log((random() + 1.0) / (RAND_MAX + 2.0)) * DISTANCE;
}

static unsigned long *slot_of(const void *p)
{
	return &sampled[((unsigned long)p >> 4) % MOST];
}

static void *tell(void *p, unsigned long size)
{
	unsigned long weight = lround(size / -expm1(-(double)size / DISTANCE));

	allocated += size;
	left -= size;
	if (left > 0 || *slot_of(p))
		return p;
	while (left <= 0)
		left += next_distance();
	if (!IS_HEARD)
		return p;
	*slot_of(p) = ~(unsigned long)p;
	__asm__ volatile(NOTE("alloc", "8@%0 8@%1 8@%2") : : "nor"(p), "nor"(size), "nor"(weight) : "memory");
	return p;
}

__attribute__((noinline)) static void *keep(unsigned long size)
{
	return tell(malloc(size), size);
}

__attribute__((noinline)) static void *lose(void)
{
	lost += 2000;
	return tell(malloc(2000), 2000);
}

static void release(void *p)
{
	if (*slot_of(p) == ~(unsigned long)p) {
		__asm__ volatile(NOTE("free", "8@%0") : : "nor"(p) : "memory");
		*slot_of(p) = 0;
	}
	free(p);
}

/* A copy that ends with this process. */
static void make_child(void)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	char line[8];

	srandom(7);
	printf("ready\n");
	fflush(stdout);
	if (argc > 2 && !fgets(line, sizeof(line), stdin))
		return 1;
	if (argc > 3 && !strcmp(argv[3], "fork"))
		make_child();
	for (unsigned long i = 0; i < rounds; i++) {
		void *a = keep(900), *b = keep(100);

		if (i % 20 == 0)
			last = lose();
		release(a);
		release(b);
	}
	last = NULL;
	memset(line, 0, sizeof(line));
	printf("%lu %lu\n", allocated, lost);
	fflush(stdout);
	return argc > 3 && !fgets(line, sizeof(line), stdin);
}
