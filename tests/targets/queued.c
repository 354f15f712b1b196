/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * queued: a child sends real-time signals of several kinds, each with a number, while this calls an allocator of its
 * own that begins with an instruction which a tracer must let run. All arrive, with what they carry, or it ends with 1.
 */
#include "tests/targets/truth.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { NR_KINDS = 4, NR_SIGNALS = 2000, AT_ONCE = 8, NR_THREADS = 8 };

/* And without one that a kernel carries out without a step: a probe would stand there. */
#if defined(__x86_64__)
#define ALONE "lock; orq $0, (%rsp)\n"
#define JUMP                                                                                                 \
	"lea queued_malloc(%rip), %rax\n"                                                                    \
	"jmp *%rax\n"
#elif defined(__aarch64__)
#define ALONE "dmb ish\n"
#define JUMP                                                                                                 \
	"adrp x16, queued_malloc\n"                                                                          \
	"add x16, x16, :lo12:queued_malloc\n"                                                                \
	"br x16\n"
#endif

struct shared {
	volatile long nr_calls;
	volatile int is_sent;
};

static volatile long nr_got, sum_got;
static volatile sig_atomic_t is_wrong;

void *queued_malloc(size_t size);
void *own_malloc(size_t size);

__attribute__((used, noinline)) void *queued_malloc(size_t size)
{
	return malloc(size);
}

__asm__(".globl own_malloc\n"
	".type own_malloc, %function\n"
	"own_malloc:\n" ALONE JUMP ".size own_malloc, . - own_malloc\n");

static void on_signal(int sig, siginfo_t *si, void *context)
{
	(void)sig;
	(void)context;
	nr_got++;
	sum_got += si->si_value.sival_int;
	if (si->si_code != SI_QUEUE)
		is_wrong = 1;
}

/* Some at once, so that several wait for the parent, and the next when that has got on. */
static void sender(struct shared *shared, pid_t parent)
{
	for (int nr = 0; nr < NR_SIGNALS;) {
		union sigval value = { .sival_int = nr };
		long calls = shared->nr_calls;

		if (sigqueue(parent, SIGRTMIN + nr % NR_KINDS, value) || ++nr % AT_ONCE == 0)
			while (shared->nr_calls == calls && getppid() == parent)
				usleep(50);
	}
	shared->is_sent = 1;
	_exit(0);
}

/* Whoever lets that instruction run has to stop these first: time for signals to come. */
static void *idle(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static void start_threads(void)
{
	sigset_t all;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		if (pthread_create(&thread, NULL, idle, NULL))
			abort();
	sigemptyset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct shared *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t parent = getpid(), child;

	truth_begin();
	for (int i = 0; i < NR_KINDS; i++)
		sigaction(SIGRTMIN + i, &sa, NULL);
	child = shared == MAP_FAILED ? -1 : fork();
	if (child < 0)
		abort();
	if (!child)
		sender(shared, parent);
	start_threads();
	while (!shared->is_sent) {
		void *p = own_malloc(33);

		keep(p);
		free(p);
		shared->nr_calls++;
	}
	/* Signals that are pending arrive at the end of a system call. */
	sched_yield();
	while (waitpid(child, NULL, 0) < 0)
		;
	expect("calls own_malloc %ld", shared->nr_calls);
	return is_wrong || nr_got != NR_SIGNALS || sum_got != (long)NR_SIGNALS * (NR_SIGNALS - 1) / 2;
}
