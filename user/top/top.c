/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop of heaptap top. */
#include "user/top/top.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/remote/connection.h"
#include "user/report/report_parts.h"
#include "user/report/report_rows.h"
#include "user/report/report_why.h"
#include "user/scan/leaks.h"
#include "user/session/code_choice.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/session/session_price.h"
#include "user/target/target.h"
#include "user/top/top_view.h"

/* Messages that come while the screen has the terminal. */

enum { TOP_MESSAGE_BYTES = 256, TOP_MAX_MESSAGES = 64 };

struct top_messages {
	pthread_mutex_t lock; /* reports are made in another thread */
	char last[TOP_MESSAGE_BYTES];
	enum log_level last_level;
	bool is_new;
	bool is_answer; /* messages answer a key: somebody reads them now */
	struct {
		char text[TOP_MESSAGE_BYTES];
		enum log_level level;
	} kept[TOP_MAX_MESSAGES]; /* warnings and errors */
	size_t nr_kept, nr_dropped;
};

static void top_messages_take_line(void *ctx, enum log_level level, const char *line)
{
	struct top_messages *m = ctx;

	pthread_mutex_lock(&m->lock);
	snprintf(m->last, sizeof(m->last), "%s", line);
	m->last_level = level;
	m->is_new = true;
	if (!m->is_answer && level <= LOG_WARN && m->nr_kept < TOP_MAX_MESSAGES) {
		snprintf(m->kept[m->nr_kept].text, sizeof(m->kept->text), "%s", line);
		m->kept[m->nr_kept++].level = level;
	} else if (!m->is_answer && level <= LOG_WARN) {
		m->nr_dropped++;
	}
	pthread_mutex_unlock(&m->lock);
}

/* Take all messages from now on. */
static void top_messages_begin(struct top_messages *m)
{
	*m = (struct top_messages){ .lock = PTHREAD_MUTEX_INITIALIZER };
	log_divert(top_messages_take_line, m);
}

/* Copy the last message, if it is newer than the last call. */
static bool top_messages_take(struct top_messages *m, char *text, size_t size, enum log_level *level)
{
	bool is_new;

	pthread_mutex_lock(&m->lock);
	is_new = m->is_new;
	if (is_new) {
		snprintf(text, size, "%s", m->last);
		*level = m->last_level;
	}
	m->is_new = false;
	pthread_mutex_unlock(&m->lock);
	return is_new;
}

/* Print the warnings and errors that no key caused, and all messages from now on. */
static void top_messages_end(struct top_messages *m)
{
	log_divert(NULL, NULL);
	for (size_t i = 0; i < m->nr_kept; i++)
		log_line(m->kept[i].level, "%s", m->kept[i].text);
	if (m->nr_dropped)
		warn("top: %zu more messages", m->nr_dropped);
}

/*
 * Events may wait for POLL_MS: the screen shows them once a second. Keys, and a ring of events that fills, end the
 * wait.
 */
enum { POLL_MS = 100, NS_PER_MS = 1000000, MAX_EMPTY_INPUTS = 100 };

/* One run of the screen. */
struct top_session {
	struct code_choice choice;
	struct top *top;
	struct top_view *view;
	struct top_messages messages;
	struct top_state state;
	struct top_screen screen;
	u64 next_tick_ns;
	u32 nr_empty_inputs; /* in a row: a terminal that has gone is always ready */
	bool is_over;
};

/* ---- looks at the session ---- */

struct top_look {
	struct top_session *run;
	bool is_tick;
};

/* The memory of the processes that run here. */
static u64 resident_bytes(const struct report *r)
{
	u64 sum = 0;

	for (size_t i = 0; i < r->nr_processes; i++) {
		const struct target *t = r->processes[i].target;
		struct proc_status status;

		if (!r->processes[i].is_replaced && !t->has_exited && !proc_read_status(&status, t->pid))
			sum += status.resident_bytes;
	}
	return sum;
}

static const struct report_process *top_process_of(const struct report *r, const struct top_row *row)
{
	for (size_t i = 0; row && i < r->nr_processes; i++)
		if (r->processes[i].target == row->of)
			return &r->processes[i];
	return NULL;
}

/* Options of the pieces of text in the pane. */
static struct report_options pane_options(const struct top_session *run)
{
	struct report_options o = output_look(&run->top->output, NULL);

	o.width = run->state.columns;
	return o;
}

/* Write the selected caller as the report shows it. */
static int write_caller(struct top_session *run, const struct report *r, FILE *out)
{
	const struct top_row *row = top_state_row(&run->state);
	const struct report_process *p = top_process_of(r, row);
	struct report shown = *r;

	if (!p)
		return 0;
	shown.processes = p;
	shown.nr_processes = 1;
	shown.options = pane_options(run);
	shown.options.sort = report_key_find("total-bytes");
	shown.options.only = row->row.id + 1;
	return report_text_callers(out, &shown);
}

/* Begin @text with its caller, which the report numbers as the first one. */
static void drop_heading(char *text)
{
	char *first = strstr(text, "\n#1 ");

	if (first)
		first += strlen("\n#1");
	else
		first = text;
	first += strspn(first, " \n");
	memmove(text, first, strlen(first) + 1);
}

static int show_stack(struct top_session *run, const struct report *r)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int err = out ? write_caller(run, r, out) : -ENOMEM;

	if (out && fclose(out) && !err)
		err = -ENOMEM;
	if (err) {
		free(text);
		return err;
	}
	drop_heading(text);
	top_shorten_paths(text, run->state.columns);
	top_state_show(&run->state, TOP_STACK_PANE, text);
	return 0;
}

static int top_take_rows(struct top_session *run, const struct report *r, bool is_tick)
{
	struct top_state *t = &run->state;
	const struct top_row *row = top_state_row(t);
	const struct target *of = row ? row->of : NULL;
	u32 id = row ? row->row.id : 0;
	struct report sorted = *r;
	int err;

	sorted.options = run->top->output.report;
	sorted.options.sort = t->sort;
	err = top_rows_take(&t->rows, &sorted, t->filter, is_tick);
	top_head_take(&t->head, r, &t->meter, is_tick);
	if (is_tick)
		t->head.resident_bytes = run->top->remote ? 0 : resident_bytes(r);
	top_state_reselect(t, of, id);
	return err;
}

/* session_show(): reports are made in another thread, for which this one waits. */
static int look_at(void *ctx, const struct report *r)
{
	const struct top_look *look = ctx;
	struct top_state *t = &look->run->state;
	int err = t->is_frozen ? 0 : top_take_rows(look->run, r, look->is_tick);

	if (!err)
		err = top_rows_name(&t->rows, r, t->first, top_state_room(t));
	return err || t->pane != TOP_STACK_PANE ? err : show_stack(look->run, r);
}

static void top_show_look(struct top_session *run, bool is_tick)
{
	struct top_look l = { run, is_tick };
	int err = session_show(run->top->session, 0, look_at, &l);

	if (err)
		error("top: %s", strerror(-err));
}

static void top_draw(struct top_session *run)
{
	struct top_state *t = &run->state;
	enum log_level level;

	if (top_messages_take(&run->messages, t->message, sizeof(t->message), &level))
		t->message_level = level;
	if (!top_state_draw(t, clock_now_ns(), &run->screen))
		top_view_draw(run->view, &run->screen);
}

static void top_tick(struct top_session *run)
{
	struct meter_sample sample = meter_look(run->top->session);
	const struct call_price *price;

	/* Processes that have ended are noticed here. */
	session_running(run->top->session);
	meter_add(&run->state.meter, &sample);
	top_show_look(run, true);
	price = session_call_price(run->top->session);
	run->state.head.call_cost_ns = price->traps_ns ? call_price_ns(price) : 0;
	run->next_tick_ns = clock_now_ns() + SECOND_NS;
}

/* ---- what keys ask for ---- */

/* Say on the screen what takes a while. */
static void top_say(struct top_session *run, const char *text)
{
	snprintf(run->state.message, sizeof(run->state.message), "%s", text);
	run->state.message_level = LOG_INFO;
	top_draw(run);
	run->state.message[0] = '\0';
}

static bool can_scan(struct top_session *run)
{
	if (run->top->options->scan == SCAN_NEVER)
		warn("--no-scan: no leak verdicts");
	return run->top->options->scan != SCAN_NEVER && run->top->has_source;
}

static void top_scan(struct top_session *run)
{
	session_scan(run->top->session, NULL, false);
	run->state.verdict_ns = clock_now_ns();
}

/* The oldest live block of the selected caller. */
struct top_oldest {
	struct top_session *run;
	struct heap_block block;
	bool is_found;
	u32 row;
};

static int top_visit_block(void *ctx, const struct heap_block *b)
{
	struct top_oldest *o = ctx;

	if (b->row == o->row && !b->is_pending && (!o->is_found || b->time_ns < o->block.time_ns)) {
		o->block = *b;
		o->is_found = true;
	}
	return 0;
}

static int find_oldest(void *ctx, const struct report *r)
{
	struct top_oldest *o = ctx;
	const struct top_row *row = top_state_row(&o->run->state);
	const struct report_process *p = top_process_of(r, row);

	if (!p)
		return 0;
	o->row = row->row.id;
	return heap_for_each_block(p->heap, top_visit_block, o);
}

struct top_answer {
	struct top_session *run;
	FILE *out;
	const struct heap_block *block;
};

/* The bytes of the place and its caller. */
static size_t first_names(const char *names)
{
	const char *end = strstr(names, " < ");

	for (int i = 1; i < 2 && end; i++)
		end = strstr(end + 1, " < ");
	return end ? (size_t)(end - names) : strlen(names);
}

static int write_why(void *ctx, const struct report *r)
{
	const struct top_answer *a = ctx;
	const struct top_row *row = top_state_row(&a->run->state);
	const struct report_process *p = top_process_of(r, row);
	const char *names = row ? top_rows_names(&a->run->state.rows, row) : "";
	struct report shown = *r;

	if (!p)
		return 0;
	fprintf(a->out, "Who holds the oldest block of %.*s\n", (int)first_names(names), names);
	shown.options = pane_options(a->run);
	if (p->leaks && p->leaks->asked && p->leaks->asked->addr == a->block->addr)
		return report_asked_text(a->out, &shown, p, p->leaks->asked);
	for (size_t i = 0; i < p->nr_notes; i++)
		fprintf(a->out, "\n%s\n", p->notes[i]);
	if (!p->nr_notes)
		fputs("\nThe block was freed meanwhile.\n", a->out);
	return 0;
}

static void top_why(struct top_session *run)
{
	struct top_oldest o = { .run = run };
	struct top_answer a = { .run = run, .block = &o.block };
	struct verdict_options *v = &run->top->options->verdict;
	char *text = NULL;
	size_t len = 0;

	if (!can_scan(run) || session_show(run->top->session, 0, find_oldest, &o))
		return;
	if (!o.is_found) {
		warn("nothing of this caller is live");
		return;
	}
	a.out = open_memstream(&text, &len);
	if (!a.out)
		return;
	top_say(run, "looking for the holder ...");
	v->why_addr = o.block.addr;
	top_scan(run);
	v->why_addr = 0;
	if (session_show(run->top->session, 0, write_why, &a))
		debug("top: no answer");
	if (fclose(a.out)) {
		free(text);
		return;
	}
	top_state_show(&run->state, TOP_TEXT_PANE, text);
}

/* Write a report to the file that was named. */
static void top_save(struct top_session *run)
{
	const char *names[] = { run->state.answer };
	struct output_options o = run->top->output;
	struct outputs *outs = NULL;

	if (!strcmp(names[0], "-")) {
		warn("the screen has standard output: a report needs a file");
		return;
	}
	o.names = names;
	o.nr_names = 1;
	/* Errors and success are logged, and so shown. */
	if (outputs_new(&outs, &o, stdout))
		return;
	top_say(run, "looking for leaks, then the report is written ...");
	if (run->top->options->scan != SCAN_NEVER && run->top->has_source)
		top_scan(run);
	if (session_show(run->top->session, 0, outputs_write_to, outs))
		debug("top: report not written");
	outputs_free(outs);
}

/* SIGUSR1, or --interval. */
static void top_report(struct top_session *run)
{
	if (!run->top->output.nr_names)
		return;
	if (run->top->options->scan == SCAN_ALWAYS)
		session_scan(run->top->session, NULL, false);
	if (session_report(run->top->session))
		debug("top: report not written");
	run->state.verdict_ns = 0;
}

static void top_act(struct top_session *run, enum top_action action)
{
	run->messages.is_answer = true;
	switch (action) {
	case TOP_QUIT:
		run->is_over = true;
		return;
	case TOP_SCAN:
		if (can_scan(run)) {
			top_say(run, "looking for leaks ...");
			top_scan(run);
		}
		break;
	case TOP_WHY:
		top_why(run);
		break;
	case TOP_SAVE:
		top_save(run);
		break;
	case TOP_BASELINE:
		session_reported(run->top->session);
		run->state.verdict_ns = 0;
		break;
	default:
		break;
	}
	run->messages.is_answer = false;
	if (action > TOP_DRAW)
		top_show_look(run, false);
}

/* ---- the loop ---- */

/* True if a key was there. */
static bool top_take_key(struct top_session *run)
{
	struct top_state *t = &run->state;
	int key = top_view_key(run->view);

	if (!key)
		return false;
	top_view_size(run->view, &t->columns, &t->lines);
	/* A message stays until somebody has seen it. */
	if (key != TOP_KEY_RESIZE)
		t->message[0] = '\0';
	top_act(run, top_state_key(t, key));
	return true;
}

static bool top_take_keys(struct top_session *run, bool is_ready)
{
	bool is_any = false;

	while (!run->is_over && top_take_key(run))
		is_any = true;
	run->nr_empty_inputs = is_ready && !is_any ? run->nr_empty_inputs + 1 : 0;
	if (run->nr_empty_inputs > MAX_EMPTY_INPUTS)
		run->is_over = true;
	return is_any;
}

static void top_take_events(struct top_session *run)
{
	struct top *top = run->top;

	if (!top->has_source)
		return;
	if (session_poll(top->session))
		top->has_source = false;
	else
		session_bound_ended(top->session);
	if (top->has_source && !top->remote)
		code_choice_round(&run->choice, top->session, top->max_cost, true);
	if (top->has_source && top->remote)
		connection_round(top->remote, top->session, top->control);
}

/* How long to wait for events and keys: at most until the next look at the session. */
static int top_wait_ms(const struct top_session *run)
{
	u64 now_ns = clock_now_ns(), left_ns = run->next_tick_ns > now_ns ? run->next_tick_ns - now_ns : 0;

	return left_ns < (u64)POLL_MS * NS_PER_MS ? (int)(left_ns / NS_PER_MS) + 1 : POLL_MS;
}

static void top_go_round(struct top_session *run)
{
	struct control *c = run->top->control;
	int fd = run->top->has_source ? session_wait_fd(run->top->session) : -1, sig;
	enum control_event event = control_wait(c, fd, top_wait_ms(run), &sig);
	bool is_changed;

	top_take_events(run);
	if (event == CONTROL_STOP)
		run->is_over = true;
	if (event == CONTROL_REPORT)
		top_report(run);
	if (event == CONTROL_ASKED)
		session_answer(run->top->session, NULL, control_questions(c));
	is_changed = top_take_keys(run, event == CONTROL_INPUT);
	if (run->is_over)
		return;
	if (clock_now_ns() >= run->next_tick_ns) {
		top_tick(run);
		is_changed = true;
	}
	if (is_changed)
		top_draw(run);
}

int top_check(void)
{
	if (!top_view_is_built) {
		error("top: this heaptap was built without ncurses; 'make deps' installs it for the next build; "
		      "'attach' and 'console' work without");
		return -EOPNOTSUPP;
	}
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return 0;
	error("top: needs a terminal; 'attach -i 1s' writes reports anywhere");
	return -ENOTTY;
}

int top_run(struct top *top)
{
	auto_free struct top_session *run = calloc(1, sizeof(*run));
	const char *term = getenv("TERM");
	int err = run ? top_check() : -ENOMEM;

	if (err)
		return err;
	run->top = top;
	run->state.sort = top->output.report.sort;
	err = top_view_open(&run->view, output_look(&top->output, stdout).color);
	if (err) {
		error("top: terminal type '%s': %s", term ? term : "",
		      err == -ENOMEM ? strerror(ENOMEM) : "unknown, or it cannot place text; see TERM");
		return err;
	}
	top_messages_begin(&run->messages);
	top_view_size(run->view, &run->state.columns, &run->state.lines);
	control_watch(top->control, STDIN_FILENO);
	while (!run->is_over)
		top_go_round(run);
	control_watch(top->control, -1);
	top_view_close(run->view);
	top_messages_end(&run->messages);
	top_screen_fini(&run->screen);
	top_state_fini(&run->state);
	return 0;
}
