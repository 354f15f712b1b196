/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Report files: complete or not there, never over somebody's file, never through a link. */
#include "user/report/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/report/report.h"
#include "user/source/source.h"
#include "user/target/target.h"

static char folder[] = "/tmp/heaptap-test-XXXXXX";
static const char *names[8];
static struct output_options options = { .names = names };
static struct outputs *outs;
static struct heap *heap;
static struct target targets[2] = { { .pid = 11, .exe = "" }, { .pid = 12, .exe = "" } };
static struct losses losses;
static struct report_process processes[2];
static struct report report = { .backend = "bpf", .processes = processes, .nr_processes = 2 };

static int quiet_stderr(void)
{
	int saved = dup(STDERR_FILENO);
	int null = open("/dev/null", O_WRONLY);

	dup2(null, STDERR_FILENO);
	close(null);
	return saved;
}

static void restore_stderr(int saved)
{
	dup2(saved, STDERR_FILENO);
	close(saved);
}

/* Prepare the outputs of NULL-terminated @patterns. */
static int prepare(bool force, const char *const *patterns)
{
	int saved = quiet_stderr();
	int err;

	outputs_free(outs);
	outs = NULL;
	options.force = force;
	for (options.nr_names = 0; patterns[options.nr_names]; options.nr_names++)
		names[options.nr_names] = patterns[options.nr_names];
	err = outputs_new(&outs, &options, stdout);
	restore_stderr(saved);
	return err;
}

#define prepares(force, ...) prepare(force, (const char *const[]){ __VA_ARGS__, NULL })

static int write_report(void)
{
	int saved = quiet_stderr();
	int err = outputs_write(outs, &report);

	restore_stderr(saved);
	return err;
}

static int nr_files(void)
{
	DIR *dir = opendir(".");
	const struct dirent *entry;
	int nr = 0;

	while ((entry = readdir(dir)))
		nr += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(dir);
	return nr;
}

static bool exists(const char *name)
{
	struct stat st;

	return !lstat(name, &st);
}

static bool contains(const char *name, const char *text)
{
	static char content[65536];
	FILE *file = fopen(name, "r");
	size_t len;

	assert_non_null(file);
	len = fread(content, 1, sizeof(content) - 1, file);
	content[len] = '\0';
	fclose(file);
	return strstr(content, text);
}

static void make_file(const char *name)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fputs("precious", file);
	fclose(file);
}

static void ending_chooses_format(void **state)
{
	(void)state;
	assert_int_equal(prepares(false, "a.json", "b.txt"), 0);
	assert_int_equal(nr_files(), 0);
	assert_int_equal(write_report(), 0);
	assert_int_equal(nr_files(), 2);
	assert_true(contains("a.json", "heaptap-report/2"));
	assert_false(contains("b.txt", "heaptap-report/2"));
	assert_true(contains("b.txt", "pid 11"));
	assert_true(contains("b.txt", "pid 12"));
}

static void format_of_other_names(void **state)
{
	(void)state;
	options.format = report_format_named("json");
	assert_int_equal(prepares(false, "a", "b.txt", "c.%p"), 0);
	assert_int_equal(write_report(), 0);
	assert_true(contains("a", "heaptap-report/2"));
	assert_false(contains("b.txt", "heaptap-report/2"));
	assert_true(contains("c.12", "heaptap-report/2"));
	assert_int_equal(nr_files(), 4);
	options.format = NULL;
}

static void device_is_written_in_place(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(prepares(false, "/dev/null", "a.json"), 0);
	assert_int_equal(write_report(), 0);
	assert_int_equal(write_report(), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(prepares(false, "/dev/full"), 0);
	assert_int_equal(write_report(), -ENOSPC);
	assert_int_equal(symlink("/dev/null", "link.json"), 0);
	assert_int_equal(prepares(true, "link.json"), -EEXIST);
	assert_int_equal(mkfifo("fifo.json", 0600), 0);
	assert_int_equal(prepares(true, "fifo.json"), -EEXIST);
	assert_int_equal(nr_files(), 3);
}

static void nonsense_is_refused_early(void **state)
{
	(void)state;
	assert_int_equal(prepares(false, "a.xml"), -EINVAL);
	assert_int_equal(prepares(false, "json"), -EINVAL);
	assert_int_equal(prepares(false, ".json"), -EINVAL);
	assert_int_equal(prepares(false, "a.json", ""), -EINVAL);
	assert_int_equal(prepares(false, "a%q.json"), -EINVAL);
	assert_int_equal(prepares(false, "a.json%"), -EINVAL);
	assert_int_equal(prepares(false, "%p/a.json"), -EINVAL);
	assert_int_equal(prepares(false, "missing/a.json"), -ENOENT);
	assert_int_equal(prepares(false, "/dev/null/a.json"), -ENOTDIR);
	assert_null(outs);
	assert_int_equal(nr_files(), 0);
}

static void existing_files_are_kept(void **state)
{
	(void)state;
	make_file("a.json");
	assert_int_equal(prepares(false, "a.json"), -EEXIST);
	assert_true(contains("a.json", "precious"));
	assert_int_equal(prepares(true, "a.json"), 0);
	assert_true(contains("a.json", "precious"));
	assert_int_equal(write_report(), 0);
	assert_true(contains("a.json", "heaptap-report/2"));
	assert_int_equal(nr_files(), 1);
}

static void file_made_meanwhile_is_kept(void **state)
{
	(void)state;
	assert_int_equal(prepares(false, "a.json"), 0);
	make_file("a.json");
	assert_int_equal(write_report(), -EEXIST);
	assert_true(contains("a.json", "precious"));
	assert_int_equal(nr_files(), 1);
}

static void links_are_not_followed(void **state)
{
	(void)state;
	make_file("victim");
	assert_int_equal(symlink("victim", "a.json"), 0);
	assert_int_equal(prepares(true, "a.json"), -EEXIST);
	assert_int_equal(unlink("a.json"), 0);
	assert_int_equal(prepares(true, "a.json"), 0);
	assert_int_equal(symlink("victim", "a.json"), 0);
	assert_int_equal(write_report(), -EEXIST);
	assert_true(contains("victim", "precious"));
}

static void own_file_is_replaced(void **state)
{
	(void)state;
	assert_int_equal(prepares(false, "a.json"), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(write_report(), 0);
	assert_int_equal(nr_files(), 1);
	assert_int_equal(unlink("a.json"), 0);
	make_file("a.json");
	assert_int_equal(write_report(), -EEXIST);
	assert_true(contains("a.json", "precious"));
}

static void placeholders(void **state)
{
	(void)state;
	assert_int_equal(prepares(false, "heap-%p.%n.json", "100%%-%n.txt", "%t.json"), 0);
	assert_int_equal(write_report(), 0);
	assert_true(exists("heap-11.1.json") && exists("heap-12.1.json"));
	assert_true(contains("heap-11.1.json", "\"pid\":11,"));
	assert_false(contains("heap-11.1.json", "\"pid\":12,"));
	assert_true(contains("heap-12.1.json", "\"pid\":12,"));
	assert_true(exists("100%-1.txt"));
	assert_int_equal(nr_files(), 4);
	assert_int_equal(prepares(false, "heap-%p.%n.json"), 0);
	assert_int_equal(write_report(), -EEXIST);
	assert_int_equal(write_report(), 0);
	assert_true(exists("heap-12.2.json"));
}

/* A process that has ended is the same in all later reports, but for one whose last numbers come late. */
static void ended_is_written_once(void **state)
{
	struct report_process *p = &processes[1];
	struct target target = *p->target;

	(void)state;
	assert_int_equal(prepares(false, "heap-%p.%n.json", "all-%n.json"), 0);
	target.has_exited = true;
	assert_int_equal(write_report(), 0);
	p->target = &target;
	for (int i = 0; i < 3; i++)
		assert_int_equal(write_report(), 0);
	target.start_time++;
	assert_int_equal(write_report(), 0);
	p->target = &targets[1];
	assert_int_equal(write_report(), 0);
	for (int i = 1; i <= 6; i++) {
		char name[32];

		snprintf(name, sizeof(name), "heap-11.%d.json", i);
		assert_true(exists(name));
		snprintf(name, sizeof(name), "heap-12.%d.json", i);
		assert_int_equal(exists(name), i != 3 && i != 4);
		snprintf(name, sizeof(name), "all-%d.json", i);
		assert_true(contains(name, "\"pid\":12,"));
	}
}

static void later_chdir_does_no_harm(void **state)
{
	(void)state;
	assert_int_equal(mkdir("sub", 0700), 0);
	assert_int_equal(prepares(false, "a.json", "sub/b.json"), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(write_report(), 0);
	assert_int_equal(chdir(folder), 0);
	assert_true(exists("a.json") && exists("sub/b.json"));
	assert_int_equal(unlink("sub/b.json"), 0);
	assert_int_equal(rmdir("sub"), 0);
}

static void files_are_private(void **state)
{
	struct stat st;

	(void)state;
	umask(0);
	assert_int_equal(prepares(false, "a.json"), 0);
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "54321", 1);
	assert_int_equal(write_report(), 0);
	assert_int_equal(stat("a.json", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_uid, geteuid() ? geteuid() : 12345);
	assert_int_equal(st.st_gid, geteuid() ? getegid() : 54321);
	setenv("SUDO_UID", "12345; rm", 1);
	assert_int_equal(write_report(), 0);
	assert_int_equal(stat("a.json", &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static void full_stream_is_an_error_once(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	outputs_free(outs);
	outs = NULL;
	options.nr_names = 0;
	assert_int_equal(outputs_new(&outs, &options, full), 0);
	assert_int_equal(write_report(), -ENOSPC);
	assert_int_equal(write_report(), -ENOSPC);
	assert_int_equal(fclose(full), 0);
}

static void one_failure_leaves_the_others(void **state)
{
	(void)state;
	assert_int_equal(prepares(false, "a.json", "b.json"), 0);
	make_file("a.json");
	assert_int_equal(write_report(), -EEXIST);
	assert_true(contains("b.json", "heaptap-report/2"));
	assert_int_equal(nr_files(), 2);
}

static int begin(void **state)
{
	(void)state;
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	return !mkdtemp(folder) || chdir(folder);
}

static int end(void **state)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	(void)state;
	outputs_free(outs);
	outs = NULL;
	if (chdir(folder) || !dir)
		return -1;
	while ((entry = readdir(dir)))
		unlink(entry->d_name);
	closedir(dir);
	return chdir("/") || rmdir(folder);
}

static int begin_all(void **state)
{
	(void)state;
	if (heap_new(&heap, NULL))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
		processes[i] = (struct report_process){ &targets[i], heap, .losses = &losses };
	return 0;
}

static int end_all(void **state)
{
	(void)state;
	heap_free(heap);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ending_chooses_format),
		TEST(format_of_other_names),
		TEST(device_is_written_in_place),
		TEST(nonsense_is_refused_early),
		TEST(existing_files_are_kept),
		TEST(file_made_meanwhile_is_kept),
		TEST(links_are_not_followed),
		TEST(own_file_is_replaced),
		TEST(placeholders),
		TEST(ended_is_written_once),
		TEST(later_chdir_does_no_harm),
		TEST(files_are_private),
		TEST(full_stream_is_an_error_once),
		TEST(one_failure_leaves_the_others),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}
