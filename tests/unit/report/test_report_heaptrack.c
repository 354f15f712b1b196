/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data files for heaptrack: all events if the heap has a tape, else the live blocks; text is escaped. */
#include "tests/unit/report/hostile_write.h"
#include "user/heap/tape.h"
#include "user/report/format.h"

static const char *plain;

static void write_plain(void)
{
	hostile_write(report_heaptrack);
	plain = hostile.text;
}

static void has(const char *part)
{
	if (!strstr(plain, part))
		fail_msg("no \"%s\" in:\n%.3000s", part, plain);
}

static size_t lines(char kind)
{
	size_t nr = 0;

	for (const char *s = plain; (s = strchr(s, '\n')) && s[1]; s++)
		nr += s[1] == kind;
	return nr;
}

static void text_is_escaped(void **state)
{
	(void)state;
	write_plain();
	for (const u8 *s = (const u8 *)plain; *s; s++)
		if ((*s < 0x20 && *s != '\n') || *s >= 0x7f)
			fail_msg("byte 0x%02x behind \"%.40s\"", *s, s - 40);
	assert_memory_equal(plain, "v 10400 2\nX /bin/</x>]]>", 24);
	has("\ns </x>]]>\"'&\\x0a\\x0d%0A::,%\\\\\\x09\\x1b[2J\\xff\\xc0\\x80\\xe2\\x80\\xae\n");
	has("\ns /src/]]>-->\\x0a::error::\"x,y:z%.c\n");
	has("\ns [no stack taken]\n");
	assert_non_null(strstr(plain, "\nA\n"));
	for (const char *s = plain; (s = strchr(s, '\n')) && s[1]; s++)
		assert_non_null(strchr("vXAsita+-c", s[1]));
	hostile.target.is_started = true;
	write_plain();
	assert_null(strstr(plain, "\nA\n"));
}

/* Innermost first: a place with the functions that are inlined there. */
static void places_have_their_inlined_functions(void **state)
{
	(void)state;
	write_plain();
	/* Strings: 1 program, 2 bare, 3 inlined, 4 a.h, 5 caller, 6 a.c, ... */
	has("\ni 400 1 2 0 0\nt 1 0\ns inlined\ns /src/a.h\ns caller\ns /src/a.c\n"
	    "i 100 1 3 4 7 5 6 46\nt 2 1\n");
	/* A place without a name has only its address and module. */
	has("\ni 500 1\nt 6 1\n");
}

static void without_a_tape_live_blocks_are_shown(void **state)
{
	(void)state;
	write_plain();
	assert_int_equal(lines('+'), heap_totals(hostile.heap).live_blocks);
	assert_int_equal(lines('-'), 0);
}

static void with_a_tape_events_are_shown(void **state)
{
	(void)state;
	assert_int_equal(heap_keep_tape(hostile.heap), 0);
	hostile_now_ns = 10500000000;
	hostile_event(EVENT_ALLOC, "malloc", 0x50000, 16, 101);
	hostile_event(EVENT_FREE, "free", 0x50000, 0, STACK_NONE);
	hostile_now_ns = 10505000000; /* less than a step of the clock later */
	hostile_event(EVENT_ALLOC, "malloc", 0x50000, 32, 101);
	hostile_now_ns = 11000000000;
	hostile_event(EVENT_ALLOC, "malloc", 0x60000, 16, 101);
	write_plain();
	/* Tracing began at 10 s. The row of malloc at stack 101 is new: calloc has another one, of the same trace. */
	has("\nc 1f4\na 10 2\n+ 0\n- 0\na 20 2\n+ 1\nc 3e8\n+ 0\nc 4e20\n");
}

static void processes_have_a_root_each(void **state)
{
	struct target other = hostile.target;
	struct report_process both[2] = { hostile.process, hostile.process };

	(void)state;
	other.pid = 77;
	both[1].target = &other;
	hostile.report.processes = both;
	hostile.report.nr_processes = 2;
	write_plain();
	has("\ns </c>\"\\x0a\\xff (pid 1234)\n");
	has("\ns </c>\"\\x0a\\xff (pid 77)\n");
	assert_int_equal(lines('+'), 2 * heap_totals(hostile.heap).live_blocks);
}

static size_t feed_events(struct heap *heap, u64 addr, int nr)
{
	for (int i = 0; i < nr; i++) {
		const struct heap_event ev = { .h = { .kind = i & 1 ? EVENT_FREE : EVENT_ALLOC,
						      .fn = alloc_fn_find(NULL, i & 1 ? "free" : "malloc"),
						      .pid = 1,
						      .tid = 1 },
					       .time_ns = 10000000000 + (u64)i * 30000000 + addr,
					       .addr = addr,
					       .size = 1 + addr,
					       .stack = STACK_NONE };

		assert_int_equal(heap_event(heap, &ev), 0);
	}
	return (size_t)nr;
}

/* The kinds of each tape have numbers of their own; the file has one order of them, by time. */
static void tapes_are_merged(void **state)
{
	struct report_process both[2] = { hostile.process, hostile.process };
	struct heap *heaps[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(heap_new(&heaps[i], NULL), 0);
		assert_int_equal(heap_keep_tape(heaps[i]), 0);
		feed_events(heaps[i], i ? 10000000 : 20, 4);
		both[i].heap = heaps[i];
	}
	hostile.report.processes = both;
	hostile.report.nr_processes = 2;
	write_plain();
	has("\na 15 2\n+ 0\nc a\na 989681 2\n+ 1\nc 1e\n- 0\nc 28\n- 1\nc 3c\n+ 0\nc 46\n+ 1\n");
	heap_free(heaps[0]);
	heap_free(heaps[1]);
}

static void errors_are_returned(void **state)
{
	(void)state;
	hostile_errors(report_heaptrack);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, hostile_begin, hostile_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(text_is_escaped),
		TEST(places_have_their_inlined_functions),
		TEST(without_a_tape_live_blocks_are_shown),
		TEST(with_a_tape_events_are_shown),
		TEST(processes_have_a_root_each),
		TEST(tapes_are_merged),
		TEST(errors_are_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
