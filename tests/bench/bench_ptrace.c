/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures the least cost of a breakpoint stop: bare stops on one CPU. Prints ns of CPU time per stop. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/cpu.h"

enum { NR_STOPS = 20000 };

/* CPU time so far, ours and of children that have ended. */
static double cpu_ns(void)
{
	double ns = 0;

	for (int i = 0; i < 2; i++) {
		struct rusage used;

		if (getrusage(i ? RUSAGE_CHILDREN : RUSAGE_SELF, &used))
			continue;
		ns += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9;
		ns += (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
	}
	return ns;
}

/* Traps for ever. */
static void trapped(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (;;)
#if defined(__x86_64__)
		__asm__ volatile("int3");
#else
		__builtin_trap();
#endif
}

static void stay_on_one_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* One stop; on CPUs whose pc stays at the breakpoint it goes on nevertheless at the next one. */
static int one_stop(pid_t pid)
{
	struct cpu_regs regs;
	int status;

	if (ptrace(PTRACE_CONT, pid, 0, 0) || waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		return -ECHILD;
	if (cpu_regs_read(&regs, pid))
		return -ECHILD;
	return cpu_regs_write(&regs, pid);
}

int main(void)
{
	double start = cpu_ns();
	int status;
	pid_t pid;

	stay_on_one_cpu();
	pid = fork();
	if (!pid)
		trapped();
	if (pid < 0 || waitpid(pid, &status, __WALL) != pid)
		return 1;
	for (int i = 0; i < NR_STOPS; i++)
		if (one_stop(pid))
			return 1;
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, __WALL) != pid)
		return 1;
	printf("%.0f\n", (cpu_ns() - start) / NR_STOPS);
	return 0;
}
