/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan of a scan. tests/bench/bench_scan.c measures what it is made of. */
#include "user/scan/scan_plan.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/scan/snapshot.h"
#include "user/scan/snapshot_price.h"

enum {
	BLOCK_BYTES = 26, /* with its pointers, where they lead anywhere; 21 where most lead to neighbours */
	FIXED_BYTES = 24 << 20,
	SORT_NS = 100,		/* a block */
	JUDGE_NS = 80,		/* a block */
	READ_NS_A_KIB = 900,	/* of one thread, where pointers lead anywhere; else 550 */
	MANY_BLOCKS = 10000000, /* a plan is said from here on */
};
#define MUCH_MEMORY (8ULL << 30)

/* @a * @b + @c, or all ones if that does not fit. */
static u64 times_plus(u64 a, u64 b, u64 c)
{
	u64 product, sum;

	return __builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(product, c, &sum) ? UINT64_MAX
												  : sum;
}

struct scan_plan scan_plan_of(u64 nr_blocks, u64 bytes, u32 nr_jobs)
{
	struct scan_plan p = { .nr_blocks = nr_blocks, .bytes = bytes };

	p.memory = times_plus(nr_blocks, BLOCK_BYTES, FIXED_BYTES);
	p.read_ns = times_plus(bytes >> 10, READ_NS_A_KIB, 0) / (nr_jobs ? nr_jobs : 1);
	p.time_ns = times_plus(nr_blocks, SORT_NS + JUDGE_NS, p.read_ns);
	return p;
}

u32 scan_plan_jobs(u32 nr_jobs)
{
	cpu_set_t cpus;
	int nr = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;

	if (nr_jobs)
		return nr_jobs;
	return nr > SNAPSHOT_PARTS ? SNAPSHOT_PARTS : (u32)nr;
}

int scan_plan_check(pid_t pid, u64 nr_blocks, u32 nr_jobs, u64 max_memory, bool is_known)
{
	struct proc_status status = { 0 };
	struct scan_plan p;
	bool is_large;

	if (proc_read_status(&status, pid))
		return 0;
	p = scan_plan_of(nr_blocks, status.resident_bytes, scan_plan_jobs(nr_jobs));
	is_large = nr_blocks >= MANY_BLOCKS || p.bytes >= MUCH_MEMORY;
	if (is_large)
		log_line(
			is_known ? LOG_DEBUG : LOG_INFO,
			"scan: PID %d: %s blocks, %s in memory: takes about %s of heaptap's memory, of %s, and %s, "
			"%s of it to read the memory",
			(int)pid, human_count(nr_blocks).text, human_bytes(p.bytes).text,
			human_bytes(p.memory).text, human_bytes(snapshot_price_room(getpid())).text,
			human_duration(p.time_ns).text, human_duration(p.read_ns).text);
	if (!max_memory || p.memory <= max_memory)
		return 0;
	warn("scan: PID %d: no verdict: it takes about %s of heaptap's memory, and --max-memory leaves %s",
	     (int)pid, human_bytes(p.memory).text, human_bytes(max_memory).text);
	return -EDQUOT;
}
