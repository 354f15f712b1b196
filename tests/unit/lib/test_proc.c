/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The readers of /proc: what they say of children whose truth is known. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/child.h"
#include "user/lib/proc.h"
#include "user/lib/proc_limit.h"
#include "tests/unit/skip.h"

static void stat_of_hostile_name(void **state)
{
	struct child c;
	struct proc_stat stat;

	(void)state;
	/* A name that looks like the rest of the line. */
	assert_int_equal(child_start(&c, "/proc/self/exe", "x", ") Z 1 (\nx"), 0);
	assert_int_equal(proc_read_stat(&stat, c.pid), 0);
	assert_string_equal(stat.comm, ") Z 1 (\nx");
	assert_int_equal(stat.ppid, getpid());
	assert_int_not_equal(stat.state, 'Z');
	assert_false(stat.is_kernel_thread);
	assert_int_equal(stat.nr_threads, 1);
	assert_int_not_equal(stat.start_time, 0);
	assert_false(proc_thread_has_ended(c.pid, c.pid));

	assert_int_equal(child_make_zombie(&c), 0);
	assert_int_equal(proc_read_stat(&stat, c.pid), 0);
	assert_int_equal(stat.state, 'Z');
	assert_true(proc_thread_has_ended(c.pid, c.pid));
	child_stop(&c);
	assert_int_equal(proc_read_stat(&stat, c.pid), -ESRCH);
	assert_true(proc_thread_has_ended(c.pid, c.pid));
}

static void kernel_thread(void **state)
{
	struct proc_stat stat;
	struct proc_status status;
	char *exe = NULL;

	(void)state;
	/* In a PID namespace of its own, process 2 is something else or nothing. */
	if (proc_read_stat(&stat, 2) != 0 || strcmp(stat.comm, "kthreadd") != 0)
		skip_because("no kthreadd to be seen here");
	assert_true(stat.is_kernel_thread);
	assert_int_equal(proc_read_status(&status, 2), 0);
	assert_false(status.has_memory);
	if (geteuid() == 0)
		assert_int_equal(proc_exe(&exe, 2), -ENOENT);
}

static void status_of_child(void **state)
{
	struct child c;
	struct proc_status status, own;

	(void)state;
	assert_int_equal(child_start(&c, "/proc/self/exe", "x", "Uid: 1 Gid:"), 0);
	assert_int_equal(proc_read_status(&status, c.pid), 0);
	assert_int_equal(status.tgid, c.pid);
	assert_int_equal(status.ppid, getpid());
	assert_int_equal(status.tracer_pid, 0);
	assert_int_equal(status.ns_tgid, c.pid);
	assert_int_equal(status.ns_depth, 0);
	assert_int_equal(status.uid, getuid());
	assert_int_equal(status.egid, getegid());
	assert_true(status.has_memory);
	assert_int_equal(proc_read_status(&own, getpid()), 0);
	assert_int_equal(own.caps_effective, status.caps_effective);
	assert_int_equal(child_make_zombie(&c), 0);
	assert_int_equal(proc_read_status(&status, c.pid), 0);
	assert_false(status.has_memory);
	child_stop(&c);
	assert_int_equal(proc_read_status(&status, c.pid), -ESRCH);
}

/* Threads of the program besides those of a test: ThreadSanitizer has one. */
#ifdef __SANITIZE_THREAD__
enum { NR_OTHER_THREADS = 2 };
#else
enum { NR_OTHER_THREADS = 1 };
#endif

static void *hold_thread(void *arg)
{
	char byte;
	int *fds = arg;

	if (write(fds[3], "t", 1) == 1)
		(void)!read(fds[0], &byte, 1);
	return NULL;
}

static void threads(void **state)
{
	enum { NR = 70 }; /* more than the list's first size */
	pthread_t ids[NR];
	int fds[4];
	pid_t *tids = NULL;
	size_t nr = 0;
	char byte;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(fds + 2), 0);
	for (int i = 0; i < NR; i++) {
		assert_int_equal(pthread_create(&ids[i], NULL, hold_thread, fds), 0);
		assert_int_equal(read(fds[2], &byte, 1), 1);
	}
	assert_int_equal(proc_threads(getpid(), &tids, &nr), 0);
	assert_int_equal(nr, NR + NR_OTHER_THREADS);
	assert_int_equal(tids[0], getpid());
	for (size_t i = 0; i < nr; i++)
		assert_false(proc_thread_has_ended(getpid(), tids[i]));
	/* A thread of another process. */
	assert_true(proc_thread_has_ended(getppid(), tids[0]));
	free(tids);
	close(fds[1]);
	for (int i = 0; i < NR; i++)
		pthread_join(ids[i], NULL);
	close(fds[0]);
	close(fds[2]);
	close(fds[3]);
}

static void exe_names(void **state)
{
	char dir[] = "/tmp/test_proc.XXXXXX";
	char plain[64], marked[64];
	struct child a, b;
	char *exe = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(plain, sizeof(plain), "%s/prog", dir);
	snprintf(marked, sizeof(marked), "%s/prog (deleted)", dir);
	assert_int_equal(child_copy_self(plain), 0);
	assert_int_equal(child_copy_self(marked), 0);
	assert_int_equal(child_start(&a, plain, "x", NULL), 0);
	assert_int_equal(child_start(&b, marked, "x", NULL), 0);
	unlink(plain);

	/* The kernel's mark goes, a file that is really called so keeps its name. */
	assert_int_equal(proc_exe(&exe, a.pid), 0);
	assert_string_equal(exe, plain);
	free(exe);
	assert_int_equal(proc_exe(&exe, b.pid), 0);
	assert_string_equal(exe, marked);
	free(exe);
	child_stop(&a);
	child_stop(&b);
	unlink(marked);
	rmdir(dir);
}

static void exe_of_nobody(void **state)
{
	char *exe = NULL;
	struct child c;

	(void)state;
	assert_int_equal(child_start(&c, "/proc/self/exe", "x", NULL), 0);
	child_stop(&c);
	assert_int_equal(proc_exe(&exe, c.pid), -ESRCH);
}

static void elf_class(void **state)
{
	bool is_32bit = sizeof(long) == 8;

	(void)state;
	assert_int_equal(proc_is_32bit(&is_32bit, getpid()), 0);
	assert_int_equal(is_32bit, sizeof(long) == 4);
}

static void first_word(void **state)
{
	struct child c;
	char buf[32], tiny[4];

	(void)state;
	assert_int_equal(child_start(&c, "/proc/self/exe", "/some/where/a name", NULL), 0);
	assert_int_equal(proc_argv0(buf, sizeof(buf), c.pid), 0);
	assert_string_equal(buf, "/some/where/a name");
	assert_int_equal(proc_argv0(tiny, sizeof(tiny), c.pid), 0);
	assert_string_equal(tiny, "/so");
	child_stop(&c);
	assert_int_equal(proc_argv0(buf, sizeof(buf), c.pid), -ESRCH);
}

static void auxv(void **state)
{
	u64 value = 0;
	bool is_32bit = sizeof(long) == 4;

	(void)state;
	assert_int_equal(proc_auxv(&value, getpid(), is_32bit, AT_PAGESZ), 0);
	assert_int_equal(value, getauxval(AT_PAGESZ));
	assert_int_equal(proc_auxv(&value, getpid(), is_32bit, AT_ENTRY), 0);
	assert_int_equal(value, getauxval(AT_ENTRY));
	assert_int_equal(proc_auxv(&value, getpid(), is_32bit, 0x7fff1234), -ENOENT);
}

static void text_is_cut(void **state)
{
	char path[] = "/tmp/test_proc.XXXXXX";
	char buf[4];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "ab\n\n", 4), 4);
	assert_int_equal(proc_read_text(path, buf, sizeof(buf)), 2);
	assert_string_equal(buf, "ab");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(proc_read_text(path, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	close(fd);
	unlink(path);
	assert_int_equal(proc_read_text(path, buf, sizeof(buf)), -ENOENT);
}

enum { NOBODY = 65534, AS_LIMIT = 1 << 30, FILE_LIMIT = 12288 };

/* A child with limits, of another user if that is possible. */
static pid_t limited_child(void)
{
	const struct rlimit as = { AS_LIMIT, RLIM_INFINITY }, file = { FILE_LIMIT, FILE_LIMIT };
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (setrlimit(RLIMIT_AS, &as) || setrlimit(RLIMIT_FSIZE, &file) ||
		    (!geteuid() && setresuid(NOBODY, NOBODY, NOBODY)))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* prlimit() gives no limits of other users any more. */
static void drop_capability(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &head, data), 0);
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	assert_int_equal(syscall(SYS_capset, &head, data), 0);
}

static void limits(void **state)
{
	pid_t pid = limited_child();

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_true(proc_limit(pid, RLIMIT_AS) == AS_LIMIT);
		assert_true(proc_limit(pid, RLIMIT_FSIZE) == FILE_LIMIT);
		assert_true(proc_limit(pid, RLIMIT_DATA) == UINT64_MAX);
		drop_capability();
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(proc_limit(pid, RLIMIT_AS) == UINT64_MAX);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_of_hostile_name),
		cmocka_unit_test(kernel_thread),
		cmocka_unit_test(status_of_child),
		cmocka_unit_test(threads),
		cmocka_unit_test(exe_names),
		cmocka_unit_test(exe_of_nobody),
		cmocka_unit_test(elf_class),
		cmocka_unit_test(first_word),
		cmocka_unit_test(auxv),
		cmocka_unit_test(text_is_cut),
		cmocka_unit_test(limits),
	};

	child_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
