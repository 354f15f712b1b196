/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of a console to a session: reports that use nothing up, one process of several, a reset. */
#include "user/session/session_live.h"
#include "user/session/session_replay.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/lib/log.h"
#include "user/report/report.h"
#include "user/report/report_parts.h"
#include "user/session/session.h"

static const char EVENTS[] = "process 100 one /one started\nprocess 200 two /two\n"
			     "alloc 100 1 malloc 0x1000 100 0\nalloc 100 1 malloc 0x2000 200 0\n"
			     "alloc 200 2 malloc 0x1000 50 0\nfree 100 1 free 0x1000 0\n";

struct world {
	struct session_options options;
	struct session *session;
	char file[64];
};

/* Contents of a report. */
struct seen {
	size_t nr_processes;
	u64 live_bytes, live_blocks, unknown_frees;
};

static int look(void *ctx, const struct report *r)
{
	struct seen *seen = ctx;

	*seen = (struct seen){ .nr_processes = r->nr_processes };
	for (size_t i = 0; i < r->nr_processes; i++) {
		struct heap_totals t = heap_totals(r->processes[i].heap);

		seen->live_bytes += t.live_bytes;
		seen->live_blocks += t.live_blocks;
		seen->unknown_frees += t.unknown_frees;
	}
	return 0;
}

static struct seen see(struct world *w, pid_t pid)
{
	struct seen seen;

	assert_int_equal(session_show(w->session, pid, look, &seen), 0);
	return seen;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int fd;

	*state = w;
	strcpy(w->file, "/tmp/heaptap-live-XXXXXX");
	fd = mkstemp(w->file);
	if (fd < 0 || write(fd, EVENTS, sizeof(EVENTS) - 1) != sizeof(EVENTS) - 1 || close(fd))
		return -1;
	log_set_level(LOG_ERROR);
	w->options.command = "report";
	return session_new_replay(&w->session, &w->options, NULL, w->file);
}

static int teardown(void **state)
{
	struct world *w = *state;

	session_free(w->session);
	unlink(w->file);
	free(w);
	return 0;
}

static void test_show(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(see(w, 0).nr_processes, 2);
		assert_int_equal(see(w, 0).live_bytes, 250);
		assert_int_equal(see(w, 100).nr_processes, 1);
		assert_int_equal(see(w, 100).live_bytes, 200);
		assert_int_equal(see(w, 200).live_blocks, 1);
	}
	assert_int_equal(see(w, 300).nr_processes, 0);
	assert_true(session_knows(w->session, 100));
	assert_false(session_knows(w->session, 300));
	assert_int_equal(session_events(w->session), 4);
}

static int give_up(void *ctx, const struct report *r)
{
	(void)ctx;
	(void)r;
	return -EIO;
}

static void test_error(void **state)
{
	struct world *w = *state;

	assert_int_equal(session_show(w->session, 0, give_up, NULL), -EIO);
	assert_int_equal(see(w, 0).nr_processes, 2);
}

static void test_reset(void **state)
{
	struct world *w = *state;

	assert_int_equal(session_reset(w->session, 0), 0);
	assert_int_equal(see(w, 0).nr_processes, 2);
	assert_int_equal(see(w, 0).live_blocks, 0);
	assert_int_equal(session_events(w->session), 0);
	/* Twice is as once. */
	assert_int_equal(session_reset(w->session, 0), 0);
	assert_int_equal(see(w, 0).live_blocks, 0);
}

static void test_nothing_recorded(void **state)
{
	struct world *w = *state;

	assert_false(session_is_recording(w->session));
	assert_int_equal(session_record_end(w->session), -ENOENT);
	assert_int_equal(session_set_marker(w->session, "here"), -ENOTCONN);
}

/* From here on, with what is live; and no reset meanwhile. */
static void test_record(void **state)
{
	struct world *w = *state;
	struct session *replayed;
	struct seen seen;
	char file[80];

	snprintf(file, sizeof(file), "%s.heaptap", w->file);
	w->options.recorder.path = file;
	assert_int_equal(session_record(w->session), 0);
	assert_true(session_is_recording(w->session));
	assert_int_equal(session_record(w->session), -EBUSY);
	assert_int_equal(session_reset(w->session, 0), -EBUSY);
	assert_int_equal(session_record_end(w->session), 0);
	assert_false(session_is_recording(w->session));
	w->options.recorder.path = NULL;
	assert_int_equal(session_new_replay(&replayed, &w->options, NULL, file), 0);
	assert_int_equal(session_show(replayed, 0, look, &seen), 0);
	assert_int_equal(seen.nr_processes, 2);
	assert_int_equal(seen.live_bytes, 250);
	session_free(replayed);
	unlink(file);
}

/* Blocks that the filters of a report let through. */
static void test_filter(void **state)
{
	const struct heap_block block = { .size = 100, .time_ns = 1000 };
	struct report r = { .time_ns = 5000 };

	(void)state;
	assert_true(report_has_block(&r, &block));
	r.options.min_size = 100;
	assert_true(report_has_block(&r, &block));
	r.options.min_size = 101;
	assert_false(report_has_block(&r, &block));
	r.options = (struct report_options){ .max_size = 99 };
	assert_false(report_has_block(&r, &block));
	r.options = (struct report_options){ .older_ns = 4000 };
	assert_true(report_has_block(&r, &block));
	r.options.older_ns = 4001;
	assert_false(report_has_block(&r, &block));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_show, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_recorded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_record, setup, teardown),
		cmocka_unit_test(test_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
