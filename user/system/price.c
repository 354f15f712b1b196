/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures calls: how many, and what each costs. */
#include "user/system/price.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/source/call_price.h"

enum { ROUNDS = 4, PAIRS = 2000, CALLS = 2 * PAIRS, BLOCK_BYTES = 64, MEASURE_EVERY = 10 };

/* ---- a call on this machine ---- */

/* The child, and its pipes: a byte asks for a round, whose nanoseconds are the answer. */
struct worker {
	pid_t pid;
	int ask, answer; /* owned */
};

static u64 price_allocate(void)
{
	/* CPU time, because other processes take turns. */
	u64 before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < PAIRS; i++) {
		void *p = malloc(BLOCK_BYTES);

		/* The compiler must not leave the pair out. */
		__asm__ volatile("" : "+r"(p) : : "memory");
		free(p);
	}
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
}

static void price_work(int ask, int answer)
{
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask, &c, 1) == 1) {
		u64 ns = price_allocate();

		if (write(answer, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

static void worker_end(const struct worker *w)
{
	close(w->ask);
	close(w->answer);
	if (w->pid > 0) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
}

static int worker_start(struct worker *w)
{
	int asks[2], answers[2];

	if (pipe2(asks, O_CLOEXEC))
		return -errno;
	if (pipe2(answers, O_CLOEXEC)) {
		close(asks[0]);
		close(asks[1]);
		return -EMFILE;
	}
	w->pid = fork();
	if (!w->pid) {
		/* Or it would wait for itself. */
		close(asks[1]);
		close(answers[0]);
		price_work(asks[0], answers[1]);
	}
	close(asks[0]);
	close(answers[1]);
	w->ask = asks[1];
	w->answer = answers[0];
	if (w->pid > 0)
		return 0;
	worker_end(w);
	return -EAGAIN;
}

/*
 * The shortest of some rounds. The records of each are read at once, unless @s is NULL: while much waits in the ring,
 * each call pays for a wake-up of its reader.
 */
static int worker_measure(const struct worker *w, struct session *s, u64 *ns)
{
	*ns = UINT64_MAX;
	for (int i = 0; i < ROUNDS; i++) {
		u64 round_ns;

		if (write(w->ask, "", 1) != 1 ||
		    read(w->answer, &round_ns, sizeof(round_ns)) != sizeof(round_ns))
			return -EPIPE;
		if (s && session_poll(s))
			return -EPIPE;
		if (round_ns < *ns)
			*ns = round_ns;
	}
	return 0;
}

static int measure_traced(struct price_of_call *out, const struct worker *w, struct session *s, u64 plain_ns)
{
	struct probe_runs runs;
	u64 ns;
	int err = session_attach(s, w->pid, false);

	if (!err)
		err = worker_measure(w, s, &ns);
	if (err)
		return err;
	out->trap_ns = ns > plain_ns ? (ns - plain_ns) / CALLS : 0;
	if (session_measure(s, true, &runs))
		return 0;
	err = worker_measure(w, s, &ns);
	if (session_measure(s, false, &runs) || err)
		return err;
	out->program_ns = runs.time_ns / (ROUNDS * CALLS);
	out->trap_ns -= out->program_ns < out->trap_ns ? out->program_ns : out->trap_ns;
	out->steady_ns = runs.nr_steady ? (double)runs.steady_ns / (double)runs.nr_steady : 0;
	out->one_trap_ns = runs.nr ? out->trap_ns * ROUNDS * CALLS / runs.nr : 0;
	return 0;
}

int price_measure(struct price_of_call *out, const struct session_options *so)
{
	struct session_options options = *so;
	struct session *s = NULL;
	struct worker w = { .pid = -1 };
	u64 plain_ns;
	int err = worker_start(&w);

	*out = (struct price_of_call){ 0 };
	if (err)
		return err;
	err = worker_measure(&w, NULL, &plain_ns);
	/* A round fits into the usual ring. */
	options.source.ring_bytes = 0;
	if (!err)
		err = session_new(&s, &options, NULL, false);
	if (!err)
		err = measure_traced(out, &w, s, plain_ns);
	worker_end(&w);
	if (s)
		session_stop(s);
	session_free(s);
	return err;
}

u64 price_of_runs(const struct price_of_call *of, const struct probe_runs *runs)
{
	double slower = of->steady_ns > 0 && runs->nr_steady
				? (double)runs->steady_ns / (double)runs->nr_steady / of->steady_ns
				: 1;
	double trap_ns = (double)of->one_trap_ns * (slower > 1 ? (1 + slower) / 2 : 1);

	return runs->time_ns + (u64)((double)runs->nr * trap_ns);
}

/* ---- a process ---- */

static void measure_programs(struct price *p, struct session *s, const struct price_of_call *of, u64 calls)
{
	bool is_due = p->nr_looks++ % MEASURE_EVERY == 0 || !p->program_ns;
	struct probe_runs runs;
	u64 nr;

	/* Another program counts anew. */
	if (calls < p->measured_calls)
		p->measured_calls = calls;
	nr = calls - p->measured_calls;
	if (p->is_measuring ? !nr : !is_due)
		return;
	p->is_measuring = !p->is_measuring;
	p->measured_calls = calls;
	if (session_measure(s, p->is_measuring, &runs)) {
		p->is_measuring = false;
	} else if (!p->is_measuring) {
		p->program_ns = runs.time_ns / nr;
		p->trap_ns = (price_of_runs(of, &runs) - runs.time_ns) / nr;
	}
}

void price_look(struct price *p, struct session *s, const struct price_of_call *of, u64 now_ns)
{
	struct session_sums sums = session_sums(s, 0);
	u64 calls = sums.allocs + sums.frees;

	/* The counts of a process that executes another program begin anew. */
	if (p->time_ns && now_ns > p->time_ns && calls >= p->calls) {
		double rate = (double)(calls - p->calls) * 1e9 / (double)(now_ns - p->time_ns);

		p->calls_per_s = p->calls_per_s > 0 ? (p->calls_per_s + rate) / 2 : rate;
	}
	p->calls = calls;
	p->time_ns = now_ns;
	if (!strcmp(session_backend(s), "inline")) {
		p->permyriad = (u32)(p->calls_per_s * CALL_BY_CODE_NS / 1e5);
		return;
	}
	measure_programs(p, s, of, calls);
	/* Operators of C++ call malloc, and both have probes. */
	p->permyriad = (u32)(p->calls_per_s *
			     (double)((p->trap_ns ? p->trap_ns : of->trap_ns) +
				      (p->program_ns ? p->program_ns : of->program_ns)) /
			     1e5);
}
