/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command `log`. The session hands over events when it enters them; they wait here until a round of the console has
 * time to print them with the names of their callers.
 */
#include "user/console/console_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/console/console.h"
#include "user/console/console_calls.h"
#include "user/console/console_input.h"
#include "user/heap/heap.h"
#include "user/lib/clock.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/lib/human.h"
#include "user/lib/parse.h"
#include "user/report/report_parts.h"
#include "user/session/session.h"
#include "user/session/session_fill.h"
#include "user/session/session_live.h"

enum {
	RATE = 100, /* calls a second, if nobody asks for another number */
	MAX_RATE = 10000,
	MAX_WAITING = 4096,
	FLUSH_NS = 50 * 1000 * 1000,
};

struct console_log {
	struct session_listener listener; /* first: an event comes by its address */
	bool wants[ALLOC_MAX_FNS];
	u64 rate;		 /* calls a second */
	u64 second_ns;		 /* when the present second of the events began */
	u64 nr_taken;		 /* calls in it */
	u64 nr_left_out;	 /* calls since the last line about those */
	u64 flushed_ns, told_ns; /* when calls were printed, and how many were left out */
	bool tells;		 /* how many were left out, this time */
	struct heap_event waiting[MAX_WAITING];
	size_t nr_waiting;
};

/* A realloc is one call: its result comes with its end. */
static void console_log_take_event(struct session_listener *listener, const struct heap_event *ev)
{
	struct console_log *l = (struct console_log *)listener;

	if (ev->h.fn >= ALLOC_MAX_FNS || !l->wants[ev->h.fn] || ev->h.kind == EVENT_REALLOC_BEGIN)
		return;
	if (ev->time_ns - l->second_ns >= SECOND_NS) {
		l->second_ns = ev->time_ns;
		l->nr_taken = 0;
	}
	if (l->nr_taken >= l->rate || l->nr_waiting == MAX_WAITING) {
		l->nr_left_out++;
		return;
	}
	l->nr_taken++;
	l->waiting[l->nr_waiting++] = *ev;
}

static void print_size(FILE *out, u64 size)
{
	if (size == UINT64_MAX)
		fputs("too much", out);
	else
		fprintf(out, "%" PRIu64, size);
}

static void print_arguments(FILE *out, const struct alloc_fn *fn, const struct heap_event *ev)
{
	u64 old = ev->h.kind == EVENT_FREE ? ev->addr : ev->old_addr;
	/* Recordings of older versions do not have the sizes of releases. */
	bool has_size = fn->size_arg && (ev->size || fn->kind != ALLOC_FREE);

	putc('(', out);
	if (fn->old_arg)
		fprintf(out, old ? "0x%" PRIx64 : "NULL", old);
	if (fn->old_arg && has_size)
		fputs(", ", out);
	if (has_size)
		print_size(out, ev->size);
	putc(')', out);
}

/* "operator new(size)" has words for its arguments in its name. */
static void console_log_print_name(FILE *out, const struct alloc_fn *fn)
{
	char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(fn->name, "("), fn->name);
	escape_text(out, name);
}

static const struct report_process *console_log_find_process(const struct report *r, u32 pid)
{
	for (size_t i = r->nr_processes; i-- > 0;)
		if ((u32)r->processes[i].target->pid == pid)
			return &r->processes[i];
	return NULL;
}

int console_log_print(FILE *out, const struct report *r, const struct heap_event *ev)
{
	const struct report_process *p = console_log_find_process(r, ev->h.pid);
	u64 start_ns = r->time_ns - r->duration_ns;
	const struct alloc_fn *fn;
	char names[512];
	int err;

	if (!p)
		return 0;
	fn = alloc_fn(heap_functions(p->heap), ev->h.fn);
	fprintf(out, "%12.6f  thread %u  ", (double)(s64)(ev->time_ns - start_ns) / 1e9, ev->h.tid);
	console_log_print_name(out, fn);
	print_arguments(out, fn, ev);
	if (ev->h.kind != EVENT_FREE)
		fprintf(out, ev->addr ? " = 0x%" PRIx64 : " = NULL", ev->addr);
	err = report_stack_callers(r, p, ev->stack, names, sizeof(names));
	fprintf(out, "%s%s\n", *names ? "  " : "", names);
	return err;
}

static int print_calls(void *ctx, const struct report *r)
{
	struct console *c = ctx;
	struct console_log *l = c->log;
	FILE *out = c->file ? c->out : stdout;
	int err = 0;

	for (size_t i = 0; i < l->nr_waiting && !err; i++)
		err = console_log_print(out, r, &l->waiting[i]);
	if (l->tells)
		fprintf(out, "%14s%s more: at most %s calls a second are printed\n", "",
			human_count(l->nr_left_out).text, human_count(l->rate).text);
	return err ? err : flush_stream(out);
}

void console_log_flush(struct console *c, bool at_once)
{
	struct console_log *l = c->log;
	u64 now = clock_now_ns();

	console_calls_flush(c, at_once);
	if (!l || (!l->nr_waiting && !l->nr_left_out))
		return;
	if (!at_once && now - l->flushed_ns < FLUSH_NS)
		return;
	l->tells = l->nr_left_out && (at_once || now - l->told_ns >= SECOND_NS);
	if (!l->tells && !l->nr_waiting)
		return;
	if (c->is_terminal && c->input)
		console_input_hide(c->input);
	/* The error of stdout is reported at the end. */
	if (session_show(c->session, c->pid, print_calls, c))
		c->is_over = true;
	l->nr_waiting = 0;
	l->flushed_ns = now;
	if (!l->tells)
		return;
	l->nr_left_out = 0;
	l->told_ns = now;
}

void console_log_free(struct console *c)
{
	if (c->log && c->session)
		session_unlisten(c->session, &c->log->listener);
	free(c->log);
	c->log = NULL;
}

/* Is @text a name of @fn: "malloc", "operator new", "new", "_Znwm", or "all"? */
static bool console_log_is_named(const struct alloc_fn *fn, const char *text)
{
	static const char operator[] = "operator ";
	const char *name = fn->name;
	size_t len = strlen(text);

	if (!strcmp(text, "all") || !strcmp(text, fn->symbol))
		return true;
	if (fn->first && (!strcmp(text, fn->first) || !strcmp(text, fn->second)))
		return true;
	for (int i = 0; i < 2; i++) {
		if (!strncmp(name, text, len) && (!name[len] || name[len] == '('))
			return true;
		if (strncmp(name, operator, strlen(operator)))
			return false;
		name += strlen(operator);
	}
	return false;
}

size_t console_log_choose(const struct console *c, const char *text, bool is_wanted, bool *wants)
{
	const struct alloc_table *fns = session_functions(c->session);
	size_t nr = 0;

	for (size_t i = 1; i < alloc_fn_count(fns); i++) {
		if (!console_log_is_named(alloc_fn(fns, (u16)i), text))
			continue;
		nr++;
		if (wants)
			wants[i] = is_wanted;
	}
	return nr;
}

/* Print which functions are logged. Operators differ only in their arguments. */
static void console_log_list(struct console *c)
{
	const struct alloc_table *fns = session_functions(c->session);
	const char *last = "";

	for (size_t i = 1; c->log && i < alloc_fn_count(fns); i++) {
		const struct alloc_fn *fn = alloc_fn(fns, (u16)i);
		size_t len = strcspn(fn->name, "(");

		if (!c->log->wants[i] || (strcspn(last, "(") == len && !strncmp(fn->name, last, len)))
			continue;
		fputs(*last ? ", " : "", c->out);
		console_log_print_name(c->out, fn);
		last = fn->name;
	}
	if (*last)
		fprintf(c->out, ": %s calls a second at most\n", human_count(c->log->rate).text);
	if (!console_calls_list(c) && !*last)
		fputs("No function is logged.\n", c->out);
}

static int console_log_begin(struct console *c)
{
	if (c->log)
		return 0;
	if (session_totals(c->session).is_sampled)
		return console_refuse(c, -EINVAL,
				      "log: most calls are not seen where blocks are sampled (--sample)");
	c->log = calloc(1, sizeof(*c->log));
	if (!c->log)
		return console_refuse(c, -ENOMEM, "log: %s", strerror(ENOMEM));
	c->log->rate = RATE;
	c->log->listener.event = console_log_take_event;
	session_listen(c->session, &c->log->listener);
	return 0;
}

static bool is_any_wanted(const struct console_log *l)
{
	for (size_t i = 0; i < ALLOC_MAX_FNS; i++)
		if (l->wants[i])
			return true;
	return false;
}

int console_log(struct console *c, size_t nr, char **words)
{
	bool is_off = nr > 1 && !strcmp(words[1], "off");
	bool has_rate = nr > 1 && !is_off && strcmp(words[1], "on");
	u64 rate = 0;
	int err;

	if (!nr) {
		console_log_list(c);
		return 0;
	}
	if (nr == 1 && !strcmp(words[0], "off")) {
		console_log_flush(c, true);
		console_log_free(c);
		console_calls_free(c);
		return 0;
	}
	if (has_rate && (parse_u64(words[1], &rate) || !rate || rate > MAX_RATE))
		return console_refuse(c, -EINVAL,
				      "log: %s: must be on, off, or a number of calls a second, up "
				      "to %d",
				      words[1], MAX_RATE);
	if (!console_log_choose(c, words[0], true, NULL))
		return console_calls_log(c, words[0], is_off, has_rate ? rate : RATE);
	err = console_log_begin(c);
	if (err)
		return err;
	console_log_flush(c, true);
	if (has_rate)
		c->log->rate = rate;
	console_log_choose(c, words[0], !is_off, c->log->wants);
	if (!is_any_wanted(c->log))
		console_log_free(c);
	return 0;
}
