/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap demo: traces heaptap itself as a small leaking program, and explains the lines of its report. */
#include "user/cli/commands.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/cli/options.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"

extern char **environ;

/* ---- the leaking program ---- */

/* demo.list exports these functions, so that a stripped heaptap has their names. */
#define DEMO extern __attribute__((noinline, noclone, used, visibility("default")))

enum { NR_ROUNDS = 100, SESSION_BYTES = 512, NOTE_BYTES = 64 };

static void *volatile demo_kept; /* the program can still reach this block */

DEMO void *demo_open_session(void);
DEMO void demo_handle_request(int number);
DEMO void demo_remember(void);

void *demo_open_session(void)
{
	void *volatile session = malloc(SESSION_BYTES);

	return session;
}

/* One session in ten is never freed. */
void demo_handle_request(int number)
{
	void *session = demo_open_session();

	if (number % 10)
		free(session);
}

void demo_remember(void)
{
	demo_kept = malloc(NOTE_BYTES);
}

static int demo_program(void)
{
	demo_remember();
	for (int i = 0; i < NR_ROUNDS; i++)
		demo_handle_request(i);
	return STATUS_DONE;
}

/* ---- the report, explained ---- */

static const struct {
	const char *begin; /* of the line, after its blanks */
	const char *text;
} explanations[] = {
	{ "leaks ", "The answer: how much is lost, and the worst place." },
	{ "no leaks", "The answer: nothing is lost." },
	{ "no verdict", "The answer: the reason why nobody knows what is lost." },
	{ "heaptap (pid", "The process. Here heaptap plays a server that answers 100 requests." },
	{ "Top ", "Callers: a function of the allocator, and the stack that called it." },
	{ "1 caller with", "Callers: a function of the allocator, and the stack that called it." },
	{ "1 caller by", "Who holds memory now." },
	{ "#1 ", "Nothing points to these blocks any more. One request in ten forgets its session." },
	{ "demo_open_session", "The function that called malloc." },
	{ "demo_handle_request", "Its caller. This is the place to mend: it returns without free()." },
	{ "one of them is held", "The program can still reach the block: it is held, and no leak." },
	{ "live ", "What is allocated now, leaks included." },
	{ "allocated", "What was ever allocated." },
};

static void cmd_demo_explain(const char *line, bool *is_told)
{
	const char *text = line + strspn(line, " ");

	for (size_t i = 0; i < ARRAY_SIZE(explanations); i++) {
		if (is_told[i] || strncmp(text, explanations[i].begin, strlen(explanations[i].begin)) != 0)
			continue;
		is_told[i] = true;
		printf("    ^ %s\n", explanations[i].text);
		return;
	}
}

static int print_explained(const char *path)
{
	bool is_told[ARRAY_SIZE(explanations)] = { 0 };
	auto_fclose FILE *f = fopen(path, "re");
	auto_free char *line = NULL;
	size_t size = 0;

	if (!f)
		return -errno;
	while (getline(&line, &size, f) > 0) {
		fputs(line, stdout);
		cmd_demo_explain(line, is_told);
	}
	return 0;
}

/* Run @exe on itself, with its report in @path. Returns its exit status, or -errno. */
static int trace_self(char *exe, char *path)
{
	char *argv[] = { exe, "run", "-q", "-n", "2", "-o", path, "--", exe, "demo", "program", NULL };
	int status, err;
	pid_t pid;

	err = posix_spawn(&pid, exe, NULL, NULL, argv, environ);
	if (err)
		return -err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_IMPOSSIBLE;
}

int cmd_demo(const struct options *o)
{
	char dir[] = "/tmp/heaptap-demo-XXXXXX", path[sizeof(dir) + 16], exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int status, err;

	if (o->nr_args && !strcmp(o->args[0], "program"))
		return demo_program();
	if (o->nr_args) {
		error("demo: %s: takes no argument; 'heaptap run %s' traces a program of yours", o->args[0],
		      o->args[0]);
		return STATUS_USAGE;
	}
	if (len < 0 || !mkdtemp(dir)) {
		error("demo: %s: %s", len < 0 ? "/proc/self/exe" : dir, strerror(errno));
		return STATUS_IMPOSSIBLE;
	}
	exe[len] = '\0';
	snprintf(path, sizeof(path), "%s/report.txt", dir);
	printf("$ heaptap run -n 2 -- heaptap demo program\n\n");
	fflush(stdout);
	status = trace_self(exe, path);
	err = status < 0 ? status : status ? 0 : print_explained(path);
	unlink(path);
	rmdir(dir);
	if (err)
		error("demo: %s", strerror(-err));
	if (!err && !status)
		printf("\nNow with a program of yours: heaptap run PROGRAM, or heaptap attach NAME.\n");
	return err ? STATUS_IMPOSSIBLE : status;
}
