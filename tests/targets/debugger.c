/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugger PROGRAM ARG...: traces a shell that becomes the program, like a debugger. Whoever traces this one stands
 * still from before the exec of the shell until the program has ended.
 */
#include "tests/targets/truth.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* The line of /proc/PID/status that begins with @key; 0 = there is none. */
static int status_of(pid_t pid, const char *key, const char *format)
{
	char path[32], line[128];
	int number = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && !number && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			sscanf(line + strlen(key), format, &number);
	if (f)
		fclose(f);
	return number;
}

/* In the memory of the parent, which waits for the exec. */
static void execute(pid_t parent, pid_t tracer, char **args)
{
	if (ptrace(PTRACE_TRACEME, 0, 0, 0))
		_exit(126);
	/* Until then the tracer has to let it go on. */
	while (tracer && (char)status_of(parent, "State:\t", "%c") != 'D')
		usleep(1000);
	if (tracer)
		kill(tracer, SIGSTOP);
	execv("/bin/sh", args);
	_exit(127);
}

int main(int argc, char **argv)
{
	char *args[16] = { "sh", "-c", "exec \"$0\" \"$@\"" };
	pid_t self = getpid(), tracer = status_of(self, "TracerPid:\t", "%d"), child;
	sigset_t no_child;
	int status = 0;

	if (argc < 2 || argc > 12)
		return 2;
	memcpy(args + 3, argv + 1, (size_t)argc * sizeof(*args));
	/* A signal would wait for the tracer. */
	sigemptyset(&no_child);
	sigaddset(&no_child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &no_child, NULL);
	child = vfork();
	if (!child)
		execute(self, tracer, args);
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
	if (tracer)
		kill(tracer, SIGCONT);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
