/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Seizes and stops a child and writes its code, as the tracer does with its targets. */
#include "fallback/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/cpu.h"

static int write_code(pid_t pid)
{
	off_t at = (off_t)(uintptr_t)&trial_ptrace;
	char path[32], byte;
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Write the byte that is there: nothing changes, but the kernel checks the same permissions. */
	if (pread(fd, &byte, 1, at) != 1 || pwrite(fd, &byte, 1, at) != 1)
		err = -EACCES;
	close(fd);
	return err;
}

static int try_on(pid_t pid)
{
	struct cpu_regs regs;
	int status, err;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) || waitpid(pid, &status, __WALL) != pid ||
	    !WIFSTOPPED(status))
		return -errno;
	err = cpu_regs_read(&regs, pid);
	return err ? err : write_code(pid);
}

/* Runs in the child, which must not outlive its parent, however that ends. */
static void wait_for_end(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

int trial_ptrace(void)
{
	int status, err;
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		wait_for_end(parent);
	err = try_on(pid);
	/* Where a filter forbids it, the child ends with its parent. */
	if (kill(pid, SIGKILL))
		return -errno;
	while (waitpid(pid, &status, __WALL) == pid && !WIFEXITED(status) && !WIFSIGNALED(status))
		;
	return err;
}
