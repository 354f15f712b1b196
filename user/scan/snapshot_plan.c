/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice between the ways to get a moment. */
#include "user/scan/snapshot_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/lib/cgroup_dir.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/progress.h"
#include "user/scan/precopy.h"
#include "user/scan/scan_plan.h"
#include "user/scan/scan_reason.h"
#include "user/scan/snapshot_price.h"

/* The estimate of a stop. tests/bench/bench_scan.c measures what it is made of. */

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

/*
 * Look at process @pid, and measure the machine for about a millisecond. @nr_jobs: 0 = one for each CPU. Nothing is
 * stopped. 0, -ESRCH or -errno.
 */
static int snapshot_pause_look(struct snapshot_pause *out, pid_t pid, u32 nr_jobs, bool walks_books)
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

enum {
	/* A pause that is worth no copy, whose pages the process pays for one by one as it writes them. */
	SHORT_NS = 10000000,
	DEAR_SHARE = 4, /* a copy that takes more than this part of the room for it is dear */
	/*
	 * A fork that stops the process for longer is left to precopy, whose stop is shorter. But watching all pages
	 * may hold the process up while it runs: 0.6 s for 1 GiB in a virtual machine with shadow page tables.
	 */
	LONG_FORK_NS = 250000000,
};

bool snapshot_plan_wants_copy(u64 bytes, u32 nr_jobs, bool walks_books)
{
	struct snapshot_pause usual = snapshot_pause_usual(bytes, nr_jobs, walks_books);

	return snapshot_pause_ns(&usual, SNAPSHOT_STOP, 0) > SHORT_NS;
}

/* Memory of files and shared memory is in no copy. */
static bool snapshot_plan_is_short(const struct snapshot_plan_options *o)
{
	struct proc_status status = { 0 };

	return proc_read_status(&status, o->pid) ||
	       !snapshot_plan_wants_copy(status.anonymous_bytes + status.swapped_bytes, o->nr_jobs,
					 o->walks_books);
}

/* Where the user chose the way, the refusal matters; else there is another way, unless it is for lack of memory. */
static void snapshot_plan_refuse(const struct snapshot_plan_options *o, const char *way, int err,
				 const struct snapshot_price *price)
{
	enum log_level level = o->way != SNAPSHOT_AUTO		      ? LOG_WARN
			       : err == -EDQUOT && !o->is_price_known ? LOG_INFO
								      : LOG_DEBUG;

	if (err == -EDQUOT)
		log_line(
			level,
			"scan: PID %d: no %s: the copy may take %s, and there is room for %s (see --max-copy)",
			(int)o->pid, way, human_bytes(price->bytes).text, human_bytes(price->room).text);
	else
		log_line(level, "scan: PID %d: no %s: %s", (int)o->pid, way, scan_reason_copy(err));
}

/* A copy that takes little of what there is needs no line of its own. */
static void snapshot_plan_tell_price(const struct snapshot_plan_options *o, const char *how,
				     const struct snapshot_price *price)
{
	bool is_dear = price->bytes > price->room / DEAR_SHARE && !o->is_price_known;

	log_line(is_dear ? LOG_INFO : LOG_DEBUG,
		 "scan: PID %d: copied %s: the copy may take %s, and there is room for %s (see --max-copy)",
		 (int)o->pid, how, human_bytes(price->bytes).text, human_bytes(price->room).text);
}

static int plan_fork(struct snapshot_plan *p, const struct snapshot_plan_options *o)
{
	struct snapshot_price price = { 0 };
	int err = snapshot_price_fork(&price, o->pid, o->max_copy);

	if (err) {
		snapshot_plan_refuse(o, "fork", err, &price);
		return err;
	}
	p->way = SNAPSHOT_FORK;
	snapshot_plan_tell_price(o, "by a fork", &price);
	return 0;
}

static int plan_precopy(struct snapshot_plan *p, const struct snapshot_plan_options *o)
{
	struct precopy_options po = { .max_pause_ns = o->max_pause_ns,
				      .is_unwanted = o->is_unwanted,
				      .holder = o->holder };
	struct snapshot_price price = { 0 };
	int err = snapshot_price_precopy(&price, o->pid, o->max_copy);

	po.max_bytes = price.room;
	po.usual_bytes = price.bytes;
	if (!err)
		err = precopy_new(&p->precopy, o->pid, &po);
	if (err) {
		snapshot_plan_refuse(o, "precopy", err, &price);
		return err;
	}
	p->way = SNAPSHOT_PRECOPY;
	snapshot_plan_tell_price(o, "while it runs", &price);
	return 0;
}

/* Is the process stopped for a short time only while it forks? */
static bool forks_quickly(const struct snapshot_plan_options *o)
{
	struct snapshot_pause pause;
	u64 ns;

	if (snapshot_pause_look(&pause, o->pid, o->nr_jobs, o->walks_books))
		return false;
	ns = snapshot_pause_ns(&pause, SNAPSHOT_FORK, 0);
	return ns <= LONG_FORK_NS && ns <= o->max_pause_ns;
}

void snapshot_plan_open(struct snapshot_plan *out, const struct snapshot_plan_options *o)
{
	bool is_auto = o->way == SNAPSHOT_AUTO && !snapshot_plan_is_short(o);

	*out = (struct snapshot_plan){ .way = SNAPSHOT_STOP };
	/* None of its threads could make a copy, and it waits anyway. */
	if (cgroup_dir_is_frozen(o->pid)) {
		log_line(o->way == SNAPSHOT_AUTO ? LOG_DEBUG : LOG_WARN,
			 "scan: PID %d: no copy: its control group is frozen", (int)o->pid);
		return;
	}
	if (is_auto && forks_quickly(o) && !plan_fork(out, o))
		return;
	if ((o->way == SNAPSHOT_PRECOPY || is_auto) && !plan_precopy(out, o))
		return;
	if ((o->way == SNAPSHOT_FORK || is_auto) && plan_fork(out, o))
		debug("scan: PID %d: no copy", (int)o->pid);
}

void snapshot_plan_copy(struct snapshot_plan *p, const struct snapshot_plan_options *o)
{
	int err;

	if (!p->precopy)
		return;
	progress_phase("copying its memory");
	err = precopy_run(p->precopy);
	if (!err)
		return;
	snapshot_plan_free(p);
	p->way = SNAPSHOT_STOP;
	if (err == -ECANCELED)
		return;
	snapshot_plan_refuse(o, "precopy", err, &(struct snapshot_price){ 0 });
	if (o->way == SNAPSHOT_AUTO && plan_fork(p, o))
		debug("scan: PID %d: no copy", (int)o->pid);
}

void snapshot_plan_make(struct snapshot_plan *out, const struct snapshot_plan_options *o)
{
	snapshot_plan_open(out, o);
	snapshot_plan_copy(out, o);
}

/* A value for --max-pause that allows a stop of about @ns: half as much again, in few digits. */
static void suggest_pause(char *out, size_t size, u64 ns)
{
	const u64 ms = 1000000, s = 1000 * ms;

	ns += ns / 2;
	if (ns <= 900 * ms)
		snprintf(out, size, "%llums", (unsigned long long)((ns + 100 * ms - 1) / (100 * ms) * 100));
	else
		snprintf(out, size, "%llus", (unsigned long long)((ns + s - 1) / s));
}

/* Another way that would stop the process for less than what is allowed; "" = none is known. */
static void suggest_way(char *out, size_t size, const struct snapshot_plan_options *o,
			const struct snapshot_pause *pause)
{
	struct snapshot_price price = { 0 };
	u64 ns = snapshot_pause_ns(pause, SNAPSHOT_PRECOPY, 0);

	out[0] = '\0';
	if (o->way != SNAPSHOT_AUTO && o->way != SNAPSHOT_PRECOPY && ns <= o->max_pause_ns &&
	    !snapshot_price_precopy(&price, o->pid, o->max_copy))
		snprintf(out, size, ", and --snapshot auto may need only %s", human_duration(ns).text);
}

int snapshot_plan_check(const struct snapshot_plan *p, const struct snapshot_plan_options *o,
			enum snapshot_way way)
{
	u64 rest = p->precopy ? precopy_rest(p->precopy) : 0, ns;
	struct snapshot_pause pause;
	char allowed[32], other[128];

	/* Whoever is gone is found to be so by the stop. */
	if (snapshot_pause_look(&pause, o->pid, o->nr_jobs, o->walks_books))
		return 0;
	ns = snapshot_pause_ns(&pause, way, rest);
	debug("scan: PID %d: it will be stopped for about %s", (int)o->pid, human_duration(ns).text);
	if (ns <= o->max_pause_ns)
		return 0;
	suggest_pause(allowed, sizeof(allowed), ns);
	suggest_way(other, sizeof(other), o, &pause);
	log_line(
		o->is_price_known ? LOG_DEBUG : LOG_WARN,
		"scan: PID %d: no verdict, and not stopped for one: that would take about %s, and --max-pause is "
		"%s; --max-pause %s allows it%s",
		(int)o->pid, human_duration(ns).text, human_duration(o->max_pause_ns).text, allowed, other);
	return -ETIME;
}

int snapshot_plan_check_uncopied(const struct snapshot_plan *p, const struct snapshot_plan_options *o,
				 int err)
{
	return err && err != -ECANCELED ? snapshot_plan_check(p, o, SNAPSHOT_STOP) : 0;
}

void snapshot_plan_free(struct snapshot_plan *p)
{
	precopy_free(p->precopy);
	p->precopy = NULL;
}

u64 snapshot_plan_pause(const struct snapshot_plan *p)
{
	return p->precopy ? precopy_pause(p->precopy) : 0;
}
