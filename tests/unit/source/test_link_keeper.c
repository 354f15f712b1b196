/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the keeper of links without memory for more processes: it says that the links stay (A7). */
#include "user/source/link_keeper.h"

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
	bool no_memory;
	struct keeper_places places;
};

static struct common *common;

static pid_t new_process(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* In place of libc's: the keeper's. */
pid_t fork(void)
{
	if (!common->no_memory)
		return new_process();
	errno = ENOMEM;
	return -1;
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

static void test_drop_without_memory(void **state)
{
	const struct keeper_request add = { .op = KEEPER_ADD, .pid = getpid(), .nr = 1 };
	const struct keeper_request drop = { .op = KEEPER_DROP, .pid = getpid() };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const int files[2] = { fd, fd };
	int fds[2], status, err;
	pid_t pid;

	(void)state;
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(common, MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	pid = new_process();
	if (!pid)
		keeper_main(fds[1], &common->places, NULL);
	close(fds[1]);
	/* In no function that is called here: the ELF header. A file is no program, but the event stays. */
	err = ask(fds[0], &add, files);
	common->no_memory = true;
	status = ask(fds[0], &drop, files);
	if (err == -EACCES || err == -EPERM || err == -ENOENT || err == -ENODEV)
		print_message("skipped: no right to make perf events: %s\n", strerror(-err));
	else
		assert_int_equal(status, -ENOMEM);
	common->no_memory = false;
	assert_int_equal(ask(fds[0], &drop, files), 0);
	common->no_memory = true;
	/* None is left. */
	assert_int_equal(ask(fds[0], &drop, files), 0);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
	munmap(common, sizeof(*common));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
