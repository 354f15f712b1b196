/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands of the console to running processes, and their counterparts for a recording. */
#include "user/console/console.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "user/scan/leaks.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/lib/parse.h"
#include "user/lib/signal_name.h"
#include "user/lib/wrap.h"
#include "user/report/estimate.h"
#include "user/report/format.h"
#include "user/report/report_parts.h"
#include "user/report/report_rows.h"
#include "user/report/report_why.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/session/session_replay.h"
#include "user/stream/span.h"
#include "user/target/target.h"
#include "user/source/tuning.h"

/* Of a shorter time there is no share of a CPU: attaching alone would fill it. */
enum { SHARE_MIN_NS = 1000 * 1000 * 1000 };

static u64 timeval_ns(struct timeval t)
{
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_usec * 1000;
}

/* Read all three at one moment, or shares would be wrong. */
static struct console_cost cost_now(const struct console *c, struct rusage *own)
{
	getrusage(RUSAGE_SELF, own);
	return (struct console_cost){ .time_ns = clock_now_ns(),
				      .cpu_ns = timeval_ns(own->ru_utime) + timeval_ns(own->ru_stime),
				      .events = session_events(c->session) };
}

void console_begin_cost(struct console *c)
{
	struct rusage own;

	c->cost = cost_now(c, &own);
}

/* The cost of heaptap itself since the last status. */
static void print_cost(struct console *c)
{
	struct rusage own;
	struct console_cost now = cost_now(c, &own), *then = &c->cost;
	u64 since_ns = now.time_ns > then->time_ns ? now.time_ns - then->time_ns : 1;
	/* A reset sets the counter of events to zero. */
	u64 events = now.events - (now.events < then->events ? 0 : then->events);
	u32 width = console_look(c).width;
	auto_fclose FILE *lines = wrap_open(c->out, width ? width : wrap_width(c->out));
	FILE *out = lines ? lines : c->out;

	fprintf(out, "  heaptap     %s events in %s", human_count(events).text,
		human_duration(since_ns).text);
	if (since_ns >= SHARE_MIN_NS)
		fprintf(out, " (%s a second), %s of a CPU",
			human_count((u64)((double)events * 1e9 / (double)since_ns)).text,
			human_percent(now.cpu_ns - then->cpu_ns, since_ns).text);
	fprintf(out, ", %s of memory at most\n", human_bytes((u64)own.ru_maxrss * 1024).text);
	c->cost = now;
}

static int write_status(void *ctx, const struct report *r)
{
	struct console *c = ctx;
	struct report shown = *r;

	shown.options = console_look(c);
	/* The line that follows has the cost since the last status. */
	shown.cost = (struct report_cost){ 0 };
	return report_text_head(c->out, &shown);
}

int console_status(struct console *c, size_t nr, char **words)
{
	int err = session_show(c->session, c->pid, write_status, c);

	(void)nr;
	(void)words;
	if (err || c->path)
		return err;
	if (session_is_paused(c->session, c->pid))
		fputs("  stopped     calls are not seen until 'start'\n", c->out);
	print_cost(c);
	return 0;
}

static int console_live_write_line(void *ctx, const struct report *r)
{
	struct console *c = ctx;
	u64 live = 0, blocks = 0, allocs = 0, frees = 0, lost = 0;
	bool about = report_sample_bytes(r);

	for (size_t i = 0; i < r->nr_processes; i++) {
		struct heap_totals t = heap_totals(r->processes[i].heap);
		struct losses l = report_losses(&r->processes[i]);

		live += t.live_bytes;
		blocks += t.live_blocks;
		allocs += t.allocs;
		frees += t.frees + t.unknown_frees;
		lost += l.allocs + l.frees + l.other;
	}
	fprintf(c->out, "%10s  live %s in %s blocks, %s allocated, %s freed, lost %s\n",
		human_duration(r->duration_ns).text, estimate_if(about, human_bytes(live)).text,
		estimate_if(about, human_count(blocks)).text, estimate_if(about, human_count(allocs)).text,
		estimate_if(about, human_count(frees)).text, human_count(lost).text);
	return 0;
}

int console_monitor(struct console *c, size_t nr, char **words)
{
	u64 interval = 1000000000, times = 0;
	FILE *shown = c->out;
	bool goes_on = true;
	int err = 0;

	if (nr && (parse_duration(words[0], &interval) || interval < 1000000))
		return console_refuse(c, -EINVAL, "monitor: %s: must be a duration such as 500ms or 10s",
				      words[0]);
	if (nr > 1 && (parse_u64(words[1], &times) || !times))
		return console_refuse(c, -EINVAL, "monitor: %s: must be a number of times", words[1]);
	/* Print each line at once, unless a file takes all of them. */
	c->out = c->file ? shown : stdout;
	for (u64 i = 0; goes_on && !err && (!times || i < times); i++) {
		goes_on = console_wait_for(c, interval, NULL, NULL) == WAIT_TIMED_OUT;
		err = session_show(c->session, c->pid, console_live_write_line, c);
		if (fflush(c->out))
			goes_on = false;
	}
	c->out = shown;
	c->is_interrupted = false;
	return err;
}

static int write_leaks(void *ctx, const struct report *r)
{
	struct console *c = ctx;
	struct report shown = *r;
	bool is_any = false;

	shown.options = console_look(c);
	if (!shown.options.sort->wants_scan)
		shown.options.sort = report_key_find("leaked-bytes");
	for (size_t i = 0; i < r->nr_processes; i++)
		is_any |= r->processes[i].leaks != NULL;
	if (c->path && !is_any) {
		fputs("No leak verdict was recorded up to here.\n", c->out);
		return 0;
	}
	if (is_any)
		return report_text(c->out, &shown);
	/* The head says why there is no verdict. */
	return report_text_head(c->out, &shown);
}

int console_with_verdict(struct console *c, int (*show)(void *ctx, const struct report *r), void *ctx)
{
	int err;

	if (!c->path && c->pid)
		session_scan_one(c->session, c->pid);
	else if (!c->path)
		session_scan(c->session, NULL, false);
	/* The console drops what a command has written when Ctrl-C breaks it off. */
	if (control_is_stop_pending()) {
		session_forget_verdicts(c->session);
		return -ECANCELED;
	}
	err = session_show(c->session, c->pid, show, ctx);
	/* The verdict is valid for this moment only. */
	if (!c->path)
		session_forget_verdicts(c->session);
	return err;
}

int console_scan(struct console *c, size_t nr, char **words)
{
	const pid_t before = c->pid;
	int err = nr ? console_read_pid(c, "scan", words[0], &c->pid) : 0;

	if (!err)
		err = console_with_verdict(c, write_leaks, c);
	c->pid = before;
	return err;
}

/* The holder of the block at @addr, if the recording has it; else NULL. */
static const struct leak_why *find_why(const struct leaks *l, taddr_t addr)
{
	if (l->asked && l->asked->addr == addr)
		return l->asked;
	for (size_t i = 0; i < l->nr_whys; i++)
		if (l->whys[i].addr == addr)
			return &l->whys[i];
	return NULL;
}

static int write_asked(void *ctx, const struct report *r)
{
	struct console *c = ctx;
	struct report shown = *r;
	int err = 0;

	shown.options = console_look(c);
	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		const struct report_process *p = &r->processes[i];
		const struct leak_why *why =
			p->leaks ? find_why(p->leaks, c->options.session.verdict.why_addr) : NULL;

		if (why)
			err = report_asked_text(c->out, &shown, p, why);
		for (size_t k = 0; !why && k < p->nr_notes; k++) {
			escape_text(c->out, p->notes[k]);
			fputc('\n', c->out);
		}
		if (!why && c->path)
			fputs("The recording does not say who held that block: memory contents are not "
			      "recorded.\n",
			      c->out);
	}
	return err;
}

static int console_live_write_whys(void *ctx, const struct report *r)
{
	struct console *c = ctx;
	struct report shown = *r;
	bool is_any = false;

	shown.options = console_look(c);
	for (size_t i = 0; i < r->nr_processes; i++)
		is_any |= r->processes[i].leaks != NULL;
	if (is_any)
		return report_text_callers(c->out, &shown);
	if (!c->path)
		return report_text_head(c->out, &shown);
	fputs("No leak verdict was recorded up to here.\n", c->out);
	return 0;
}

int console_why(struct console *c, size_t nr, char **words)
{
	taddr_t addr = 0;
	int err;

	if (nr && (parse_hex(words[0], &addr) || !addr))
		return console_refuse(c, -EINVAL, "why: %s: must be an address such as 0x55d0c0de10",
				      words[0]);
	c->options.session.verdict.why_addr = addr;
	err = console_with_verdict(c, addr ? write_asked : console_live_write_whys, c);
	c->options.session.verdict.why_addr = 0;
	return err;
}

static int console_live_tune(struct console *c, const struct tuning *t)
{
	int err = session_tune(c->session, t);

	/* session_tune() logged the reason. */
	return err == -EOPNOTSUPP || err == -EINVAL ? -EINVAL : err;
}

/* Pause the process that the words or `set process` name, or all; or end that. 0, -EALREADY, or -errno, logged. */
static int pause_chosen(struct console *c, size_t nr, char **words, const char *command, bool is_paused)
{
	pid_t pid = c->pid;
	int err = nr ? console_read_pid(c, command, words[0], &pid) : 0;

	if (err)
		return err;
	err = session_pause(c->session, pid, is_paused);
	return err == -EOPNOTSUPP ? -EINVAL : err;
}

int console_stop(struct console *c, size_t nr, char **words)
{
	int err = pause_chosen(c, nr, words, "stop", true);

	return err == -EALREADY ? console_refuse(c, -EINVAL, "stop: calls are not seen already") : err;
}

int console_start(struct console *c, size_t nr, char **words)
{
	bool was_paused = !nr && !c->pid && session_note_resume_all(c->session);
	int err = pause_chosen(c, nr, words, "start", false);

	if (err == -EALREADY)
		return was_paused ? 0 : console_refuse(c, -EINVAL, "start: calls are seen already");
	return err;
}

int console_depth(struct console *c, size_t nr, char **words)
{
	struct tuning t = session_tuning(c->session);
	u64 depth;

	(void)nr;
	if (parse_u64(words[0], &depth) || depth > STACK_MAX_FRAMES)
		return console_refuse(c, -EINVAL, "depth: %s: must be a number of frames, up to %d", words[0],
				      STACK_MAX_FRAMES);
	t.depth = (u32)depth;
	return console_live_tune(c, &t);
}

int console_filter(struct console *c, size_t nr, char **words)
{
	struct tuning t = session_tuning(c->session);

	t.min_size = t.max_size = 0;
	if ((nr && parse_size(words[0], &t.min_size)) || (nr > 1 && parse_size(words[1], &t.max_size)))
		return console_refuse(c, -EINVAL, "filter: %s: must be a size such as 4096 or 64K",
				      words[nr - 1]);
	if (t.max_size && t.max_size < t.min_size)
		return console_refuse(c, -EINVAL, "filter: the most must not be less than the least");
	return console_live_tune(c, &t);
}

int console_mark(struct console *c, size_t nr, char **words)
{
	struct span span;
	char both[SPAN_NAME_LEN + 16];
	const char *why;
	int err;

	(void)nr;
	snprintf(both, sizeof(both), "start,%s", words[0]);
	if (strlen(words[0]) >= SPAN_NAME_LEN || strchr(words[0], ',') || span_parse(&span, both, &why) ||
	    span.marks[SPAN_TO].kind != SPAN_AT_NAME)
		return console_refuse(c, -EINVAL,
				      "mark: %s: must be a name that is no time, nor start or end", words[0]);
	err = session_set_marker(c->session, words[0]);
	if (err == -ENOTCONN)
		return console_refuse(c, -EINVAL, "mark: nothing is recorded; 'record FILE' begins that");
	return err;
}

int console_reset(struct console *c, size_t nr, char **words)
{
	pid_t pid = c->pid;
	int err = nr ? console_read_pid(c, "reset", words[0], &pid) : 0;

	if (err)
		return err;
	err = session_reset(c->session, pid);
	if (err == -EBUSY)
		return console_refuse(c, err,
				      "reset: not while events are recorded: their file would not know");
	if (err)
		return console_refuse(c, err, "reset: %s", strerror(-err));
	free(c->baseline);
	c->baseline = NULL;
	return 0;
}

int console_record(struct console *c, size_t nr, char **words)
{
	int err;

	if (!nr) {
		err = session_record_end(c->session);
		return err == -ENOENT ? console_refuse(c, -EINVAL, "record: nothing is recorded; needs FILE")
				      : err;
	}
	if (session_is_recording(c->session))
		return console_refuse(c, -EINVAL, "record: events are recorded already; 'record' ends that");
	/* Free the path only now: the last recording used it. */
	free(c->record);
	c->record = strdup(words[0]);
	c->options.session.recorder.path = c->record;
	err = c->record ? session_record(c->session) : -ENOMEM;
	return err == -ENOMEM ? console_refuse(c, err, "record: %s", strerror(-err)) : err ? -EINVAL : 0;
}

/* The process to end, and its name. */
struct victim {
	pid_t pid; /* 0 = the only traced process */
	int sig;
	size_t nr; /* processes found */
	bool is_sentenced;
	int err; /* of kill */
	char name[4 * TARGET_COMM_LEN];
};

static int find_victim(void *ctx, const struct report *r)
{
	struct victim *v = ctx;

	for (size_t i = 0; i < r->nr_processes; i++) {
		const struct target *t = r->processes[i].target;

		if (t->has_exited || (v->pid && t->pid != v->pid) || !target_is_alive(t))
			continue;
		v->nr++;
		if (v->is_sentenced)
			v->err = target_signal(t, v->sig);
		escape_buf(v->name, sizeof(v->name), t->comm);
		if (!v->pid && v->nr == 1)
			v->pid = t->pid;
	}
	return 0;
}

static int kill_there(struct console *c, bool is_sure)
{
	int err;

	if (!is_sure && !c->is_terminal)
		return console_refuse(c, -EINVAL, "kill: without a terminal type 'kill yes'");
	if (!is_sure && !console_ask(c, "end the target over there? (yes or no) "))
		return 0;
	err = session_kill(c->session);
	if (err == -EPERM)
		return console_refuse(c, err, "kill: the other side does not allow it (serve --allow-kill)");
	return err ? console_refuse(c, err, "kill: %s", strerror(-err)) : 0;
}

/* Read the words of kill into @v. 0, or -EINVAL, logged. */
static int parse_kill(struct console *c, struct victim *v, size_t nr, char **words, bool *is_sure)
{
	*v = (struct victim){ .pid = c->pid, .sig = SIGTERM };
	*is_sure = false;
	for (size_t i = 0; i < nr; i++) {
		u64 pid;
		int sig = signal_number(words[i]);

		if (sig)
			v->sig = sig;
		else if (!strcmp(words[i], "yes"))
			*is_sure = true;
		else if (!parse_u64(words[i], &pid) && pid && pid <= INT32_MAX)
			v->pid = (pid_t)pid;
		else
			return console_refuse(c, -EINVAL,
					      "kill: %s: must be a PID, a signal such as TERM, or yes",
					      words[i]);
	}
	return 0;
}

int console_kill(struct console *c, size_t nr, char **words)
{
	struct victim v;
	char question[128];
	bool is_sure;
	int err = parse_kill(c, &v, nr, words, &is_sure);

	if (err)
		return err;
	/* The PIDs are those of another machine. */
	if (c->remote && v.sig != SIGTERM)
		return console_refuse(c, -EOPNOTSUPP, "kill: the other side sends SIGTERM only");
	if (c->remote)
		return kill_there(c, is_sure);
	err = session_show(c->session, 0, find_victim, &v);
	if (err)
		return err;
	if (!v.nr)
		return console_refuse(c, -EINVAL, "kill: no such process is traced and runs");
	if (v.nr > 1)
		return console_refuse(c, -EINVAL, "kill: which one? %zu processes are traced", v.nr);
	snprintf(question, sizeof(question), "send SIG%s to %s (pid %d)? (yes or no) ", signal_name(v.sig),
		 v.name, (int)v.pid);
	if (!is_sure && !c->is_terminal)
		return console_refuse(c, -EINVAL, "kill: without a terminal type 'kill %d yes'", (int)v.pid);
	if (!is_sure && !console_ask(c, question))
		return 0;
	/* The process may have ended while the user answered. */
	v.is_sentenced = true;
	v.err = -ESRCH;
	err = session_show(c->session, 0, find_victim, &v);
	err = err ? err : v.err;
	return err ? console_refuse(c, err, "kill: PID %d: %s", (int)v.pid, strerror(-err)) : 0;
}

/* Read the recording anew, up to the end of @between (NULL = all of it). */
static int console_live_read_anew(struct console *c, const struct span *between)
{
	struct session *s;
	int err;

	c->options.session.between = between;
	err = session_new_replay(&s, &c->options.session, c->outs, c->path);
	if (err)
		return err;
	session_free(c->session);
	c->session = s;
	return 0;
}

int console_goto(struct console *c, size_t nr, char **words)
{
	const struct span before = c->between, *const before_span = c->options.session.between;
	bool is_end = !strcmp(words[0], "end");
	char both[3 * SPAN_NAME_LEN];
	const char *why;
	int err;

	(void)nr;
	if (!strcmp(c->path, "-"))
		return console_refuse(c, -EINVAL, "goto: standard input cannot be read twice");
	snprintf(both, sizeof(both), "%s%s", strchr(words[0], ',') ? "" : "start,", words[0]);
	if (span_parse(&c->between, both, &why)) {
		c->between = before;
		return console_refuse(c, -EINVAL, "goto: %s: %s", words[0], why);
	}
	c->options.session.is_unwanted = control_is_stop_pending;
	/* A session without a span has verdicts too. */
	err = before_span && !is_end ? session_go_on(c->session, &c->between, c->path) : -EAGAIN;
	if (!err)
		return 0;
	if (err == -EAGAIN) {
		err = console_live_read_anew(c, is_end ? NULL : &c->between);
		if (!err)
			return 0;
		c->between = before;
		c->options.session.between = before_span;
	} else {
		c->between = before;
		/* Once more what was shown before, whether Ctrl-C was pressed or not. */
		c->options.session.is_unwanted = NULL;
		if (console_live_read_anew(c, before_span))
			c->is_over = true;
	}
	return err == -ERANGE ? -EINVAL : err;
}
