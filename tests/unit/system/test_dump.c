/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules of --threshold: who meets them, what is asked for then, and that it is said once. */
#include "user/system/dump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "user/lib/log.h"

enum { MB = 1 << 20 };

static const struct output_options no_names;
static struct zooms zooms;
static u32 nr_said;
static char said[256];

static void take(void *ctx, enum log_level level, const char *line)
{
	(void)ctx, (void)level;
	nr_said++;
	snprintf(said, sizeof(said), "%s", line);
}

static int setup(void **state)
{
	(void)state;
	nr_said = 0;
	memset(&zooms, 0, sizeof(zooms));
	log_divert(take, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	log_divert(NULL, NULL);
	return 0;
}

/* Look at the only process @p. */
static void look(const struct dump_options *o, struct watched *p, u64 now_ns)
{
	struct watch w = { .list = p, .nr = 1, .now_ns = now_ns };
	struct dumps d;

	assert_int_equal(dumps_init(&d, o, false), 0);
	dumps_look(&d, &w, &zooms);
	assert_false(d.has_failed);
	dumps_fini(&d);
}

static void by_size(void **state)
{
	const struct dump_options o = { .output = &no_names, .max_bytes = 500 * MB };
	struct watched p = { .pid = 7, .comm = "big", .anonymous = 300 * MB, .swapped = 199 * MB };

	(void)state;
	look(&o, &p, 1);
	assert_false(p.is_asked || p.is_over);
	assert_int_equal(nr_said, 0);
	p.swapped = 200 * MB;
	look(&o, &p, 2);
	assert_true(p.is_asked && p.is_over);
	assert_int_equal(nr_said, 1);
	assert_non_null(strstr(said, "big (pid 7): --threshold: needs 500.0 MiB"));
	look(&o, &p, 3);
	assert_int_equal(nr_said, 1);
	/* A process that needs less before there was a verdict gets no report. */
	p.anonymous = MB;
	look(&o, &p, 4);
	assert_false(p.is_asked);
}

/* 10 % an hour of 360 MiB is 0.01 MiB a second. */
static void by_growth(void **state)
{
	const struct dump_options o = { .output = &no_names, .max_growth = 100 };
	struct watched p = { .pid = 7, .comm = "grower", .anonymous = 360 * MB };

	(void)state;
	p.line.bytes_per_s = 0.0101 * MB;
	look(&o, &p, 1);
	/* The rate of a process that does not grow for sure means nothing. */
	assert_false(p.is_asked);
	p.state = WATCHED_GROWS;
	look(&o, &p, 2);
	assert_true(p.is_asked && p.is_over);
	p.line.bytes_per_s = 0.0099 * MB;
	look(&o, &p, 3);
	assert_false(p.is_asked);
}

static void no_rule(void **state)
{
	const struct dump_options o = { .output = &no_names };
	struct watched p = { .pid = 7, .anonymous = 1ULL << 50, .state = WATCHED_GROWS, .is_asked = true };

	(void)state;
	p.line.bytes_per_s = 1e12;
	look(&o, &p, 1);
	assert_true(p.is_asked);
	assert_false(p.is_over);
}

/* Within the hour after a report there is no second one. */
static void once_an_hour(void **state)
{
	const struct dump_options o = { .output = &no_names, .max_bytes = MB };
	struct watched p = { .pid = 7, .anonymous = 2 * MB, .dump_again_ns = 1000, .is_over = true };

	(void)state;
	look(&o, &p, 999);
	assert_false(p.is_asked);
	look(&o, &p, 1000);
	assert_true(p.is_asked);
	assert_int_equal(nr_said, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_size, setup, teardown),
		cmocka_unit_test_setup_teardown(by_growth, setup, teardown),
		cmocka_unit_test_setup_teardown(no_rule, setup, teardown),
		cmocka_unit_test_setup_teardown(once_an_hour, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
