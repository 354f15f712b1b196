/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Acts on markers of the traced programs: marks, and pauses of counting. */
#include "user/session/session_notes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "user/heap/heap.h"
#include "user/lib/array.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/session/control.h"
#include "user/session/session_ending.h"
#include "user/session/session_forward.h"
#include "user/session/session_live.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_told.h"
#include "user/source/exec_wait.h"
#include "user/source/source_tracer.h"

/* A recording gets no more marks of programs than these. */
enum { MAX_MARKS = 65536, MAX_DISABLED = 1024 };

static void session_notes_on_mark(struct session *s, struct process *p, const struct note_event *ev)
{
	char name[NOTE_NAME_BYTES];

	snprintf(name, sizeof(name), "%.*s", NOTE_NAME_BYTES - 1, ev->name);
	if (!name[0]) {
		p->notes.nr_unread++;
		return;
	}
	s->nr_marks++;
	if (s->nr_marks == MAX_MARKS + 1)
		warn("PID %u: more than %d marks: the recording gets no more of them", ev->h.pid, MAX_MARKS);
	if (s->nr_marks > MAX_MARKS)
		session_pass_mark(s, ev->time_ns, name);
	else
		session_mark(s, ev->time_ns, name);
}

static void on_pause(struct session *s, struct process *p, const struct note_event *ev)
{
	(void)ev;
	if (p->notes.is_paused)
		return;
	p->notes.is_paused = true;
	p->notes.nr_pauses++;
	/* From now on there may be live blocks that the heap does not know. */
	p->tuned.has_unseen = true;
	session_expect_gaps(s, p);
}

static void on_resume(struct session *s, struct process *p, const struct note_event *ev)
{
	(void)s;
	(void)ev;
	p->notes.is_paused = false;
}

/* session_check() does it: a verdict reads events itself, which cannot be done from inside of one. */
static void on_leak_check(struct session *s, struct process *p, const struct note_event *ev)
{
	(void)p;
	(void)ev;
	s->wants_check = true;
}

/* Is there a file @name for @p? Shells try all directories of $PATH. A name that was cut may be any. */
static bool session_notes_has_file(const struct process *p, const char name[NOTE_NAME_BYTES])
{
	char path[NOTE_NAME_BYTES + 32];
	struct stat st;

	if (!*name || strnlen(name, NOTE_NAME_BYTES) >= NOTE_NAME_BYTES - 1)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/%s/%s", p->target->pid, *name == '/' ? "root" : "cwd", name);
	return !lstat(path, &st);
}

static u64 session_notes_count(const struct process *p)
{
	const struct heap_totals t = heap_totals(p->heap);

	return t.allocs + t.frees + 1;
}

static bool session_notes_is_alone(const struct process *p)
{
	struct proc_stat stat;

	return !IS_AGENT && !proc_read_stat(&stat, p->target->pid) && stat.nr_threads == 1;
}

void session_note_exec(struct process *p)
{
	if (p->exec != PROCESS_JUDGED || !p->leaks)
		return;
	p->has_last_verdict = !p->exec_calls || p->exec_calls == session_notes_count(p);
	if (p->has_last_verdict)
		return;
	p->exec = PROCESS_STAYS;
	leaks_free(p->leaks);
	p->leaks = NULL;
}

/* A copy is judged as its parent. A process that nobody stops is another program by now. */
static void session_notes_on_exec(struct session *s, struct process *p, const struct note_event *ev)
{
	bool is_held = !IS_AGENT && ev->h.flags & EVENT_STOPS;
	bool waits = !IS_AGENT && p->origin != PROCESS_COPY &&
		     (is_held || s->ops->tracer || proc_is_our_tracee(p->target->pid));

	s->has_exec = !IS_AGENT;
	p->exec_tid = is_held ? (pid_t)ev->h.tid : 0;
	p->exec_calls = session_notes_is_alone(p) ? session_notes_count(p) : 0;
	p->exec = waits && session_notes_has_file(p, ev->name) ? PROCESS_EXECUTES : PROCESS_STAYS;
}

/* A thread of @p, which has no tracer, may wait at execve(): there is no verdict if it does not stop, or runs on. */
static void session_notes_judge_one(const struct session *s, struct process *p, exec_judge *judge, void *ctx)
{
	struct stopped_threads all = { 0 };
	bool is_held = p->exec_tid, is_stopped = is_held && exec_wait_stop(&all, p->target->pid);

	if (is_held && (session_stop_reason(s, p->exec_tid).why != THREAD_STOP_EXEC || !is_stopped))
		p->exec = PROCESS_UNJUDGED;
	else
		p->exec = PROCESS_JUDGED;
	if (p->exec == PROCESS_JUDGED)
		judge(ctx, p->target->pid, is_held);
	exec_wait_end(&all);
}

/* Others may come to execve() meanwhile. */
static void session_notes_judge(struct session *s, exec_judge *judge, void *ctx)
{
	while (s->has_exec) {
		s->has_exec = false;
		for (size_t i = 0; i < s->nr_processes; i++) {
			struct process *p = s->processes[i];

			if (p->exec == PROCESS_EXECUTES && !process_is_over(p))
				session_notes_judge_one(s, p, judge, ctx);
			else if (p->exec_tid)
				session_stop_reason(s, p->exec_tid);
			p->exec_tid = 0;
		}
	}
}

static void session_notes_end_check(struct session *s)
{
	struct source *source;
	const struct source_tracer *tracer = session_tracer(s, &source);

	if (tracer && tracer->checked)
		tracer->checked(source);
}

void session_judge_before_exec(struct session *s, exec_judge *judge, void *ctx)
{
	session_notes_judge(s, judge, ctx);
	session_notes_end_check(s);
}

struct exec_check {
	struct session *session;
	const struct session_stopper *stopper;
};

static void session_notes_scan(void *ctx, pid_t pid, bool is_stopped)
{
	const struct exec_check *check = ctx;

	session_scan_before_exec(check->session, pid, is_stopped, check->stopper);
}

void session_check(struct session *s, const struct session_stopper *stopper)
{
	struct exec_check check = { s, stopper };
	const char *before;

	if (!s->wants_check && !s->has_exec)
		return;
	before = control_doing(s->control, "with a leak verdict");
	if (!IS_AGENT)
		session_notes_judge(s, session_notes_scan, &check);
	if (s->wants_check && s->options->scan != SCAN_NEVER)
		session_scan(s, stopper, false);
	if (s->wants_check && session_report(s))
		debug("%s: report not written", s->options->command);
	/* Threads that have come to a marker meanwhile waited there, too. */
	s->wants_check = false;
	session_notes_end_check(s);
	control_doing(s->control, before);
}

static void session_notes_ignore(struct session *s, struct process *p, taddr_t addr)
{
	if (!s->options->no_own_rules && heap_ignore(p->heap, addr))
		debug("PID %d: no memory: a block is not ignored", p->target->pid);
}

static void on_ignore(struct session *s, struct process *p, const struct note_event *ev)
{
	session_notes_ignore(s, p, ev->addr);
}

/* The place of thread @tid among those that are disabled, or behind them. */
static u32 find_disabled(const struct process_notes *n, u32 tid)
{
	u32 i = 0;

	while (i < n->nr_disabled && n->disabled[i].tid != tid)
		i++;
	return i;
}

static void on_disable(struct session *s, struct process *p, const struct note_event *ev)
{
	struct process_notes *n = &p->notes;
	u32 i = find_disabled(n, ev->h.tid);

	(void)s;
	if (i == n->nr_disabled) {
		/* Threads that have ended stay in the list. */
		if (i == MAX_DISABLED || array_reserve(n->disabled, n->max_disabled, i + 1))
			return;
		n->disabled[n->nr_disabled++].tid = ev->h.tid;
		n->disabled[i].depth = 0;
	}
	n->disabled[i].depth++;
}

static void on_enable(struct session *s, struct process *p, const struct note_event *ev)
{
	struct process_notes *n = &p->notes;
	u32 i = find_disabled(n, ev->h.tid);

	(void)s;
	if (i < n->nr_disabled && !--n->disabled[i].depth)
		n->disabled[i] = n->disabled[--n->nr_disabled];
}

void session_note_heap(struct session *s, struct process *p, const struct heap_event *ev)
{
	bool makes = ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END;

	if (makes && ev->addr && find_disabled(&p->notes, ev->h.tid) < p->notes.nr_disabled)
		session_notes_ignore(s, p, ev->addr);
}

static void session_notes_on_thread(struct session *s, struct process *p, const struct note_event *ev)
{
	session_fill_thread(s, p, ev->h.tid, ev->name);
}

static void (*const takers[NR_NOTES])(struct session *s, struct process *p, const struct note_event *ev) = {
	[NOTE_MARK] = session_notes_on_mark, [NOTE_PAUSE] = on_pause,
	[NOTE_RESUME] = on_resume,	     [NOTE_LEAK_CHECK] = on_leak_check,
	[NOTE_IGNORE] = on_ignore,	     [NOTE_DISABLE] = on_disable,
	[NOTE_ENABLE] = on_enable,	     [NOTE_THREAD] = session_notes_on_thread,
	[NOTE_EXEC] = session_notes_on_exec,
};

int session_note(struct session *s, struct process *p, const struct event_header *rec)
{
	const struct note_event *ev = (const struct note_event *)rec;

	/* Only this side can stop a process. */
	if (session_forwards(s) && (IS_AGENT || ev->what != NOTE_EXEC))
		return session_forward_note(s, p, ev);
	if (ev->what < NR_NOTES && takers[ev->what])
		takers[ev->what](s, p, ev);
	return 0;
}

void session_note_begin(const struct session *s, struct process *p)
{
	if (!s->options->start_paused || s->is_resumed)
		return;
	p->notes.is_paused = true;
	p->notes.is_from_start = true;
	p->tuned.has_unseen = true;
}

/* Does @ev make a block that was not counted before? Results of failed calls count. */
static bool makes_block(const struct process *p, const struct heap_event *ev)
{
	struct heap_block block;

	switch (ev->h.kind) {
	case EVENT_ALLOC:
		return ev->addr && !(ev->h.flags & EVENT_RETRY);
	case EVENT_REALLOC_BEGIN:
		return !heap_find(p->heap, ev->old_addr, &block);
	case EVENT_REALLOC_END:
		return !heap_is_pending(p->heap, ev->h.tid, ev->old_addr);
	default:
		return false;
	}
}

bool session_note_leaves_out(struct process *p, const struct heap_event *ev)
{
	if (!p->notes.is_paused || !makes_block(p, ev))
		return false;
	p->notes.nr_left_out += ev->h.kind != EVENT_REALLOC_BEGIN;
	return true;
}

bool session_note_resume_all(struct session *s)
{
	bool was_paused = false;

	/* Events that came before. */
	if (session_poll(s))
		debug("start: no more events");
	s->is_resumed = true;
	for (size_t i = 0; i < s->nr_processes; i++) {
		was_paused |= s->processes[i]->notes.is_paused && !process_is_over(s->processes[i]);
		s->processes[i]->notes.is_paused = false;
	}
	return was_paused;
}

const char *session_note_text(struct process *p)
{
	struct process_notes *n = &p->notes;

	if (!n->nr_pauses && !n->is_from_start)
		return NULL;
	if (!n->nr_pauses)
		snprintf(n->text, sizeof(n->text), "counting began %s: %s allocation%s before %s left out",
			 n->is_paused ? "never (--start-paused)" : "late (--start-paused)",
			 human_count(n->nr_left_out).text, n->nr_left_out == 1 ? "" : "s",
			 n->nr_left_out == 1 ? "is" : "are");
	else
		snprintf(n->text, sizeof(n->text),
			 "the program paused counting %" PRIu64
			 " time%s%s: %s allocation%s of that time %s left out",
			 n->nr_pauses, n->nr_pauses == 1 ? "" : "s",
			 n->is_from_start ? ", and began paused" : "", human_count(n->nr_left_out).text,
			 n->nr_left_out == 1 ? "" : "s", n->nr_left_out == 1 ? "is" : "are");
	return n->text;
}
