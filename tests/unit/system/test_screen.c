/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The screen of heaptap system at any size, with hostile names, and its keys. */
#include "user/system/screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "user/system/answer.h"
#include "user/system/system.h"
#include "user/system/watch.h"
#include "user/top/top_state.h"

enum { NR = 30 };

/* Processes of PIDs 100 to 129; the first one needs most. */
static struct watched list[NR];
static struct system_state state;
static struct top_screen lines;

static int setup(void **unused)
{
	(void)unused;
	memset(list, 0, sizeof(list));
	memset(&state, 0, sizeof(state));
	for (size_t i = 0; i < NR; i++) {
		list[i].pid = 100 + (pid_t)i;
		list[i].anonymous = (u64)(NR - i) << 20;
		snprintf(list[i].comm, sizeof(list[i].comm), "name-%zu", i);
	}
	state.watch.list = list;
	state.watch.nr = NR;
	return 0;
}

static bool has(const char *text)
{
	for (u32 i = 0; i < lines.nr; i++)
		if (strstr(lines.lines[i].text, text))
			return true;
	return false;
}

static void draw(struct screen *sc)
{
	assert_int_equal(screen_draw(sc, &state, &lines), 0);
}

static void any_size(void **unused)
{
	(void)unused;
	for (u32 columns = 1; columns < 200; columns += 7)
		for (u32 rows = 1; rows < 60; rows++) {
			struct screen sc = { .columns = columns, .lines = rows };

			draw(&sc);
			assert_true(lines.nr <= rows + 1);
			for (u32 i = 0; i < lines.nr; i++)
				assert_true(lines.lines[i].columns <= columns);
		}
}

static void nothing_to_show(void **unused)
{
	struct screen sc = { .columns = 80, .lines = 24 };

	(void)unused;
	state.watch.nr = 0;
	draw(&sc);
	assert_true(has("0 processes"));
	assert_int_equal(screen_key(&sc, &state, TOP_KEY_DOWN), SCREEN_NOTHING);
}

static void growers_come_first(void **unused)
{
	struct screen sc = { .columns = 120, .lines = 24 };

	(void)unused;
	list[29].state = WATCHED_GROWS;
	list[29].line.bytes_per_s = 1 << 20;
	draw(&sc);
	assert_non_null(strstr(lines.lines[2].text, "name-29"));
	assert_non_null(strstr(lines.lines[2].text, "60.0 MiB/min"));
	assert_non_null(strstr(lines.lines[3].text, "name-0"));
	assert_true(has("1 grows"));
}

/* At 80 columns the function is seen, before what is said of it. */
static void a_row_begins_with_the_function(void **unused)
{
	struct screen sc = { .columns = 80, .lines = 24 };
	struct zoom_answer a = { .pid = 100, .kind = ANSWER_HELD, .bytes = 7 << 20, .blocks = 2000 };

	(void)unused;
	strcpy(a.where, "SessionStore::remember (store.cc:6) < main");
	state.zooms.answers = &a;
	state.zooms.nr_answers = 1;
	draw(&sc);
	assert_non_null(strstr(lines.lines[2].text, "SessionStore::remember"));
	sc.columns = 160;
	draw(&sc);
	assert_true(has("SessionStore::remember (store.cc:6)  holds 7.00 MiB in "));
}

static void the_selection_scrolls_and_stays(void **unused)
{
	struct screen sc = { .columns = 100, .lines = 20 };

	(void)unused;
	draw(&sc);
	assert_true(has("(pid 100)"));
	for (int i = 0; i < 15; i++)
		assert_int_equal(screen_key(&sc, &state, TOP_KEY_DOWN), SCREEN_DRAW);
	draw(&sc);
	assert_true(has("(pid 115)"));
	/* The order changes: the selection stays with its process. */
	list[15].anonymous = 1ULL << 40;
	draw(&sc);
	assert_true(has("(pid 115)"));
	screen_key(&sc, &state, TOP_KEY_END);
	draw(&sc);
	assert_true(has("(pid 129)"));
	/* The process has gone. */
	state.watch.nr = 20;
	draw(&sc);
	assert_true(has("(pid 115)"));
	screen_key(&sc, &state, TOP_KEY_HOME);
	draw(&sc);
	assert_true(has("(pid 115)"));
}

static void hostile_text(void **unused)
{
	struct screen sc = { .columns = 100, .lines = 24 };

	(void)unused;
	strcpy(list[0].comm, "\033[2J\007%s\n");
	strcpy(list[0].container.cgroup, "/\033]0;title\007/%n");
	screen_say(&sc, LOG_WARN, "\033[31m%s");
	draw(&sc);
	for (u32 i = 0; i < lines.nr; i++)
		assert_null(strpbrk(lines.lines[i].text, "\033\007\n"));
}

static void keys(void **unused)
{
	struct screen sc = { .columns = 100, .lines = 24 };

	(void)unused;
	assert_int_equal(screen_key(&sc, &state, 'q'), SCREEN_QUIT);
	assert_int_equal(screen_key(&sc, &state, 3), SCREEN_QUIT);
	assert_int_equal(screen_key(&sc, &state, 's'), SCREEN_REPORT);
	assert_int_equal(screen_key(&sc, &state, 'x'), SCREEN_NOTHING);
	assert_int_equal(screen_key(&sc, &state, TOP_KEY_RESIZE), SCREEN_DRAW);
	assert_int_equal(screen_key(&sc, &state, 26), SCREEN_DRAW);
	draw(&sc);
	assert_true(has("q leaves"));
}

static void messages_are_a_few(void **unused)
{
	struct screen sc = { .columns = 100, .lines = 24 };
	char text[32];

	(void)unused;
	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "message %d.", i);
		screen_say(&sc, LOG_INFO, text);
	}
	draw(&sc);
	assert_true(has("message 19.") && has("message 14.") && !has("message 13."));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(any_size, setup),
		cmocka_unit_test_setup(nothing_to_show, setup),
		cmocka_unit_test_setup(growers_come_first, setup),
		cmocka_unit_test_setup(a_row_begins_with_the_function, setup),
		cmocka_unit_test_setup(the_selection_scrolls_and_stays, setup),
		cmocka_unit_test_setup(hostile_text, setup),
		cmocka_unit_test_setup(keys, setup),
		cmocka_unit_test_setup(messages_are_a_few, setup),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	top_screen_fini(&lines);
	return failed;
}
