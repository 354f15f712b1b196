/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop of heaptap system. */
#include "user/system/system.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/flush.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/metrics/metrics.h"
#include "user/metrics/push.h"
#include "user/report/output.h"
#include "user/session/control.h"
#include "user/session/session_live.h"
#include "user/lib/privileges.h"
#include "user/system/rows.h"
#include "user/system/screen.h"
#include "user/system/system_metrics.h"
#include "user/system/zoom_price.h"
#include "user/top/top_view.h"

/* Lines and keys of the terminal, and messages that come meanwhile. */

enum { MAX_EMPTY_INPUTS = 100 };

struct screen_live {
	struct top_view *view; /* owned */
	struct screen screen;
	struct top_screen lines;
	pthread_mutex_t lock; /* of messages: reports are made in another thread */
	u32 nr_empty_inputs;  /* in a row: a terminal that has gone is always ready */
};

static void screen_live_take_message(void *ctx, enum log_level level, const char *line)
{
	struct screen_live *live = ctx;

	pthread_mutex_lock(&live->lock);
	screen_say(&live->screen, level, line);
	pthread_mutex_unlock(&live->lock);
}

/* Are standard input and output a terminal that can have a screen? */
static bool screen_is_possible(void)
{
	const char *term = getenv("TERM");

	return top_view_is_built && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term;
}

/* Take the terminal, and all messages from now on. *@out is owned by the caller. 0; -EOPNOTSUPP; or -ENOMEM. */
static int screen_live_open(struct screen_live **out, const struct output_options *look, struct control *c)
{
	auto_free struct screen_live *live = calloc(1, sizeof(*live));
	int err = live ? top_view_open(&live->view, output_look(look, stdout).color) : -ENOMEM;

	if (err)
		return err;
	pthread_mutex_init(&live->lock, NULL);
	log_divert(screen_live_take_message, live);
	control_watch(c, STDIN_FILENO);
	*out = take_ptr(live);
	return 0;
}

/* Give the terminal back, and print the warnings that were on it. NULL is fine. */
static void screen_live_close(struct screen_live *live, struct control *c)
{
	if (!live)
		return;
	control_watch(c, -1);
	log_divert(NULL, NULL);
	top_view_close(live->view);
	for (u32 i = 0; i < SCREEN_MESSAGES; i++)
		if (live->screen.messages[i].level <= LOG_WARN && live->screen.messages[i].text[0])
			log_line(live->screen.messages[i].level, "%s", live->screen.messages[i].text);
	top_screen_fini(&live->lines);
	pthread_mutex_destroy(&live->lock);
	free(live);
}

/* Take the keys that were typed. @is_ready: the terminal has said that there are some. */
static enum screen_action screen_live_keys(struct screen_live *live, const struct system_state *s,
					   bool is_ready)
{
	enum screen_action most = SCREEN_NOTHING;
	bool is_any = false;
	int key;

	while (most != SCREEN_QUIT && (key = top_view_key(live->view))) {
		enum screen_action action = screen_key(&live->screen, s, key);

		is_any = true;
		most = action > most ? action : most;
	}
	live->nr_empty_inputs = is_ready && !is_any ? live->nr_empty_inputs + 1 : 0;
	return live->nr_empty_inputs > MAX_EMPTY_INPUTS ? SCREEN_QUIT : most;
}

static void screen_live_draw(struct screen_live *live, const struct system_state *s)
{
	int err;

	top_view_size(live->view, &live->screen.columns, &live->screen.lines);
	pthread_mutex_lock(&live->lock);
	err = screen_draw(&live->screen, s, &live->lines);
	pthread_mutex_unlock(&live->lock);
	if (!err)
		top_view_draw(live->view, &live->lines);
}

enum { POLL_MS = 50 };

static const u64 look_every_ns = 1000000000;

/* One run. */
struct system_run {
	struct system_state state;
	struct control *control;
	struct screen_live *screen; /* owned; NULL = rows */
	struct metrics *metrics;    /* owned; NULL = none */
	struct push *push;	    /* owned; NULL = none */
	u64 next_look_ns, next_rows_ns;
	u64 last_look_ns, last_cpu_ns;
	bool is_over, is_unread;
};

static void measure_own_cpu(struct system_run *r)
{
	u64 now_ns = clock_now_ns(), cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (r->last_look_ns && now_ns > r->last_look_ns)
		r->state.cpu_permyriad =
			(u32)((double)(cpu_ns - r->last_cpu_ns) * 10000 / (double)(now_ns - r->last_look_ns));
	r->last_look_ns = now_ns;
	r->last_cpu_ns = cpu_ns;
}

/* False: nobody reads rows any more. */
static bool system_print_rows(struct system_run *r)
{
	const struct system_options *o = r->state.options;
	int err = o->wants_json ? rows_write_json(stdout, &r->state, o->top)
				: rows_write(stdout, &r->state, o->top);

	if (!err)
		err = flush_stream(stdout);
	if (err && err != -EPIPE)
		error("system: rows: %s", strerror(-err));
	return err != -EPIPE;
}

static void system_look(struct system_run *r)
{
	if (watch_look(&r->state.watch))
		warn("system: not enough memory: some processes are not watched");
	zooms_decide(&r->state.zooms, &r->state.watch);
	everything_look(&r->state.everything, &r->state.watch);
	dumps_look(&r->state.dumps, &r->state.watch, &r->state.zooms);
	measure_own_cpu(r);
	r->next_look_ns = r->state.watch.now_ns + look_every_ns;
}

static int timeout_ms(const struct system_run *r)
{
	u64 now_ns = clock_now_ns();
	int until_look = now_ns >= r->next_look_ns ? 0 : (int)((r->next_look_ns - now_ns + 999999) / 1000000);

	/* Samples come seldom, and wake heaptap where they do not. */
	bool has_many = r->state.everything.session && !r->state.everything.options.source.sample_bytes;

	return (r->state.zooms.nr || has_many) && until_look > POLL_MS ? POLL_MS : until_look;
}

/* SIGUSR1, or a key. */
static void report_now(struct system_run *r)
{
	dumps_write_all(&r->state.dumps, &r->state.zooms);
	if (!r->screen && !system_print_rows(r))
		r->is_over = r->is_unread = true;
}

static void system_take_keys(struct system_run *r, bool is_ready)
{
	enum screen_action action = screen_live_keys(r->screen, &r->state, is_ready);

	if (action == SCREEN_QUIT)
		r->is_over = true;
	if (action == SCREEN_REPORT)
		report_now(r);
	if (action != SCREEN_NOTHING)
		screen_live_draw(r->screen, &r->state);
}

/* Each second. */
static void system_go_on(struct system_run *r)
{
	system_look(r);
	if (r->screen)
		screen_live_draw(r->screen, &r->state);
	if (r->state.watch.now_ns < r->next_rows_ns)
		return;
	r->next_rows_ns = r->state.watch.now_ns + r->state.options->interval_ns;
	if (r->state.options->dumps_at_interval)
		dumps_write_all(&r->state.dumps, &r->state.zooms);
	if (!r->screen && !system_print_rows(r))
		r->is_over = r->is_unread = true;
}

static void system_go_round(struct system_run *r)
{
	int sig;
	enum control_event event = control_wait(r->control, r->state.zooms.epoll, timeout_ms(r), &sig);

	if (event == CONTROL_STOP)
		r->is_over = true;
	else if (event == CONTROL_REPORT)
		report_now(r);
	if (r->screen)
		system_take_keys(r, event == CONTROL_INPUT);
	if (r->is_over)
		return;
	zooms_poll(&r->state.zooms);
	zooms_limit(&r->state.zooms, &r->state.watch, clock_now_ns());
	everything_poll(&r->state.everything);
	system_metrics_round(r->metrics, r->push, &r->state);
	if (clock_now_ns() >= r->next_look_ns)
		system_go_on(r);
}

/* The last verdicts, and the report on the whole run. */
static void system_finish(struct system_run *r)
{
	int err;

	screen_live_close(r->screen, r->control);
	control_finish(r->control);
	system_metrics_end(r->push, &r->state);
	zooms_end(&r->state.zooms, &r->state.watch);
	if (everything_end(&r->state.everything, &r->state.watch,
			   r->state.options->dump.output->nr_names ? r->state.dumps.outs : NULL))
		r->state.dumps.has_failed = true;
	if (r->is_unread)
		return;
	err = r->state.options->wants_json ? rows_write_json(stdout, &r->state, r->state.options->top)
					   : rows_write_end(stdout, &r->state);
	if (err)
		error("system: report: %s", strerror(-err));
}

/* Somebody who asks must not wait for the next look. */
static void watch_metrics(struct system_run *r)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (metrics_fd(r->metrics) >= 0 &&
	    epoll_ctl(r->state.zooms.epoll, EPOLL_CTL_ADD, metrics_fd(r->metrics), &event))
		debug("system: epoll: %s", strerror(errno));
}

static int system_begin(struct system_run *r, const struct system_options *o)
{
	bool has_screen = !o->wants_json && screen_is_possible();
	int err = dumps_init(&r->state.dumps, &o->dump, !o->wants_json && !has_screen);

	if (err)
		return err == -ENOMEM ? err : -EINVAL;
	err = watch_init(&r->state.watch, &o->choice, o->max_procs);
	if (err)
		return err;
	r->next_rows_ns = clock_now_ns() + o->interval_ns;
	r->state.watch.wants_containers = o->metrics;
	r->state.watch.own_pid = getpid();
	if (o->metrics)
		err = metrics_open(&r->metrics, o->metrics);
	if (!err && o->push)
		err = push_open(&r->push, o->push, "heaptap");
	if (err)
		return err;
	err = zooms_init(&r->state.zooms, &o->zoom);
	r->state.zooms.control = r->control;
	r->state.zooms.at_end = dumps_write_last;
	r->state.zooms.end_ctx = &r->state.dumps;
	if (!err && (o->wants_everything || o->samples_growth))
		err = everything_init(&r->state.everything, &r->state.zooms, &r->state.watch, o->max_procs,
				      o->samples_growth);
	r->state.dumps.all = r->state.everything.session;
	r->state.dumps.awaits_verdicts = o->samples_growth;
	if (!err)
		watch_metrics(r);
	if (err || !has_screen)
		return err;
	/* A terminal that cannot place text gets rows. */
	err = screen_live_open(&r->screen, o->dump.output, r->control);
	return err == -ENOMEM ? err : 0;
}

int system_run(const struct system_options *o, struct control *c)
{
	struct system_run *r = calloc(1, sizeof(*r));
	int status = STATUS_DONE, err = -ENOMEM;

	if (r) {
		r->state.options = o;
		r->state.start_ns = clock_now_ns();
		r->control = c;
		err = system_begin(r, o);
		/* The kernel tells of new processes by a socket that needs a further capability when it is made. */
		privileges_drop(PRIVILEGES_TRACING, 0);
	}
	if (err == -EINVAL)
		status = STATUS_USAGE;
	else if (err) {
		error("system: %s", strerror(-err));
		status = STATUS_IMPOSSIBLE;
	}
	if (!err) {
		control_guard(c, "system");
		if (r->state.everything.session)
			session_guard(r->state.everything.session, c);
		control_begin(c, 0);
		control_start_clocks(c);
	}
	while (!err && !r->is_over)
		system_go_round(r);
	if (!err) {
		system_finish(r);
		if (r->state.dumps.has_failed)
			status = STATUS_UNTRUSTED;
	}
	if (r) {
		dumps_fini(&r->state.dumps);
		everything_fini(&r->state.everything);
		zooms_fini(&r->state.zooms);
		watch_fini(&r->state.watch);
		metrics_close(r->metrics);
		push_free(r->push);
	}
	free(r);
	return status;
}
