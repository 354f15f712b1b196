/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of the keeper of links: without memory for more processes fewer do (A7), the death of one is noticed (A3), and
 * its status tells of errors.
 */
#include "user/source/link_keeper.h"
#include "fallback/tracer_change.h"
#include "tests/unit/skip.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Shared with the keeper. */
struct common {
	int max_forks; /* at a time */
	int nr_forks;  /* since the last request */
	int killed;    /* the process of this fork is killed before it does anything; 0 = of none */
	struct keeper_places places;
	pid_t outliving;
	int nr_briefly, nr_long; /* times that outlive() began */
};

static struct common *common;

static pid_t new_process(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* In place of libc's: the keeper's. */
pid_t fork(void)
{
	int nr = __atomic_add_fetch(&common->nr_forks, 1, __ATOMIC_RELAXED);
	pid_t pid;

	if (nr > common->max_forks) {
		common->nr_forks = 0;
		errno = ENOMEM;
		return -1;
	}
	pid = new_process();
	if (!pid && nr == common->killed)
		kill((pid_t)syscall(SYS_getpid), SIGKILL);
	return pid;
}

static int ask(int fd, const struct keeper_request *r, const int *fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)r, sizeof(*r) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int answer = 1;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), sizeof(*r));
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	return answer;
}

static void outlive(void *ctx, int end, int lifeline, bool is_brief)
{
	struct common *c = ctx;

	(void)end;
	(void)lifeline;
	(*(is_brief ? &c->nr_briefly : &c->nr_long))++;
}

/* Start a keeper. *@fd is the socket to it. */
static pid_t start_keeper_with(int *fd, struct tracer_changer *changer)
{
	int fds[2];
	pid_t pid;

	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(common, MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	if (changer)
		*changer = (struct tracer_changer){
			.ctx = common, .outlive = outlive, .end = fds[0], .pid = &common->outliving
		};
	pid = new_process();
	if (!pid)
		keeper_main(fds[1], &common->places, NULL, changer);
	close(fds[1]);
	*fd = fds[0];
	return pid;
}

static pid_t start_keeper(int *fd)
{
	return start_keeper_with(fd, NULL);
}

/* Status of the keeper, which ends. */
static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	munmap(common, sizeof(*common));
	return WEXITSTATUS(status);
}

static void end_keeper(pid_t pid, int fd)
{
	close(fd);
	assert_int_equal(status_of(pid), 0);
}

static bool is_not_permitted(int err)
{
	bool is_so = err == -EACCES || err == -EPERM || err == -ENOENT || err == -ENODEV;

	if (is_so)
		print_message("skipped: no right to make perf events: %s\n", strerror(-err));
	return is_so;
}

static void test_drop_without_memory(void **state)
{
	const struct keeper_request add = { .op = KEEPER_ADD, .pid = getpid(), .nr = 1 };
	const struct keeper_request drop = { .op = KEEPER_DROP, .pid = getpid() };
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd, err, status;
	const int files[2] = { file, file };
	pid_t pid = start_keeper(&fd);

	(void)state;
	/* In no function that is called here: the ELF header. A file is no program, but the event stays. */
	err = ask(fd, &add, files);
	status = ask(fd, &drop, files);
	if (!is_not_permitted(err))
		assert_int_equal(status, -ENOMEM);
	common->max_forks = 100;
	common->nr_forks = 0;
	assert_int_equal(ask(fd, &drop, files), 0);
	common->max_forks = 0;
	/* None is left. */
	assert_int_equal(ask(fd, &drop, files), 0);
	end_keeper(pid, fd);
	close(file);
}

static void test_drop_with_few_processes(void **state)
{
	enum { NR = 40, MAX = 3 };
	const struct keeper_request add = { .op = KEEPER_ADD, .pid = getpid(), .nr = 1 };
	const struct keeper_request drop = { .op = KEEPER_DROP, .pid = getpid() };
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd, err = 0;
	const int files[2] = { file, file };
	pid_t pid = start_keeper(&fd);

	(void)state;
	for (int i = 0; i < NR; i++)
		err = ask(fd, &add, files);
	common->max_forks = MAX;
	assert_int_equal(ask(fd, &drop, files), 0);
	if (!is_not_permitted(err))
		assert_int_equal(common->nr_forks, 2);
	common->max_forks = 0;
	assert_int_equal(ask(fd, &drop, files), 0);
	end_keeper(pid, fd);
	close(file);
}

static int count_files(pid_t pid)
{
	char path[32];
	DIR *dir;
	int nr = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/*
 * Have a keeper make @nr links and end them. The process of fork number @killed is killed. Without memory for
 * @max_forks processes at a time it tries fewer.
 */
static void make_and_drop(int nr, int killed, int max_forks)
{
	const struct keeper_request add = { .op = KEEPER_ADD, .pid = getpid(), .nr = 1 };
	const struct keeper_request drop = { .op = KEEPER_DROP, .pid = getpid() };
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd, err = 0, nr_files;
	const int files[2] = { file, file };
	pid_t pid = start_keeper(&fd);

	common->max_forks = max_forks;
	common->killed = killed;
	/* The answer to a request that does nothing: the keeper has closed what it does not need. */
	assert_int_equal(ask(fd, &drop, files), 0);
	nr_files = count_files(pid);
	for (int i = 0; i < nr; i++)
		err = ask(fd, &add, files);
	if (!is_not_permitted(err))
		assert_int_equal(count_files(pid), nr_files + nr);
	assert_int_equal(ask(fd, &drop, files), 0);
	assert_int_equal(count_files(pid), nr_files);
	end_keeper(pid, fd);
	close(file);
}

/* 72 links have 18 processes, which 16 others make or are. */
static void test_drop_by_two_levels(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_because("only root reads the descriptors of the keeper");
	make_and_drop(72, 0, 20);
	/* One of the last: fewer try it. */
	make_and_drop(72, 0, 17);
}

/* Links of processes that have ended leave the keeper, which waits for none of them; those of others stay. */
static void test_leave(void **state)
{
	const struct keeper_request drop = { .op = KEEPER_DROP, .pid = getpid() };
	const struct keeper_request leave = { .op = KEEPER_LEAVE, .nr = 2 };
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd, err = 0, nr_files;
	const int files[2] = { file, file };
	pid_t pid = start_keeper(&fd), ended[3];
	bool is_made;

	(void)state;
	common->max_forks = 100;
	assert_int_equal(ask(fd, &drop, files), 0);
	nr_files = count_files(pid);
	for (int i = 0; i < 3; i++) {
		struct keeper_request add = { .op = KEEPER_ADD, .nr = 1 };

		add.pid = ended[i] = new_process();
		if (!ended[i]) {
			pause();
			_exit(0);
		}
		err = ask(fd, &add, files);
	}
	for (int i = 0; i < 3; i++) {
		kill(ended[i], SIGKILL);
		waitpid(ended[i], NULL, 0);
	}
	common->places.offsets[0] = (u64)ended[0];
	common->places.offsets[1] = (u64)ended[2];
	common->max_forks = 0;
	is_made = !is_not_permitted(err);
	assert_int_equal(ask(fd, &leave, files), is_made ? -ENOMEM : 0);
	common->max_forks = 100;
	assert_int_equal(ask(fd, &leave, files), 0);
	if (is_made)
		assert_int_equal(count_files(pid), nr_files + 1);
	end_keeper(pid, fd);
	close(file);
}

/* The others that hold links are told, and do not wait for ever. */
static void test_drop_after_kill(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_because("only root reads the descriptors of the keeper");
	alarm(60);
	make_and_drop(20, 3, 1000);
	make_and_drop(72, 10, 1000);
	alarm(0);
}

/* A keeper that was asked to end says so by its status, and one that failed does not. */
static void test_status(void **state)
{
	int fd;
	pid_t pid = start_keeper(&fd);

	(void)state;
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_int_equal(status_of(pid), 0);
	close(fd);
	pid = start_keeper(&fd);
	/* No request. */
	assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(status_of(pid), 1);
	close(fd);
}

/* The keeper outlives links that can end before it; with others it exits, and does before what is quick. */
static void test_outlives(void **state)
{
	const struct keeper_request add = { .op = KEEPER_ADD, .pid = getpid(), .nr = 1 };
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd, err;
	const int files[2] = { file, file };

	(void)state;
	for (int max_forks = 0; max_forks < 2; max_forks++) {
		struct tracer_changer changer;
		pid_t pid = start_keeper_with(&fd, &changer);
		bool is_brief;
		char byte;

		err = ask(fd, &add, files);
		common->max_forks = max_forks;
		shutdown(fd, SHUT_WR);
		assert_int_equal(recv(fd, &byte, 1, 0), 1);
		is_brief = !max_forks && !is_not_permitted(err);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(common->places.end, KEEPER_HAS_ENDED);
		assert_int_equal(common->places.outlives, !is_brief);
		assert_int_equal(common->nr_briefly, is_brief);
		assert_int_equal(common->nr_long, !is_brief);
		assert_int_equal(common->outliving, pid);
		munmap(common, sizeof(*common));
		close(fd);
	}
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_without_memory),
		cmocka_unit_test(test_drop_with_few_processes),
		cmocka_unit_test(test_drop_by_two_levels),
		cmocka_unit_test(test_drop_after_kill),
		cmocka_unit_test(test_leave),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_outlives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
