/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Targets: who is found, who is refused and with which line. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/unit/child.h"
#include "bpf/event.h"
#include "user/lib/clock.h"
#include "user/lib/proc.h"
#include "user/target/exit_status.h"
#include "user/target/module.h"
#include "user/target/target.h"
#include "tests/unit/skip.h"

static char message[4096];

/* stderr of one call of target_new() into message. */
static int new_quietly(struct target **out, pid_t pid)
{
	char path[] = "/tmp/test_target.XXXXXX";
	int fd = mkstemp(path), saved = dup(STDERR_FILENO), err;

	unlink(path);
	dup2(fd, STDERR_FILENO);
	err = target_new(out, pid);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	memset(message, 0, sizeof(message));
	assert_true(pread(fd, message, sizeof(message) - 1, 0) >= 0);
	close(fd);
	close(saved);
	return err;
}

static void assert_refused(pid_t pid, const char *comm, int err, const char *why)
{
	struct target *t = NULL;
	char line[256];

	assert_int_equal(new_quietly(&t, pid), err);
	assert_null(t);
	if (comm)
		snprintf(line, sizeof(line), "heaptap: target: PID %d (%s): %s\n", pid, comm, why);
	else
		snprintf(line, sizeof(line), "heaptap: target: PID %d: %s\n", pid, why);
	assert_string_equal(message, line);
}

static void life_of_a_target(void **state)
{
	struct child c;
	struct target *t = NULL;

	(void)state;
	assert_int_equal(child_start(&c, "/proc/self/exe", "x", "lively"), 0);
	assert_int_equal(target_new(&t, c.pid), 0);
	assert_int_equal(t->pid, c.pid);
	assert_string_equal(t->comm, "lively");
	assert_string_equal(strrchr(t->exe, '/'), "/test_target");
	assert_int_equal(t->is_32bit, sizeof(long) == 4);
	assert_int_equal(t->exit_status, -1);
	assert_true(fcntl(t->pidfd, F_GETFD) & FD_CLOEXEC);
	assert_true(target_is_alive(t));

	assert_int_equal(child_make_zombie(&c), 0);
	assert_false(target_is_alive(t));
	assert_refused(c.pid, "lively", -ESRCH, "is a zombie: it has ended already");
	child_stop(&c);
	assert_false(target_is_alive(t));
	assert_refused(c.pid, NULL, -ESRCH, "no such process");
	target_free(t);
}

/* How @t has ended, as user @uid sees it who has no rights; 255 = that user does not see it. */
static int seen_by(uid_t uid, const struct target *t)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid)
		_exit(setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)
			      ? 254
			      : target_exit_status(t) & 0xff);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

/* 0 is a status like others, to who may see it. */
static void status_of_a_zombie(void **state)
{
	(void)state;
	for (int status = 0; status < 2; status++) {
		struct target *t = NULL;
		siginfo_t si;
		int hold[2];
		pid_t pid;
		char c;

		assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
		pid = fork();
		if (!pid) {
			close(hold[1]);
			_exit(read(hold[0], &c, 1) ? 99 : status);
		}
		close(hold[0]);
		assert_int_equal(target_new(&t, pid), 0);
		close(hold[1]);
		assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
		assert_int_equal(target_exit_status(t), status << 8);
		if (!geteuid())
			assert_int_equal(seen_by(65534, t), 255);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		target_free(t);
	}
}

/* A child as it was at its fork, as what it executes, and when it has gone (A14, A16). */
static void children(void **state)
{
	struct mapping maps[] = { { .start = 0x1000, .end = 0x2000 } };
	struct target parent = { .pid = 1,
				 .pidfd = -1,
				 .exe = (char *)"/p",
				 .comm = "parent",
				 .is_started = true,
				 .maps = { maps, 1, 3, 4 } };
	struct target *t = NULL;
	struct child c;

	(void)state;
	assert_int_equal(child_start(&c, "/proc/self/exe", "x", "child"), 0);
	assert_int_equal(target_new_child(&t, &parent, c.pid, true), 0);
	assert_int_equal(t->pid, c.pid);
	assert_string_equal(t->comm, "parent");
	assert_string_equal(t->exe, "/p");
	assert_int_equal(t->maps.nr, 1);
	assert_true(t->is_started && target_is_alive(t));
	target_free(t);
	assert_int_equal(target_new_child(&t, &parent, c.pid, false), 0);
	assert_string_equal(t->comm, "child");
	assert_non_null(strstr(t->exe, "test_target"));
	assert_int_equal(t->maps.nr, 0);
	assert_true(t->is_started && target_is_alive(t));
	child_stop(&c);
	assert_false(target_is_alive(t));
	target_free(t);
	assert_int_equal(target_new_child(&t, &parent, c.pid, false), 0);
	assert_string_equal(t->comm, "");
	assert_string_equal(t->exe, "");
	assert_false(target_is_alive(t));
	target_free(t);
}

static void new_code(void **state)
{
	struct mapping maps[] = { { .start = 0x1000, .end = 0x2000 } };
	struct target t = { .maps = { maps, 1, 1, 1 }, .maps_read_ns = 0 };
	struct stack_event ev = { .nr_frames = 2, .ips = { 0x1800, 0x1fff, 0x2000 } };

	(void)state;
	target_note_stack(&t, &ev);
	assert_false(target_wants_maps(&t));
	ev.nr_frames = 3;
	target_note_stack(&t, &ev);
	assert_true(target_wants_maps(&t));
	/* The mappings were read a moment ago: no second reading now, even if everything that comes is known. */
	t.maps_read_ns = clock_now_ns() + 1000000000000;
	assert_false(target_wants_maps(&t));
	ev.nr_frames = 1;
	target_note_stack(&t, &ev);
	t.maps_read_ns = 0;
	assert_true(target_wants_maps(&t));
}

/* Where there are no process descriptors, the start time tells (A19, S7). */
static void reused_number(void **state)
{
	struct child c;
	struct target *t = NULL;

	(void)state;
	assert_int_equal(child_start(&c, "/proc/self/exe", "x", NULL), 0);
	assert_int_equal(target_new(&t, c.pid), 0);
	close(t->pidfd);
	t->pidfd = -1;
	assert_true(target_is_alive(t));
	t->start_time--;
	assert_false(target_is_alive(t));
	t->start_time++;
	assert_int_equal(child_make_zombie(&c), 0);
	assert_false(target_is_alive(t));
	child_stop(&c);
	target_free(t);
}

static void refused_self(void **state)
{
	(void)state;
	assert_refused(getpid(), "test_target", -EINVAL, "is heaptap itself");
}

static void refused_kernel_thread(void **state)
{
	struct proc_stat stat;

	(void)state;
	if (proc_read_stat(&stat, 2) != 0 || strcmp(stat.comm, "kthreadd") != 0)
		skip_because("no kthreadd to be seen here");
	assert_refused(2, "kthreadd", -EINVAL, "is a kernel thread");
}

static void refused_nonsense(void **state)
{
	(void)state;
	assert_refused(0, NULL, -ESRCH, "no such process");
	assert_refused(-5, NULL, -ESRCH, "no such process");
	assert_refused(0x7fffffff, NULL, -ESRCH, "no such process");
}

static void *say_tid(void *arg)
{
	int *fds = arg;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char byte;

	if (write(fds[1], &tid, sizeof(tid)) == sizeof(tid))
		(void)!read(fds[2], &byte, 1);
	_exit(0);
}

/* A child with a second thread that ends it when told; its main thread ends at once or stays. */
static pid_t start_threaded(int fds[4], bool has_main, pid_t *tid)
{
	pid_t pid = fork();
	pthread_t id;

	if (pid == 0) {
		close(fds[3]);
		prctl(PR_SET_NAME, "threaded");
		pthread_create(&id, NULL, say_tid, fds);
		if (!has_main)
			syscall(SYS_exit, 0);
		pthread_join(id, NULL);
		_exit(0);
	}
	assert_int_equal(read(fds[0], tid, sizeof(*tid)), sizeof(*tid));
	return pid;
}

static void refused_thread(void **state)
{
	struct target *t = NULL;
	char part[64];
	int fds[4];
	pid_t pid, tid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(fds + 2), 0);
	pid = start_threaded(fds, true, &tid);
	assert_int_equal(new_quietly(&t, tid), -EINVAL);
	snprintf(part, sizeof(part), "is a thread of process %d", pid);
	assert_non_null(strstr(message, part));
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	waitpid(pid, NULL, 0);
}

/* The main thread has ended, another one goes on (B18). */
static void headless(void **state)
{
	struct module_table *modules;
	struct proc_stat stat = { 0 };
	struct target *t;
	char exe[256] = "";
	int fds[4];
	pid_t pid, tid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(fds + 2), 0);
	pid = start_threaded(fds, false, &tid);
	while (proc_read_stat(&stat, pid) == 0 && stat.state != 'Z')
		sched_yield();
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_int_equal(module_table_new(&modules), 0);
	assert_int_equal(target_new(&t, pid), 0);
	assert_true(target_is_alive(t));
	assert_string_equal(t->exe, exe);
	assert_true(target_read_maps(t, modules) >= 0);
	assert_true(t->maps.nr > 3);
	target_free(t);
	module_table_free(modules);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	waitpid(pid, NULL, 0);
}

/* A child with a mapping of its program's file at @page, which it unmaps when it can read a byte. */
static pid_t start_unmapping(void *page, const int fds[4])
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	if (read(fds[0], &byte, 1) == 1 && !munmap(page, 4096) && write(fds[3], &byte, 1) == 1)
		pause();
	_exit(1);
}

/* A library may be unmapped between the look at the mappings and what follows from it. */
static void unmapped_meanwhile(void **state)
{
	int fds[4], fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	struct module_table *modules;
	const struct mapping *map;
	struct target *t;
	char byte = 0;
	pid_t pid;

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(pipe(fds) | pipe(fds + 2), 0);
	pid = start_unmapping(page, fds);
	assert_int_equal(module_table_new(&modules), 0);
	assert_int_equal(target_new(&t, pid), 0);
	assert_true(target_read_maps(t, modules) >= 0);
	map = mapping_find(&t->maps, (taddr_t)(uintptr_t)page);
	assert_non_null(map);
	assert_true(target_still_maps(t, map));
	assert_int_equal(write(fds[1], &byte, 1), 1);
	assert_int_equal(read(fds[2], &byte, 1), 1);
	assert_false(target_still_maps(t, map));
	/* Mappings that are to be read again count as changed, once. */
	assert_true(target_read_maps(t, modules) >= 0);
	target_read_again(t);
	assert_int_equal(target_read_maps(t, modules), 1);
	assert_int_equal(target_read_maps(t, modules), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	target_free(t);
	module_table_free(modules);
	munmap(page, 4096);
	close(fd);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

static bool has_pid(const pid_t *pids, size_t nr, pid_t pid)
{
	for (size_t i = 0; i < nr; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static void find_by_number(void **state)
{
	char text[16];
	pid_t *pids = NULL;
	size_t nr = 0;

	(void)state;
	snprintf(text, sizeof(text), "%d", getppid());
	assert_int_equal(target_find(text, &pids, &nr), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(pids[0], getppid());
	free(pids);
	assert_int_equal(target_find("2147483647", &pids, &nr), -ESRCH);
	assert_int_equal(target_find("99999999999999999999", &pids, &nr), -ESRCH);
	assert_int_equal(target_find("", &pids, &nr), -ESRCH);
	assert_int_equal(target_find("-1", &pids, &nr), -ESRCH);
}

static void find_by_name(void **state)
{
	char dir[] = "/tmp/test_target.XXXXXX";
	char path[64];
	struct child a, b, z;
	pid_t *pids = NULL;
	size_t nr = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a_program_with_a_long_name", dir);
	assert_int_equal(child_copy_self(path), 0);
	assert_int_equal(child_start(&a, path, "x", NULL), 0);
	assert_int_equal(child_start(&b, path, "/opt/another_name_that_is_long", "htap_comm"), 0);
	assert_int_equal(child_start(&z, path, "x", "htap_comm"), 0);
	assert_int_equal(child_make_zombie(&z), 0);

	/* By file, longer than comm can tell; both, in order. */
	assert_int_equal(target_find("a_program_with_a_long_name", &pids, &nr), 0);
	assert_int_equal(nr, 2);
	assert_true(pids[0] < pids[1]);
	assert_true(has_pid(pids, nr, a.pid) && has_pid(pids, nr, b.pid));
	free(pids);
	/* By comm, without the zombie. */
	assert_int_equal(target_find("htap_comm", &pids, &nr), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(pids[0], b.pid);
	free(pids);
	/* By the first word of the command. */
	assert_int_equal(target_find("another_name_that_is_long", &pids, &nr), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(pids[0], b.pid);
	free(pids);
	/* The cut name is what ps shows: fine too. A part of one is not. */
	assert_int_equal(target_find("a_program_with_", &pids, &nr), 0);
	assert_int_equal(nr, 1);
	free(pids);
	assert_int_equal(target_find("a_program_with", &pids, &nr), -ESRCH);
	assert_int_equal(target_find("name_that_is_long", &pids, &nr), -ESRCH);
	/* A path means the file. */
	assert_int_equal(target_find(path, &pids, &nr), 0);
	assert_int_equal(nr, 2);
	free(pids);
	assert_int_equal(target_find("/bin/true", &pids, &nr), -ESRCH);
	assert_int_equal(target_find("/nosuch/file", &pids, &nr), -ENOENT);
	child_stop(&a);
	child_stop(&b);
	child_stop(&z);
	unlink(path);
	rmdir(dir);
}

static void never_finds_itself(void **state)
{
	pid_t *pids = NULL;
	size_t nr = 0;
	struct child c;

	(void)state;
	assert_int_equal(child_start(&c, "/proc/self/exe", "x", NULL), 0);
	assert_int_equal(target_find("test_target", &pids, &nr), 0);
	assert_false(has_pid(pids, nr, getpid()));
	assert_true(has_pid(pids, nr, c.pid));
	free(pids);
	child_stop(&c);
}

/* Files whose own releases are no mistakes: not libc, nor a program or library with an allocator in it (T7). */
static void files_of_allocators(void **state)
{
	struct module m[] = { { .id = 1, .path = "/usr/lib/libmimalloc.so.3" },
			      { .id = 2, .path = "/usr/lib/libc.so.6" },
			      { .id = 3, .path = "/usr/lib/libserver.so" },
			      { .id = 4, .path = "/usr/bin/jemalloc" },
			      { .id = 5, .path = "/lib/ld-musl-x86_64.so.1" } };
	struct target_allocator a[] = { { &m[0], "mimalloc" },
					{ &m[1], "glibc" },
					{ &m[2], "jemalloc" },
					{ &m[3], "jemalloc" },
					{ &m[4], "musl" } };
	const struct target t = { .allocators = a, .nr_allocators = ARRAY_SIZE(a) };

	(void)state;
	assert_true(target_is_allocator(&t, 1));
	for (u32 i = 0; i < 7; i++)
		assert_int_equal(target_is_allocator(&t, i), i == 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life_of_a_target),
		cmocka_unit_test(status_of_a_zombie),
		cmocka_unit_test(reused_number),
		cmocka_unit_test(refused_self),
		cmocka_unit_test(refused_kernel_thread),
		cmocka_unit_test(refused_nonsense),
		cmocka_unit_test(refused_thread),
		cmocka_unit_test(headless),
		cmocka_unit_test(find_by_number),
		cmocka_unit_test(find_by_name),
		cmocka_unit_test(never_finds_itself),
		cmocka_unit_test(children),
		cmocka_unit_test(new_code),
		cmocka_unit_test(unmapped_meanwhile),
		cmocka_unit_test(files_of_allocators),
	};

	child_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
