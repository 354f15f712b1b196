/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pause, resume, depth of stacks and filter of a running session, here or on another machine. */
#include "user/session/session_tune.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/session/session_live.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_told.h"

struct tuning session_tuning(const struct session *s)
{
	return s->tuned.now;
}

/* From now on there may be live blocks whose allocation was not seen. */
static void expect_unseen(struct session *s, struct process *p)
{
	p->tuned.has_unseen = true;
	session_expect_gaps(s, p);
}

static void count_pause(struct process *p, bool is_paused)
{
	struct process_pauses *t = &p->tuned.pauses;

	if (is_paused == (t->begin_ns != 0))
		return;
	t->nr += is_paused;
	if (!is_paused)
		t->past_ns += clock_now_ns() - t->begin_ns;
	t->begin_ns = is_paused ? clock_now_ns() : 0;
}

void session_tune_process(struct session *s, struct process *p)
{
	const struct tuning *t = &s->tuned.now;

	session_note_begin(s, p);
	if (p->notes.is_paused)
		session_expect_gaps(s, p);
	if (!t->is_paused && !tuning_has_filter(t))
		return;
	if (t->is_paused) {
		s->ops->pause(s->source, p->target->pid);
		count_pause(p, true);
	}
	expect_unseen(s, p);
}

void session_tune_told(const struct session *s, struct process *p)
{
	p->tuned.has_unseen = s->tuned.has_paused || tuning_has_filter(&s->tuned.now);
	count_pause(p, s->tuned.now.is_paused);
}

void session_tune_image(struct session *s, struct process *p, struct process *image)
{
	if (p->tuned.pauses.begin_ns) {
		count_pause(image, true);
		expect_unseen(s, image);
	} else if (p->tuned.pace.until_ns) {
		s->ops->resume(s->source, p->target->pid);
		expect_unseen(s, image);
	}
	session_tune_process(s, image);
}

/* Enter all events so far. */
static int catch_up(struct session *s)
{
	int err = session_poll(s);

	return err == -ENODATA ? 0 : err;
}

/* Does process @p run, is it process @pid (0 = any), and are its calls not seen (@is_paused), or seen? */
static bool is_to_change(const struct process *p, pid_t pid, bool is_paused)
{
	return !process_is_over(p) && (!pid || p->target->pid == pid) &&
	       (p->tuned.pauses.begin_ns != 0) == is_paused;
}

/*
 * Pause process @pid, or all (0). Frees of live blocks may go unseen from now on. Events in the ring are older than the
 * pause.
 */
static int pause_here(struct session *s, pid_t pid)
{
	int err;

	for (size_t i = 0; i < s->nr_processes; i++)
		if (is_to_change(s->processes[i], pid, false))
			s->ops->pause(s->source, s->processes[i]->target->pid);
	err = catch_up(s);
	for (size_t i = 0; i < s->nr_processes; i++) {
		struct process *p = s->processes[i];

		if (!is_to_change(p, pid, false))
			continue;
		session_taint(s, p);
		expect_unseen(s, p);
		count_pause(p, true);
	}
	return err;
}

static int resume_here(struct session *s, pid_t pid)
{
	/* Events that were on their way when the pause began. */
	int err = catch_up(s);

	for (size_t i = 0; i < s->nr_processes; i++) {
		if (!is_to_change(s->processes[i], pid, true))
			continue;
		s->ops->resume(s->source, s->processes[i]->target->pid);
		count_pause(s->processes[i], false);
	}
	return err;
}

static int filter_here(struct session *s, const struct tuning *t)
{
	int err = catch_up(s);

	for (size_t i = 0; i < s->nr_processes && tuning_has_filter(t); i++)
		if (!process_is_over(s->processes[i]))
			expect_unseen(s, s->processes[i]);
	return err;
}

static int set_depth(struct session *s, u32 depth)
{
	int err = s->ops->set_depth ? s->ops->set_depth(s->source, depth) : -EOPNOTSUPP;

	if (err == -EOPNOTSUPP)
		error("%s: tracing began without stacks (--depth 0); they cannot be switched on now",
		      s->ops->name);
	else if (err)
		error("%s: depth of stacks: %s", s->ops->name, strerror(-err));
	return err;
}

static int tune_here(struct session *s, const struct tuning *t)
{
	const struct tuning *now = &s->tuned.now;
	int err = 0;

	if (t->depth != now->depth)
		err = set_depth(s, t->depth);
	if (!err && (t->min_size != now->min_size || t->max_size != now->max_size))
		err = filter_here(s, t);
	if (!err && t->is_paused != now->is_paused)
		err = t->is_paused ? pause_here(s, 0) : resume_here(s, 0);
	return err;
}

static int tune_there(struct session *s, const struct tuning *t)
{
	const struct source_told_ops *told = session_told(s);
	char why[160] = "its source takes no commands";
	int err = told->tune ? told->tune(s->source, t, &s->sink, why, sizeof(why)) : -EOPNOTSUPP;

	if (err) {
		error("%s: %s", s->ops->name, why);
		return err;
	}
	for (size_t i = 0; i < s->nr_processes; i++) {
		s->processes[i]->tuned.has_unseen |= t->is_paused || tuning_has_filter(t);
		if (!process_is_over(s->processes[i]))
			count_pause(s->processes[i], t->is_paused);
	}
	return 0;
}

static int pause_there(struct session *s, pid_t pid, bool is_paused)
{
	const struct source_told_ops *told = session_told(s);
	char why[160] = "its source takes no commands";
	int err = told->pause ? told->pause(s->source, pid, is_paused, &s->sink, why, sizeof(why))
			      : -EOPNOTSUPP;

	if (err)
		error("%s: %s", s->ops->name, why);
	for (size_t i = 0; i < s->nr_processes && !err; i++) {
		if (!is_to_change(s->processes[i], pid, !is_paused))
			continue;
		s->processes[i]->tuned.has_unseen |= is_paused;
		count_pause(s->processes[i], is_paused);
	}
	return err;
}

static int check_tunable(const struct session *s)
{
	if (!s->is_replayed && !s->stop_ns)
		return 0;
	error("%s: %s", s->ops->name, s->is_replayed ? "a file cannot be told" : "tracing is over");
	return -EOPNOTSUPP;
}

int session_tune(struct session *s, const struct tuning *t)
{
	int err = tuning_is_sane(t) ? check_tunable(s) : -EINVAL;

	if (!err)
		err = session_told(s) ? tune_there(s, t) : tune_here(s, t);
	if (err)
		return err;
	s->tuned.has_paused |= t->is_paused;
	s->tuned.now = *t;
	return 0;
}

bool session_is_paused(const struct session *s, pid_t pid)
{
	bool is_any = false;

	for (size_t i = 0; i < s->nr_processes; i++) {
		if (is_to_change(s->processes[i], pid, false))
			return false;
		is_any |= is_to_change(s->processes[i], pid, true);
	}
	return is_any || (!pid && s->tuned.now.is_paused);
}

int session_pause(struct session *s, pid_t pid, bool is_paused)
{
	struct tuning t = s->tuned.now;
	bool is_any = false;
	int err = check_tunable(s);

	for (size_t i = 0; i < s->nr_processes; i++)
		is_any |= is_to_change(s->processes[i], pid, !is_paused);
	if (err || (!is_any && (pid || t.is_paused == is_paused)))
		return err ? err : -EALREADY;
	if ((pid || t.is_paused == is_paused) && session_told(s))
		return pause_there(s, pid, is_paused);
	if (pid || t.is_paused == is_paused)
		return is_paused ? pause_here(s, pid) : resume_here(s, pid);
	t.is_paused = is_paused;
	return session_tune(s, &t);
}

int session_kill(struct session *s)
{
	const struct source_told_ops *told = session_told(s);

	return told && told->kill ? told->kill(s->source) : -EOPNOTSUPP;
}

void session_set_window(struct session *s, u32 number, u64 first_ns)
{
	s->tuned.window = number;
	s->tuned.first_window_ns = first_ns;
}

struct report_window session_window(const struct session *s, const struct process *p, u64 now_ns)
{
	const struct session_tuned *d = &s->tuned;
	const struct process_pace *pace = p ? &p->tuned.pace : NULL;

	if (pace && pace->window)
		return (struct report_window){ pace->window,
					       (pace->until_ns ? pace->paused_ns : now_ns) - pace->begin_ns,
					       now_ns - pace->first_ns };
	if (d->window < 2 || !s->start_ns || d->first_window_ns >= s->start_ns)
		return (struct report_window){ 0 };
	return (struct report_window){ d->window, now_ns - s->start_ns, now_ns - d->first_window_ns };
}

static size_t note_window(const struct session *s, const struct process *p, char *note, size_t size,
			  u64 now_ns)
{
	const struct report_window w = session_window(s, p, now_ns);
	u64 scale = report_window_permille(&w);

	/* The agent has no --max-cost. */
	if (IS_AGENT || !w.number)
		return 0;
	snprintf(note, size,
		 "traced in windows, because of --max-cost: these numbers are exact for window %u, %s of %s; "
		 "times %" PRIu64 ".%02" PRIu64 " they stand for all that time",
		 w.number, human_duration(w.seen_ns).text, human_duration(w.whole_ns).text, scale / 1000,
		 scale % 1000 / 10);
	return 1;
}

size_t session_note_tuning(const struct session *s, struct process *p, u64 now_ns, const char **notes)
{
	const struct process_pauses *pauses = &p->tuned.pauses;
	u64 left_out = p->tuned.nr_left_out, paused_ns = pauses->past_ns;
	size_t nr = 0;

	if (pauses->begin_ns)
		paused_ns +=
			(s->stop_ns && !session_told(s) ? s->stop_ns : clock_now_ns()) - pauses->begin_ns;
	if (pauses->nr) {
		snprintf(p->tuned.notes[nr], sizeof(p->tuned.notes[nr]),
			 "stopped %" PRIu64 " time%s, for %s in all: calls of that time were not seen",
			 pauses->nr, pauses->nr == 1 ? "" : "s", human_duration(paused_ns).text);
		notes[nr] = p->tuned.notes[nr];
		nr++;
	}
	if (left_out) {
		snprintf(p->tuned.notes[nr], sizeof(p->tuned.notes[nr]),
			 "%s allocation%s left out for %s size, in all sums", human_count(left_out).text,
			 left_out == 1 ? "" : "s", left_out == 1 ? "its" : "their");
		notes[nr] = p->tuned.notes[nr];
		nr++;
	}
	if (p->tuned.left_file[0]) {
		snprintf(p->tuned.notes[nr], sizeof(p->tuned.notes[nr]),
			 "calls in %s are not seen any more, because of --max-cost", p->tuned.left_file);
		notes[nr] = p->tuned.notes[nr];
		nr++;
	}
	notes[nr] = p->tuned.notes[nr];
	return nr + note_window(s, p, p->tuned.notes[nr], sizeof(p->tuned.notes[nr]), now_ns);
}
