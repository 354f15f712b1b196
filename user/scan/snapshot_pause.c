/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The estimate of a stop. tests/bench/bench_scan.c measures what it is made of. */
#include "user/scan/snapshot_pause.h"

#include <stdio.h>
#include <stdlib.h>

#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/cleanup.h"
#include "user/lib/proc.h"
#include "user/scan/scan_plan.h"

enum {
	MAX_READERS = 4, /* more threads share the memory's speed, and the stop is not much shorter */
	READ_NS_A_KIB = 900,
	WALK_NS_A_KIB = 1600, /* of blocks of 240 bytes */
	KEEP_NS_A_KIB = 300,
	FORK_NS_A_MIB = 20000,
	PRECOPY_NS_A_MIB = 10000, /* to see what was written */
	STOP_NS = 1000000,
	THREAD_NS = 30000,
	TRIAL_BYTES = 64 << 10,
	TRIAL_ROUNDS = 16,
	NR_TRIALS = 3,
	TRIAL_NS = 225000,     /* of one trial on the machine of the figures */
	USUAL_SHARES = 1024,   /* of a thread with nice value 0 */
	HURRIED_SHARES = 9548, /* with COURTESY_HURRY */
};

struct snapshot_pause snapshot_pause_usual(u64 own_bytes, u32 nr_jobs, bool walks_books)
{
	return (struct snapshot_pause){ .own_bytes = own_bytes,
					.nr_threads = 1,
					.nr_jobs = scan_plan_jobs(nr_jobs),
					.walks_books = walks_books,
					.slow = 1,
					.busy = 1 };
}

/* Work of the kind that a scan does, within a cache: words that are compared and looked up. */
static u64 trial_ns(u64 *words)
{
	const size_t nr = TRIAL_BYTES / sizeof(*words);
	u64 start_ns = clock_now_ns(), state = 88172645463325252ULL;

	for (int round = 0; round < TRIAL_ROUNDS; round++)
		for (size_t i = 0; i < nr; i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			words[i] += words[state % nr] ^ state;
		}
	__asm__ volatile("" : : "r"(words) : "memory");
	return clock_now_ns() - start_ns;
}

/* The best of some trials: how slow is the machine for a thread that is not interrupted? */
static double machine_slowness(void)
{
	auto_free u64 *words = calloc(1, TRIAL_BYTES);
	u64 best_ns = UINT64_MAX;

	for (int i = 0; i < NR_TRIALS && words; i++) {
		u64 ns = trial_ns(words);

		best_ns = ns < best_ns ? ns : best_ns;
	}
	return words ? (double)best_ns / TRIAL_NS : 1;
}

/* Threads that want each CPU, on an average of the last minute. */
static double load_of_cpu(void)
{
	char text[64];

	if (proc_read_text("/proc/loadavg", text, sizeof(text)) < 0)
		return 0;
	return strtod(text, NULL) / scan_plan_jobs(0);
}

int snapshot_pause_look(struct snapshot_pause *out, pid_t pid, u32 nr_jobs, bool walks_books)
{
	double load = load_of_cpu(), slow;
	struct proc_status status = { 0 };
	struct courtesy_hurry hurry;
	int err = proc_read_status(&status, pid);

	if (err)
		return err;
	*out = snapshot_pause_usual(status.anonymous_bytes + status.swapped_bytes, nr_jobs, walks_books);
	out->shared_bytes = status.shared_bytes;
	out->nr_threads = status.nr_threads;
	courtesy_at_once(&hurry);
	slow = machine_slowness();
	out->busy = slow * (1 + load);
	out->slow = hurry.is_at_once ? slow
		    : hurry.is_on    ? slow * (1 + load * USUAL_SHARES / HURRIED_SHARES)
				     : out->busy;
	courtesy_hurry_end(&hurry);
	return 0;
}

static double snapshot_pause_kib(u64 bytes)
{
	return (double)bytes / 1024;
}

u64 snapshot_pause_ns(const struct snapshot_pause *p, enum snapshot_way way, u64 rest_bytes)
{
	double own = snapshot_pause_kib(p->own_bytes), shared = snapshot_pause_kib(p->shared_bytes);
	u32 jobs = p->nr_jobs < MAX_READERS ? p->nr_jobs : MAX_READERS;
	double ns = STOP_NS * p->slow + (double)p->nr_threads * THREAD_NS * p->busy;

	switch (way) {
	case SNAPSHOT_FORK:
		ns += own / 1024 * FORK_NS_A_MIB * p->busy + shared * KEEP_NS_A_KIB * p->slow;
		break;
	case SNAPSHOT_PRECOPY:
		ns += (own / 1024 * PRECOPY_NS_A_MIB +
		       (shared + snapshot_pause_kib(rest_bytes)) * KEEP_NS_A_KIB) *
		      p->slow;
		break;
	default:
		ns += (own + shared) * READ_NS_A_KIB / jobs * p->slow;
		if (p->walks_books)
			ns += own * WALK_NS_A_KIB * p->slow;
	}
	return ns < 1e18 ? (u64)ns : (u64)1e18;
}
