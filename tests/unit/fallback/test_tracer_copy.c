/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies that a traced process makes of itself run without our breakpoints. */
#include "fallback/tracer.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROUNDS = 2000, ENOUGH = 5 };

/* Only the copy calls this function. */
static __attribute__((noinline)) int called(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

/* The target: makes a copy when it is told to, and ends with its status. */
static void play(int go)
{
	int status;
	char c;

	if (read(go, &c, 1) != 1)
		_exit(98);
	if (!fork())
		_exit(called(0));
	_exit(wait(&status) > 0 && !status ? 0 : 1);
}

struct round {
	pid_t pid;
	int status;
	bool has_ended;
};

static void on_ended(void *ctx, pid_t pid, int status)
{
	struct round *r = ctx;

	if (pid != r->pid)
		return;
	r->has_ended = true;
	r->status = status;
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* Has process @pid stopped or ended, and has nobody taken that by wait(2)? */
static bool has_news(pid_t pid)
{
	siginfo_t si = { .si_pid = 0 };

	return !waitid(P_PID, (id_t)pid, &si, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) &&
	       si.si_pid == pid;
}

static void add_place(struct tracer *t, pid_t pid)
{
	const struct place place = { .addr = (taddr_t)(uintptr_t)called, .kind = PLACE_HOOK };
	u32 nr_done;

	assert_int_equal(tracer_add_places(t, pid, &place, 1, &nr_done), 0);
}

/* One copy. True: the tracer heard of it from its parent before it stopped, and then the breakpoint was taken out. */
static bool one_copy(void)
{
	struct round r = { .pid = 0 };
	const struct tracer_host host = { .ctx = &r, .ended = on_ended };
	const struct tracer_options options = { .depth = 0 };
	struct tracer *t;
	bool was_first;
	int go[2];

	assert_int_equal(pipe(go), 0);
	r.pid = fork();
	if (!r.pid)
		play(go[0]);
	assert_int_equal(tracer_new(&t, &options, &host), 0);
	assert_int_equal(tracer_attach(t, r.pid), 0);
	add_place(t, r.pid);
	assert_int_equal(write(go[1], "", 1), 1);
	while (!has_news(r.pid))
		;
	assert_int_equal(tracer_wait(t), 0);
	was_first = !has_news(r.pid);
	if (was_first)
		tracer_remove_places(t, r.pid, (taddr_t)(uintptr_t)called, (taddr_t)(uintptr_t)called + 1);
	while (!r.has_ended)
		if (tracer_wait(t) == -ECHILD)
			break;
	assert_true(r.has_ended);
	assert_int_equal(r.status, 0);
	tracer_free(t);
	close(go[0]);
	close(go[1]);
	return was_first;
}

/* The breakpoint is taken out of the process after the copy was made, and before the copy runs (A16). */
static void place_goes_before_the_copy_stops(void **state)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	int nr = 0;

	(void)state;
	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < ROUNDS && nr < ENOUGH; i++)
		nr += one_copy();
	if (!nr)
		skip_because("each copy stopped before its parent reported it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place_goes_before_the_copy_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
