/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON report is read as it was written, and readers refuse one whose numbers lead nowhere. */
#include "tests/unit/report/hostile_write.h"

#include "user/report/format.h"
#include "user/report/saved.h"

/* Takes the callers that saved_read() gives, as text. */
struct seen {
	FILE *out;
};

static int on_caller(void *ctx, const struct saved_process *p, const struct saved_caller *c)
{
	const struct saved_numbers *n = &c->numbers;
	struct seen *s = ctx;

	fprintf(s->out, "%d %s %s %d/%d %d/%d %d/%d %d\n%s", (int)p->pid, p->comm, c->function,
		(int)n->live_bytes, (int)n->live_blocks, (int)n->alloc_bytes, (int)n->allocs,
		(int)n->leaked_bytes, (int)n->leaked_blocks, (int)n->peak_bytes, c->frames);
	return 0;
}

/* Read @text; the caller owns the result. */
static char *read_text(const char *text, size_t len, struct saved_totals *totals, int *err)
{
	struct seen s;
	const struct saved_sink sink = { &s, on_caller, NULL };
	const char *why = NULL;
	char *seen = NULL;
	size_t size, at = 0;

	s.out = open_memstream(&seen, &size);
	assert_non_null(s.out);
	*totals = (struct saved_totals){ .nr_processes = 0 };
	*err = saved_read(text, len, &sink, totals, &why, &at);
	assert_true(!*err || (why && at <= len));
	fclose(s.out);
	return seen;
}

static void is_read_as_written(void **state)
{
	struct heap_totals t = heap_totals(hostile.process.heap);
	struct saved_totals totals;
	char *seen;
	int err;

	(void)state;
	for (u32 round = 0; round < 2; round++) {
		hostile_write(report_json);
		seen = read_text(hostile.text, hostile.len, &totals, &err);
		assert_int_equal(err, 0);
		assert_non_null(strstr(seen, "inlined\ncaller\nbare\n"));
		assert_int_equal(totals.numbers.live_bytes, t.live_bytes);
		assert_int_equal(totals.numbers.live_blocks, t.live_blocks);
		assert_int_equal(totals.numbers.alloc_bytes, t.alloc_bytes);
		assert_int_equal(totals.numbers.allocs, t.allocs);
		assert_int_equal(totals.numbers.leaked_blocks, round ? 2 : 0);
		assert_int_equal(totals.numbers.leaked_bytes, round ? 200 : 0);
		assert_int_equal(totals.nr_scanned, round);
		free(seen);
		hostile_judge(0, SCAN_DEFINITE, 2, 200);
		hostile.process.leaks = &hostile.leaks;
	}
}

static size_t count(const char *part)
{
	size_t nr = 0;

	for (const char *at = hostile.text; (at = strstr(at, part)); at++)
		nr++;
	return nr;
}

/* Two processes with the same stacks. */
static void what_repeats_is_written_once(void **state)
{
	struct report_process both[2] = { hostile.process, hostile.process };

	(void)state;
	hostile.report.processes = both;
	hostile.report.nr_processes = 2;
	hostile_write(report_json);
	assert_int_equal(count("\"name\":\"bare\""), 1);
	assert_int_equal(count("ab1200ff"), 1);
	assert_int_equal(count("\"backtrace\":1,"), 2);
	assert_int_equal(count("\"truncated\":\"none\""), 2);
	assert_int_equal(count(":null,\"line\""), 0);
	assert_int_equal(count("\"definite\""), 0);
	assert_non_null(strstr(hostile.text, "\n{\"id\":\""));
}

#define REPORT(schema, callers, tables)                                                                      \
	"{\"schema\": \"" schema "\", \"processes\": [{\"pid\": 1, \"stacks\": [" callers "]}]" tables "}"
#define TABLES                                                                                               \
	", \"modules\": [{\"path\": \"/lib/x\"}], \"functions\": [{\"name\": \"f\", \"new\": [1]}]"          \
	", \"frames\": [{\"function\": 0, \"module\": 0, \"offset\": \"0x1f\"}, {\"module\": 0, "            \
	"\"offset\": \"0x20\", \"new\": null}], \"backtraces\": [[0, 1], []]"

/* Keys may come in any order, and readers skip those that they do not know. */
static void tables_in_any_order(void **state)
{
	static const char *const texts[] = {
		REPORT("heaptap-report/2", "{\"live_bytes\": 5, \"backtrace\": 0}", TABLES),
		"{\"backtraces\": [[0, 1], []], \"frames\": [{\"offset\": \"0x1f\", \"function\": 0}, "
		"{\"offset\": \"0x20\", \"module\": 0}], \"functions\": [{\"name\": \"f\"}], "
		"\"processes\": [{\"pid\": 1, \"stacks\": "
		"[{\"backtrace\": 0, \"live_bytes\": 5}]}], \"modules\": [{\"path\": \"/lib/x\"}], "
		"\"schema\": \"heaptap-report/2\"}",
	};
	struct saved_totals totals;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int err;
		char *seen = read_text(texts[i], strlen(texts[i]), &totals, &err);

		assert_int_equal(err, 0);
		assert_string_equal(seen, "1   5/0 0/0 0/0 0\nf\nx+0x20\n");
		free(seen);
	}
}

static void wrong_numbers_are_refused(void **state)
{
	static const char *const texts[] = {
		REPORT("heaptap-report/3", "", TABLES),
		REPORT("heaptap-report/2", "{\"backtrace\": 2}", TABLES),
		REPORT("heaptap-report/2", "{\"backtrace\": -1}", TABLES),
		REPORT("heaptap-report/2", "{\"backtrace\": \"0\"}", TABLES),
		REPORT("heaptap-report/2", "{\"backtrace\": 0}", ""),
		REPORT("heaptap-report/2", "{\"backtrace\": 0}", ", \"backtraces\": [[0]]"),
		REPORT("heaptap-report/2", "{\"backtrace\": 0}", ", \"backtraces\": [[4294967295]]"),
		REPORT("heaptap-report/2", "{\"backtrace\": 0}", ", \"backtraces\": [0]"),
		REPORT("heaptap-report/2", "{\"backtrace\": 0}",
		       ", \"frames\": [{\"function\": 1}], \"backtraces\": [[0]], \"functions\": [{}]"),
		REPORT("heaptap-report/2", "{\"backtrace\": 0}",
		       ", \"frames\": [{\"module\": 0}], \"backtraces\": [[0]]"),
		REPORT("heaptap-report/2", "{\"backtrace\": 0}", ", \"frames\": {}, \"backtraces\": [[0]]"),
	};
	struct saved_totals totals;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int err;

		free(read_text(texts[i], strlen(texts[i]), &totals, &err));
		if (err != -EBADMSG)
			fail_msg("%d for %s", err, texts[i]);
	}
}

/* Each beginning of a report is refused. */
static void cut_reports_are_refused(void **state)
{
	static const char text[] =
		REPORT("heaptap-report/2", "{\"live_bytes\": 5, \"backtrace\": 0}", TABLES);
	struct saved_totals totals;

	(void)state;
	for (size_t len = 0; len + 1 < sizeof(text); len++) {
		auto_free char *copy = malloc(len ? len : 1);
		int err;

		assert_non_null(copy);
		memcpy(copy, text, len);
		free(read_text(copy, len, &totals, &err));
		assert_int_equal(err, -EBADMSG);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, hostile_begin, hostile_end)
	const struct CMUnitTest tests[] = {
		TEST(is_read_as_written),      TEST(what_repeats_is_written_once),
		TEST(tables_in_any_order),     TEST(wrong_numbers_are_refused),
		TEST(cut_reports_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
