/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tracing everything that costs too much: short stacks, then windows of the dearest process, then its file is left. */
#include "user/system/everything.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/session/session_pace.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/source/sample_pace.h"

/* Of one CPU. The trap of a call costs 1 us and its programs another one: 500,000 calls a second cost all of it. */
enum { LIMIT = 500, WHOLE = 10000, MAX_NR = 4097, FIRST_PID = 100 };

/* One more than CPUs, so that all together may pay too much although none does. */
static pid_t nr_processes;

static const struct session_options session_options = { .command = "system", .tuning = { .depth = 64 } };
static struct zoom_options options;
static struct zooms zooms;
static struct everything everything;
static u64 now_ns;
static u32 depth, samples; /* that the source was told last */
static bool is_paused[MAX_NR];
static const struct module *left;
static struct module module = { .path = (char *)"/lib/libdear.so" };
static char said[1024];

struct source {
	u8 nothing;
};

static int fake_poll(struct source *src, const struct sink *sink)
{
	(void)src, (void)sink;
	return 0;
}

static void fake_pause(struct source *src, pid_t pid)
{
	(void)src;
	is_paused[pid - FIRST_PID] = true;
}

static void fake_resume(struct source *src, pid_t pid)
{
	(void)src;
	is_paused[pid - FIRST_PID] = false;
}

static int fake_depth(struct source *src, u32 frames)
{
	(void)src;
	depth = frames;
	return 0;
}

static int fake_leave(struct source *src, const struct module *m)
{
	(void)src;
	left = m;
	return 0;
}

static void fake_limit(struct source *src, u32 sum)
{
	(void)src;
	samples = sum;
}

static struct losses fake_losses(struct source *src, pid_t pid)
{
	(void)src, (void)pid;
	return (struct losses){ 0 };
}

static void fake_free(struct source *src)
{
	free(src);
}

static const struct source_ops fake = {
	.name = "fake",
	.poll = fake_poll,
	.pause = fake_pause,
	.resume = fake_resume,
	.leave = fake_leave,
	.set_depth = fake_depth,
	.limit_samples = fake_limit,
	.losses = fake_losses,
	.free = fake_free,
};

static void keep_line(void *ctx, enum log_level level, const char *line)
{
	(void)ctx, (void)level;
	snprintf(said, sizeof(said), "%s", line);
}

static int setup(void **state)
{
	struct session *s;

	(void)state;
	nr_processes = (pid_t)sysconf(_SC_NPROCESSORS_ONLN) + 1;
	if (nr_processes > MAX_NR)
		return -1;
	if (session_alloc(&s, &session_options, NULL))
		return -1;
	s->ops = &fake;
	s->call_price = (struct call_price){ .traps_ns = 1000, .programs_ns = 1000 };
	s->source = calloc(1, sizeof(*s->source));
	for (pid_t i = 0; i < nr_processes; i++) {
		struct process *p;

		if (session_new_process(s, &p))
			return -1;
		p->target = calloc(1, sizeof(*p->target));
		if (!p->target || target_add_allocator(p->target, &module, "glibc"))
			return -1;
		p->target->pid = FIRST_PID + i;
		p->target->pidfd = -1;
		snprintf(p->target->comm, sizeof(p->target->comm), "dear");
	}
	options = (struct zoom_options){ .session = &session_options, .max_cost = LIMIT / 10 };
	zooms = (struct zooms){ .options = &options };
	everything = (struct everything){ .zooms = &zooms, .session = s };
	memset(is_paused, 0, sizeof(is_paused));
	left = NULL;
	depth = 64;
	now_ns = 1000 * SECOND_NS;
	log_divert(keep_line, NULL);
	everything_price(&everything, now_ns);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	session_free(everything.session);
	log_divert(NULL, NULL);
	return 0;
}

static struct process_pace *pace(size_t i)
{
	size_t nr;

	return session_pace(everything.session, i, &nr);
}

/* A look, @s seconds after the last one: the processes would pay so much if they were traced. */
static void look(u32 s, u32 first, u32 second)
{
	now_ns += s * SECOND_NS;
	/* Rates are not measured at two looks of the same moment. */
	everything.price_ns = now_ns;
	pace(0)->calls_per_s = first * 50.0;
	pace(1)->calls_per_s = second * 50.0;
	said[0] = '\0';
	everything_price(&everything, now_ns);
}

static void what_is_cheap_stays_as_it_is(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		look(1, LIMIT, LIMIT / 10);
	assert_int_equal(everything.saving, SAVING_NOTHING);
	assert_int_equal(zooms.permyriad, LIMIT + LIMIT / 10);
	assert_int_equal(depth, 64);
	assert_string_equal(said, "");
	options.max_cost = 0;
	for (int i = 0; i < 20; i++)
		look(1, WHOLE, WHOLE);
	assert_int_equal(everything.saving, SAVING_NOTHING);
}

static void windows_of_the_dearest(void **state)
{
	(void)state;
	/* In windows: it pays 8 % while it is traced, and 4 % by traps in the pauses: 5 % on average. */
	look(3, 800, 10);
	assert_int_equal(depth, 16);
	assert_non_null(strstr(said,
			       "dear (pid 100): tracing costs it 8.0 % of a CPU, more than --max-cost 5.0 %: "
			       "stacks of all processes have 16 frames from now on"));
	look(3, 800, 10);
	assert_string_equal(said, "");
	look(4, 800, 10);
	assert_true(is_paused[0]);
	assert_false(is_paused[1]);
	assert_non_null(strstr(said,
			       "leaves dear (pid 100): tracing costs it 8.0 % of a CPU, more than --max-cost "
			       "5.0 %: it is traced again in 31"));
	look(29, 800, 10);
	assert_true(is_paused[0]);
	assert_int_equal(pace(0)->permyriad, 400);
	assert_null(left);
	look(1, 800, 10);
	assert_false(is_paused[0]);
	assert_non_null(strstr(said, "traces dear (pid 100) again: window 2"));
	assert_true(everything.session->processes[0]->tuned.has_unseen);
	/* Not before this window was as long as the first one. */
	look(9, 800, 10);
	assert_false(is_paused[0]);
	look(1, 800, 10);
	assert_true(is_paused[0]);
}

static void a_file_whose_traps_cost_too_much_is_left(void **state)
{
	(void)state;
	look(3, WHOLE, 10);
	look(7, WHOLE, 10);
	assert_true(is_paused[0]);
	look(2, WHOLE, 10);
	assert_null(left);
	look(1, WHOLE, 10);
	assert_ptr_equal(left, &module);
	assert_non_null(
		strstr(said, "takes the probes out of libdear.so: their traps cost dear (pid 100) 50.0 % "));
	assert_string_equal(everything.session->processes[1]->tuned.left_file, "libdear.so");
	assert_int_equal(pace(0)->calls_per_s + pace(1)->calls_per_s, 0);
}

/* Each process pays little enough, and all together too much. */
static void the_machine_has_a_limit(void **state)
{
	(void)state;
	for (pid_t i = 2; i < nr_processes; i++)
		pace((size_t)i)->calls_per_s = LIMIT * 50.0;
	look(10, LIMIT - 10, LIMIT - 10);
	assert_non_null(strstr(said, "dear (pid "));
	assert_non_null(strstr(said, "tracing costs all processes"));
	assert_int_equal(depth, 16);
}

/* Ten seconds with @cpu_ms of CPU time, and @nr samples of 5 us each. */
static void look_at_samples(u32 cpu_ms, u32 nr)
{
	static u64 cpu_ns, events;

	now_ns += 10 * SECOND_NS;
	cpu_ns += cpu_ms * 1000000ULL;
	events += nr;
	said[0] = '\0';
	everything_price_samples(&everything, now_ns, cpu_ns, events);
}

/* The sum of what samples cost the machine, and heaptap, has a limit: 5 % of all CPUs. */
static void samples_have_a_limit(void **state)
{
	const u32 cpus = (u32)sysconf(_SC_NPROCESSORS_ONLN);
	static struct session_options o = { .command = "system", .source.adapts_samples = true };

	(void)state;
	everything.session->options = &o;
	samples = 0;
	look_at_samples(0, 0);
	look_at_samples(400 * cpus, 16000 * cpus);
	assert_int_equal(samples, SAMPLE_SUM);
	assert_string_equal(said, "");
	look_at_samples(450 * cpus, 16000 * cpus);
	assert_int_equal(samples, SAMPLE_SUM / 2);
	assert_non_null(
		strstr(said, "samples cost 5.3 % of the machine, more than --max-cost 5.0 %: at most 800"));
	look_at_samples(300 * cpus, 8000 * cpus);
	assert_int_equal(samples, SAMPLE_SUM / 2);
	look_at_samples(200 * cpus, 8000 * cpus);
	assert_int_equal(samples, SAMPLE_SUM);
	assert_string_equal(said, "");
	while (samples > SAMPLE_LEAST_SUM)
		look_at_samples(600 * cpus, 0);
	look_at_samples(600 * cpus, 0);
	assert_non_null(strstr(
		said, "heaptap costs 6.0 % of the machine, more than --max-cost 5.0 %: fewer samples"));
	look_at_samples(600 * cpus, 0);
	assert_string_equal(said, "");
	/* A distance that the user has chosen stays. */
	o.source.adapts_samples = false;
	everything.bill.is_told = false;
	samples = 0;
	look_at_samples(600 * cpus, 0);
	assert_int_equal(samples, 0);
	assert_non_null(strstr(said, "--sample auto would take fewer samples"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_cheap_stays_as_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(windows_of_the_dearest, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_whose_traps_cost_too_much_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(the_machine_has_a_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(samples_have_a_limit, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
