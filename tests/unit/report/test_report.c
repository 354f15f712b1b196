/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports of real heaps: exact numbers, right order, names of stacks, cut stacks marked, hostile text escaped. */
#include "tests/unit/report/report_fixture.c"

#include "user/report/format.h"
#include "user/report/report_rows.h"
#include "user/scan/leaks.h"

static size_t count(const char *part)
{
	size_t nr = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		nr++;
	return nr;
}

static void json_numbers(void **state)
{
	(void)state;
	fill();
	losses = (struct losses){ 1, 2, 3, 4 };
	write_report(report_json);
	has("{\n\"schema\":\"heaptap-report/2\",\n\"version\":\"" HEAPTAP_VERSION
	    "\",\n\"backend\":\"bpf\",\n"
	    "\"time_ns\":30000000000,\n\"duration_ns\":20000000000,");
	has("\"pid\":1234,");
	has("\"comm\":\"prog\",");
	has("\"started\":false,");
	has("\"exit\":null,");
	has("\"allocs\":5,\"frees\":1,\"alloc_bytes\":104000,\"live_blocks\":4,"
	    "\"live_bytes\":103000,\"peak_bytes\":103000,\"peak_time_ns\":13000000000,");
	has("\"unknown_frees\":1,");
	has("\"failed_allocs\":1,");
	has("\"malloc\":4,");
	has("\"calloc\":1,");
	has("\"operator new(size)\":1");
	has("\"free\":2,");
	lacks("\"realloc\":");
	has("\"lost\":{\"allocs\":1,\"frees\":2,\"stacks\":3,\"other\":4}");
	has("\"scan\":null,");
	has("\"errors\":[],");
}

static void growth_of_last_hour(void **state)
{
	const u64 hour = 3600ULL * SECOND_NS;

	(void)state;
	alloc("malloc", 0x1000, 5000, 100);
	report.time_ns = now_ns + hour - 1;
	write_report(report_text);
	lacks("in the last hour");
	now_ns += hour / 2;
	alloc("malloc", 0x3000, 3072, 100);
	report.time_ns++;
	write_report(report_text);
	has("+3,072 B in the last hour");
	now_ns += hour / 2;
	release(0x1000, 0);
	report.time_ns = now_ns;
	write_report(report_text);
	has("-1,928 B in the last hour");
}

/* Do text and page say that the low-water mark, which went from @before to @after, rose? */
static void check_trend(u64 before, u64 after, const char *rise)
{
	int (*const formats[])(FILE *, const struct report *) = { report_text, report_html };
	struct trend trend = { .slot_ns = SECOND_NS, .nr = 3, .least = { before, before, after } };

	process.trend = &trend;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		write_report(formats[i]);
		if (rise)
			has(rise);
		else
			lacks("mark rose from");
	}
	process.trend = NULL;
}

static void growth_that_can_be_read(void **state)
{
	(void)state;
	alloc("malloc", 0x1000, 5000, 100);
	check_trend(8965325, 8965326, NULL);
	check_trend(8965325, 8965325, NULL);
	/* 0.1 %, and both are 8.55 MiB. */
	check_trend(8961000, 8970000, NULL);
	/* Less than 0.1 %, and they read differently. */
	check_trend(8965000, 8971000, NULL);
	check_trend(8965325, 9100000, "the low-water mark rose from 8.55 MiB to 8.68 MiB");
}

/* One block stands for 200: what is 8.68 MiB now may have been that before. */
static void growth_within_noise(void **state)
{
	(void)state;
	heap_set_sample(heap, 1 << 20);
	alloc("malloc", 0x1000, 5000, 100);
	check_trend(8965325, 9100000, NULL);
	check_trend(8965325, 9000000000, "the low-water mark rose from ~8.55 MiB to ~8.38 GiB");
}

/* The callers of a row are its innermost two functions. A function without a name is shown as an offset. */
static void callers(void **state)
{
	static const char *const want[] = { "make_node < insert", "bare < prog+0x999",
					    "prog+0x888 < prog+0x999", "", "insert < load" };
	static const u64 stack[] = { 100, 103, 104, STACK_NONE, 105 };
	char names[512];

	(void)state;
	add_stack(104, STACK_COMPLETE, 0x888, 0x999, 0x230, 0x240);
	/* Between them the library of the language is left out. */
	add_stack(105, STACK_COMPLETE, 0x150, 0x200, 0x150, 0x210, 0x240);
	for (u32 i = 0; i < ARRAY_SIZE(stack); i++)
		alloc("malloc", 0x1000 + i * 0x1000, 10, stack[i]);
	for (u32 i = 0; i < ARRAY_SIZE(stack); i++) {
		assert_int_equal(report_callers(&report, &process, i, names, sizeof(names)), 0);
		assert_string_equal(names, want[i]);
	}
	assert_int_equal(report_callers(&report, &process, 2, names, 8), 0);
	assert_string_equal(names, "prog+0x");
}

static void json_stacks(void **state)
{
	(void)state;
	fill();
	alloc("malloc", 0x200000, 1, 102);
	alloc("malloc", 0x200010, 2, STACK_NONE);
	alloc("malloc", 0x200020, 3, STACK_LOST);
	alloc("malloc", 0x200030, 4, 555);
	write_report(report_json);
	has(",\"function\":\"operator new(size)\",\"family\":\"new\",\"place\":\"grow (vec.h:7)\",\"allocs\":1,"
	    "\"alloc_bytes\":100000,\"live_blocks\":1,\"live_bytes\":100000,\"peak_bytes\":100000}");
	has("\"truncated\":\"depth\",");
	has("\"truncated\":\"none\",");
	has("\"truncated\":\"lost\",");
	has("\"modules\":[\n{\"path\":\"/usr/bin/prog\",\"build_id\":\"ab1200ff\"}\n],");
	has("\"sources\":[\n\"/src/vec.h\",\n\"/src/vec.c\"");
	has("\n{\"name\":\"grow\",\"source\":0,\"language\":\"native\"},\n"
	    "{\"name\":\"push\",\"source\":1,\"language\":\"native\"},");
	has("\n{\"function\":0,\"line\":7,\"module\":0,\"offset\":\"0x110\",\"inlined\":true},\n"
	    "{\"function\":1,\"line\":70,\"module\":0,\"offset\":\"0x110\"},");
	assert_int_equal(count("\"id\":"), 6);
}

static void hostile_names_are_escaped(void **state)
{
	static const char *const notes[] = { "note\033[1m" };
	static const struct report_allocator allocators[] = { { "/lib/\033c.so", "glibc" } };

	(void)state;
	process.notes = notes;
	process.nr_notes = 1;
	process.allocators = allocators;
	process.nr_allocators = 1;
	strcpy(target.comm, "a\033[31m\n");
	target.exe = "/tmp/\033]0;title\a";
	alloc("malloc", 0x1000, 1, 102);
	write_report(report_text);
	lacks("\033");
	lacks("\a");
	has("evil\\x1b[2J\\x0a\"name at /src/\\x1b]0;x.c:1\n");
	has("a\\x1b[31m\\x0a (pid 1234)");
	write_report(report_json);
	lacks("\033");
	has("\"evil\\u001b[2J\\u000a\\\"name\"");
	target.exe = "/usr/bin/prog";
}

static void text_head(void **state)
{
	static const struct report_allocator allocators[] = {
		{ "/lib/libc.so.6", "glibc" },
		{ "/usr/lib/libstdc++.so.6", "libstdc++" },
	};

	(void)state;
	fill();
	process.allocators = allocators;
	process.nr_allocators = 2;
	report.options.width = 100;
	write_report(report_text);
	report.may_be_scanned = true;
	write_report(report_text);
	starts("no leak verdict: the memory was not searched (heaptap scan 1234 does that);\n");
	report.may_be_scanned = false;
	write_report(report_text);
	starts("no leak verdict: the memory was not searched; 100.6 KiB live in 4 blocks, most of it from grow\n"
	       "    (vec.h:7)\n"
	       "prog (pid 1234)  /usr/bin/prog\n\n2 callers by live bytes\n");
	has("\n\nDetails\n"
	    "  traced      20.0 s, attached to, source bpf, still running\n"
	    "  allocators  glibc (/lib/libc.so.6), libstdc++ (/usr/lib/libstdc++.so.6)\n"
	    "  live        100.6 KiB (103,000 B) in 4 blocks\n"
	    "  peak        100.6 KiB (103,000 B) after 3.0 s\n"
	    "  allocated   101.6 KiB (104,000 B) in 5 blocks, 20.0 % of them temporary\n"
	    "  freed       1 block, and 1 that heaptap never saw allocated: from before the attach\n"
	    "  failed      1 allocation\n"
	    "  lost        nothing\n"
	    "  stacks      complete for 100 % of the blocks\n"
	    "  calls       malloc 4, free 2, calloc 1, operator new(size) 1\n");
}

static void text_callers(void **state)
{
	(void)state;
	fill();
	write_report(report_text);
	has("\n2 callers by live bytes\n"
	    "\n#1   97.7 KiB (97.1 %) live in 1 block, by operator new(size)\n"
	    "        grow at /src/vec.h:7 (inlined)\n"
	    "        push at /src/vec.c:70\n"
	    "        load at /src/load.c:5\n"
	    "        serve at /src/serve.c:6\n"
	    "        main at /src/main.c:12\n"
	    "        _start in prog\n"
	    "\n#2   3,000 B (2.9 %) live in 3 blocks of 4 (4,000 B), by malloc\n"
	    "        make_node at /src/list.c:42\n"
	    "        insert at /src/list.c:77\n"
	    "        load at /src/load.c:5\n"
	    "        serve at /src/serve.c:6\n"
	    "        main at /src/main.c:12\n"
	    "        _start in prog\n");
}

static void text_folds_what_is_common(void **state)
{
	(void)state;
	fill();
	add_stack(104, STACK_COMPLETE, 0x130, 0x200, 0x210, 0x220, 0x230, 0x240);
	alloc("malloc", 0x300000, 200000, 104);
	write_report(report_text);
	has("#3   3,000 B (1.0 %) live in 3 blocks of 4 (4,000 B), by malloc\n"
	    "        make_node at /src/list.c:42\n"
	    "        insert at /src/list.c:77\n"
	    "        ... and 4 more, as in #1\n");
	report.options.verbose = true;
	write_report(report_text);
	lacks("as in #");
	has("bare in /usr/bin/prog+0x130\n");
}

static void text_says_where_stacks_were_cut(void **state)
{
	(void)state;
	alloc("malloc", 0x1000, 100, 103);
	alloc("malloc", 0x2000, 50, STACK_NONE);
	alloc("malloc", 0x3000, 10, STACK_LOST);
	alloc("malloc", 0x4000, 5, 101);
	report.options.width = 100;
	write_report(report_text);
	has("  stacks      complete for 25.0 % of the blocks, no-unwind-info for 1 (25.0 %), none for 1 "
	    "(25.0 %),\n"
	    "              lost for 1 (25.0 %)\n");
	has("        bare in prog\n        in prog+0x999\n        (cut here: no-unwind-info)\n");
	has("        (stack not taken)\n");
	has("        (stack lost)\n");
}

static void text_losses(void **state)
{
	(void)state;
	losses = (struct losses){ .allocs = 1200, .frees = 1 };
	alloc("malloc", 0x1000, 100, 100);
	alloc("malloc", 0x1000, 100, 100);
	write_report(report_text);
	has("  lost        1,200 allocations, 1 free, 1 free noticed late and corrected,\n"
	    "              so blocks shown as live may be free\n");
	lacks("nothing");
}

static void pending_blocks_are_said(void **state)
{
	const struct heap_event begun = {
		.h = { .kind = EVENT_REALLOC_BEGIN, .fn = fn("realloc"), .pid = PID, .tid = PID },
		.time_ns = now_ns,
		.old_addr = 0x1000,
		.size = 9,
		.stack = 100,
	};

	(void)state;
	alloc("malloc", 0x1000, 100, 100);
	assert_int_equal(heap_event(heap, &begun), 0);
	write_report(report_text);
	has("  live        100 B in 1 block, 1 of them in a realloc that has not returned\n");
	write_report(report_json);
	has("\"pending_blocks\":1}");
}

static void nothing_live(void **state)
{
	(void)state;
	alloc("malloc", 0x1000, 100, 100);
	release(0x1000, 0);
	alloc("malloc", 0x1000, 7000, 101);
	release(0x1000, 0);
	write_report(report_text);
	has("  live        0 B in 0 blocks\n");
	has("\nNothing is live.\n2 callers by bytes allocated\n\n#1   7,000 B (98.6 %) allocated in 1 block, "
	    "by malloc\n");
	heap_free(heap);
	assert_int_equal(heap_new(&heap, NULL), 0);
	process.heap = heap;
	write_report(report_text);
	has("  live        0 B in 0 blocks\n");
	has("  calls       none seen\n");
	write_report(report_json);
	has("\"functions\":{},");
	has("\"stacks\":[]");
}

static void top_leaves_a_rest(void **state)
{
	(void)state;
	for (u64 i = 0; i < 30; i++)
		alloc("malloc", 0x1000 * (i + 1), 1000 + i, 1000 + i);
	report.options.top = 10;
	write_report(report_text);
	has("Top 10 of 30 callers by live bytes\n");
	has("\n#10  1,020 B ");
	lacks("#11");
	has("\n20 more callers: 19.7 KiB (66.3 %) live\n");
	write_report(report_json);
	assert_int_equal(count("\"id\":"), 30);
}

/* The order of stacks under one key, as their ids. */
static void check_order(const char *name, const u64 expected[3])
{
	const struct report_key *key = report_key_find(name);
	struct report_row *rows;
	size_t nr;

	assert_non_null(key);
	report.options.sort = key;
	assert_int_equal(report_rows(&report, &process, &rows, &nr, NULL), 0);
	assert_int_equal(nr, 3);
	for (size_t i = 0; i < nr; i++)
		if (rows[i].row.stack != expected[i])
			fail_msg("%s: row %zu is %llu", name, i, (unsigned long long)rows[i].row.stack);
	free(rows);
}

#define check_order(name, ...) check_order(name, (const u64[]){ __VA_ARGS__ })

static void sort_keys(void **state)
{
	(void)state;
	alloc("malloc", 0x1000, 500, 100); /* the oldest, and the largest live */
	now_ns += SECOND_NS;
	for (u64 i = 0; i < 5; i++) { /* most blocks, all temporary but two */
		alloc("malloc", 0x10000 + i, 10, 101);
		if (i >= 2)
			release(0x10000 + i, EVENT_TEMPORARY);
	}
	alloc("malloc", 0x2000, 9000, 102); /* most bytes at the peak, mostly gone */
	now_ns += SECOND_NS;
	release(0x2000, 0);
	alloc("malloc", 0x3000, 1, 102);
	check_order("live-bytes", 100, 101, 102);
	check_order("live-blocks", 101, 100, 102);
	check_order("total-bytes", 102, 100, 101);
	check_order("total-blocks", 101, 102, 100);
	check_order("average", 102, 100, 101);
	check_order("peak", 102, 100, 101);
	check_order("temporary", 101, 100, 102);
	check_order("age", 100, 101, 102);
	assert_null(report_key_find("colour"));
	assert_null(report_key_find(""));
	report.options.sort = report_key_find("age");
	write_report(report_text);
	has("#1   18.0 s old, 500 B (96.0 %) live in 1 block, by malloc\n");
}

static void average_is_no_integer(void **state)
{
	(void)state;
	alloc("malloc", 0x1000, 10, 100);
	alloc("malloc", 0x2000, 11, 100);
	for (u64 i = 0; i < 3; i++)
		alloc("malloc", 0x3000 + i, 10, 101);
	alloc("malloc", 0x4000, 1, 102);
	check_order("average", 100, 101, 102);
}

static void filter_by_size(void **state)
{
	(void)state;
	alloc("malloc", 0x1000, 10, 100);
	alloc("malloc", 0x2000, 1000, 100);
	alloc("malloc", 0x3000, 30, 101);
	report.options.min_size = 20;
	report.options.max_size = 999;
	write_report(report_text);
	has("  filter      callers count only live blocks of at least 20 B, at most 999 B\n");
	has("\n1 caller by live bytes\n\n#1   30 B ");
	write_report(report_json);
	has("\"filter\":{");
}

static void fate_of_the_target(void **state)
{
	(void)state;
	target.has_exited = true;
	target.is_started = true;
	target.exit_status = 3 << 8;
	write_report(report_text);
	has("started by heaptap, source bpf, exited with status 3\n");
	write_report(report_json);
	has("\"exit\":{\"code\":3},");
	target.exit_status = 9;
	write_report(report_text);
	has("killed by signal 9 (Killed)\n");
	write_report(report_json);
	has("\"exit\":{\"signal\":9},");
	target.exit_status = -1;
	write_report(report_text);
	has("has ended\n");
	write_report(report_json);
	has("\"exit\":null,");
	has("\"ended\":true,");
}

static size_t sections(void)
{
	size_t nr = 0;

	for (const char *at = text; (at = strstr(at, "\nchild (pid ")); at++)
		nr++;
	return nr;
}

/* A program may start others without end. */
static void many_processes(void **state)
{
	struct target child = { .pid = 99, .comm = "child", .exe = "", .exit_status = -1 };
	struct report_process all[15];

	(void)state;
	fill();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		all[i] = process;
		all[i].target = &child;
	}
	report.processes = all;
	report.nr_processes = ARRAY_SIZE(all);
	report.options.top = 10;
	write_report(report_text);
	assert_int_equal(sections(), 10);
	has("\n  ... and 5 more (-n 0 shows all)\n");
	has("\n5 more processes (-n 0 shows all)\n");
	report.options.top = 0;
	write_report(report_text);
	assert_int_equal(sections(), ARRAY_SIZE(all));
	lacks("-n 0 shows all");
}

static void several_processes(void **state)
{
	struct target other = { .pid = 99, .comm = "other", .exe = "", .exit_status = -1 };
	struct leaks leaks = { .has_verdict = true };
	struct heap *empty;
	struct report_process both[2];

	(void)state;
	fill();
	assert_int_equal(heap_new(&empty, NULL), 0);
	both[0] = process;
	both[1] = process;
	both[1].target = &other;
	both[1].heap = empty;
	report.processes = both;
	report.nr_processes = 2;
	write_report(report_text);
	starts("no leak verdict on 2 processes; 100.6 KiB live\n"
	       "     1234  prog              100.6 KiB in 4 blocks\n"
	       "       99  other                   0 B in 0 blocks\n"
	       "\nprog (pid 1234)  /usr/bin/prog\n");
	has("\nother (pid 99)\n");
	both[1].leaks = &leaks;
	write_report(report_text);
	starts("no leaks in 1 process; no verdict on 1; 100.6 KiB live\n");
	both[1].leaks = NULL;
	/* A program that its process replaced is one line, after the others. */
	both[0].is_replaced = true;
	report.cost = (struct report_cost){ .events = 4, .cpu_ns = 8000000 };
	report.duration_ns = SECOND_NS;
	write_report(report_text);
	has("  heaptap     4 events, 8 ms of CPU time, 2 ms for an event, 0.8 % of a CPU\n");
	starts("no leak verdict: the memory was not searched");
	has("\n1 program that became another one; -v has its details\n"
	    "     1234  prog              100.6 KiB in 4 blocks\n");
	lacks("prog (pid 1234)");
	report.options.verbose = true;
	write_report(report_text);
	has("prog (pid 1234)");
	report.options.verbose = false;
	write_report(report_json);
	has("\"pid\":1234,");
	has("\"pid\":99,");
	heap_free(empty);
}

static void color_only_when_asked(void **state)
{
	(void)state;
	fill();
	write_report(report_text);
	lacks("\033");
	report.options.color = true;
	write_report(report_text);
	has("\033[1mprog (pid 1234)\033[0m");
}

static void stale_files_are_said(void **state)
{
	(void)state;
	nr_stale = 2;
	write_report(report_text);
	has("2 files on disk are not what was mapped: no names from them\n");
	write_report(report_json);
	has("\"stale_modules\":2,\n");
}

static void unread_files_are_said(void **state)
{
	(void)state;
	nr_unread = 1;
	write_report(report_text);
	has("1 file could not be read to the end: names are missing\n");
	lacks("on disk");
	write_report(report_json);
	has("\"unread_modules\":1\n");
}

static void places_without_names(void **state)
{
	(void)state;
	report.symbolizer = NULL;
	add_stack(200, STACK_UNMAPPED, 0x100, 0xfffff000);
	alloc("malloc", 0x1000, 1, 200);
	write_report(report_text);
	has("        in prog+0x100\n        at 0x1003ff000 in no file\n        (cut here: unmapped)\n");
	write_report(report_json);
	has("\n{\"offset\":\"0x1003ff000\"}");
}

/* The chain below the stack of the caller has few lines, and names from the target are escaped. */
static void holders_are_shown(void **state)
{
	struct why_step steps[] = { { 0x9000, 64, 0, 1, WHY_NO_ROW },
				    { 0x9100, 32, 0, 3, 0 },
				    { 0x9200, 32, 0, 2, 0 },
				    { 0x1000, 100, 8, 1, 0 } };
	char path[] = "/tmp/\033[2Jx";
	struct leak_row rows[1] = { 0 };
	struct leak_why why = { .verdict = SCAN_REACHABLE,
				.addr = 0x1000,
				.word_size = 8,
				.root = ROOT_MEMORY,
				.root_addr = 0x7f0012345678,
				.root_path = path,
				.steps = steps,
				.nr_steps = 4 };
	struct leaks leaks = { .has_verdict = true, .rows = rows, .nr_rows = 1, .whys = &why, .nr_whys = 1 };

	(void)state;
	add_stack(2, STACK_COMPLETE, 0x100, 0x200, 0x230);
	alloc("malloc", 0x1000, 100, 2);
	process.leaks = &leaks;
	write_report(report_text);
	has("one of them is held by memory at 0x7f0012345678 in \\x1b[2Jx\n"
	    "          -> 64 B\n"
	    "          -> (4 more) -> 32 B from make_node < insert\n"
	    "          -> 100 B from make_node < insert (0x1000), by a pointer to its byte 8\n");
	assert_null(strchr(text, '\033'));
	leaks.asked = &why;
	why.verdict = SCAN_DEFINITE;
	why.root = ROOT_NONE;
	write_report(report_text);
	has("\n0x1000 is in a block of 100 B, definite: held by nothing any more\n");
	why.nr_steps = 0;
	write_report(report_text);
	has("\n0x1000 is in no live block that heaptap saw allocated\n");
}

static void errors_are_returned(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	fill();
	assert_int_equal(report_text(full, &report), -ENOSPC);
	assert_int_equal(report_json(full, &report), -ENOSPC);
	fclose(full);
	symbolize_err = -ENOMEM;
	full = fopen("/dev/null", "w");
	assert_non_null(full);
	assert_int_equal(report_text(full, &report), -ENOMEM);
	assert_int_equal(report_json(full, &report), -ENOMEM);
	fclose(full);
}

static void formats_by_ending(void **state)
{
	(void)state;
	assert_ptr_equal(report_format_find("x.json")->write, report_json);
	assert_ptr_equal(report_format_find("a/b.c.txt")->write, report_text);
	assert_null(report_format_find("x.jso"));
	assert_null(report_format_find(".json"));
	assert_null(report_format_find(""));
}

/* The format of an ending is the one that has no longer ending of another format in it. */
static void formats_by_name(void **state)
{
	char name[64];

	(void)state;
	for (const struct report_format *f = report_formats; f->name; f++) {
		assert_ptr_equal(report_format_named(f->name), f);
		snprintf(name, sizeof(name), "x%s", f->ending);
		assert_ptr_equal(report_format_find(name), f);
		assert_true(*f->help && f->write);
	}
	assert_null(report_format_named("list"));
	assert_null(report_format_named(""));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(json_numbers),
		TEST(growth_of_last_hour),
		TEST(growth_that_can_be_read),
		TEST(growth_within_noise),
		TEST(callers),
		TEST(json_stacks),
		TEST(hostile_names_are_escaped),
		TEST(text_head),
		TEST(text_callers),
		TEST(text_folds_what_is_common),
		TEST(text_says_where_stacks_were_cut),
		TEST(text_losses),
		TEST(pending_blocks_are_said),
		TEST(nothing_live),
		TEST(top_leaves_a_rest),
		TEST(sort_keys),
		TEST(average_is_no_integer),
		TEST(filter_by_size),
		TEST(fate_of_the_target),
		TEST(several_processes),
		TEST(many_processes),
		TEST(color_only_when_asked),
		TEST(stale_files_are_said),
		TEST(unread_files_are_said),
		TEST(places_without_names),
		TEST(holders_are_shown),
		TEST(errors_are_returned),
		TEST(formats_by_ending),
		TEST(formats_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
