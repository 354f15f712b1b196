/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history of the console: for its user alone, and never where another user can write. */
#include "user/console/console_history.h"
#include "tests/unit/skip.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char state_dir[64], directory[96], file[128];
static char loaded[4096];

static const char *line_at(size_t i)
{
	static const char *const lines[] = { "status", "top peak 5", NULL };

	return lines[i];
}

static void keep(void *ctx, const char *line)
{
	(void)ctx;
	strcat(loaded, line);
	strcat(loaded, "|");
}

static void load(void)
{
	*loaded = '\0';
	console_history_load(keep, NULL);
}

static int begin(void **state)
{
	(void)state;
	strcpy(state_dir, "/tmp/heaptap-history-XXXXXX");
	if (!mkdtemp(state_dir))
		return -1;
	snprintf(directory, sizeof(directory), "%s/heaptap", state_dir);
	snprintf(file, sizeof(file), "%s/history", directory);
	return setenv("XDG_STATE_HOME", state_dir, 1);
}

static int end(void **state)
{
	(void)state;
	unlink(file);
	rmdir(directory);
	return rmdir(state_dir);
}

static void test_kept(void **state)
{
	struct stat st;

	(void)state;
	load();
	assert_string_equal(loaded, "");
	console_history_save(line_at);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(directory, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	load();
	assert_string_equal(loaded, "status|top peak 5|");
	/* Saving replaces the file and does not append. */
	console_history_save(line_at);
	load();
	assert_string_equal(loaded, "status|top peak 5|");
}

static void test_directory_of_others(void **state)
{
	(void)state;
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(chmod(directory, 0777), 0);
	console_history_save(line_at);
	assert_int_equal(access(file, F_OK), -1);
}

static void test_link(void **state)
{
	char other[128];
	struct stat st;
	int fd;

	(void)state;
	snprintf(other, sizeof(other), "%s/other", state_dir);
	fd = open(other, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "secret\n", 7), 7);
	close(fd);
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(symlink(other, file), 0);
	load();
	assert_string_equal(loaded, "");
	console_history_save(line_at);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 7);
	assert_int_equal(lstat(file, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink(other);
}

static void test_fifo(void **state)
{
	(void)state;
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(mkfifo(file, 0600), 0);
	load(); /* does not wait for a writer */
	assert_string_equal(loaded, "");
}

/* Under sudo the home may be the home of the user: directories of root would be in the way. */
static void test_home_of_others(void **state)
{
	(void)state;
	if (geteuid())
		skip_because("not root: no home of somebody else");
	assert_int_equal(chown(state_dir, 65534, 65534), 0);
	console_history_save(line_at);
	assert_int_equal(access(directory, F_OK), -1);
}

static void test_no_home(void **state)
{
	(void)state;
	setenv("XDG_STATE_HOME", "not/absolute", 1);
	unsetenv("HOME");
	console_history_save(line_at);
	load();
	assert_string_equal(loaded, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kept, begin, end),
		cmocka_unit_test_setup_teardown(test_directory_of_others, begin, end),
		cmocka_unit_test_setup_teardown(test_link, begin, end),
		cmocka_unit_test_setup_teardown(test_fifo, begin, end),
		cmocka_unit_test_setup_teardown(test_home_of_others, begin, end),
		cmocka_unit_test_setup_teardown(test_no_home, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
