/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The outgoing half of a session: reports on the heaps as they are now. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/fold.h"
#include "user/heap/heap.h"
#include "user/heap/misuse.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/report/output.h"
#include "user/report/report.h"
#include "user/report/wrappers.h"
#include "user/scan/leaks_suppress.h"
#include "user/scan/suppress_program.h"
#include "user/session/session_ask.h"
#include "user/session/session_books.h"
#include "user/session/session_ending.h"
#include "user/session/session_live.h"
#include "user/session/session_losses.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_residence.h"
#include "user/session/session_runtime.h"
#include "user/session/session_span.h"
#include "user/session/session_unwatched.h"
#include "user/session/session_told.h"
#include "user/names/symbolize.h"

/* Takes the suppressions that a traced program has in itself, when its first verdict is reported. */

/* The program's file, which is open; of a recording or another machine, if it is here, too, as for names. */
static const struct module *session_rules_program_of(const struct session *s, const struct process *p)
{
	const struct mapping_list *maps = &p->target->maps;
	struct module *m = NULL;

	for (size_t i = 0; i < maps->nr && !m; i++)
		if (maps->maps[i].module && p->target->exe &&
		    !strcmp(maps->maps[i].module->path, p->target->exe))
			m = maps->maps[i].module;
	if (!IS_AGENT && m && s->symbolizer)
		symbolizer_open(s->symbolizer, m);
	return m && m->fd >= 0 ? m : NULL;
}

static int read_rules(struct suppress_list *list, const struct module *m)
{
	struct elf *elf;
	int err = elf_open(&elf, m->fd);

	if (err)
		return err;
	err = suppress_add_program(list, elf);
	elf_close(elf);
	return err;
}

/* The suppressions of @p, or NULL. heaptap looks once at each program. */
static const struct suppress_list *session_own_rules(const struct session *s, struct process *p)
{
	const struct module *m =
		p->has_own_rules || s->options->no_own_rules ? NULL : session_rules_program_of(s, p);
	int err;

	if (!m)
		return p->own_rules;
	p->has_own_rules = true;
	err = suppress_new(&p->own_rules);
	if (!err)
		err = read_rules(p->own_rules, m);
	if (err && err != -ENOENT && err != -ENOTSUP)
		warn("PID %d: its own suppressions are not used: %s", p->target->pid, strerror(-err));
	else if (err == -ENOTSUP && p->own_rules)
		warn("PID %d: its own suppressions are not used: __lsan_default_suppressions() does more than return a "
		     "constant; give them by --suppressions",
		     p->target->pid);
	return p->own_rules;
}

/* The allocators of @t as reports show them; the caller owns the list. */
static struct report_allocator *list_allocators(const struct target *t)
{
	struct report_allocator *list = calloc(t->nr_allocators + 1, sizeof(*list));

	for (size_t i = 0; list && i < t->nr_allocators; i++)
		list[i] = (struct report_allocator){ t->allocators[i].module->path, t->allocators[i].kind };
	return list;
}

int session_make_symbolizer(struct session *s)
{
	return s->symbolizer ? 0 : symbolizer_new(&s->symbolizer, s->modules, &s->options->names);
}

void session_forget_names(struct session *s)
{
	symbolizer_free(s->symbolizer);
	s->symbolizer = NULL;
}

void session_count_findings(const struct process *p, struct session_found *f)
{
	struct misuse_counts wrong = heap_misuse_counts(p->heap);
	const struct scan_sum *of = NULL;
	struct trend_growth growth;

	if (process_is_unwatched(p)) {
		f->nr_unwatched += p->life != PROCESS_REPLACED;
		return;
	}
	for (int i = 0; i < NR_MISUSES; i++)
		f->nr_misuses += wrong.of[i];
	f->nr_rested += !IS_AGENT && process_saw_few(p);
	if ((IS_AGENT || !process_saw_few(p)) && heap_growth(p->heap, &p->trend, &growth) &&
	    trend_permille(&growth) > f->growth)
		f->growth = trend_permille(&growth);
	f->nr_unwatched += p->target->half_watched != NULL;
	f->nr_parents += p->has_children;
	/* exec() frees all memory of the old program: what that has lost fails no rule. */
	if (p->life == PROCESS_REPLACED)
		return;
	if (!p->leaks || !p->leaks->has_verdict || p->target->half_watched ||
	    (!IS_AGENT && process_saw_few(p) && !*p->leaks->books.allocator)) {
		f->nr_unjudged++;
		return;
	}
	/* Books have blocks from before an attach, too: those count by --older-blocks. */
	of = p->target->is_started ? leaks_all(p->leaks)->of : p->leaks->result.sums.of;
	f->lost.blocks += of[SCAN_DEFINITE].blocks;
	f->lost.bytes += of[SCAN_DEFINITE].bytes;
	f->with.blocks += of[SCAN_INDIRECT].blocks;
	f->with.bytes += of[SCAN_INDIRECT].bytes;
	if (IS_AGENT || !process_saw_few(p) || p->target->is_started)
		return;
	f->maybe_old.blocks +=
		of[SCAN_DEFINITE].blocks + of[SCAN_INDIRECT].blocks - p->leaks->books.since.blocks;
	f->maybe_old.bytes += of[SCAN_DEFINITE].bytes + of[SCAN_INDIRECT].bytes - p->leaks->books.since.bytes;
}

static const char *session_report_why_few(const struct process *p)
{
	if (p->lost.now.cramped)
		return "no leak verdict: its memory is limited (RLIMIT_AS or RLIMIT_DATA), so that heaptap took its "
		       "code out of it, and later calls were not seen: --backend bpf sees them";
	if (p->lost.now.twins)
		return "no leak verdict: a thread of it has the thread pointer of another, so that heaptap took its "
		       "code out of it, and later calls were not seen: --backend bpf sees them";
	return "no leak verdict: because of --max-cost most of its calls are not seen; heaptap scan judges "
	       "all blocks";
}

/* A recording does not have all options, and its report says the same. */
static const char *session_report_why_replaced(const struct process *p)
{
	return IS_AGENT || p->origin == PROCESS_COPY
		       ? "no leak verdict: it became another program"
		       : "no leak verdict: it became another program (--follow judges it before, where it can)";
}

/* Why @p has no verdict, NULL if it has one or none was asked for. */
static const char *note_of(const struct session *s, const struct process *p)
{
	/* A report on such a process claims nothing. */
	if (process_is_unwatched(p))
		return NULL;
	if (p->target->half_watched)
		return "no leak verdict: not all functions of one of its allocators are watched";
	if (!IS_AGENT && process_saw_few(p) &&
	    (!p->leaks ||
	     (!*p->leaks->books.allocator && (p->leaks->has_verdict || p->leaks->err == -ENOENT))))
		return session_report_why_few(p);
	if (p->leaks)
		return p->leaks->has_verdict ? NULL : p->leaks->why;
	if (!process_is_over(p) && s->cut_note)
		return s->cut_note;
	if (!process_is_over(p) && s->has_judged)
		return p->marks.is_last
			       ? "no leak verdict: nothing of it was watched yet when verdicts were found"
			       : "no leak verdict: it began when verdicts were already being found";
	if (!process_is_over(p) || !s->wants_notes)
		return NULL;
	if (p->life != PROCESS_REPLACED && session_why_left(s, p->target) == THREAD_STOP_TRACER)
		return "no leak verdict: another followed process (a debugger?) traced it, and only one can; "
		       "calls in libraries that it alone loaded may be missing";
	if (!IS_AGENT && *p->end_note)
		return p->end_note;
	return p->life == PROCESS_REPLACED ? session_report_why_replaced(p) : "no leak verdict: it had ended";
}

/* Notes on what of it, or of its children, is not traced. Returns how many. */
static size_t note_untraced(struct process *p, const char **notes)
{
	const struct {
		u64 nr;
		const char *one, *many, *what;
	} all[ARRAY_SIZE(p->untraced_notes)] = {
		{ p->lost.now.unfollowed + p->dropped.unfollowed, "child is", "children are",
		  "not followed: more than --max-procs, no room for their events, or born while heaptap began "
		  "or ended" },
		{ p->lost.now.sharers, "process shared", "processes shared",
		  "its memory: their calls are not seen (--follow)" },
		{ p->lost.now.overwritten, "breakpoint of heaptap was", "breakpoints of heaptap were",
		  "overwritten in it by another program, dropped by madvise(), or copied with code: calls are "
		  "missing" },
		{ p->lost.now.tracers, "other program (a debugger?) traced", "other programs traced",
		  "it: where both have a breakpoint, calls are missing" },
#if !IS_AGENT
		{ p->lost.now.by_probes, "file", "files",
		  "of it cannot be changed by --backend inline: breakpoints have seen all of its calls" },
		{ p->lost.now.late, "program", "programs",
		  "of it began, by exec, before the code or the probes of heaptap were there: first calls, or all, "
		  "may be missing" },
#endif
		{ p->nr_unlisted, "program of a child", "programs of its children",
		  "ended before heaptap could look: nothing was seen, and none is listed" },
	};
	size_t nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (!all[i].nr)
			continue;
		snprintf(p->untraced_notes[i], sizeof(p->untraced_notes[i]), "%" PRIu64 " %s %s", all[i].nr,
			 all[i].nr == 1 ? all[i].one : all[i].many, all[i].what);
		notes[nr++] = p->untraced_notes[i];
	}
	return nr;
}

/* The last row of the children that ended first. Returns how many notes. */
static size_t note_dropped(struct process *p, const char **note)
{
	const struct dropped *d = &p->dropped;

	if (!d->nr)
		return 0;
	snprintf(p->dropped_note, sizeof(p->dropped_note),
		 "%" PRIu64 " children that ended first are not listed (--max-procs): %s allocations, "
		 "%s releases, %s in %s blocks live at their ends, %s events lost",
		 d->nr, human_count(d->allocs).text, human_count(d->frees).text,
		 human_bytes(d->live_bytes).text, human_count(d->live_blocks).text,
		 human_count(d->lost).text);
	*note = p->dropped_note;
	return 1;
}

int session_suppress(struct session *s, struct process *p)
{
	const struct leaks_names names = { p->heap, s->stacks, s->modules, s->symbolizer };
	int err = 0;

	if (!p->leaks || !p->leaks->has_verdict)
		return 0;
	if (s->options->suppress)
		err = leaks_suppress(p->leaks, s->options->suppress, &names);
	return err ? err : leaks_suppress(p->leaks, session_own_rules(s, p), &names);
}

/* Callers that are counted for others. False: there are none. */
static bool session_report_note_folded(const struct session *s, struct process *p)
{
	struct fold_counts c = heap_folded(p->heap);

	if (!c.callers)
		return false;
	snprintf(p->folded_note, sizeof(p->folded_note),
		 "%s callers, %s of them with live blocks, are counted for the functions that called them "
		 "([folded callers]), because the books reached --max-memory %s: totals are exact",
		 human_count(c.callers).text, human_count(c.live_callers).text,
		 human_bytes(s->bound.max).text);
	return true;
}

static void describe_note(struct process *p, struct report_process *out, const char *note)
{
	if (array_reserve(p->texts, p->max_texts, out->nr_notes + 1))
		warn("PID %d: not enough memory for a note: %s", p->target->pid, note);
	else
		p->texts[out->nr_notes++] = note;
}

int session_describe(struct session *s, struct process *p, u64 now_ns, struct report_process *out)
{
	struct report_allocator *allocators = list_allocators(p->target);
	const char *untraced[ARRAY_SIZE(p->untraced_notes)], *dropped, *tuning[ARRAY_SIZE(p->tuned.notes)],
		*runtime;
	int err = 0;
	size_t nr;

	/* A trend begins with an event: whether somebody asked before makes no other one. */
	if (!process_is_over(p) && p->trend.nr)
		trend_add(&p->trend, now_ns, heap_live_bytes(p->heap));
	session_look(s, p);
	session_look_at_children(s, p->target->pid);
	session_read_losses(s, p);
	if (!IS_AGENT) {
		wrappers_free(take_ptr(p->wrappers));
		err = wrappers_new(&p->wrappers, p->heap, s->stacks, s->options->wrappers);
	}
	*out = (struct report_process){ .target = p->target,
					.heap = p->heap,
					.stacks = s->stacks,
					.losses = &p->lost.now,
					.allocators = allocators,
					.nr_allocators = allocators ? p->target->nr_allocators : 0,
					.leaks = p->leaks,
					.trend = &p->trend,
					.wrappers = p->wrappers,
					.residence =
						p->residence && p->residence->now.rss ? p->residence : NULL,
					.reported = p->reported,
					.nr_reported = p->nr_reported,
					.is_replaced = p->life == PROCESS_REPLACED,
					.has_unseen = p->tuned.has_unseen,
					.saw_few = !IS_AGENT && process_saw_few(p) };
	if (process_is_unwatched(p)) {
		out->unwatched_help = session_explain_unwatched(s, p);
		out->unwatched = p->unwatched;
		out->leaks = NULL;
	}
	if (out->leaks && !err)
		err = session_suppress(s, p);
	if (note_of(s, p)) {
		out->no_verdict = note_of(s, p);
		describe_note(p, out, out->no_verdict);
		out->leaks = NULL;
	}
	if (session_has_span(s))
		describe_note(p, out, session_span_note(s));
	if (!IS_AGENT && session_report_note_folded(s, p))
		describe_note(p, out, p->folded_note);
	if (p->has_children)
		describe_note(p, out, "it has, or had, children: their calls are not seen (--follow)");
	nr = note_untraced(p, untraced);
	for (size_t i = 0; i < nr; i++)
		describe_note(p, out, untraced[i]);
	if (note_dropped(p, &dropped))
		describe_note(p, out, dropped);
	nr = session_note_tuning(s, p, now_ns, tuning);
	for (size_t i = 0; i < nr; i++)
		describe_note(p, out, tuning[i]);
	if (session_why_left(s, p->target) == THREAD_STOP_UNTRACED && !note_of(s, p))
		describe_note(
			p, out,
			"the leak verdict is of the moment when it made a task by CLONE_UNTRACED (LeakSanitizer at "
			"exit): heaptap let it go then");
	/* All mappings are looked at for it. */
	runtime = IS_AGENT || out->unwatched ? NULL : session_note_runtime(p);
	if (runtime)
		describe_note(p, out, runtime);
	if (!IS_AGENT && out->leaks && !p->target->is_started && !process_is_over(p) && !session_told(s) &&
	    !s->is_replayed)
		out->lacks_books = session_lacks_books(p);
	if (out->leaks)
		out->ending = session_ending_note(p);
	if (out->ending)
		describe_note(p, out, out->ending);
	if (session_note_text(p))
		describe_note(p, out, session_note_text(p));
	out->notes = p->texts;
	session_count_findings(p, &s->found);
	return err;
}

/* Growth in the next report counts from now on; without memory, from the report before. */
static void remember_report(struct process *p)
{
	size_t nr = heap_row_count(p->heap);
	u64 *bytes = reallocarray(p->reported, nr + 1, sizeof(*bytes));

	if (!bytes)
		return;
	for (size_t i = 0; i < nr; i++)
		bytes[i] = heap_row_get(p->heap, i).live_bytes;
	p->reported = bytes;
	p->nr_reported = nr;
}

/* A verdict is for one report; the last one of a process that ends is kept. */
void session_forget_verdicts(struct session *s)
{
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (p->has_last_verdict)
			continue;
		leaks_free(p->leaks);
		p->leaks = NULL;
	}
}

void session_reported(struct session *s)
{
	session_forget_verdicts(s);
	for (size_t i = 0; i < s->nr_processes; i++)
		remember_report(s->processes[i]);
	recorder_mark_report(s->recorder);
}

struct writing {
	struct session *session;
	pid_t pid; /* 0 = all */
	int (*write)(void *ctx, const struct report *r);
	void *ctx;
	struct report report;
	struct report_process *list;
};

static int session_report_write_report(void *arg)
{
	struct writing *w = arg;
	struct session *s = w->session;
	int err = session_make_symbolizer(s);

	/* Numbers without names are better than nothing. */
	if (err == -ENOMEM) {
		warn("report: not enough memory: the report is without names");
		w->report.is_short = true;
		err = 0;
	}
	for (size_t i = 0; !err && i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (p->is_hidden || (w->pid && p->target->pid != w->pid))
			continue;
		if (!IS_AGENT && s->symbolizer && !s->is_replayed)
			symbolizer_read_perf_map(s->symbolizer, p->target->pid);
		err = session_describe(s, p, w->report.time_ns, &w->list[w->report.nr_processes++]);
	}
	w->report.symbolizer = s->symbolizer;
	if (err)
		error("report: %s", strerror(-err));
	return err ? err : w->write(w->ctx, &w->report);
}

int session_show(struct session *s, pid_t pid, int (*write)(void *ctx, const struct report *r), void *ctx)
{
	const struct source_told_ops *told = session_told(s);
	u64 now = s->stop_ns ? s->stop_ns : session_source_ns(s);
	/* The record that ended a part may be a mark behind it. */
	const struct report_marks marks = session_marks(s);
	struct writing w = {
		.session = s,
		.pid = pid,
		.write = write,
		.ctx = ctx,
		.list = calloc(s->nr_processes + 1, sizeof(*w.list)),
		.report = { .backend = told ? told->backend(s->source) : session_backend(s),
			    .time_ns = now,
			    .duration_ns = s->start_ns ? now - s->start_ns : 0,
			    .real_ns = session_real_ns(s, now),
			    .nr_strays = s->nr_strays,
			    .cost = session_cost(s),
			    .marks = &marks,
			    .window = session_window(s, pid ? session_find(s, (u32)pid) : NULL, now),
			    .between = session_has_span(s) ? &s->span : NULL,
			    .is_broken_off = s->is_damaged ||
					     (told && told->is_broken_off && told->is_broken_off(s->source)),
			    .is_elsewhere = told || s->is_replayed,
			    .goes_on = !told && !s->is_replayed && !s->stop_ns,
			    .may_be_scanned = !IS_AGENT && !told && !s->is_replayed && !s->stop_ns &&
					      s->options->scan != SCAN_NEVER,
			    .modules = s->modules },
	};
	int err;

	if (!w.list) {
		error("report: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	w.report.processes = w.list;
	session_forget_findings(s);
	err = session_aside(s, session_report_write_report, &w);
	for (size_t i = 0; i < w.report.nr_processes; i++)
		free((void *)w.list[i].allocators);
	free(w.list);
	return err;
}

int session_report(struct session *s)
{
	int err = 0;

	/* A recording has been checked when it was read. */
	if (session_has_span(s) && !s->is_replayed && !session_span_is_over(s)) {
		if (!s->stop_ns) {
			info("%s: no report yet: the last moment of --between has not come",
			     s->options->command);
			return 0;
		}
		err = session_span_finish(s, NULL);
	}
	if (!IS_AGENT) {
		session_forget_asked(s);
		session_residence_read(s);
	}
	if (!err)
		err = session_show(s, 0, outputs_write_to, s->outs);
	if (!IS_AGENT)
		session_residence_forget(s);
	session_reported(s);
	return err;
}

/* Sums of lost blocks that count by @rules. Where blocks are left out, who led to whom is not known. */
static void session_count_lost(const struct session *s, const struct fail_rules *rules, struct scan_sum *lost,
			       struct scan_sum *with)
{
	const struct scan_sum *old = &s->found.maybe_old;

	*lost = s->found.lost;
	*with = s->found.with;
	if (IS_AGENT || !rules->spares_older || !old->blocks)
		return;
	lost->blocks += with->blocks - old->blocks;
	lost->bytes += with->bytes - old->bytes;
	*with = (struct scan_sum){ 0 };
}

static bool session_are_lost(const struct session *s, const struct fail_rules *rules)
{
	struct scan_sum lost, with;

	session_count_lost(s, rules, &lost, &with);
	return rules->on_definite && (lost.blocks || with.blocks) && lost.bytes + with.bytes >= rules->bytes;
}

/* Would a rule be met by blocks that may be from before the trace, which do not count? */
static bool session_may_be_lost(const struct session *s, const struct fail_rules *rules)
{
	struct fail_rules all = *rules;

	all.spares_older = false;
	return rules->spares_older && session_are_lost(s, &all);
}

bool session_has_findings(struct session *s, const struct fail_rules *rules)
{
	if (session_are_lost(s, rules))
		return true;
	if (rules->on_errors && s->found.nr_misuses)
		return true;
	/* Where releases are missing, all memory grows. */
	return rules->growth && s->found.growth >= rules->growth && !session_has_losses(s);
}

/* Each rule that was asked for, after what was measured for it. */
static void describe_findings(const struct session *s, char *text, size_t size)
{
	const struct fail_rules *rules = &s->options->fail;
	struct scan_sum lost, with;
	size_t used = 0;

	session_count_lost(s, rules, &lost, &with);
	if (rules->on_definite) {
		if (lost.blocks || with.blocks)
			used = snprintf(
				text, size, "leaks %s",
				human_lost("", lost.bytes, lost.blocks, with.bytes, with.blocks).text);
		else
			used = snprintf(text, size, "no leaks");
		used += snprintf(text + used, size - used, " (--fail-on definite%s%s)",
				 rules->bytes ? ", limit " : "",
				 rules->bytes ? human_bytes(rules->bytes).text : "");
	}
	if (rules->on_errors)
		used += snprintf(text + used, size - used, "%s%s wrong release%s (--fail-on errors)",
				 used ? "; " : "", human_count(s->found.nr_misuses).text,
				 s->found.nr_misuses == 1 ? "" : "s");
	if (rules->growth)
		snprintf(text + used, size - used, "%sgrowth %s (--fail-on growth, limit %s)",
			 used ? "; " : "", human_percent(s->found.growth, 1000).text,
			 human_percent(rules->growth, 1000).text);
}

/* The last line of a run in a test or a build: why it failed, or what was measured. */
static void log_findings(const struct session *s, bool has_failed)
{
	char text[512] = "";

	describe_findings(s, text, sizeof(text));
	if (has_failed)
		error("%s: FAILED: %s", s->options->command, text);
	else
		info("%s: passed: %s%s", s->options->command, text,
		     s->found.nr_parents ? "; children were not watched (--follow)" : "");
}

int session_findings(struct session *s)
{
	if (session_has_findings(s, &s->options->fail)) {
		log_findings(s, true);
		return 1;
	}
	if (!fail_rules_any(&s->options->fail))
		return 0;
	if (s->found.nr_unwatched)
		error("%s: --fail-on: no verdict: not everything could be watched in %zu process%s",
		      s->options->command, s->found.nr_unwatched, s->found.nr_unwatched == 1 ? "" : "es");
	/* The functions were logged. */
	if (s->found.nr_unwatched || s->nr_missing)
		return -ENODATA;
	if (s->found.nr_unjudged && s->options->fail.on_definite) {
		error("%s: --fail-on: no leak verdict on %zu process%s", s->options->command,
		      s->found.nr_unjudged, s->found.nr_unjudged == 1 ? "" : "es");
		return -ENODATA;
	}
	if (!IS_AGENT && session_may_be_lost(s, &s->options->fail)) {
		error("%s: --fail-on: no verdict: most calls are not seen, and lost blocks "
		      "may be older than the trace: --older-blocks yes with --leaks all counts them",
		      s->options->command);
		return -ENODATA;
	}
	if (!IS_AGENT && s->found.nr_rested && (s->options->fail.on_errors || s->options->fail.growth)) {
		error("%s: --fail-on: no verdict: most calls of %zu process%s are not seen",
		      s->options->command, s->found.nr_rested, s->found.nr_rested == 1 ? "" : "es");
		return -ENODATA;
	}
	if (session_has_losses(s)) {
		error("%s: --fail-on: no verdict: events were lost", s->options->command);
		return -EIO;
	}
	log_findings(s, false);
	return 0;
}

bool session_lacks_functions(const struct session *s)
{
	return s->nr_missing;
}

void session_forget_findings(struct session *s)
{
	s->found = s->dropped_found;
}
