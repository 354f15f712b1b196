/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scribble: at SIGUSR1 it writes nonsense over the rings that --backend inline shares with it, while it allocates. Says
 * "ready" before, and "done" and how many rings it has found afterwards. Until SIGTERM.
 */
#include "tests/targets/truth.h"

#include <signal.h>
#include <unistd.h>

#include "inline/layout.h"

enum { ROUNDS = 200000, BURST = 4 };

static uint64_t seed = 1;

static uint64_t next(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return seed >> 16;
}

/* The memory that heaptap reads; NULL if there is none. */
static struct piece_shared *find_shared(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], rights[5];
	unsigned long start, found = 0;

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:heaptap-inline") &&
		    sscanf(line, "%lx-%*x %4s", &start, rights) == 2 && !strcmp(rights, "rw-s"))
			found = start;
	if (maps)
		fclose(maps);
	return (struct piece_shared *)found;
}

static void scribble(struct piece_shared *s, uint32_t nr_rings)
{
	struct piece_ring *r = &s->rings[next() % nr_rings];
	uint64_t *record = (uint64_t *)&r->records[next() % PIECE_RING_RECORDS];

	for (int i = 0; i < 6; i++)
		record[i] = next() % 2 ? next() % 256 : next();
	if (next() % 64 == 0)
		r->written += next() % 2 ? next() : next() % 32;
	if (next() % 64 == 0)
		s->lost_frees = next();
	if (next() % 64 == 0)
		s->is_full = next() % 2;
	if (next() % 64 == 0)
		s->sequence.all += next();
	if (next() % 64 == 0)
		s->nr_used = (uint32_t)(next() % 2 ? next() : nr_rings);
}

int main(void)
{
	struct piece_shared *s;
	sigset_t set;
	int sig;
	uint32_t nr = 0;

	truth_begin();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("ready\n");
	fflush(stdout);
	sigwait(&set, &sig);
	free(malloc(10));
	s = find_shared();
	if (s)
		nr = s->nr_used < 8 ? s->nr_used : 8;
	for (int i = 0; i < ROUNDS && nr; i++) {
		scribble(s, nr);
		if (i % 1000 < BURST)
			free(malloc(100));
	}
	printf("done %u\n", nr);
	fflush(stdout);
	sigwait(&set, &sig);
	return 0;
}
