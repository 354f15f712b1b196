/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cores of a child with threads: gdb shows all threads, variables and memory; the child runs on. */
#include "user/core/core.h"
#include "tests/unit/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NR_THREADS = 5, BIG = 64 << 20 };

#define NOINLINE __attribute__((noipa))

static volatile int core_truth = 1;
static char *volatile core_big;
static volatile u64 *beats; /* shared: grows while the child runs */
static int ready[2];

NOINLINE static void core_waits(int level)
{
	char byte = 'r';

	if (level > 0) {
		core_waits(level - 1);
		beats[1]++;
		return;
	}
	if (write(ready[1], &byte, 1) == 1)
		for (;;)
			pause();
}

NOINLINE static void *core_thread(void *arg)
{
	core_waits(3);
	return arg;
}

/* The main thread works, so that it stops in the middle of its own code. */
NOINLINE static void core_works(void)
{
	for (;;)
		beats[0]++;
}

static void child(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	core_truth = 76543;
	core_big = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(core_big, 'x', BIG);
	for (int i = 1; i < NR_THREADS; i++)
		pthread_create(&thread, NULL, core_thread, NULL);
	core_works();
}

static pid_t pid;
static char file[64];

static int begin(void **state)
{
	char byte;

	(void)state;
	strcpy(file, "/tmp/heaptap-core-XXXXXX");
	beats = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(ready) || beats == MAP_FAILED)
		return -1;
	pid = fork();
	if (pid == 0) {
		child();
		_exit(9);
	}
	for (int i = 1; i < NR_THREADS; i++)
		if (read(ready[0], &byte, 1) != 1)
			return -1;
	while (!beats[0])
		usleep(1000);
	return close(mkstemp(file));
}

static int end(void **state)
{
	(void)state;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	return unlink(file);
}

static int make(const struct core_options *o, struct core_sums *sums)
{
	int fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	struct core *c;
	u64 before;
	int err = core_stop(&c, pid, o);

	if (err == -EPERM || err == -EOPNOTSUPP)
		skip_because("%s", err == -EPERM ? "may not trace here" : "not on this CPU");
	assert_int_equal(err, 0);
	before = beats[0];
	err = core_write(c, fd);
	assert_int_equal(beats[0], before);
	core_resume(c);
	*sums = core_sums(c);
	core_free(c);
	close(fd);
	/* The child runs on: a hang here is a failure. */
	while (beats[0] == before)
		usleep(1000);
	return err;
}

/* The answers of gdb to @commands about the core. */
static const char *by_gdb(const char *commands)
{
	static char text[1 << 16];
	char line[512], exe[256];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	FILE *out;

	assert_true(len > 0);
	exe[len] = '\0';
	if (system("command -v gdb >/dev/null"))
		skip_because("no gdb here");
	snprintf(line, sizeof(line), "DEBUGINFOD_URLS= gdb -batch -nx %s %s %s 2>&1", commands, exe, file);
	out = popen(line, "r");
	assert_non_null(out);
	text[fread(text, 1, sizeof(text) - 1, out)] = '\0';
	pclose(out);
	return text;
}

static size_t count(const char *text, const char *word)
{
	size_t nr = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		nr++;
	}
	return nr;
}

static void contains(const char *text, const char *word, size_t nr)
{
	if (count(text, word) == nr)
		return;
	fprintf(stderr, "not %zu times \"%s\":\n%s\n", nr, word, text);
	fail();
}

static void test_threads(void **state)
{
	struct core_sums sums;
	const char *said;

	(void)state;
	assert_int_equal(make(&(struct core_options){ 0 }, &sums), 0);
	assert_int_equal(sums.nr_threads, NR_THREADS);
	assert_int_equal(sums.nr_unstopped, 0);
	assert_int_equal(sums.left_out_bytes, 0);
	assert_true(sums.memory_bytes > BIG);
	assert_true(sums.pause_ns > 0);
	said = by_gdb(
		"-ex 'thread apply all bt' -ex 'p core_truth' -ex 'p core_big[1000]' -ex 'p core_big[67108863]'");
	assert_true(count(said, "in core_works (") + count(said, "#0  core_works (") >= 1);
	contains(said, "core_waits (level", 4 * (NR_THREADS - 1));
	contains(said, "core_thread (", NR_THREADS - 1);
	contains(said, "in main (", 1);
	contains(said, "$1 = 76543", 1);
	contains(said, "$2 = 120 'x'", 1);
	contains(said, "$3 = 120 'x'", 1);
}

/* gdb shows the first thread of the file; registers and the command line are there. */
static void test_process(void **state)
{
	struct core_sums sums;
	const char *said;
	char wanted[64];

	(void)state;
	assert_int_equal(make(&(struct core_options){ 0 }, &sums), 0);
	said = by_gdb("-ex 'bt 1' -ex 'info auxv' -ex 'info proc mappings' -ex 'p $sp != 0'");
	assert_true(count(said, "core_works (") >= 1);
	contains(said, "AT_ENTRY", 1);
	contains(said, "$1 = 1", 1);
	assert_true(count(said, "test_core") > 2);
	snprintf(wanted, sizeof(wanted), "LWP %d", (int)pid);
	assert_true(count(said, wanted) >= 1);
}

static void test_limit(void **state)
{
	struct core_sums sums;
	struct stat st;
	const char *said;

	(void)state;
	assert_int_equal(make(&(struct core_options){ .max_bytes = 4 << 20 }, &sums), 0);
	assert_int_equal(sums.nr_threads, NR_THREADS);
	assert_true(sums.left_out_bytes > BIG / 2);
	assert_true(sums.memory_bytes <= 4 << 20);
	assert_int_equal(stat(file, &st), 0);
	assert_true(st.st_blocks * 512 < 8 << 20);
	/* Stacks come first. */
	said = by_gdb("-ex 'thread apply all bt' -ex 'p core_truth' -ex 'p core_big[67108863]'");
	contains(said, "core_thread (", NR_THREADS - 1);
	contains(said, "$1 = 76543", 1);
	contains(said, "Cannot access memory", 1);
}

static void test_wrong(void **state)
{
	struct core *c;
	struct core_sums sums;
	int fds[2];

	(void)state;
	assert_int_equal(core_stop(&c, 0x7ffffff0, &(struct core_options){ 0 }), -ESRCH);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(make(&(struct core_options){ 0 }, &sums), 0);
	assert_int_equal(core_stop(&c, pid, &(struct core_options){ 0 }), 0);
	assert_int_equal(core_write(c, fds[1]), -ESPIPE);
	core_free(c);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_threads, begin, end),
		cmocka_unit_test_setup_teardown(test_process, begin, end),
		cmocka_unit_test_setup_teardown(test_limit, begin, end),
		cmocka_unit_test_setup_teardown(test_wrong, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
