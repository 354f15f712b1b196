/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of metrics: bounded, without equal rows, and a format that hostile text cannot leave. */
#include "user/metrics/exposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/metrics/metrics_table.h"

static char *page_of(const struct metrics_table *t)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	exposition_write(out, t);
	assert_int_equal(fclose(out), 0);
	return text;
}

static struct metrics_caller caller(char *where, u64 live_bytes)
{
	return (struct metrics_caller){
		.function = "malloc", .where = where, .live_bytes = live_bytes, .live_blocks = 1
	};
}

/* Behind a name: labels with quotes and backslashes in escapes, then a number. NULL: it is something else. */
static const char *skip_labels(const char *s)
{
	if (*s != '{')
		return s;
	while (*s != '}') {
		s = strstr(s, "=\"");
		if (!s)
			return NULL;
		for (s += 2; *s && *s != '"' && *s != '\n'; s++)
			s += *s == '\\' && s[1];
		if (*s++ != '"' || !strchr(",}", *s))
			return NULL;
	}
	return s + 1;
}

static void is_sample(const char *line)
{
	const char *s = skip_labels(line + strspn(line, "abcdefghijklmnopqrstuvwxyz_"));
	char *end;

	assert_non_null(s);
	assert_int_equal(*s, ' ');
	strtod(s + 1, &end);
	assert_true(end > s + 1 && *end == '\0');
}

static void hostile_text_stays_in_its_label(void **state)
{
	struct metrics_table t = { 0 };
	struct metrics_process *p = metrics_process(&t, 7, "a\"} 9\n\\\xff\x1b[m");
	struct metrics_caller c = caller("main \\ \"x\"", 5);
	char *page, *save = NULL;
	size_t nr = 0;

	(void)state;
	assert_non_null(p);
	p->has_heap = p->has_verdict = true;
	strcpy(p->container, "b\nheaptap_up 1");
	assert_int_equal(metrics_add_caller(&t, &c), 0);
	page = page_of(&t);
	assert_string_equal(page + strlen(page) - strlen("\n# EOF\n"), "\n# EOF\n");
	assert_null(strstr(page, "\nheaptap_up"));
	assert_non_null(strstr(page, "caller=\"main \\\\ \\\"x\\\"\""));
	for (char *line = strtok_r(page, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		for (const char *s = line; *s; s++)
			assert_true((unsigned char)*s >= ' ' && (unsigned char)*s < 0x7f);
		if (*line == '#')
			continue;
		is_sample(line);
		nr++;
	}
	assert_true(nr > 10);
	free(page);
	metrics_table_fini(&t);
}

static void equal_callers_are_one_row(void **state)
{
	struct metrics_table t = { 0 };
	struct metrics_caller a = caller("main", 5), b = caller("make < main", 7);

	(void)state;
	a.leaks.of[SCAN_DEFINITE].bytes = 3;
	assert_int_equal(metrics_add_caller(&t, &a), 0);
	assert_int_equal(metrics_add_caller(&t, &b), 0);
	assert_int_equal(metrics_add_caller(&t, &a), 0);
	assert_int_equal(t.nr_callers, 2);
	assert_int_equal(t.callers[0].live_bytes, 10);
	assert_int_equal(t.callers[0].live_blocks, 2);
	assert_int_equal(t.callers[0].leaks.of[SCAN_DEFINITE].bytes, 6);
	assert_int_equal(t.callers[1].live_bytes, 7);
	a.process = 1;
	assert_int_equal(metrics_add_caller(&t, &a), 0);
	assert_int_equal(t.nr_callers, 3);
	metrics_table_fini(&t);
}

static void what_is_beyond_the_bounds_is_counted(void **state)
{
	struct metrics_table t = { 0 };

	(void)state;
	for (u32 i = 0; i < METRICS_MAX_CALLERS + 5; i++) {
		struct metrics_caller c = caller("main", 1);

		c.process = i;
		assert_int_equal(metrics_add_caller(&t, &c), 0);
	}
	assert_int_equal(t.nr_callers, METRICS_MAX_CALLERS);
	assert_int_equal(t.nr_left_out, 5);
	for (pid_t pid = 1; pid <= METRICS_MAX_PROCESSES; pid++)
		assert_non_null(metrics_process(&t, pid, "x"));
	assert_non_null(metrics_process(&t, 3, "x"));
	assert_null(metrics_process(&t, METRICS_MAX_PROCESSES + 1, "x"));
	assert_int_equal(t.nr_left_out, 6);
	metrics_table_fini(&t);
}

static void containers_are_sums(void **state)
{
	struct metrics_table t = { 0 };
	struct metrics_process p = { .container = "web", .resident = 10, .growth = 0.5 };
	struct metrics_process q = { .container = "web", .pod = "other", .resident = 1 };

	(void)state;
	p.leaks.of[SCAN_DEFINITE].bytes = 4;
	p.leaks.of[SCAN_INDIRECT].bytes = 2;
	p.leaks.of[SCAN_REACHABLE].bytes = 100;
	for (int i = 0; i < 3; i++)
		assert_int_equal(metrics_add_to_container(&t, &p), 0);
	assert_int_equal(metrics_add_to_container(&t, &q), 0);
	assert_int_equal(t.nr_containers, 2);
	assert_int_equal(t.containers[0].nr, 3);
	assert_int_equal(t.containers[0].resident, 30);
	assert_int_equal(t.containers[0].lost_bytes, 18);
	assert_true(t.containers[0].growth == 1.5);
	assert_int_equal(t.containers[1].resident, 1);
	metrics_table_fini(&t);
}

/* Only a process that is traced in windows has the factor to the whole time. */
static void windows_have_a_factor(void **state)
{
	struct metrics_table t = { 0 };
	struct metrics_process *p = metrics_process(&t, 7, "a"), *q;
	char *page;

	(void)state;
	assert_non_null(p);
	p->is_window = true;
	p->scale = 3.5;
	q = metrics_process(&t, 8, "b");
	assert_non_null(q);
	q->is_verdict_of_window = true;
	q->verdict_scale = 2;
	page = page_of(&t);
	assert_non_null(strstr(page, "\nheaptap_heap_window_ratio{pid=\"7\",comm=\"a\"} 3.500000\n# "));
	assert_non_null(
		strstr(page, "\nheaptap_heap_verdict_window_ratio{pid=\"8\",comm=\"b\"} 2.000000\n# "));
	free(page);
	metrics_table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_text_stays_in_its_label),
		cmocka_unit_test(equal_callers_are_one_row),
		cmocka_unit_test(what_is_beyond_the_bounds_is_counted),
		cmocka_unit_test(containers_are_sums),
		cmocka_unit_test(windows_have_a_factor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
