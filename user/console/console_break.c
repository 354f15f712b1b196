/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands `break` and `continue`: a process waits when it calls a function, or when a caller allocates. */
#include "user/console/console.h"

#include <errno.h>
#include <string.h>

#include "user/console/console_break.h"
#include "user/console/console_calls.h"
#include "user/console/console_log.h"
#include "user/console/held_process.h"
#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/parse.h"
#include "user/report/estimate.h"
#include "user/session/session.h"
#include "user/session/session_wish.h"

static int console_break_prepare(void *ctx, const struct report *r)
{
	struct break_point *b = ctx;
	struct console *c = b->console;
	const struct report_process *p = console_only_process(c, b->command, r);
	int err;

	if (!p)
		return -EINVAL;
	if (report_sample_bytes(r))
		return console_refuse(c, -EINVAL,
				      "%s: most calls are not seen where blocks are sampled (--sample)",
				      b->command);
	if (b->caller > heap_row_count(p->heap))
		return console_refuse(c, -EINVAL, "%s: %u: there is no such caller", b->command, b->caller);
	if (b->caller) {
		b->row = heap_row_get(p->heap, b->caller - 1);
		b->wants[b->row.fn] = true;
	}
	err = held_process_new(&c->held, p->target);
	return err ? console_refuse(c, err, "%s: PID %d: %s", b->command, (int)p->target->pid, strerror(-err))
		   : 0;
}

static bool console_break_is_wanted(const struct break_point *b, const struct heap_event *ev)
{
	bool is_alloc = ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END;

	return (pid_t)ev->h.pid == held_process_pid(b->console->held) &&
	       (is_alloc || ev->h.kind == EVENT_FREE) && ev->h.fn < ALLOC_MAX_FNS && b->wants[ev->h.fn] &&
	       (!b->caller || ev->stack == b->row.stack);
}

static void console_break_take_event(struct session_listener *listener, const struct heap_event *ev)
{
	struct break_point *b = (struct break_point *)listener;

	/* Calls of before, which were not read yet, are none that the command waits for. */
	if (b->call.time_ns || ev->time_ns < b->since_ns || !console_break_is_wanted(b, ev))
		return;
	b->call = *ev;
	if (!b->is_wished)
		b->err = held_process_stop(b->console->held);
	b->delay_ns = clock_now_ns() - ev->time_ns;
}

static bool console_break_has_called(const struct console *c, void *arg)
{
	const struct break_point *b = arg;

	(void)c;
	return b->call.time_ns;
}

/* Have the source stop the process in its call, if it can. */
static void console_break_wish(struct break_point *b)
{
	struct call_wish wish = { .pid = (u32)held_process_pid(b->console->held),
				  .stack = b->caller ? b->row.stack : 0 };

	for (u32 fn = 0; fn < ALLOC_MAX_FNS; fn++)
		wish.fns[fn / 64] |= (u64)b->wants[fn] << fn % 64;
	b->is_wished = !held_process_expect(b->console->held) && !session_wish(b->console->session, &wish);
}

/* Wait for the call, and stop the process. 0; -EINTR: broken off; -errno, logged. */
static int console_break_wait_for_call(struct break_point *b)
{
	struct console *c = b->console;
	enum wait_end end;

	b->since_ns = clock_now_ns();
	b->listener.event = console_break_take_event;
	session_listen(c->session, &b->listener);
	console_break_wish(b);
	c->is_eager = true;
	end = console_wait_for(c, 0, console_break_has_called, b);
	c->is_eager = false;
	session_unlisten(c->session, &b->listener);
	b->is_in_call = b->is_wished && session_end_wish(c->session);
	if (b->is_in_call)
		held_process_found(c->held);
	else if (b->is_wished && b->call.time_ns)
		b->err = held_process_stop(c->held);
	if (b->call.time_ns && !b->err)
		return 0;
	if (end == WAIT_ENDED || b->err == -ESRCH)
		return console_refuse(c, -ESRCH, "%s: the process has ended", b->command);
	return b->err ? console_refuse(c, b->err, "%s: %s", b->command, strerror(-b->err)) : -EINTR;
}

int console_break_at(struct break_point *b)
{
	struct console *c = b->console;
	int err;

	if (c->held)
		return console_refuse(c, -EINVAL, "%s: PID %d waits already: see 'help continue'", b->command,
				      (int)held_process_pid(c->held));
	err = session_show(c->session, c->pid, console_break_prepare, b);
	if (!err)
		err = console_break_wait_for_call(b);
	if (err)
		console_break_end(c);
	return err;
}

static int console_break_describe(void *ctx, const struct report *r)
{
	struct break_point *b = ctx;
	FILE *out = b->console->out;

	fprintf(out, "PID %d ", (int)held_process_pid(b->console->held));
	if (b->is_in_call)
		fputs("is stopped in this call, and waits until 'continue':\n", out);
	else
		fprintf(out, "was stopped %s after this call, and waits until 'continue':\n",
			human_duration(b->delay_ns).text);
	return console_log_print(out, r, &b->call);
}

void console_break_end(struct console *c)
{
	held_process_free(c->held);
	c->held = NULL;
}

/* A caller by its id, or allocator functions by their name. False: @text is neither. */
static bool console_break_parse(struct break_point *b, const char *text)
{
	u64 caller;

	if (!parse_u64(text, &caller) && caller && caller <= UINT32_MAX) {
		b->caller = (u32)caller;
		return true;
	}
	return console_log_choose(b->console, text, true, b->wants);
}

int console_break(struct console *c, size_t nr, char **words)
{
	struct break_point b = { .console = c, .command = "break" };
	int err;

	(void)nr;
	if (c->remote)
		return console_refuse(c, -EINVAL,
				      "break: processes of another machine are not stopped from here: use "
				      "'heaptap console' there");
	if (!console_break_parse(&b, words[0]) && !c->held)
		return console_calls_break(c, words[0]);
	err = console_break_at(&b);
	if (!err)
		return session_show(c->session, c->pid, console_break_describe, &b);
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
