/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of an answer: growth that is in no block is said, and that of blocks is not taken for it. */
#include "user/system/answer.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/unit/books.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_replay.h"

enum { MIB = 1 << 20 };

static const char EVENTS[] = "process 100 one /one\nalloc 100 1 malloc 0x1000 1000 0\n"
			     "alloc 100 1 malloc 0x2000 1000 0\n";

static const char *words(const struct zoom_answer *f)
{
	static char text[640];

	answer_describe(f, text, sizeof(text));
	return text;
}

static void growth_in_no_block(void **state)
{
	struct zoom_answer f = { .kind = ANSWER_STILL, .time_ns = 1, .needed = 10 * MIB };

	(void)state;
	f.held_needs = 10 * MIB + MIB / 2;
	assert_int_equal(answer_elsewhere(&f), 0);
	f.held_needs = 22 * MIB;
	assert_int_equal(answer_elsewhere(&f), 12 * MIB);
	assert_string_equal(words(&f),
			    "nothing that it allocated since is live; 12.0 MiB of its growth since is in "
			    "no block: it maps memory itself");
	/* Blocks of which no sample was taken may be all of it. */
	f.distance = 1 << 20;
	assert_string_equal(words(&f), "no sampled block is live");
	f.distance = 0;
	/* Most of it is in blocks. */
	f.held = 2 * MIB;
	assert_int_equal(answer_elsewhere(&f), 10 * MIB);
	f.held = 7 * MIB;
	assert_int_equal(answer_elsewhere(&f), 0);
	f.held = 20 * MIB;
	assert_int_equal(answer_elsewhere(&f), 0);
	assert_string_equal(words(&f), "nothing that it allocated since is live");
	/* Calls between windows are not seen. */
	f.held = 0;
	f.nr_windows = 2;
	assert_int_equal(answer_elsewhere(&f), 0);
	/* A process that shrinks. */
	f.nr_windows = 0;
	f.held_needs = 5 * MIB;
	assert_int_equal(answer_elsewhere(&f), 0);
}

/* A cache that is larger hides no leak. */
static void leaks_beside_what_is_held(void **state)
{
	struct zoom_answer f = { .kind = ANSWER_HELD, .bytes = 4 * MIB, .blocks = 99, .where = "remember" };

	(void)state;
	assert_string_equal(words(&f), "holds 4.00 MiB in 99 blocks, still reachable: remember");
	f.sums.of[SCAN_DEFINITE] = (struct scan_sum){ 7, 700 };
	f.sums.of[SCAN_INDIRECT] = (struct scan_sum){ 2, 50 };
	assert_string_equal(words(&f),
			    "holds 4.00 MiB in 99 blocks, still reachable: remember; leaks 700 B in 7 "
			    "blocks, and with them 50 B in 2, too");
	f.kind = ANSWER_LEAKS;
	assert_string_equal(words(&f), "leaks 4.00 MiB in 99 blocks: remember");
}

/* The growth since the last answer decides who is named. The bytes and the blocks are all that this caller holds. */
static void bytes_and_blocks_are_of_one_moment(void **state)
{
	const struct session_options options = { .command = "system" };
	struct zoom_answer f = { .pid = 100 };
	struct session *s;
	char file[] = "/tmp/heaptap-answer-XXXXXX";
	int fd = mkstemp(file);

	(void)state;
	assert_true(fd >= 0);
	assert_true(write(fd, EVENTS, sizeof(EVENTS) - 1) == sizeof(EVENTS) - 1);
	close(fd);
	assert_int_equal(session_new_replay(&s, &options, NULL, file), 0);
	unlink(file);
	assert_int_equal(answer_look(&f, s, false), 0);
	assert_int_equal(f.kind, ANSWER_GROWS);
	assert_true(f.bytes == 2000 && f.blocks == 2);
	for (taddr_t addr = 0x3000; addr < 0x6000; addr += 0x1000) {
		struct heap_event ev = event(EVENT_ALLOC, alloc_fn_find(NULL, "malloc"));

		ev.addr = addr;
		ev.size = 1000;
		ev.stack = 0;
		assert_int_equal(heap_event(s->processes[0]->heap, &ev), 0);
	}
	assert_int_equal(answer_look(&f, s, false), 0);
	assert_true(f.grown == 3000);
	assert_true(f.bytes == 5000 && f.blocks == 5);
	session_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_in_no_block),
		cmocka_unit_test(leaks_beside_what_is_held),
		cmocka_unit_test(bytes_and_blocks_are_of_one_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
