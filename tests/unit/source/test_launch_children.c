/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of children of programs that heaptap starts: this program itself in several parts, told by its arguments. */
#include "user/source/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/proc.h"

enum { STORY_FD = 200, HANG_S = 60 };

static void tell(char letter)
{
	if (write(STORY_FD, &letter, 1) != 1)
		_exit(98);
}

/* ---- parts of the program that is started ---- */

static void part_exit(char **args)
{
	_exit(atoi(args[0]));
}

/* vfork() in a function of its own: it returns twice. */
static __attribute__((noinline)) void start_vforked(const char *status)
{
	if (!vfork()) {
		execl("/proc/self/exe", "/proc/self/exe", "exit", status, NULL);
		_exit(90);
	}
}

/* Two children, one of which becomes another program; its own end tells of theirs. */
static void part_children(char **args)
{
	int status, sum = 0;

	if (!fork())
		_exit(atoi(args[0]));
	start_vforked(args[1]);
	while (wait(&status) > 0)
		sum += WEXITSTATUS(status);
	_exit(sum);
}

static bool is_traced(void)
{
	struct proc_status status = { 0 };

	return proc_read_status(&status, getpid()) || status.tracer_pid;
}

/* A program whose child waits until it has no tracer, some seconds at most. */
static void part_outlived(char **args)
{
	(void)args;
	if (fork())
		_exit(0);
	for (int i = 0; i < 5000 && is_traced(); i++)
		usleep(1000);
	tell(is_traced() ? 'T' : 'd');
	_exit(0);
}

static void part_many(char **args)
{
	int nr = atoi(args[0]), status, sum = 0;

	for (int i = 0; i < nr; i++)
		if (!fork())
			_exit(1);
	while (wait(&status) > 0)
		sum += WEXITSTATUS(status);
	_exit(sum == nr ? 0 : 1);
}

static const struct {
	const char *name;
	void (*play)(char **args);
} parts[] = {
	{ "exit", part_exit },
	{ "children", part_children },
	{ "outlived", part_outlived },
	{ "many", part_many },
};

/* ---- the side of heaptap ---- */

struct world {
	int nr_exec, nr_exiting, nr_ended, sum_ended, nr_born;
	pid_t last_exec;
	bool is_late; /* a child had run before it was told of */
	int status;
	bool has_lost_memory; /* a process had none any more when it was about to end */
};

static void on_exec(void *ctx, pid_t pid)
{
	struct world *w = ctx;

	w->nr_exec++;
	w->last_exec = pid;
}

/* The child is stopped, and has executed no program yet; on a busy machine another child may have. */
static void on_born(void *ctx, pid_t pid)
{
	struct world *w = ctx;
	struct proc_stat stat;

	w->nr_born++;
	w->is_late |= proc_read_stat(&stat, pid) || stat.state != 't' || w->last_exec == pid;
}

static void on_mapped(void *ctx, pid_t pid)
{
	(void)ctx;
	(void)pid;
}

static void on_exiting(void *ctx, pid_t pid, int status)
{
	struct world *w = ctx;
	struct proc_status s;

	(void)status;
	w->nr_exiting++;
	w->has_lost_memory |= proc_read_status(&s, pid) || !s.has_memory;
}

static void on_ended(void *ctx, pid_t pid, int status)
{
	struct world *w = ctx;

	(void)pid;
	w->nr_ended++;
	w->sum_ended += WEXITSTATUS(status);
}

/* Run this program in the part @name, and at most @most children with it. */
static struct world play(u32 most, const char *name, const char *arg, const char *more)
{
	struct launch_options o = { .argv = (char *[]){ "/proc/self/exe", (char *)name, (char *)arg,
							(char *)more, NULL },
				    .max_children = most };
	struct world w = { 0 };
	struct launch_hooks hooks = { .ctx = &w,
				      .exec = on_exec,
				      .mapped = on_mapped,
				      .exiting = on_exiting,
				      .ended = on_ended,
				      .born = on_born };
	struct launch *l;

	alarm(HANG_S);
	assert_int_equal(launch_new(&l, &o, &hooks), 0);
	launch_start(l);
	while (!launch_poll(l))
		usleep(200);
	w.status = launch_status(l);
	launch_free(l);
	alarm(0);
	return w;
}

/* Children are told of like the program: what they execute, and their ends while their memory is there. */
static void test_children(void **state)
{
	struct world w = play(9, "children", "3", "4");

	(void)state;
	assert_int_equal(WEXITSTATUS(w.status), 7);
	assert_int_equal(w.nr_exec, 2);
	assert_int_equal(w.nr_born, 2);
	assert_false(w.is_late);
	assert_int_equal(w.nr_exiting, 3);
	assert_int_equal(w.nr_ended, 2);
	assert_int_equal(w.sum_ended, 7);
	assert_false(w.has_lost_memory);
}

/* Without leave to watch any nobody hears of them. */
static void test_no_children(void **state)
{
	struct world w = play(0, "children", "5", "6");

	(void)state;
	assert_int_equal(WEXITSTATUS(w.status), 11);
	assert_int_equal(w.nr_exec, 1);
	assert_int_equal(w.nr_exiting, 1);
	assert_int_equal(w.nr_ended, 0);
}

/* Children beyond the limit run on untraced (A17). */
static void test_limit(void **state)
{
	struct world w = play(3, "many", "50", NULL);

	(void)state;
	assert_int_equal(w.status, 0);
	assert_in_range(w.nr_ended, 1, 50);
	w = play(4000, "many", "50", NULL);
	assert_int_equal(w.status, 0);
	assert_int_equal(w.nr_ended, 50);
}

/* A child that outlives the program runs on, untraced after it was detached. */
static void test_outlived(void **state)
{
	struct world w;
	int fds[2];
	char c = 0;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(dup2(fds[1], STORY_FD), STORY_FD);
	close(fds[1]);
	w = play(9, "outlived", NULL, NULL);
	close(STORY_FD);
	assert_int_equal(w.status, 0);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	assert_int_equal(c, 'd');
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_no_children),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_outlived),
	};

	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(parts); i++)
		if (!strcmp(argv[1], parts[i].name))
			parts[i].play(argv + 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
