/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of threads: said once, said again when they change, not said of what has gone. */
#include "user/target/thread_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#define SEC 1000000000ULL

static char said[256];

static void say(void *ctx, u32 pid, u32 tid, const char *name)
{
	size_t used = strlen(said);

	(void)ctx;
	assert_int_equal(pid, getpid());
	assert_int_equal(tid, gettid());
	snprintf(said + used, sizeof(said) - used, "%s;", name);
}

/* Look at @ns: then all that was said is @words. */
static void says(struct thread_names *t, u64 ns, bool is_end, const char *words)
{
	thread_names_look(t, ns, is_end, say, NULL);
	assert_string_equal(said, words);
}

static void names(void **state)
{
	struct thread_names *t;
	u32 me = (u32)getpid();

	(void)state;
	assert_int_equal(thread_names_new(&t), 0);
	prctl(PR_SET_NAME, "first");
	thread_names_look(t, SEC, false, say, NULL);
	thread_names_note(t, me, me);
	thread_names_note(t, me, 0x3fffffff); /* there is none */
	thread_names_look(t, SEC, false, say, NULL);
	says(t, SEC, false, "first;");
	prctl(PR_SET_NAME, "second");
	thread_names_note(t, me, me);
	says(t, SEC + SEC / 4, false, "first;");
	says(t, 2 * SEC, false, "first;second;");
	prctl(PR_SET_NAME, "third");
	says(t, 9 * SEC, false, "first;second;");
	thread_names_forget(t);
	thread_names_note(t, me, me);
	says(t, 9 * SEC, true, "first;second;third;");
	/* The end is no time to wait for. */
	prctl(PR_SET_NAME, "15 bytes of it.");
	says(t, 9 * SEC, true, "first;second;third;15 bytes of it.;");
	thread_names_free(t);
	thread_names_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
