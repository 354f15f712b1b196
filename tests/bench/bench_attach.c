/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long attaching and detaching take, by what heaptap says and when: bench_attach HEAPTAP PID... */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRACE_MS = 500, MAX_ARGS = 1000 };

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static pid_t start(char **argv, int *messages)
{
	char *args[MAX_ARGS + 4] = { argv[1], "attach", "-v" };
	int ends[2];
	pid_t pid;

	for (int i = 2; argv[i]; i++)
		args[i + 1] = argv[i];
	if (pipe(ends))
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		close(ends[0]);
		close(ends[1]);
		execv(args[0], args);
		_exit(127);
	}
	close(ends[1]);
	*messages = ends[0];
	return pid;
}

/* When a line with @word comes; 0 if none does. */
static double wait_line(FILE *f, const char *word)
{
	char line[4096];

	while (fgets(line, sizeof(line), f))
		if (strstr(line, word))
			return now_ms();
	return 0;
}

int main(int argc, char **argv)
{
	double begin = now_ms(), attached, signalled, detached, end;
	int messages;
	pid_t pid;
	FILE *f;

	if (argc < 3 || argc > MAX_ARGS)
		return 2;
	pid = start(argv, &messages);
	f = pid < 0 ? NULL : fdopen(messages, "r");
	if (!f)
		return 1;
	attached = wait_line(f, "attached to");
	usleep(TRACE_MS * 1000);
	kill(pid, SIGINT);
	signalled = now_ms();
	detached = wait_line(f, "probes are out");
	wait_line(f, "\n\n"); /* in no line: until its end */
	waitpid(pid, NULL, 0);
	end = now_ms();
	if (!attached || !detached)
		return 1;
	printf("%.0f %.0f %.0f\n", attached - begin, detached - signalled, end - signalled);
	return 0;
}
