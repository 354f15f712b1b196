/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two heaptaps of one user: the right one answers, files come across, others and the dead do no harm. */
#include "user/session/ask.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int begin(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/heaptap-ask-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	return setenv("XDG_RUNTIME_DIR", folder, 1);
}

static int end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* Run @body as a user who is not root, in a child: the folder of sockets is the test's own then. */
static void as_user(void (*body)(void))
{
	const uid_t nobody = 65534;
	int status;
	pid_t pid;

	if (!geteuid())
		assert_int_equal(chown(folder, nobody, nobody), 0);
	pid = fork();
	if (!pid) {
		if (!geteuid() && (setgid(nobody) || setuid(nobody)))
			_exit(2);
		body();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define must(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			_exit(1);                                                                            \
	} while (0)

static int memory_file(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	return fd;
}

/* A heaptap that traces process @pid and answers @nr questions. */
static pid_t start_server(s32 pid, int nr)
{
	int ready[2];
	char c;
	pid_t child;

	must(!pipe(ready));
	child = fork();
	if (child) {
		must(read(ready[0], &c, 1) == 1);
		return child;
	}
	struct ask_server *a;

	must(!ask_open(&a) && write(ready[1], "x", 1) == 1);
	while (nr-- > 0) {
		struct ask_request request;
		struct ask_reply reply = { .status = ASK_NOT_TRACED };
		int fd, err;

		while ((err = ask_accept(a, &request, &fd)) == -EAGAIN)
			usleep(1000);
		must(!err);
		if (request.pid == pid) {
			reply.status = ASK_DONE;
			reply.has_verdict = 1;
			reply.error = 1000 + (int)request.why_addr;
			for (u32 i = 0; i < request.nr_formats; i++)
				reply.fds[reply.nr_fds++] = memory_file(request.formats[i].name);
		}
		ask_answer(fd, &reply);
	}
	ask_close(a);
	_exit(0);
}

static void wait_for(pid_t child)
{
	int status;

	must(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* A heaptap that does nothing, as one that waits for the reader of its output, does not hold up a question for ever. */
static void stuck_one(void)
{
	struct ask_request request = { .pid = 22 };
	struct ask_server *a;
	struct ask_reply reply;
	int ready[2];
	pid_t stuck, two;
	bool other;
	char c;

	must(!pipe(ready));
	stuck = fork();
	if (!stuck) {
		must(!ask_open(&a) && write(ready[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	must(read(ready[0], &c, 1) == 1);
	must(ask_send(&request, &reply, &other) == -ETIME && !other);
	two = start_server(22, 1);
	must(ask_send(&request, &reply, &other) == 0 && reply.status == ASK_DONE);
	wait_for(two);
	must(!kill(stuck, SIGKILL) && waitpid(stuck, NULL, 0) == stuck);
}

static void right_one(void)
{
	pid_t one = start_server(11, 1), two = start_server(22, 1), three = start_server(33, 1);
	struct ask_request request = { .pid = 44, .why_addr = 5, .nr_formats = 2 };
	struct ask_reply reply;
	bool other;
	char text[16] = "";

	strcpy(request.formats[0].name, "text");
	strcpy(request.formats[1].name, "json");
	must(ask_send(&request, &reply, &other) == -ESRCH && !other);
	wait_for(one);
	wait_for(two);
	wait_for(three);
	one = start_server(22, 1);
	request.pid = 22;
	must(!ask_send(&request, &reply, &other) && reply.status == ASK_DONE && reply.error == 1005);
	must(reply.nr_fds == 2 && pread(reply.fds[1], text, sizeof(text) - 1, 0) == 4 &&
	     !strcmp(text, "json"));
	wait_for(one);
}

static void killed(void)
{
	struct ask_request request = { .pid = 11 };
	struct ask_reply reply;
	char path[128];
	struct stat st;
	bool other;
	pid_t child = start_server(11, 1);

	snprintf(path, sizeof(path), "%s/heaptap/%d", folder, (int)child);
	must(!stat(path, &st));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	must(ask_send(&request, &reply, &other) == -ESRCH);
	must(stat(path, &st) && errno == ENOENT);
}

static void open_folder_is_refused(void)
{
	struct ask_request request = { .pid = 11 };
	struct ask_server *a;
	struct ask_reply reply;
	char path[128];
	bool other;

	snprintf(path, sizeof(path), "%s/heaptap", folder);
	must(!mkdir(path, 0755) && !chmod(path, 0755));
	must(ask_open(&a) == -EPERM);
	/* A message has said so, and nobody else can be asked. */
	must(ask_send(&request, &reply, &other) == -ESRCH);
	must(!rmdir(path) && !symlink("/tmp", path));
	must(ask_open(&a) < 0);
}

static void nobody_is_there(void)
{
	struct ask_request request = { .pid = 11 };
	struct ask_reply reply;
	bool other;

	must(ask_send(&request, &reply, &other) == -ESRCH);
}

static void test_right_one(void **state)
{
	(void)state;
	as_user(right_one);
}

static void test_stuck_one(void **state)
{
	(void)state;
	as_user(stuck_one);
}

static void test_killed(void **state)
{
	(void)state;
	as_user(killed);
}

static void test_open_folder(void **state)
{
	(void)state;
	as_user(open_folder_is_refused);
}

static void test_nobody(void **state)
{
	(void)state;
	as_user(nobody_is_there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_right_one, begin, end),
		cmocka_unit_test_setup_teardown(test_stuck_one, begin, end),
		cmocka_unit_test_setup_teardown(test_killed, begin, end),
		cmocka_unit_test_setup_teardown(test_open_folder, begin, end),
		cmocka_unit_test_setup_teardown(test_nobody, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
