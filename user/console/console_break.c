/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands `break` and `continue`: a process waits when it calls a function, or when a caller allocates. */
#include "user/console/console.h"

#include <errno.h>
#include <string.h>

#include "user/console/console_log.h"
#include "user/console/held_process.h"
#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/parse.h"
#include "user/report/report_parts.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/target/target.h"

struct break_point {
	struct session_listener listener; /* first: an event comes by its address */
	struct console *console;
	const char *text; /* what was typed */
	u32 caller;	  /* as top shows it; 0 = a function */
	struct heap_row row;
	bool wants[ALLOC_MAX_FNS]; /* without a caller */
	struct heap_event call;	   /* the one that was waited for; time 0 = none yet */
	u64 delay_ns;		   /* from its event to the stop */
	int err;		   /* of the stop */
};

static int console_break_prepare(void *ctx, const struct report *r)
{
	struct break_point *b = ctx;
	struct console *c = b->console;
	const struct report_process *p = console_only_process(c, "break", r);
	int err;

	if (!p)
		return -EINVAL;
	if (b->caller > heap_row_count(p->heap))
		return console_refuse(c, -EINVAL, "break: %u: there is no such caller", b->caller);
	if (b->caller)
		b->row = heap_row_get(p->heap, b->caller - 1);
	err = held_process_new(&c->held, p->target);
	return err ? console_refuse(c, err, "break: PID %d: %s", (int)p->target->pid, strerror(-err)) : 0;
}

static bool console_break_is_wanted(const struct break_point *b, const struct heap_event *ev)
{
	bool is_alloc = ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END;

	if ((pid_t)ev->h.pid != held_process_pid(b->console->held))
		return false;
	if (b->caller)
		return is_alloc && ev->h.fn == b->row.fn && ev->stack == b->row.stack;
	return (is_alloc || ev->h.kind == EVENT_FREE) && ev->h.fn < ALLOC_MAX_FNS && b->wants[ev->h.fn];
}

static void console_break_take_event(struct session_listener *listener, const struct heap_event *ev)
{
	struct break_point *b = (struct break_point *)listener;

	if (b->call.time_ns || !console_break_is_wanted(b, ev))
		return;
	b->call = *ev;
	b->err = held_process_stop(b->console->held);
	b->delay_ns = clock_now_ns() - ev->time_ns;
}

static bool console_break_has_called(const struct console *c, void *arg)
{
	const struct break_point *b = arg;

	(void)c;
	return b->call.time_ns;
}

/* Wait for the call, and stop the process. 0; -EINTR: broken off; -errno, logged. */
static int console_break_wait_for_call(struct break_point *b)
{
	struct console *c = b->console;
	enum wait_end end;

	b->listener.event = console_break_take_event;
	session_listen(c->session, &b->listener);
	c->is_eager = true;
	end = console_wait_for(c, 0, console_break_has_called, b);
	c->is_eager = false;
	session_unlisten(c->session, &b->listener);
	if (b->call.time_ns && !b->err)
		return 0;
	if (end == WAIT_ENDED || b->err == -ESRCH)
		return console_refuse(c, -ESRCH, "break: the process has ended");
	return b->err ? console_refuse(c, b->err, "break: %s", strerror(-b->err)) : -EINTR;
}

static int console_break_describe(void *ctx, const struct report *r)
{
	struct break_point *b = ctx;
	FILE *out = b->console->out;

	fprintf(out, "PID %d was stopped %s after this call, and waits until 'continue':\n",
		(int)held_process_pid(b->console->held), human_duration(b->delay_ns).text);
	return console_log_print(out, r, &b->call);
}

void console_break_end(struct console *c)
{
	held_process_free(c->held);
	c->held = NULL;
}

/* A caller by its id, or functions by their name. */
static int console_break_parse(struct break_point *b)
{
	struct console *c = b->console;
	u64 caller;

	if (!parse_u64(b->text, &caller) && caller && caller <= UINT32_MAX) {
		b->caller = (u32)caller;
		return 0;
	}
	if (console_log_choose(c, b->text, true, b->wants))
		return 0;
	return console_refuse(c, -EINVAL,
			      "break: %s: must be an allocator function (malloc, free, new, all), or the id "
			      "of a caller, as top shows it",
			      b->text);
}

int console_break(struct console *c, size_t nr, char **words)
{
	struct break_point b = { .console = c, .text = words[0] };
	int err;

	(void)nr;
	if (c->remote)
		return console_refuse(c, -EINVAL,
				      "break: processes of another machine are not stopped from here: use "
				      "'heaptap console' there");
	if (c->held)
		return console_refuse(c, -EINVAL, "break: PID %d waits already: see 'help continue'",
				      (int)held_process_pid(c->held));
	err = console_break_parse(&b);
	if (!err)
		err = session_show(c->session, c->pid, console_break_prepare, &b);
	if (!err)
		err = console_break_wait_for_call(&b);
	if (!err)
		return session_show(c->session, c->pid, console_break_describe, &b);
	console_break_end(c);
	return err == -EINTR ? 0 : err;
}

int console_continue(struct console *c, size_t nr, char **words)
{
	(void)nr;
	(void)words;
	if (!c->held)
		return console_refuse(c, -EINVAL, "continue: no process waits; see 'help break'");
	console_break_end(c);
	return 0;
}
