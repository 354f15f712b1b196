/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command `core`: a core file of a process, now, or when one of its callers allocates. */
#include "user/console/console.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/console/console_output.h"
#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/parse.h"
#include "user/report/report_parts.h"
#include "user/session/session_core.h"
#include "user/session/session_live.h"
#include "user/target/target.h"

/* One core that is wanted. */
struct core_wish {
	struct session_listener listener; /* first: an event comes by its address */
	struct console *console;
	const char *file;
	pid_t pid;
	u32 caller; /* the one that is waited for, as top shows it; 0 = none */
	struct heap_row row;
	struct heap_event call; /* its call; time 0 = none yet */
};

static int console_core_find_process(void *ctx, const struct report *r)
{
	struct core_wish *w = ctx;
	const struct report_process *p = console_only_process(w->console, "core", r);

	if (!p)
		return -EINVAL;
	w->pid = p->target->pid;
	if (!w->caller)
		return 0;
	if (w->caller > heap_row_count(p->heap))
		return console_refuse(w->console, -EINVAL, "core: %u: there is no such caller", w->caller);
	w->row = heap_row_get(p->heap, w->caller - 1);
	return 0;
}

static void console_core_take_event(struct session_listener *listener, const struct heap_event *ev)
{
	struct core_wish *w = (struct core_wish *)listener;
	bool is_alloc = ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END;

	if (!w->call.time_ns && is_alloc && (pid_t)ev->h.pid == w->pid && ev->h.fn == w->row.fn &&
	    ev->stack == w->row.stack)
		w->call = *ev;
}

static bool console_core_has_called(const struct console *c, void *arg)
{
	const struct core_wish *w = arg;

	(void)c;
	return w->call.time_ns;
}

/* Wait for the call. 0; -EINTR: broken off; -ESRCH, logged. */
static int console_core_wait_for_call(struct core_wish *w)
{
	struct console *c = w->console;
	enum wait_end end;

	w->listener.event = console_core_take_event;
	session_listen(c->session, &w->listener);
	c->is_eager = true;
	end = console_wait_for(c, 0, console_core_has_called, w);
	c->is_eager = false;
	session_unlisten(c->session, &w->listener);
	if (end == WAIT_ENDED)
		return console_refuse(c, -ESRCH, "core: the process has ended");
	return end == WAIT_ENOUGH ? 0 : -EINTR;
}

static const char *console_core_reason(int err)
{
	switch (err) {
	case -EOPNOTSUPP:
		return "cores are made of 64-bit processes on x86_64 and aarch64 only";
	case -EPERM:
		return "another process traces it, or heaptap may not";
	case -ETIME:
		return "could not be stopped for long enough";
	default:
		return strerror(-err);
	}
}

static void console_core_describe(const struct core_wish *w, const struct core_sums *sums, u64 delay_ns)
{
	FILE *out = w->console->out;

	fprintf(out, "%s: PID %d, %s thread%s, %s of memory; stopped for %s", w->file, (int)w->pid,
		human_count(sums->nr_threads).text, sums->nr_threads == 1 ? "" : "s",
		human_bytes(sums->memory_bytes).text, human_duration(sums->pause_ns).text);
	if (w->caller)
		fprintf(out, ", %s after the call of thread %u", human_duration(delay_ns).text,
			w->call.h.tid);
	fputc('\n', out);
	if (sums->left_out_bytes)
		fprintf(out, "  %s left out by core-limit\n", human_bytes(sums->left_out_bytes).text);
	if (sums->unreadable_bytes)
		fprintf(out, "  %s could not be read\n", human_bytes(sums->unreadable_bytes).text);
	if (sums->nr_unstopped)
		fprintf(out, "  %s threads could not be stopped, and are not in it\n",
			human_count(sums->nr_unstopped).text);
}

static int console_core_make_core(struct core_wish *w)
{
	struct console *c = w->console;
	const struct core_options o = { .max_bytes = c->core_limit,
					.first_tid = w->caller ? (pid_t)w->call.h.tid : 0 };
	struct core_sums sums;
	bool is_new;
	int fd = console_file_open(c, w->file, false, &is_new), err;
	u64 delay_ns = clock_now_ns() - w->call.time_ns;

	if (fd == -EINVAL)
		return fd;
	if (fd < 0)
		return console_refuse(c, fd, "core: %s: %s", w->file, strerror(-fd));
	err = is_new ? session_core(c->session, w->pid, fd, &o, &sums) : -ESPIPE;
	if (close(fd) && !err)
		err = -errno;
	if (err && is_new)
		unlink(w->file);
	if (err)
		return console_refuse(c, err, "core: PID %d: %s", (int)w->pid, console_core_reason(err));
	console_core_describe(w, &sums, delay_ns);
	return 0;
}

int console_core(struct console *c, size_t nr, char **words)
{
	struct core_wish w = { .console = c, .file = words[0] };
	u64 caller = 0;
	int err;

	if (c->remote)
		return console_refuse(c, -EINVAL,
				      "core: contents of memory stay on the machine of the process: use "
				      "'heaptap console' there");
	if (nr > 1 && (parse_u64(words[1], &caller) || !caller || caller > UINT32_MAX))
		return console_refuse(c, -EINVAL, "core: %s: must be the id of a caller, as top shows it",
				      words[1]);
	w.caller = (u32)caller;
	err = console_file_check(c, w.file, false);
	if (!err)
		err = session_show(c->session, c->pid, console_core_find_process, &w);
	if (!err && w.caller)
		err = console_core_wait_for_call(&w);
	if (err == -EINTR)
		return 0;
	return err ? err : console_core_make_core(&w);
}
