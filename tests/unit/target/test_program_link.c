/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of names of programs: this program starts itself by links, and asks what the child is called. */
#include "user/target/program_link.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/proc.h"

static char exe[PATH_MAX];

/* Start this program by @path as @argv0. It says when it runs, and ends when *@in is closed. */
static pid_t start(const char *path, const char *argv0, int *in)
{
	int to[2], from[2];
	char ready;
	pid_t pid;

	assert_int_equal(pipe(to) | pipe(from), 0);
	pid = fork();
	if (!pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[1]);
		execl(path, argv0, "child", NULL);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	assert_int_equal(read(from[0], &ready, 1), 1);
	close(from[0]);
	*in = to[1];
	return pid;
}

/* The link of a child that was started by @path as @argv0; NULL if none. Owned by the caller. */
static char *link_of(const char *path, const char *argv0, const char *comm)
{
	char *link, *real;
	int in;
	pid_t pid = start(path, argv0, &in);

	assert_int_equal(proc_exe(&real, pid), 0);
	assert_int_equal(program_link(&link, pid, real, comm), 0);
	close(in);
	waitpid(pid, NULL, 0);
	free(real);
	return link;
}

static void expect(const char *want, char *link)
{
	if (want)
		assert_string_equal(link, want);
	else
		assert_null(link);
	free(link);
}

static void names(void **state)
{
	char dir[] = "/tmp/heaptap-link-XXXXXX", away[64], other[64], beside[PATH_MAX + 8];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(away, sizeof(away), "%s/away", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	snprintf(beside, sizeof(beside), "%s-beside", exe);
	unlink(beside);
	assert_int_equal(symlink(exe, away) | symlink("/bin/sh", other) | symlink(exe, beside), 0);
	expect(away, link_of(away, away, "away"));
	expect(beside, link_of(exe, strrchr(beside, '/') + 1, "x"));
	expect(beside, link_of(exe, "a title: of its own", strrchr(beside, '/') + 1));
	/* The file's own name, names of nothing, and of another program. */
	expect(NULL, link_of(exe, exe, "x"));
	expect(NULL, link_of(exe, "-login", "shell"));
	expect(NULL, link_of(exe, other, "other"));
	expect(NULL, link_of(exe, "", ""));
	unlink(away);
	unlink(other);
	unlink(beside);
	rmdir(dir);
}

static void no_process(void **state)
{
	char *link;

	(void)state;
	assert_int_equal(program_link(&link, 0x7ffffff0, "/bin/x", "y"), 0);
	assert_null(link);
	assert_int_equal(program_link(&link, getpid(), "", "y"), 0);
	assert_null(link);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names), cmocka_unit_test(no_process) };

	if (argc > 1 && !strcmp(argv[1], "child"))
		return write(STDOUT_FILENO, "", 1) != 1 || read(STDIN_FILENO, &(char){ 0 }, 1) != 0;
	if (!realpath("/proc/self/exe", exe))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
