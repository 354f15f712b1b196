/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of cmocka that unit tests use, for 32-bit programs: distributions rarely have the library for both. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
	const char *name;
	void (*run)(void **state);
	int (*setup)(void **state), (*teardown)(void **state);
	void *initial_state; /* NULL: that of the group */
};

#define cmocka_unit_test(f)                                                                                  \
	{                                                                                                    \
#f, f, NULL, NULL                                                                            \
	}
#define cmocka_unit_test_setup_teardown(f, s, t)                                                             \
	{                                                                                                    \
#f, f, s, t                                                                                  \
	}
#define cmocka_run_group_tests(list, setup, teardown)                                                        \
	cmocka_run(list, sizeof(list) / sizeof((list)[0]), setup, teardown)

static jmp_buf cmocka_end; /* a test ends here: 1 = failed, 2 = skipped */

static inline void print_message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}
#define print_error print_message

static inline void cmocka_fail(const char *file, int line, const char *what)
{
	print_message("%s:%d: %s\n", file, line, what);
	longjmp(cmocka_end, 1);
}

#define skip()	      longjmp(cmocka_end, 2)
#define fail()	      cmocka_fail(__FILE__, __LINE__, "failed")
#define fail_msg(...) (print_message(__VA_ARGS__), cmocka_fail(__FILE__, __LINE__, "failed"))

static inline void cmocka_check(bool is_true, const char *file, int line, const char *what, uint64_t a,
				uint64_t b)
{
	if (is_true)
		return;
	print_message("0x%llx, 0x%llx\n", (unsigned long long)a, (unsigned long long)b);
	cmocka_fail(file, line, what);
}

#define cmocka_compare(a, op, b)                                                                             \
	({                                                                                                   \
		uint64_t cmocka_a = (uint64_t)(a), cmocka_b = (uint64_t)(b);                                 \
		cmocka_check(cmocka_a op cmocka_b, __FILE__, __LINE__, #a " " #op " " #b, cmocka_a,          \
			     cmocka_b);                                                                      \
	})
#define cmocka_pointer(p) ((uintptr_t)(const void *)(p))

#define assert_true(x)		      cmocka_check(!!(x), __FILE__, __LINE__, #x, 0, 1)
#define assert_false(x)		      cmocka_check(!(x), __FILE__, __LINE__, "not: " #x, 1, 0)
#define assert_null(p)		      cmocka_compare(cmocka_pointer(p), ==, 0)
#define assert_non_null(p)	      cmocka_compare(cmocka_pointer(p), !=, 0)
#define assert_int_equal(a, b)	      cmocka_compare(a, ==, b)
#define assert_int_not_equal(a, b)    cmocka_compare(a, !=, b)
#define assert_ptr_equal(a, b)	      cmocka_compare(cmocka_pointer(a), ==, cmocka_pointer(b))
#define assert_ptr_not_equal(a, b)    cmocka_compare(cmocka_pointer(a), !=, cmocka_pointer(b))
#define assert_memory_equal(a, b, n)  cmocka_check(!memcmp(a, b, n), __FILE__, __LINE__, #a ", " #b, 0, 0)
#define assert_string_not_equal(a, b) cmocka_compare(strcmp(a, b), !=, 0)
#define assert_in_range(x, least, most)                                                                      \
	cmocka_check((x) >= (least) && (x) <= (most), __FILE__, __LINE__, #x, (x), 0)
#define assert_string_equal(a, b)                                                                            \
	({                                                                                                   \
		const char *cmocka_s = (a), *cmocka_t = (b);                                                 \
		if (strcmp(cmocka_s, cmocka_t)) {                                                            \
			print_message("\"%s\", \"%s\"\n", cmocka_s, cmocka_t);                               \
			cmocka_fail(__FILE__, __LINE__, #a " == " #b);                                       \
		}                                                                                            \
	})

/* Run @test; its state is that of the group until its setup changes it. 0 passed, 1 failed, 2 skipped. */
static inline int cmocka_run_one(const struct CMUnitTest *test, void *state)
{
	void *volatile own = state;
	int how = setjmp(cmocka_end);

	if (!how) {
		if (test->setup && test->setup((void **)&own))
			how = 1;
		else
			test->run((void **)&own);
	}
	if (test->teardown)
		test->teardown((void **)&own);
	return how;
}

static inline int cmocka_run(const struct CMUnitTest *tests, size_t nr, int (*setup)(void **),
			     int (*teardown)(void **))
{
	void *state = NULL;
	int nr_failed = 0;

	printf("1..%zu\n", nr);
	if (setup && setup(&state))
		return 1;
	for (size_t i = 0; i < nr; i++) {
		fflush(stdout);
		int how = cmocka_run_one(&tests[i], tests[i].initial_state ? tests[i].initial_state : state);

		nr_failed += how == 1;
		printf("%s %zu - %s%s\n", how == 1 ? "not ok" : "ok", i + 1, tests[i].name,
		       how == 2 ? " # SKIP" : "");
	}
	fflush(stdout);
	if (teardown)
		teardown(&state);
	return nr_failed;
}
