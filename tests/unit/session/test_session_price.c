/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The price of breakpoints: calls, at what a call costs with its ways into the kernel. */
#include "user/session/session_price.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "user/source/call_price.h"
#include "user/source/probe_runs.h"
#include "user/source/source.h"

#define MS 1000000ULL

static bool is_measured;
static int measure_err;
static struct probe_runs runs;

static int fake_measure(struct source *source, bool is_on, struct probe_runs *out)
{
	(void)source;
	is_measured = is_on;
	*out = runs;
	return measure_err;
}

static const struct source_ops fake = { .measure = fake_measure };

static int setup(void **state)
{
	(void)state;
	is_measured = false;
	measure_err = 0;
	runs = (struct probe_runs){ .time_ns = 100000, .traps_ns = 400000, .nr_calls = 100 };
	return 0;
}

static void a_call_costs_its_programs_and_the_ways_to_them(void **state)
{
	struct call_price p = { 0 };

	(void)state;
	assert_int_equal(call_price_ns(&p), CALL_BY_BPF_NS);
	/* A program that is short, or makes few calls, is not measured. */
	call_price_look(&p, &fake, NULL, 100, 9000 * MS);
	call_price_look(&p, &fake, NULL, 1000, 9050 * MS);
	call_price_look(&p, &fake, NULL, 150, 9900 * MS);
	assert_true(!is_measured);
	call_price_look(&p, &fake, NULL, 1000, 10000 * MS);
	assert_true(is_measured);
	/* Too early, and too few calls. */
	call_price_look(&p, &fake, NULL, 1100, 10200 * MS);
	call_price_look(&p, &fake, NULL, 1050, 10400 * MS);
	assert_true(is_measured && !p.traps_ns);
	call_price_look(&p, &fake, NULL, 1100, 10500 * MS);
	assert_true(!is_measured);
	assert_int_equal(p.traps_ns, 4000);
	assert_int_equal(p.programs_ns, 1000);
	assert_int_equal(call_price_ns(&p), 5000);
	call_price_look(&p, &fake, NULL, 1200, 11000 * MS);
	assert_true(!is_measured);
	call_price_look(&p, &fake, NULL, 1250, 16000 * MS);
	assert_true(is_measured);
}

static void what_cannot_be_measured_is_guessed(void **state)
{
	const struct source_ops none = { 0 };
	struct call_price p = { 0 };

	(void)state;
	measure_err = -EOPNOTSUPP;
	call_price_look(&p, &fake, NULL, 1000, 10000 * MS);
	call_price_look(&p, &none, NULL, 2000, 20000 * MS);
	call_price_look(&p, &none, NULL, 3000, 30000 * MS);
	assert_int_equal(call_price_ns(&p), CALL_BY_BPF_NS);
}

static void a_process_pays_for_its_calls(void **state)
{
	const struct process_moment then = { 1000, 500 * MS, 1, 0 }, now = { 2000, 510 * MS, 2, 0 },
				    busy = { 1001000, 600 * MS, 2, 0 };
	const struct call_price p = { .traps_ns = 4000, .programs_ns = 1000 };

	(void)state;
	assert_true(session_price(&then, &now, &p) == 5 * MS);
	/* Nothing takes more than all of the time. */
	assert_true(session_price(&then, &busy, &p) == 100 * MS);
}

static void the_way_that_was_measured_is_part_of_the_first_guess(void **state)
{
	const struct way_to_probe unknown = { 0 }, known = { .entry_ns = 4000, .return_ns = 3000 };

	(void)state;
	assert_int_equal(call_by_bpf_ns(&unknown), CALL_BY_BPF_NS);
	assert_int_equal(call_by_bpf_ns(&known), 5500 + CALL_PROGRAMS_NS);
}

/* Of what breakpoints seem to have taken all, the share that code would take is not known. */
static void a_share_by_code_needs_time_of_its_own(void **state)
{
	char text[SESSION_PRICE_TEXT];

	(void)state;
	assert_string_equal(session_price_by_code(text, 100000, 90 * MS, 350 * MS), "about 10.0 %");
	assert_string_equal(session_price_by_code(text, 100000, 0, 250 * MS), "some 100 ns each");
	assert_string_equal(session_price_by_code(text, 100000, 50 * MS, 250 * MS), "some 100 ns each");
	assert_string_equal(session_price_by_code(text, 0, 0, 0), "some 100 ns each");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_by_code_needs_time_of_its_own),
		cmocka_unit_test_setup(a_call_costs_its_programs_and_the_ways_to_them, setup),
		cmocka_unit_test_setup(what_cannot_be_measured_is_guessed, setup),
		cmocka_unit_test(a_process_pays_for_its_calls),
		cmocka_unit_test(the_way_that_was_measured_is_part_of_the_first_guess),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
