/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tracing that costs too much: first short stacks, then windows; each step once it can be judged, and each one said. */
#include "user/system/zoom_price.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/system/answer.h"

#define MS 1000000ULL

/* Of one CPU; a call costs one microsecond, so 1,000,000 of them a second cost all of it. */
enum { LIMIT = 500, WHOLE = 10000 };

static const struct session_options session_options = { .command = "system", .tuning = { .depth = 64 } };
static struct zoom_options options;
static struct watch watch;
static u32 depth; /* that the source was told last */
static char said[1024];

struct source {
	u8 nothing;
};

static int fake_poll(struct source *src, const struct sink *sink)
{
	(void)src, (void)sink;
	return 0;
}

static void fake_pid(struct source *src, pid_t pid)
{
	(void)src, (void)pid;
}

static int fake_depth(struct source *src, u32 frames)
{
	(void)src;
	depth = frames;
	return 0;
}

static struct losses fake_losses(struct source *src, pid_t pid)
{
	(void)src, (void)pid;
	return (struct losses){ 0 };
}

static void fake_detach(struct source *src)
{
	(void)src;
}

static void fake_free(struct source *src)
{
	free(src);
}

static const struct source_ops fake = {
	.name = "fake",
	.poll = fake_poll,
	.pause = fake_pid,
	.resume = fake_pid,
	.forget = fake_pid,
	.set_depth = fake_depth,
	.losses = fake_losses,
	.detach = fake_detach,
	.free = fake_free,
};

static void keep_line(void *ctx, enum log_level level, const char *line)
{
	(void)ctx, (void)level;
	snprintf(said, sizeof(said), "%s", line);
}

static struct session *new_session(pid_t pid)
{
	struct session *s;
	struct process *p;

	assert_int_equal(session_alloc(&s, &session_options, NULL), 0);
	s->ops = &fake;
	s->call_price = (struct call_price){ .traps_ns = 1000 };
	s->source = calloc(1, sizeof(*s->source));
	assert_int_equal(session_new_process(s, &p), 0);
	p->target = calloc(1, sizeof(*p->target));
	assert_non_null(p->target);
	p->target->pid = pid;
	p->target->pidfd = -1;
	return s;
}

/* Process @pid is traced from now on. */
static struct zoom_answer *trace(struct zooms *z, pid_t pid)
{
	struct watched p = { .pid = pid, .start_time = 1, .comm = "dear", .anonymous = 4096 };
	struct zoom_answer *a = zoom_new_answer(z, &p);
	struct zoom *zoom = &z->list[z->nr++];

	assert_non_null(a);
	zoom_begin_answer(a, &p, watch.now_ns);
	*zoom = (struct zoom){ .pid = pid,
			       .start_time = 1,
			       .begin_ns = watch.now_ns,
			       .session = new_session(pid),
			       .answer = (u32)(a - z->answers) };
	zoom_save_again(a, zoom->session);
	return a;
}

/* A look, @s seconds after the last one: each traced process pays @permyriad. */
static void look(struct zooms *z, u32 s, u32 permyriad)
{
	watch.now_ns += s * SECOND_NS;
	for (u32 i = 0; i < z->nr; i++) {
		z->list[i].price.calls_per_s = permyriad * 100.0;
		z->list[i].price.time_ns = 0;
	}
	said[0] = '\0';
	zooms_price(z, &watch);
}

static int setup(void **state)
{
	static char pid[16];
	static const char *pids[] = { pid, NULL };
	static const struct watch_choice choice = { .pids = pids };
	static struct zooms z;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	options = (struct zoom_options){ .session = &session_options, .nr = 3, .max_cost = LIMIT / 10 };
	log_divert(keep_line, NULL);
	depth = 64;
	*state = &z;
	if (watch_init(&watch, &choice, 10) || watch_look(&watch) || watch.nr != 1)
		return -1;
	if (zooms_init(&z, &options))
		return -1;
	return 0;
}

static int teardown(void **state)
{
	zooms_fini(*state);
	watch_fini(&watch);
	log_divert(NULL, NULL);
	return 0;
}

static void what_is_cheap_stays_as_it_is(void **state)
{
	struct zooms *z = *state;
	const struct zoom_answer *a = trace(z, getpid());

	for (int i = 0; i < 10; i++)
		look(z, 1, LIMIT);
	assert_int_equal(a->permyriad, LIMIT);
	assert_int_equal(z->permyriad, LIMIT);
	assert_int_equal(a->saving, SAVING_NOTHING);
	assert_int_equal(depth, 64);
	assert_string_equal(said, "");
	/* Without a limit the price is shown, whatever it is. */
	options.max_cost = 0;
	for (int i = 0; i < 10; i++)
		look(z, 1, WHOLE);
	assert_int_equal(a->permyriad, WHOLE);
	assert_int_equal(a->saving, SAVING_NOTHING);
	assert_int_equal(z->nr, 1);
}

/* A round, @ms after the last one: calls have cost so much of that time, in thousandths. */
static bool limit(struct zooms *z, u64 *now_ns, u32 ms, u32 permille)
{
	*now_ns += ms * MS;
	return zoom_limit_look(z, &watch, 0, ms * MS * permille / 1000, *now_ns);
}

/* 5 % of a CPU in five seconds are a quarter of a second: at 20 % that is over after one second. */
static void in_five_seconds_it_pays_no_more(void **state)
{
	struct zooms *z = *state;
	struct zoom_answer *a = trace(z, getpid());
	u64 begin_ns = watch.now_ns, now_ns = begin_ns;

	while (now_ns < begin_ns + 5 * SECOND_NS && !limit(z, &now_ns, 20, 200))
		;
	assert_in_range((now_ns - begin_ns) / MS, 500, 1000);
	assert_int_equal(z->nr, 0);
	assert_int_equal(a->saving, SAVING_WINDOWS);
	assert_int_equal(a->nr_windows, 1);
	assert_true(a->end_ns > 0);
	assert_in_range(a->permyriad, 1950, 2050);
	assert_non_null(strstr(said, "it is traced again in"));
	assert_true(watch_find(&watch, getpid())->refused_ns - now_ns == 5 * SECOND_NS);
}

static void the_limit_is_of_five_seconds(void **state)
{
	struct zooms *z = *state;
	u64 now_ns = watch.now_ns;

	trace(z, getpid());
	for (int i = 0; i < 1000; i++)
		assert_false(limit(z, &now_ns, 20, 30));
	options.max_cost = 0;
	zooms_limit(z, &watch, now_ns);
	assert_int_equal(z->nr, 1);
}

static void the_next_window_keeps_what_was_saved(void **state)
{
	struct zooms *z = *state;
	struct zoom_answer *a = trace(z, 7);
	u64 first_ns = watch.now_ns;

	a->saving = SAVING_WINDOWS;
	a->nr_windows = 1;
	z->nr = 0;
	session_stop(z->list[0].session);
	session_free(z->list[0].session);
	depth = 64;
	watch.now_ns += 60 * SECOND_NS;
	assert_ptr_equal(trace(z, 7), a);
	assert_int_equal(depth, 16);
	assert_int_equal(a->nr_windows, 2);
	/* Reports say which window of what time they show. */
	assert_int_equal(z->list[0].session->tuned.window, 2);
	assert_true(z->list[0].session->tuned.first_window_ns == first_ns);
}

/* Each process may cost so much, and all of them so much of each CPU: of too many cheap ones the dearest saves. */
static void the_machine_has_a_limit(void **state)
{
	struct zooms *z = *state;
	u32 nr = (u32)sysconf(_SC_NPROCESSORS_ONLN) + 1;

	assert_true(nr <= ZOOM_MAX);
	for (u32 i = 0; i < nr; i++)
		trace(z, (pid_t)(1000 + i));
	watch.now_ns += 3 * SECOND_NS;
	for (u32 i = 0; i < nr; i++)
		z->list[i].price.calls_per_s = (i == 1 ? LIMIT - 1 : LIMIT - 2) * 100.0;
	zooms_price(z, &watch);
	assert_non_null(strstr(said, "(pid 1001): tracing costs all processes "));
	assert_non_null(strstr(said, "more than --max-cost 5.0 % of the machine"));
	assert_int_equal(z->answers[1].saving, SAVING_FRAMES);
	for (u32 i = 0; i < nr; i++)
		assert_true(i == 1 || z->answers[i].saving == SAVING_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_cheap_stays_as_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(in_five_seconds_it_pays_no_more, setup, teardown),
		cmocka_unit_test_setup_teardown(the_limit_is_of_five_seconds, setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_window_keeps_what_was_saved, setup, teardown),
		cmocka_unit_test_setup_teardown(the_machine_has_a_limit, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
