/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command `core`: a core file of a process, now, or when one of its callers allocates. */
#include "user/console/console.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "user/console/console_break.h"
#include "user/console/console_output.h"
#include "user/lib/human.h"
#include "user/lib/parse.h"
#include "user/session/session.h"
#include "user/session/session_core.h"

/* One core that is wanted. */
struct core_wish {
	struct console *console;
	const char *file;
	pid_t pid;
	struct break_point at; /* with a caller: the call that is waited for */
};

static int console_core_find_process(void *ctx, const struct report *r)
{
	struct core_wish *w = ctx;
	const struct report_process *p = console_only_process(w->console, "core", r);

	if (!p)
		return -EINVAL;
	w->pid = p->target->pid;
	return 0;
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

static void console_core_describe(const struct core_wish *w, const struct core_sums *sums)
{
	FILE *out = w->console->out;

	fprintf(out, "%s: PID %d, %s thread%s, %s of memory; stopped for %s", w->file, (int)w->pid,
		human_count(sums->nr_threads).text, sums->nr_threads == 1 ? "" : "s",
		human_bytes(sums->memory_bytes).text, human_duration(sums->pause_ns).text);
	if (w->at.is_in_call)
		fprintf(out, ", in the call of thread %u", w->at.call.h.tid);
	else if (w->at.caller)
		fprintf(out, ", %s after the call of thread %u", human_duration(w->at.delay_ns).text,
			w->at.call.h.tid);
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
					.first_tid = w->at.caller ? (pid_t)w->at.call.h.tid : 0 };
	struct core_sums sums;
	bool is_new;
	int fd = console_file_open(c, w->file, false, &is_new), err;

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
	console_core_describe(w, &sums);
	return 0;
}

int console_core(struct console *c, size_t nr, char **words)
{
	struct core_wish w = { .console = c, .file = words[0], .at = { .console = c, .command = "core" } };
	u64 caller = 0;
	int err;

	if (c->remote)
		return console_refuse(c, -EINVAL,
				      "core: contents of memory stay on the machine of the process: use "
				      "'heaptap console' there");
	if (nr > 1 && (parse_u64(words[1], &caller) || !caller || caller > UINT32_MAX))
		return console_refuse(c, -EINVAL, "core: %s: must be the id of a caller, as top shows it",
				      words[1]);
	w.at.caller = (u32)caller;
	err = console_file_check(c, w.file, false);
	if (!err)
		err = session_show(c->session, c->pid, console_core_find_process, &w);
	if (!err && w.at.caller)
		err = console_break_at(&w.at);
	if (err)
		return err == -EINTR ? 0 : err;
	err = console_core_make_core(&w);
	if (w.at.caller)
		console_break_end(c);
	return err;
}
