/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A signal that comes during a verdict: what heaptap says. In a process of its own, for the signal. And a process whose
 * first calls come after the verdicts.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/session/control.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

enum { HANG_S = 60 };

/* A source whose reading takes as long as heaptap says nothing of a signal. */
struct source {
	int messages; /* owned; what heaptap says */
	char text[512];
};

/* In the child: end with a word if @is_true is not. The standard error is a pipe to itself. */
#define NEED(is_true)                                                                                        \
	do {                                                                                                 \
		if (!(is_true)) {                                                                            \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #is_true);                                 \
			fflush(stdout);                                                                      \
			_exit(1);                                                                            \
		}                                                                                            \
	} while (0)

static int slow_poll(struct source *src, const struct sink *sink)
{
	ssize_t len;

	(void)sink;
	if (!*src->text) {
		NEED(kill(getpid(), SIGTERM) == 0);
		len = read(src->messages, src->text, sizeof(src->text) - 1);
		NEED(len > 0);
	}
	return 0;
}

static struct losses no_losses(struct source *src, pid_t pid)
{
	(void)src;
	(void)pid;
	return (struct losses){ 0 };
}

static void slow_free(struct source *src)
{
	close(src->messages);
	free(src);
}

static const struct source_ops slow = {
	.name = "slow", .poll = slow_poll, .losses = no_losses, .free = slow_free
};

static const struct session_options options = { .command = "run" };

static struct session *with_process(pid_t pid)
{
	struct session *s;
	struct process *p;
	int fds[2];

	NEED(session_alloc(&s, &options, NULL) == 0);
	NEED(pipe2(fds, O_CLOEXEC) == 0);
	NEED(dup2(fds[1], STDERR_FILENO) == STDERR_FILENO);
	close(fds[1]);
	s->ops = &slow;
	s->source = calloc(1, sizeof(*s->source));
	NEED(s->source && session_new_process(s, &p) == 0);
	s->source->messages = fds[0];
	p->target = calloc(1, sizeof(*p->target));
	NEED(p->target);
	p->target->pid = pid;
	p->target->pidfd = -1;
	return s;
}

/* The exit of a process is found among events, and its verdict may take minutes. */
static void verdict_at_exit(void)
{
	const struct control_times no_times = { 0 };
	struct session *s = with_process(getpid());
	struct control *c;
	int sig;

	NEED(control_new(&c, &no_times, false) == 0);
	control_guard(c, "run");
	session_guard(s, c);
	control_begin(c, 0);
	NEED(control_wait(c, -1, 0, &sig) == CONTROL_NONE);
	session_scan_exiting(s, getpid());
	printf("%s", s->source->text);
	NEED(strstr(s->source->text, "run: heaptap is busy with a leak verdict: another signal"));
	/* The verdict is found, and heaptap does what it did before. */
	NEED(strcmp(control_doing(c, ""), "with events that have piled up") == 0);
	session_free(s);
	control_free(c);
}

static void test_busy_with_verdict(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		alarm(HANG_S);
		verdict_at_exit();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int no_poll(struct source *src, const struct sink *sink)
{
	(void)src;
	(void)sink;
	return 0;
}

static const struct source_ops quiet = { .name = "quiet", .poll = no_poll, .losses = no_losses };

/* A program may be so new that it has not loaded its allocator: there is nothing to judge in it. */
static void test_watched_too_late(void **state)
{
	struct report_process shown;
	struct session *s;
	struct process *p;

	(void)state;
	assert_int_equal(session_alloc(&s, &options, NULL), 0);
	s->ops = &quiet;
	assert_int_equal(session_fill_process(s, (u32)getpid(), &p), 0);
	session_scan(s, NULL, true);
	assert_null(p->leaks);
	p->nr_events = 1;
	assert_int_equal(session_describe(s, p, 0, &shown), 0);
	assert_non_null(shown.no_verdict);
	assert_string_equal(shown.notes[0],
			    "no leak verdict: nothing of it was watched yet when verdicts were found");
	free((void *)shown.allocators);
	session_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watched_too_late),
		cmocka_unit_test(test_busy_with_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
