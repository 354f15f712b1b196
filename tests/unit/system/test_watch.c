/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of processes: children join and leave it, a choice holds, and its size is bounded. */
#include "user/system/watch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/system/spare.h"

enum { MIB = 1 << 20 };

/* A child of this name that has touched so many bytes, and waits for its end. */
static pid_t child(const char *name, size_t bytes)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char *p = malloc(bytes + 1);

		memset(p, 1, bytes + 1);
		prctl(PR_SET_NAME, name);
		if (write(ready[1], p, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void children_join_and_leave(void **state)
{
	const struct watch_choice all = { 0 };
	pid_t before = child("watched", 8 * MIB), after;
	struct watch w;

	(void)state;
	assert_int_equal(watch_init(&w, &all, 4000), 0);
	assert_int_equal(watch_look(&w), 0);
	assert_non_null(watch_find(&w, getpid()));
	assert_non_null(watch_find(&w, before));
	assert_string_equal(watch_find(&w, before)->comm, "watched");
	assert_true(watched_needs(watch_find(&w, before)) >= 8 * MIB);
	after = child("later", 0);
	end(before);
	assert_int_equal(watch_look(&w), 0);
	assert_non_null(watch_find(&w, after));
	assert_null(watch_find(&w, before));
	/* No kernel thread, no zombie. */
	for (size_t i = 0; i < w.nr; i++)
		assert_true(w.list[i].size > 0);
	end(after);
	watch_fini(&w);
}

static void choices_hold(void **state)
{
	pid_t one = child("chosen-1", 0), two = child("chosen-2", 0), other = child("other", 0);
	const char *comms[] = { "chosen-*", NULL }, *uids[] = { "0", NULL }, *pids[2] = { NULL };
	char number[16], uid[16];
	struct watch_choice choice = { .comms = comms };
	struct watch w;

	(void)state;
	assert_false(watch_choice_any(&(struct watch_choice){ 0 }));
	assert_true(watch_choice_any(&choice));
	assert_int_equal(watch_init(&w, &choice, 4000), 0);
	assert_int_equal(watch_look(&w), 0);
	assert_int_equal(w.nr, 2);
	assert_true(watch_find(&w, one) && watch_find(&w, two));
	watch_fini(&w);

	/* All lists must fit. */
	snprintf(uid, sizeof(uid), "%u", (unsigned int)getuid() + 1);
	uids[0] = uid;
	choice.uids = uids;
	assert_int_equal(watch_init(&w, &choice, 4000), 0);
	assert_int_equal(watch_look(&w), 0);
	assert_int_equal(w.nr, 0);
	watch_fini(&w);

	snprintf(number, sizeof(number), "%d", (int)other);
	pids[0] = number;
	choice = (struct watch_choice){ .pids = pids };
	assert_int_equal(watch_init(&w, &choice, 4000), 0);
	assert_int_equal(watch_look(&w), 0);
	assert_int_equal(w.nr, 1);
	assert_non_null(watch_find(&w, other));
	watch_fini(&w);
	end(one);
	end(two);
	end(other);
}

static void unknown_users_are_refused(void **state)
{
	const char *uids[] = { "no such user", NULL };
	const struct watch_choice choice = { .uids = uids };
	struct watch w;

	(void)state;
	assert_int_equal(watch_init(&w, &choice, 10), -22 /* EINVAL */);
}

static void the_table_is_bounded(void **state)
{
	const char *comms[] = { "bound", NULL };
	const struct watch_choice choice = { .comms = comms };
	pid_t small = child("bound", 0), second = child("bound", 4 * MIB), large = 0;
	struct watch w;

	(void)state;
	assert_int_equal(watch_init(&w, &choice, 2), 0);
	assert_int_equal(watch_look(&w), 0);
	assert_int_equal(w.nr, 2);
	assert_int_equal(w.nr_evicted, 0);
	large = child("bound", 16 * MIB);
	assert_int_equal(watch_look(&w), 0);
	/* The one that needs least has gone. */
	assert_int_equal(w.nr, 2);
	assert_int_equal(w.nr_evicted, 1);
	assert_true(watch_find(&w, second) && watch_find(&w, large) && !watch_find(&w, small));
	watch_fini(&w);
	end(small);
	end(second);
	end(large);
}

static void the_largest_come_first(void **state)
{
	const char *comms[] = { "rank", NULL };
	const struct watch_choice choice = { .comms = comms };
	pid_t small = child("rank", 0), large = child("rank", 4 * MIB);
	const struct watched **list;
	struct watch w;

	(void)state;
	assert_int_equal(watch_init(&w, &choice, 10), 0);
	assert_int_equal(watch_look(&w), 0);
	assert_int_equal(watch_rank(&w, &list), 0);
	assert_int_equal(list[0]->pid, large);
	assert_int_equal(list[1]->pid, small);
	free(list);
	watch_fini(&w);
	end(small);
	end(large);
}

/* Another process of our group, which we did not start ourselves. */
static void the_own_group_is_spared(void **state)
{
	struct watched p = { .comm = "reader" };
	int ends[2];
	pid_t between;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	between = fork();
	if (!between) {
		pid_t pid = fork();

		if (!pid) {
			pause();
			_exit(0);
		}
		_exit(write(ends[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	assert_int_equal(read(ends[0], &p.pid, sizeof(p.pid)), sizeof(p.pid));
	assert_int_equal(waitpid(between, NULL, 0), between);
	assert_non_null(strstr(spare_reason(NULL, &p), "process group"));
	kill(p.pid, SIGKILL);
	close(ends[0]);
	close(ends[1]);
}

static void some_are_spared(void **state)
{
	struct watched p = { .pid = child("spared", 0), .comm = "spared" };
	const char *names[] = { "spar*", NULL }, *none[] = { "none", NULL };
	struct watched self = { .pid = getpid(), .comm = "test" },
		       parent = { .pid = getppid(), .comm = "sh" };

	(void)state;
	/* A child of heaptap is its own; another process of that name is not. */
	assert_non_null(spare_reason(NULL, &p));
	end(p.pid);
	assert_null(spare_reason(NULL, &p));
	assert_non_null(spare_reason(names, &p));
	assert_non_null(spare_reason(none, &self));
	assert_non_null(spare_reason(none, &parent));
	strcpy(p.comm, "ssh-agent");
	assert_non_null(spare_reason(NULL, &p));
	assert_null(spare_reason(none, &p));
}

/* Between two looks, for a process whose tracing begins: its needs are known, its growth has no further point. */
static void sizes_are_read_anew(void **state)
{
	const struct watch_choice all = { 0 };
	const struct watched *p;
	struct watch w;
	struct growth growth;
	u64 needed;
	char *block;

	(void)state;
	assert_int_equal(watch_init(&w, &all, 4000), 0);
	assert_int_equal(watch_look(&w), 0);
	p = watch_find(&w, getpid());
	assert_non_null(p);
	needed = watched_needs(p);
	growth = p->growth;
	block = malloc(32 * MIB);
	assert_non_null(block);
	memset(block, 1, 32 * MIB);
	watch_measure_again(&w, getpid());
	assert_true(watched_needs(p) >= needed + 31 * MIB);
	assert_memory_equal(&p->growth, &growth, sizeof(growth));
	free(block);
	watch_fini(&w);
}

/* A process that is over at the look after its birth is not watched, and that is counted. */
static void short_lives_are_counted(void **state)
{
	const struct watch_choice all = { 0 };
	struct watch w;
	u64 before;

	(void)state;
	assert_int_equal(watch_init(&w, &all, 4000), 0);
	assert_int_equal(watch_look(&w), 0);
	if (!w.births) {
		watch_fini(&w);
		skip();
	}
	before = w.nr_missed;
	end(child("short", 0));
	assert_int_equal(watch_look(&w), 0);
	assert_true(w.nr_missed > before);
	watch_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_join_and_leave),   cmocka_unit_test(choices_hold),
		cmocka_unit_test(unknown_users_are_refused), cmocka_unit_test(the_table_is_bounded),
		cmocka_unit_test(the_largest_come_first),    cmocka_unit_test(some_are_spared),
		cmocka_unit_test(the_own_group_is_spared),   cmocka_unit_test(sizes_are_read_anew),
		cmocka_unit_test(short_lives_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
