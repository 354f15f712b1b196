/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits that a stop has made fail with EINTR begin again, with the rest of their time. */
#include "arch/waits.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/cpu_emulate.h"
#include "arch/stop.h"

enum { BEGIN_AGAIN = -514, OTHER_RESTART = -512, NOT_LISTED = 500, WORDS = 16 };

static const struct cpu *const cpus[] = { &cpu_x86_64, &cpu_i386 };

/* Registers of a thread in call @number, each word another one. */
static struct cpu_regs in_call(const struct cpu *cpu, s64 number, s64 result)
{
	struct cpu_regs regs = { .size = cpu->regs_size };

	for (u32 i = 0; i < WORDS; i++)
		cpu_regs_set_word(&regs, cpu->word_size, i, 1000 + i);
	cpu_regs_set_word(&regs, cpu->word_size, cpu->waits->number, (u64)number);
	cpu_set(cpu, &regs, CPU_RESULT, (taddr_t)result);
	return regs;
}

/* Of each CPU: calls of the table that have ended so, and no others (T1). */
static void finds_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++) {
		const struct cpu *cpu = cpus[i];

		assert_true(cpu->waits->nr > 0);
		for (u32 k = 0; k < cpu->waits->nr; k++) {
			const struct wait_call *call = &cpu->waits->calls[k];
			struct cpu_regs regs = in_call(cpu, call->number, -EINTR);

			assert_ptr_equal(waits_find(cpu, &regs), call);
			regs = in_call(cpu, call->number, BEGIN_AGAIN);
			assert_ptr_equal(waits_find(cpu, &regs), call);
			regs = in_call(cpu, call->number, OTHER_RESTART);
			assert_null(waits_find(cpu, &regs));
			regs = in_call(cpu, call->number, 1);
			assert_null(waits_find(cpu, &regs));
		}
		struct cpu_regs regs = in_call(cpu, NOT_LISTED, -EINTR);

		assert_null(waits_find(cpu, &regs));
		/* Between two instructions of the program. */
		regs = in_call(cpu, -1, -EINTR);
		assert_null(waits_find(cpu, &regs));
	}
	/* A number of 64 bits whose lower half is -EINTR. */
	struct cpu_regs regs = in_call(&cpu_x86_64, 232, (u32)-EINTR);

	assert_null(waits_find(&cpu_x86_64, &regs));
}

/* The CPU of another machine, whose kernel does not let the result say so. */
static void knows_no_calls(void **state)
{
	struct cpu_regs regs = { .size = cpu_aarch64.regs_size };

	(void)state;
	cpu_set(&cpu_aarch64, &regs, CPU_RESULT, (taddr_t)-EINTR);
	assert_null(waits_find(&cpu_aarch64, &regs));
}

/* Only the result changes (T1). */
static void begins_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++) {
		const struct cpu *cpu = cpus[i];
		struct cpu_regs regs = in_call(cpu, cpu->waits->calls[0].number, -EINTR);
		const struct cpu_regs wanted = in_call(cpu, cpu->waits->calls[0].number, BEGIN_AGAIN);

		waits_begin_again(cpu, &regs);
		assert_memory_equal(&regs, &wanted, sizeof(regs));
	}
}

/* Stop after stop, the rest gets less, and ends (T1). */
static void time_goes_by(void **state)
{
	static const u64 begins[] = { 1000, 0xfffff0, 0xffffffffff0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		u64 word = waits_left(300, begins[i]);

		assert_int_equal((s32)word, 300);
		word = waits_left(word, begins[i] + 100);
		assert_int_equal((s32)word, 200);
		word = waits_left(word, begins[i] + 100);
		assert_int_equal((s32)word, 200);
		word = waits_left(word, begins[i] + 299);
		assert_int_equal((s32)word, 1);
		word = waits_left(word, begins[i] + 5000);
		assert_int_equal((s32)word, 0);
		assert_int_equal((s32)waits_left(word, begins[i] + 6000), 0);
	}
}

/* The words of programs: no limit, no time, a long time, and something in the upper half (T1). */
static void words_of_programs(void **state)
{
	const u64 dirt = 0x1234567800000000, begin = 5000;

	(void)state;
	assert_int_equal(waits_left((u64)-1, begin), (u64)-1);
	assert_int_equal(waits_left(UINT32_MAX, begin), UINT32_MAX);
	assert_int_equal(waits_left(0, begin), 0);
	assert_int_equal(waits_left(INT32_MAX, begin), INT32_MAX);
	assert_int_equal((s32)waits_left(dirt | 300, begin), 300);
	assert_int_equal((s32)waits_left(waits_left(dirt | 300, begin), begin + 100), 200);
	/* A mark of a longer wait than this one is not ours. */
	assert_int_equal((s32)waits_left((waits_left(4000, begin) & ~0xffffffffULL) | 300, begin), 300);
}

/* A wait on a socket is marked when it stops first, and over when its time is, whatever the program has there (T1). */
static void time_of_sockets(void **state)
{
	const u64 begin = 0xfffff0, dirt = 0x1234567800000000;
	bool is_over = true;
	u64 word;

	(void)state;
	assert_int_equal(waits_of_socket(7, begin, 0, &is_over), 7);
	assert_false(is_over);
	word = waits_of_socket(dirt | 7, begin, 300, &is_over);
	assert_false(is_over);
	assert_int_equal((u32)word, 7);
	word = waits_of_socket(word, begin + 299, 300, &is_over);
	assert_false(is_over);
	assert_int_equal((u32)word, 7);
	assert_int_equal(waits_of_socket(word, begin + 300, 300, &is_over), 7);
	assert_true(is_over);
	/* The mark of a longer wait is not of this one. */
	word = waits_of_socket(waits_of_socket(7, begin, 4000, &is_over), begin + 1000, 300, &is_over);
	assert_false(is_over);
	waits_of_socket(word, begin + 1300, 300, &is_over);
	assert_true(is_over);
}

#ifdef __x86_64__

static struct shared {
	struct timespec asked;
	volatile int result; /* errno; 0 = it waits still */
} * shared;

static pid_t start_waiting(int sem)
{
	pid_t pid = fork();

	if (!pid) {
		struct sembuf take = { .sem_op = -1 };

		shared->result = semtimedop(sem, &take, 1, &shared->asked) ? errno : -1;
		_exit(0);
	}
	return pid;
}

/* Stop the child in its call. */
static void stop_in_call(pid_t pid, struct cpu_regs *regs)
{
	int status;

	do {
		assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
		assert_int_equal(waitpid(pid, &status, __WALL), pid);
		assert_int_equal(stop_of(status), STOP_ASKED);
		assert_int_equal(cpu_regs_read(regs, pid), 0);
		if (waits_find(&cpu_x86_64, regs))
			return;
		assert_int_equal(stop_end(pid, STOP_ASKED, PTRACE_CONT, 0), 0);
	} while (!shared->result);
	fail_msg("the wait is over: %d", shared->result);
}

/* The program's own struct timespec stays as it is, and its wait ends when it has the time (T1). */
static void rest_of_timespec(void **state)
{
	const struct timespec asked = { .tv_sec = 1, .tv_nsec = 500 };
	int sem = semget(IPC_PRIVATE, 1, 0600), status;
	struct cpu_regs regs;
	taddr_t own = 0;
	pid_t pid;

	(void)state;
	assert_true(sem >= 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared->asked = asked;
	pid = start_waiting(sem);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	for (int i = 0; i < 3; i++) {
		const struct wait_call *call;
		long s, ns;

		stop_in_call(pid, &regs);
		call = waits_find(&cpu_x86_64, &regs);
		assert_int_equal(call->limit, WAIT_TIMESPEC);
		waits_go_on(pid);
		assert_int_equal(cpu_regs_read(&regs, pid), 0);
		assert_int_equal((s64)cpu_get(&cpu_x86_64, &regs, CPU_RESULT), BEGIN_AGAIN);
		assert_true(!own || own == cpu_get_word(&cpu_x86_64, &regs, call->word));
		own = cpu_get_word(&cpu_x86_64, &regs, call->word);
		assert_true(own < cpu_get(&cpu_x86_64, &regs, CPU_SP) - 128);
		s = ptrace(PTRACE_PEEKDATA, pid, own, 0);
		ns = ptrace(PTRACE_PEEKDATA, pid, own + sizeof(long), 0);
		assert_true(i ? s == 0 : s == asked.tv_sec && ns == asked.tv_nsec);
		assert_int_equal(ptrace(PTRACE_CONT, pid, 0, 0), 0);
	}
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_int_equal(shared->result, EAGAIN);
	assert_memory_equal(&shared->asked, &asked, sizeof(asked));
	semctl(sem, 0, IPC_RMID);
}

static pid_t start_receiving(void)
{
	const struct timeval limit = { .tv_usec = 400 * 1000 };
	int ends[2];
	pid_t pid;
	char c;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	pid = fork();
	if (!pid) {
		shared->result = recv(ends[0], &c, 1, 0) < 0 ? errno : -1;
		_exit(0);
	}
	close(ends[0]);
	close(ends[1]);
	return pid;
}

/* A call that waits on a socket for some time is over in time, though it is stopped again and again (T1). */
static void rest_of_socket(void **state)
{
	struct cpu_regs regs;
	int status;
	pid_t pid;

	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = start_receiving();
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	do {
		stop_in_call(pid, &regs);
		waits_go_on(pid);
		assert_int_equal(cpu_regs_read(&regs, pid), 0);
		assert_int_equal(ptrace(PTRACE_CONT, pid, 0, 0), 0);
	} while ((s64)cpu_get(&cpu_x86_64, &regs, CPU_RESULT) == BEGIN_AGAIN);
	assert_int_equal((s64)cpu_get(&cpu_x86_64, &regs, CPU_RESULT), -EAGAIN);
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_int_equal(shared->result, EAGAIN);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_calls),	     cmocka_unit_test(knows_no_calls),
		cmocka_unit_test(begins_again),	     cmocka_unit_test(time_goes_by),
		cmocka_unit_test(words_of_programs), cmocka_unit_test(time_of_sockets),
#ifdef __x86_64__
		cmocka_unit_test(rest_of_timespec),  cmocka_unit_test(rest_of_socket),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
