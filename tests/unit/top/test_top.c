/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the screen of heaptap top without a terminal: rows of real heaps, keys, lines of every width. */
#include "user/top/top_state.h"

#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/report/report_rows.h"
#include "user/session/session.h"
#include "user/session/session_replay.h"

static const u64 S = 1000000000;

/* Three callers, the second in a file whose name acts on terminals. */
static const char EVENTS[] = "process 100 on\\x1b[2Je /one\n"
			     "map 100 0x1000 0x2000 0x1000 /no/such/prog\n"
			     "map 100 0x5000 0x6000 0x5000 /no/such/e\\x1b[31mvil\\x0a\n"
			     "stack 2 100 complete 0x1101 0x1201\n"
			     "stack 3 100 complete 0x5101 0x1201\n"
			     "stack 4 100 complete 0x1301 0x1301 0x1301 0x1302\n"
			     "alloc 100 1 malloc 0x10000 5000 2\n"
			     "alloc 100 1 malloc 0x20000 300 3\n"
			     "alloc 100 1 malloc 0x21000 300 3\n"
			     "alloc 100 1 calloc 0x30000 40 4\n"
			     "alloc 100 1 calloc 0x31000 40 4\n"
			     "alloc 100 1 calloc 0x32000 40 4\n"
			     "free 100 1 free 0x32000 0\n";

struct world {
	struct session_options options;
	struct session *session;
	struct top_state top;
	struct top_screen screen;
	bool is_tick;
};

static int look_at(void *ctx, const struct report *r)
{
	struct world *w = ctx;
	const struct top_row *row = top_state_row(&w->top);
	const struct target *of = row ? row->of : NULL;
	u32 id = row ? row->row.id : 0;
	struct report sorted = *r;

	sorted.options.sort = w->top.sort;
	sorted.time_ns = 5 * S;
	assert_int_equal(top_rows_take(&w->top.rows, &sorted, w->top.filter, w->is_tick), 0);
	top_head_take(&w->top.head, &sorted, &w->top.meter, w->is_tick);
	top_state_reselect(&w->top, of, id);
	return top_rows_name(&w->top.rows, &sorted, 0, 1000);
}

static void look(struct world *w, bool is_tick)
{
	w->is_tick = is_tick;
	assert_int_equal(session_show(w->session, 0, look_at, w), 0);
}

static void open_list(struct world *w, const char *events)
{
	char file[] = "/tmp/heaptap-top-XXXXXX";
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, events, strlen(events)), strlen(events));
	close(fd);
	assert_int_equal(session_new_replay(&w->session, &w->options, NULL, file), 0);
	unlink(file);
	w->top.sort = report_key_find("live-bytes");
	w->top.columns = 120;
	w->top.lines = 30;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	*state = w;
	setlocale(LC_CTYPE, "C.UTF-8");
	log_set_level(LOG_ERROR);
	w->options.command = "report";
	open_list(w, EVENTS);
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	top_state_fini(&w->top);
	top_screen_fini(&w->screen);
	session_free(w->session);
	free(w);
	return 0;
}

/* The text of line @i of the screen as it is now. */
static const char *line(struct world *w, u32 i)
{
	assert_int_equal(top_state_draw(&w->top, 7 * S, &w->screen), 0);
	return i < w->screen.nr ? w->screen.lines[i].text : "";
}

/* Has any line of the screen @text in it? */
static bool shows(struct world *w, const char *text)
{
	line(w, 0);
	for (u32 i = 0; i < w->screen.nr; i++)
		if (strstr(w->screen.lines[i].text, text))
			return true;
	return false;
}

static void type(struct world *w, const char *text)
{
	for (; *text; text++)
		assert_int_equal(top_state_key(&w->top, *text), TOP_DRAW);
}

static void test_rows(void **state)
{
	struct world *w = *state;

	look(w, true);
	assert_int_equal(w->top.rows.nr, 3);
	assert_int_equal(w->top.rows.list[0].row.row.live_bytes, 5000);
	assert_int_equal(w->top.rows.list[1].row.row.live_blocks, 2);
	assert_int_equal(w->top.rows.list[2].row.row.allocs, 3);
	assert_int_equal(w->top.rows.whole, 5680);
	assert_string_equal(top_rows_names(&w->top.rows, &w->top.rows.list[2]),
			    "prog+0x301 < prog+0x302, by calloc");
	assert_true(shows(w, "  5,000 B  88.0 %          1   +5,000 B          0  prog+0x101"));
	assert_true(shows(w, "5,680 B in 5 blocks"));
	assert_false(shows(w, "definite"));
}

/* Text of the target reaches no line unescaped, and a message cannot bring any in. */
static void test_hostile(void **state)
{
	struct world *w = *state;

	look(w, true);
	strcpy(w->top.message, "\033[2J\n\303\050 \342\200\256");
	assert_true(shows(w, "on\\x1b[2Je (pid 100)"));
	assert_true(shows(w, "e\\x1b[31mvil\\x0a+0x101"));
	for (u32 i = 0; i < w->screen.nr; i++)
		for (const char *c = w->screen.lines[i].text; *c; c++)
			assert_true((u8)*c >= 0x20 && *c != 0x7f);
	assert_true(shows(w, "?[2J??"));
	assert_false(shows(w, "\342\200\256"));
}

/* Every size: no line is wider than the screen, and there are as many as it has. */
static void test_sizes(void **state)
{
	static const char *const keys[] = { "", "?", "\033/evil", "\r\r",
					    "\033s/a/long/name/of/a/file.json" };
	struct world *w = *state;

	look(w, true);
	strcpy(w->top.head.note,
	       "a note about this process that is longer than some of the screens are wide");
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		for (const char *c = keys[k]; *c; c++)
			top_state_key(&w->top, *c);
		for (u32 size = 1; size <= 300; size++) {
			w->top.columns = size;
			w->top.lines = size % 60 + 1;
			top_state_key(&w->top, TOP_KEY_RESIZE);
			line(w, 0);
			assert_true(w->screen.nr >= w->top.lines);
			assert_true(w->screen.nr <= w->top.lines + 1);
			for (u32 i = 0; i < w->screen.nr; i++) {
				assert_true(w->screen.lines[i].columns <= size);
				assert_int_equal(top_columns(w->screen.lines[i].text),
						 w->screen.lines[i].columns);
			}
		}
	}
}

/* 20 columns have the bytes and the begin of the names. */
static void test_narrow(void **state)
{
	struct world *w = *state;

	look(w, true);
	w->top.columns = 20;
	assert_true(shows(w, "  5,000 B prog+0x101"));
	assert_true(shows(w, "5,680 B in 5 blocks"));
	w->top.columns = 300;
	assert_true(shows(w, "prog+0x101 < prog+0x201, by malloc"));
}

static void test_sort(void **state)
{
	struct world *w = *state;

	look(w, true);
	assert_int_equal(top_state_key(&w->top, '>'), TOP_LOOK);
	assert_string_equal(w->top.sort->name, "live-blocks");
	assert_int_equal(top_state_key(&w->top, '<'), TOP_LOOK);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_LEFT), TOP_LOOK);
	assert_null(w->top.sort[1].name);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_RIGHT), TOP_LOOK);
	assert_string_equal(w->top.sort->name, "live-bytes");
	type(w, "ototal-bl");
	assert_true(shows(w, "sort by: total-bl  total-blocks"));
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ENTER), TOP_LOOK);
	look(w, false);
	assert_int_equal(w->top.rows.list[0].row.row.allocs, 3);
	assert_true(shows(w, "TOTAL"));
	type(w, "ononsense");
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ENTER), TOP_DRAW);
	assert_string_equal(w->top.sort->name, "total-blocks");
	assert_true(shows(w, "no such sort key: nonsense"));
	/* A key with a column of its own. */
	w->top.sort = report_key_find("average");
	look(w, false);
	assert_true(shows(w, "300 B  e"));
}

static void test_filter(void **state)
{
	struct world *w = *state;

	look(w, true);
	type(w, "/VILx");
	assert_int_equal(top_state_key(&w->top, TOP_KEY_BACKSPACE), TOP_DRAW);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ENTER), TOP_LOOK);
	look(w, false);
	assert_int_equal(w->top.rows.nr, 1);
	assert_int_equal(w->top.rows.list[0].row.row.live_bytes, 600);
	assert_true(shows(w, "/VIL"));
	/* Escape leaves the filter as it was; Ctrl-U and Enter remove it. */
	type(w, "/zzz");
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ESCAPE), TOP_DRAW);
	assert_string_equal(w->top.filter, "VIL");
	type(w, "/zzz\025");
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ENTER), TOP_LOOK);
	look(w, false);
	assert_int_equal(w->top.rows.nr, 3);
	strcpy(w->top.filter, "nobody");
	look(w, false);
	assert_true(shows(w, "no caller has this in its names"));
	w->top.filter[0] = '\0';
	w->top.sort = report_key_find("mismatched");
	look(w, false);
	assert_int_equal(w->top.rows.nr, 0);
	assert_true(shows(w, "no caller has any: mismatched releases"));
}

/* The first row is selected whoever is first; another one stays selected when the order changes. */
static void test_selection(void **state)
{
	struct world *w = *state;
	u32 second;

	look(w, true);
	assert_int_equal(w->top.selected, 0);
	w->top.sort = report_key_find("live-blocks");
	look(w, false);
	assert_int_equal(w->top.selected, 0);
	w->top.sort = report_key_find("live-bytes");
	look(w, false);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_DOWN), TOP_LOOK);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_DOWN), TOP_LOOK);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_DOWN), TOP_LOOK);
	assert_int_equal(w->top.selected, 2);
	second = top_state_row(&w->top)->row.id;
	w->top.sort = report_key_find("total-blocks");
	look(w, false);
	assert_int_equal(w->top.selected, 0);
	assert_int_equal(top_state_row(&w->top)->row.id, second);
	/* A list that is higher than the screen. */
	w->top.lines = 8;
	assert_int_equal(top_state_room(&w->top), 4);
	w->top.lines = 4;
	assert_int_equal(top_state_key(&w->top, TOP_KEY_END), TOP_LOOK);
	assert_int_equal(top_state_room(&w->top), 1);
	assert_int_equal(w->top.first, 2);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_HOME), TOP_LOOK);
	assert_int_equal(w->top.first, 0);
}

static void test_actions(void **state)
{
	static const struct {
		int key;
		enum top_action action;
	} cases[] = {
		{ 'q', TOP_QUIT }, { 3, TOP_QUIT },	 { 28, TOP_QUIT },
		{ 'l', TOP_SCAN }, { 'w', TOP_WHY },	 { 'b', TOP_BASELINE },
		{ 26, TOP_DRAW },  { 'y', TOP_NOTHING }, { 0x1ff, TOP_NOTHING },
	};
	struct world *w = *state;

	/* Nothing is selected, so nobody holds anything. */
	assert_int_equal(top_state_key(&w->top, 'w'), TOP_NOTHING);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ENTER), TOP_NOTHING);
	look(w, true);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(top_state_key(&w->top, cases[i].key), cases[i].action);
	assert_int_equal(top_state_key(&w->top, ' '), TOP_DRAW);
	assert_true(shows(w, "FROZEN"));
	assert_int_equal(top_state_key(&w->top, ' '), TOP_LOOK);
	assert_false(shows(w, "FROZEN"));
	type(w, "sq.json");
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ENTER), TOP_SAVE);
	assert_string_equal(w->top.answer, "q.json");
	type(w, "s");
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ENTER), TOP_DRAW);
	/* Ctrl-C leaves the prompt first. */
	type(w, "/a\003");
	assert_int_equal(w->top.prompt, TOP_NO_PROMPT);
}

static void test_panes(void **state)
{
	struct world *w = *state;
	char *text = malloc(401);

	look(w, true);
	assert_int_equal(top_state_key(&w->top, '?'), TOP_DRAW);
	assert_true(shows(w, "q, Ctrl-C"));
	assert_int_equal(top_state_key(&w->top, 'q'), TOP_LOOK);
	assert_int_equal(w->top.pane, TOP_NO_PANE);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ENTER), TOP_LOOK);
	assert_int_equal(w->top.pane, TOP_STACK_PANE);
	assert_true(top_state_room(&w->top) >= 3);
	assert_int_equal(top_state_key(&w->top, TOP_KEY_ENTER), TOP_LOOK);
	assert_int_equal(w->top.pane, TOP_NO_PANE);
	/* Scrolling ends with the last line in the last place. */
	for (int i = 0; i < 100; i++)
		sprintf(text + 4 * i, "%03d\n", i);
	top_state_show(&w->top, TOP_TEXT_PANE, text);
	assert_int_equal(top_state_text_lines(&w->top), 100);
	for (int i = 0; i < 40; i++)
		assert_int_equal(top_state_key(&w->top, TOP_KEY_PAGE_DOWN), TOP_DRAW);
	assert_true(shows(w, "099"));
	assert_int_equal(w->top.text_first, 100 - top_state_layout(&w->top).pane);
	for (int i = 0; i < 200; i++)
		assert_int_equal(top_state_key(&w->top, 'k'), TOP_DRAW);
	assert_int_equal(w->top.text_first, 0);
}

static void test_wrap(void **state)
{
	(void)state;
	assert_int_equal(top_wrap("one two three", 20), 13);
	assert_int_equal(top_wrap("one two three", 9), 8);
	assert_int_equal(top_wrap("one two three\nfour", 13), 13);
	assert_int_equal(top_wrap("abcdefghij", 4), 4);
	assert_int_equal(top_wrap("\nx", 4), 0);
	/* A character of two columns where one is left makes progress all the same. */
	assert_int_equal(top_wrap("\344\270\255", 1), 3);
	assert_int_equal(top_columns("a\344\270\255b"), 4);
}

static void test_shorten(void **state)
{
	char text[] = "f at /src/a/long/way/list.c:7 (inlined)\ng at ./b/c/d/e/f/g/h.c:8\nh at /a.c\n"
		      "no path in this line, which is long too\nlook at this, which is no path, but long";

	(void)state;
	top_shorten_paths(text, 20);
	assert_string_equal(text, "f at .../list.c:7 (inlined)\ng at .../h.c:8\nh at /a.c\n"
				  "no path in this line, which is long too\n"
				  "look at this, which is no path, but long");
}

/* Rates are those between two ticks; a look between them changes nothing. */
static void test_rates(void **state)
{
	struct world *w = *state;
	struct top_rows *rows = &w->top.rows;

	look(w, true);
	assert_int_equal(rows->tick_ns, 5 * S);
	/* As if nothing had been seen until 10 ms ago. */
	rows->tick_ns -= S / 100;
	for (size_t i = 0; i < rows->nr_known; i++)
		rows->known[i].allocs = 0;
	look(w, false);
	assert_int_equal(rows->list[0].allocs_per_s, 0);
	look(w, true);
	assert_int_equal(rows->list[0].allocs_per_s, 100);
	assert_int_equal(rows->list[2].allocs_per_s, 300);
	look(w, false);
	assert_int_equal(rows->list[0].allocs_per_s, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_narrow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sort, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
		cmocka_unit_test_setup_teardown(test_selection, setup, teardown),
		cmocka_unit_test_setup_teardown(test_actions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_panes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rates, setup, teardown),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_shorten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
