/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Losses of a source that says when there are none: each one reaches the books, and nobody asks when there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "user/session/session_pace.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"

enum { NR = 3, FIRST = 70 };

struct source {
	struct losses of[NR];
	u64 nr_losses;
	u32 nr_asked;
};

static int fake_poll(struct source *src, const struct sink *sink)
{
	(void)src, (void)sink;
	return 0;
}

static struct losses fake_losses(struct source *src, pid_t pid)
{
	src->nr_asked++;
	return src->of[pid - FIRST];
}

static u64 fake_nr_losses(struct source *src)
{
	return src->nr_losses;
}

static void fake_free(struct source *src)
{
	free(src);
}

static const struct source_ops fake = { .name = "fake",
					.poll = fake_poll,
					.losses = fake_losses,
					.nr_losses = fake_nr_losses,
					.free = fake_free };

static const struct session_options options = { .command = "attach" };

static int setup(void **state)
{
	struct session *s;

	if (session_alloc(&s, &options, NULL))
		return -1;
	s->ops = &fake;
	s->source = calloc(1, sizeof(*s->source));
	for (int i = 0; i < NR; i++) {
		struct process *p;

		if (session_new_process(s, &p))
			return -1;
		p->target = calloc(1, sizeof(*p->target));
		p->target->pid = FIRST + i;
		p->target->pidfd = -1;
	}
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	session_free(*state);
	return 0;
}

/* With thousands of processes the questions were most of what heaptap did. */
static void asked_once(void **state)
{
	struct session *s = *state;

	for (int i = 0; i < 10; i++)
		assert_int_equal(session_poll(s), 0);
	assert_int_equal(s->source->nr_asked, NR);
	assert_false(session_has_losses(s));
	assert_int_equal(s->source->nr_asked, NR);
}

static void each_loss_is_seen(void **state)
{
	struct session *s = *state;

	assert_int_equal(session_poll(s), 0);
	s->source->of[1].frees = 2;
	s->source->nr_losses++;
	assert_int_equal(session_poll(s), 0);
	assert_int_equal(s->source->nr_asked, 2 * NR);
	assert_int_equal(s->processes[0]->lost.nr_taints, 0);
	assert_int_equal(s->processes[1]->lost.nr_taints, 1);
	assert_int_equal(s->processes[1]->lost.nr_unseen, 2);
	assert_true(session_has_losses(s));
	s->source->of[2].allocs = 1;
	s->source->nr_losses++;
	assert_int_equal(session_poll(s), 0);
	assert_true(s->processes[2]->lost.has_gaps);
	assert_false(s->processes[0]->lost.has_gaps);
	session_read_losses(s, s->processes[1]);
	assert_int_equal(s->processes[1]->lost.now.frees, 2);
}

/* A reader that comes late loses most calls of a busy process, which have cost it what the others did. */
static void lost_calls_have_their_price(void **state)
{
	struct session *s = *state;
	size_t nr;

	s->processes[1]->lost.before.allocs = 5;
	s->source->of[1] = (struct losses){ .allocs = 1005, .frees = 900, .stacks = 7 };
	assert_int_equal(session_pace(s, 1, &nr)->calls, 1900);
	assert_int_equal(session_pace(s, 0, &nr)->calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(asked_once, setup, teardown),
		cmocka_unit_test_setup_teardown(each_loss_is_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(lost_calls_have_their_price, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
