/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All threads of a process stop and go on, whoever traces it. */
#include "arch/stop_all.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/clock.h"
#include "user/lib/proc.h"

enum { NR_THREADS = 9, WAIT_S = 60 };

static u64 soon(void)
{
	return clock_now_ns() + WAIT_S * 1000000000ULL;
}

static void *sleeps(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A child with NR_THREADS threads that sleep. */
static pid_t start(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 1; i < NR_THREADS; i++)
			if (pthread_create(&thread, NULL, sleeps, NULL))
				_exit(1);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		sleeps(NULL);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* Of a process whose threads are traced, each thread is to be waited for. */
static void end(pid_t pid)
{
	pid_t got;

	kill(pid, SIGKILL);
	do
		got = waitpid(-1, NULL, __WALL);
	while (got != pid && got > 0);
	assert_int_equal(got, pid);
}

static pid_t tracer_of(pid_t tid)
{
	struct proc_status status;

	assert_int_equal(proc_read_status(&status, tid), 0);
	return status.tracer_pid;
}

static size_t count(const struct stopped_threads *s, enum stopped_state state)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr; i++)
		nr += s->threads[i].state == state;
	return nr;
}

/* Of a process that is not traced all threads are seized, and none is traced afterwards. */
static void by_us(void **state)
{
	struct stopped_threads s = { .pid = start(), .by = STOP_BY_US };

	(void)state;
	for (int round = 0; round < 20; round++) {
		assert_int_equal(stop_all_begin(&s, soon()), 0);
		assert_int_equal(s.nr, NR_THREADS);
		assert_int_equal(count(&s, STOP_TAKEN), NR_THREADS);
		assert_int_equal(stop_all_running(&s), 0);
		assert_int_equal(tracer_of(s.pid), getpid());
		stop_all_end(&s);
		assert_int_equal(tracer_of(s.pid), 0);
	}
	end(s.pid);
}

static bool is_first(void *ctx, const struct stopped_thread *t)
{
	return t->tid == *(const pid_t *)ctx;
}

/* One thread runs for a while and stops again; a signal of the kernel stops it, and its program gets others only. */
static void step(void **state)
{
	struct stopped_threads s = { .pid = start(), .by = STOP_BY_US, .is_switch = true };

	(void)state;
	assert_int_equal(stop_all_begin(&s, soon()), 0);
	for (int round = 0; round < 20; round++) {
		assert_int_equal(stop_all_step(&s, is_first, &s.pid, 10000, soon()), 0);
		assert_int_equal(count(&s, STOP_TAKEN), NR_THREADS);
	}
	/* A signal of a process is delivered: by default it ends the program. */
	assert_int_equal(kill(s.pid, SIGTERM), 0);
	assert_int_equal(stop_all_step(&s, is_first, &s.pid, 10000, soon()), 0);
	while (stop_all_release(&s))
		;
	assert_int_equal(s.nr, 0);
	assert_int_equal(waitpid(s.pid, NULL, __WALL), s.pid);
}

/* Traced before: who was stopped stays so, the others go on and are traced still. */
static void by_tracer(void **state)
{
	struct stopped_threads s = { .pid = start(), .by = STOP_BY_TRACER };
	pid_t *tids = NULL;
	size_t nr = 0;
	int status;

	(void)state;
	assert_int_equal(proc_threads(s.pid, &tids, &nr), 0);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(ptrace(PTRACE_SEIZE, tids[i], 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tids[1], 0, 0), 0);
	assert_int_equal(waitpid(tids[1], &status, __WALL), tids[1]);
	for (int round = 0; round < 20; round++) {
		s.by = STOP_BY_TRACER;
		assert_int_equal(stop_all_begin(&s, soon()), 0);
		assert_int_equal(count(&s, STOP_BEFORE), 1);
		assert_int_equal(count(&s, STOP_NOTED), NR_THREADS - 1);
		assert_true(stop_all_take(&s.threads[0]));
		assert_int_equal(s.threads[0].state, STOP_HANDLED);
		stop_all_end(&s);
		for (size_t i = 0; i < nr; i++) {
			assert_int_equal(tracer_of(tids[i]), getpid());
			assert_int_equal(stop_is_there(tids[i]), i == 1);
		}
	}
	end(s.pid);
	free(tids);
}

/* Stopped by another one: only a list. */
static void by_other(void **state)
{
	struct stopped_threads s = { .pid = start(), .by = STOP_BY_OTHER };

	(void)state;
	assert_int_equal(stop_all_begin(&s, soon()), 0);
	assert_int_equal(count(&s, STOP_BEFORE), NR_THREADS);
	assert_int_equal(tracer_of(s.pid), 0);
	stop_all_end(&s);
	end(s.pid);
}

/* A process that SIGSTOP has stopped stays stopped (A12). */
static void stays_stopped(void **state)
{
	struct stopped_threads s = { .pid = start(), .by = STOP_BY_US };
	siginfo_t si;

	(void)state;
	kill(s.pid, SIGSTOP);
	assert_int_equal(waitid(P_PID, (id_t)s.pid, &si, WSTOPPED), 0);
	assert_int_equal(stop_all_begin(&s, soon()), 0);
	for (size_t i = 0; i < s.nr; i++)
		assert_int_equal(s.threads[i].stop, STOP_GROUP);
	stop_all_end(&s);
	for (struct proc_stat stat = { 0 }; stat.state != 'T';)
		assert_int_equal(proc_read_stat(&stat, s.pid), 0);
	end(s.pid);
}

/* No such process, and one that another process traces. */
static void refused(void **state)
{
	struct stopped_threads s = { .pid = start(), .by = STOP_BY_US };
	int go[2];
	char byte;
	pid_t tracer;

	(void)state;
	assert_int_equal(pipe(go), 0);
	tracer = fork();
	if (!tracer) {
		if (ptrace(PTRACE_SEIZE, s.pid, 0, 0) || write(go[1], "", 1) != 1)
			_exit(1);
		sleeps(NULL);
	}
	assert_int_equal(read(go[0], &byte, 1), 1);
	assert_int_equal(stop_all_begin(&s, soon()), -EPERM);
	end(tracer);
	end(s.pid);
	assert_int_equal(stop_all_begin(&s, soon()), -ESRCH);
}

#ifdef __x86_64__

/* The tracer dies while it has a thread stopped: the wait of that thread goes on (T1). */
static void tracer_dies(void **state)
{
	struct sembuf give = { .sem_op = 1 }, take = { .sem_op = -1 };
	int sem = semget(IPC_PRIVATE, 1, 0600), status;
	struct proc_stat stat = { 0 };
	pid_t pid = fork(), tracer;

	(void)state;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(semop(sem, &take, 1) ? errno : 0);
	}
	for (int round = 0; round < 20; round++) {
		do
			assert_int_equal(proc_read_stat(&stat, pid), 0);
		while (stat.state == 'R');
		tracer = fork();
		if (!tracer) {
			struct stopped_threads s = { .pid = pid, .by = STOP_BY_US };

			_exit(stop_all_begin(&s, soon()) != 0);
		}
		assert_int_equal(waitpid(tracer, &status, 0), tracer);
		assert_int_equal(status, 0);
	}
	assert_int_equal(semop(sem, &give, 1), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	semctl(sem, 0, IPC_RMID);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(tracer_dies),
#endif
		cmocka_unit_test(by_us),       cmocka_unit_test(step),		cmocka_unit_test(by_tracer),
		cmocka_unit_test(by_other),    cmocka_unit_test(stays_stopped), cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
