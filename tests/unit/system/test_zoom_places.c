/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places for tracing: all that grow get a turn, whoever waits longest first, and an answer makes room. */
#include "user/system/zoom.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/clock.h"
#include "user/system/answer.h"
#include "user/system/zoom_price.h"

enum { PLACES = 3, MOST = 12 };

static const char *const spare[] = { "none", NULL };
static const struct zoom_options options = { .nr = PLACES, .spare = spare };
static struct watch watch;
static struct watched list[MOST];
static struct zooms z;

/* @nr processes that began to grow a second apart, the slowest first, and have PIDs that nobody has. */
static void growers(u32 nr)
{
	memset(list, 0, sizeof(list));
	watch = (struct watch){ .list = list, .now_ns = 100 * SECOND_NS };
	for (u32 i = 0; i < nr; i++) {
		list[i] = (struct watched){ .pid = (pid_t)(1 << 30) + (pid_t)i,
					    .start_time = 1,
					    .state = WATCHED_GROWS,
					    .first_ns = 1,
					    .wanted_ns = (i + 1) * SECOND_NS,
					    .line = { .bytes_per_s = 1000.0 * (i + 1) } };
		assert_int_equal(hash_index_add(&watch.index, hash_u64((u64)list[i].pid), i), 0);
	}
	watch.nr = nr;
	assert_int_equal(zooms_init(&z, &options), 0);
}

static void end(void)
{
	zooms_fini(&z);
	hash_index_fini(&watch.index);
}

/* One look, as zoom.c has it, but without sessions. The number of the process that is traced from now on; -1: none. */
static int look(void)
{
	struct zoom_step step;
	struct zoom_answer *a;

	watch.now_ns += SECOND_NS;
	assert_int_equal(zoom_places_next(&z, &watch, &step), 0);
	if (!step.trace)
		return -1;
	if (step.leave < z.nr) {
		assert_non_null(step.why);
		z.answers[z.list[step.leave].answer].end_ns = watch.now_ns;
		z.list[step.leave] = z.list[--z.nr];
	}
	assert_true(z.nr < PLACES);
	a = zoom_new_answer(&z, step.trace);
	assert_non_null(a);
	zoom_begin_answer(a, step.trace, watch.now_ns);
	z.list[z.nr++] = (struct zoom){ .pid = step.trace->pid,
					.start_time = 1,
					.begin_ns = watch.now_ns,
					.answer = (u32)(a - z.answers) };
	return (int)(step.trace - list);
}

static struct zoom_answer *answer_on(u32 i)
{
	return (struct zoom_answer *)zooms_answer(&z, list[i].pid, 1);
}

static void whoever_waits_longest_is_first(void **state)
{
	(void)state;
	growers(5);
	assert_int_equal(look(), 0);
	assert_int_equal(look(), 1);
	assert_int_equal(look(), 2);
	/* No place is free, and nobody has a verdict. */
	assert_int_equal(look(), -1);
	/* One verdict that is no leak is not enough, because nothing was seen to grow. */
	answer_on(0)->nr_verdicts = answer_on(1)->nr_verdicts = answer_on(2)->nr_verdicts = 1;
	answer_on(0)->kind = ANSWER_HELD;
	assert_int_equal(look(), -1);
	answer_on(2)->kind = ANSWER_LEAKS;
	assert_int_equal(look(), 3);
	assert_true(answer_on(2)->end_ns && !answer_on(0)->end_ns);
	/* The one that was left is the fastest that waits. It must not hide the one behind it. */
	list[2].line.bytes_per_s = 1e6;
	answer_on(0)->nr_verdicts = answer_on(1)->nr_verdicts = 2;
	assert_int_equal(look(), 4);
	/* Of the two with verdicts the one that was traced first is left. */
	assert_true(answer_on(0)->end_ns && !answer_on(1)->end_ns);
	/* All have been traced: places are kept. */
	for (u32 i = 0; i < 5; i++)
		answer_on(i)->nr_verdicts = 9;
	assert_int_equal(look(), -1);
	/* Only a free place is for one that has its answer: the one that was left first. */
	z.nr--;
	z.answers[z.list[z.nr].answer].end_ns = watch.now_ns;
	assert_int_equal(look(), 2);
	end();
}

/* Twelve growing services, three places: none of them is forgotten. */
static void all_get_a_turn(void **state)
{
	bool was_traced[MOST] = { false };
	u32 nr = 0;

	(void)state;
	growers(MOST);
	for (u32 s = 0; s < 300; s++) {
		int i = look();

		if (i >= 0) {
			nr += !was_traced[i];
			was_traced[i] = true;
		}
		for (u32 k = 0; k < z.nr; k++)
			if (watch.now_ns - z.list[k].begin_ns > 30 * SECOND_NS)
				z.answers[z.list[k].answer].nr_verdicts = 2;
	}
	assert_int_equal(nr, MOST);
	end();
}

static void a_report_that_is_asked_for_comes_first(void **state)
{
	(void)state;
	growers(5);
	assert_int_equal(look(), 0);
	assert_int_equal(look(), 1);
	assert_int_equal(look(), 2);
	list[4].is_asked = true;
	assert_int_equal(look(), 4);
	assert_true(answer_on(0)->end_ns);
	/* Refused for a while. */
	list[3].refused_ns = UINT64_MAX;
	answer_on(1)->nr_verdicts = 2;
	assert_int_equal(look(), -1);
	end();
}

/* heaptap's own processes grow, too, and are nobody's business. */
static void own_processes_are_not_watched(void **state)
{
	const struct watch_choice all = { 0 };
	pid_t child = fork();
	struct watch w;

	(void)state;
	if (!child) {
		pause();
		_exit(1);
	}
	assert_int_equal(watch_init(&w, &all, 4000), 0);
	w.own_pid = getpid();
	assert_int_equal(watch_look(&w), 0);
	assert_true(w.nr > 0);
	assert_null(watch_find(&w, getpid()));
	assert_null(watch_find(&w, child));
	assert_non_null(watch_find(&w, getppid()));
	watch_fini(&w);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_waits_longest_is_first),
		cmocka_unit_test(all_get_a_turn),
		cmocka_unit_test(a_report_that_is_asked_for_comes_first),
		cmocka_unit_test(own_processes_are_not_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
