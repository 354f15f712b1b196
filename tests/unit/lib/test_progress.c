/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the line of the terminal while work takes long. */
#include "user/lib/progress.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/log.h"

/* A terminal, and the text that it has been given. */
struct terminal {
	int master, kept_out, kept_err;
	char text[4096];
	size_t len;
};

/* Make @out and @err standard output and standard error. */
static void redirect(struct terminal *t, int out, int err)
{
	t->kept_out = dup(STDOUT_FILENO);
	t->kept_err = dup(STDERR_FILENO);
	assert_true(t->kept_out >= 0 && t->kept_err >= 0);
	assert_true(dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
}

static void restore(struct terminal *t)
{
	dup2(t->kept_out, STDOUT_FILENO);
	dup2(t->kept_err, STDERR_FILENO);
	close(t->kept_out);
	close(t->kept_err);
}

/* A new terminal is standard error, and @out standard output. */
static void terminal_open(struct terminal *t, const char *out)
{
	int slave, file = open(out, O_WRONLY | O_CLOEXEC);

	*t = (struct terminal){ .master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) };
	assert_true(t->master >= 0 && !grantpt(t->master) && !unlockpt(t->master) && file >= 0);
	slave = open(ptsname(t->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	redirect(t, file, slave);
	close(slave);
	close(file);
}

static void terminal_close(struct terminal *t)
{
	restore(t);
	close(t->master);
}

/* Read what the terminal is given until @text is in it. */
static void await(struct terminal *t, const char *text)
{
	while (!strstr(t->text, text)) {
		ssize_t nr = read(t->master, t->text + t->len, sizeof(t->text) - 1 - t->len);

		assert_true(nr > 0);
		t->len += (size_t)nr;
		t->text[t->len] = '\0';
	}
}

/* The line covers the one before, and at the end blanks cover it. */
static void test_shown(void **state)
{
	struct terminal t;
	size_t blanks = 0;

	(void)state;
	terminal_open(&t, "/dev/null");
	progress_begin("scan: PID 1");
	progress_phase("copying its memory");
	progress_bytes(1 << 20, 4 << 20);
	await(&t, "\rscan: PID 1: copying its memory, 1.00 MiB of 4.00 MiB, 1 s");
	progress_phase("naming");
	await(&t, "\rscan: PID 1: naming, ");
	progress_end();
	await(&t, " \r");
	while (t.text[t.len - 2 - blanks] == ' ')
		blanks++;
	assert_true(blanks >= strlen("scan: PID 1: naming, 1 s"));
	/* Again is fine. */
	progress_end();
	terminal_close(&t);
}

static size_t count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	size_t nr = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	closedir(dir);
	return nr;
}

static size_t threads_while_working(void)
{
	size_t nr;

	progress_begin("scan");
	progress_phase("naming");
	nr = count_threads();
	progress_end();
	return nr;
}

/* Without a line there is no thread for it. */
static void test_not_shown(void **state)
{
	struct terminal t;
	int pipes[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	terminal_open(&t, "/dev/null");
	assert_int_equal(threads_while_working(), 2);
	log_set_level(LOG_WARN);
	assert_int_equal(threads_while_working(), 1);
	log_set_level(LOG_INFO);
	dup2(pipes[1], STDOUT_FILENO);
	assert_int_equal(threads_while_working(), 1);
	terminal_close(&t);
	redirect(&t, null, null);
	assert_int_equal(threads_while_working(), 1);
	restore(&t);
	close(null);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_not_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
