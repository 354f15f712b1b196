/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap attach: trace running processes until Ctrl-C, the end of the time, or theirs. */
#include "user/cli/attach.h"

#include <errno.h>
#include <string.h>

#include "user/cli/cmd_census.h"
#include "user/cli/commands.h"
#include "user/cli/options_rooms.h"
#include "user/session/code_choice.h"
#include "user/session/cost_limit.h"
#include "user/session/control.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/metrics/trace_metrics.h"
#include "user/cli/tracees.h"
#include "user/cli/tracing.h"
#include "user/session/session.h"
#include "user/session/session_ask.h"
#include "user/session/session_ending.h"
#include "user/session/session_span.h"
#include "user/session/session_live.h"
#include "user/source/sample_pace.h"
#include "user/source/source_open.h"
#include "user/top/status_line.h"

enum { POLL_MS = 20, DEAR_MS = 5 /* with --max-cost */, SAMPLED_MS = 100, ALIVE_MS = 100 };

/* Only its ptracer can stop a child before its first instruction, and have it make rings for the code in it. */
static bool joins_targets(const struct options *o)
{
	return !IS_AGENT && o->follow && o->backend == BACKEND_INLINE;
}

/* By auto, who gets code may have children, too. */
static bool joins_later(const struct options *o)
{
	return !IS_AGENT && o->follow && o->backend == BACKEND_AUTO;
}

/* One attach. */
struct attach {
	const struct options *options;
	struct tracees tracees; /* has a launch where children are followed by inline; owned */
	struct trace_metrics metrics;
	struct code_choice choice;
	struct cost_limit limit;
};

/* False: nobody reads reports any more. */
static bool cmd_attach_report(struct attach *a, struct session *s)
{
	int err;

	if (session_poll(s))
		return true;
	if (a->options->scan == SCAN_ALWAYS)
		session_scan(s, tracees_stopper(&a->tracees), false);
	err = session_report(s);
	if (err)
		debug("attach: report not written");
	return !attach_is_unread(a->options, err);
}

/* The price that targets pay. */
static void cmd_attach_keep_cost(struct attach *a, struct session *s)
{
	code_choice_round(&a->choice, s, a->options->max_cost, a->options->quiet);
	cost_limit_round(&a->limit, s);
}

/* Handle what has happened to processes that heaptap traces by ptrace, enter events. False: that is all. */
static bool cmd_attach_go_on(struct attach *a, struct session *s)
{
	const struct launch_hooks hooks = tracees_hooks(&a->tracees);

	if (!IS_AGENT && a->tracees.launch)
		launch_poll(a->tracees.launch);
	if (session_poll(s))
		return false;
	if (!IS_AGENT)
		session_await_ends(s, &a->tracees.launch, &hooks);
	tracees_check(&a->tracees);
	session_bound_ended(s);
	trace_metrics_round(&a->metrics, s);
	if (!IS_AGENT)
		cmd_attach_keep_cost(a, s);
	return !(a->options->has_between && session_span_is_over(s)) && !session_is_enough(s);
}

/* Each round takes the CPU from somebody, and where few records come, nothing waits for it. */
static int round_ms(const struct attach *a)
{
	if (!IS_AGENT && a->limit.is_near)
		return DEAR_MS;
	return !IS_AGENT && a->options->sample_bytes >= SAMPLE_FEW_BYTES ? SAMPLED_MS : POLL_MS;
}

/* Trace until something ends it. */
static void cmd_attach_trace(struct attach *a, struct session *s, struct control *c)
{
	struct status_line line = { 0 };
	bool has_line = !a->options->quiet && log_status_is_possible();
	int round = 0, sig;

	if (!IS_AGENT)
		cost_limit_round(&a->limit, s);
	for (;;) {
		if (!IS_AGENT && has_line)
			status_line_round(&line, s);
		switch (control_wait(c, session_wait_fd(s), round_ms(a), &sig)) {
		case CONTROL_STOP:
			return;
		case CONTROL_REPORT:
			if (!cmd_attach_report(a, s))
				return;
			break;
		case CONTROL_ASKED:
			if (!IS_AGENT)
				session_answer(s, tracees_stopper(&a->tracees), control_questions(c));
			break;
		default:
			break;
		}
		if (!cmd_attach_go_on(a, s))
			return;
		if (++round % (ALIVE_MS / round_ms(a)) == 0 && !session_running(s))
			return;
	}
}

/* Become the ptracer of the targets. -errno, logged. */
static int cmd_attach_join(struct attach *a, struct session *s)
{
	const struct launch_hooks hooks = tracees_hooks(&a->tracees);
	auto_free pid_t *pids = NULL;
	size_t nr = 0, joined;
	int err = session_pids(s, &pids, &nr);

	if (!err)
		err = launch_new_joined(&a->tracees.launch, &hooks);
	for (joined = 0; joined < nr && !err; joined++) {
		err = launch_join(a->tracees.launch, pids[joined]);
		/* The process has ended. */
		if (err == -ESRCH)
			err = 0;
		if (err)
			error("attach: PID %d: cannot be traced by ptrace, which following its children takes: %s",
			      pids[joined], strerror(-err));
	}
	/* All threads are stopped, so none has begun to make a child that would not stop. */
	if (!err)
		session_follow(s, true);
	for (size_t i = 0; i < joined && a->tracees.launch; i++)
		launch_release(a->tracees.launch, pids[i]);
	return err;
}

/* From here on the targets are as in an attach without --follow, and so is the end of the trace. */
static void cmd_attach_leave(struct attach *a, struct session *s)
{
	if (IS_AGENT || !a->tracees.launch)
		return;
	session_follow(s, false);
	launch_leave_children(a->tracees.launch);
	a->tracees.is_finished = true;
	launch_free(take_ptr(a->tracees.launch));
}

/* Nothing was lost of what the trace has seen. Judge the blocks from before it, too. */
static int cmd_attach_judge_older(const struct options *o, struct session *s)
{
	auto_free pid_t *pids = NULL;
	size_t nr = 0;
	int status = session_pids(s, &pids, &nr) ? STATUS_UNTRUSTED : STATUS_DONE;

	for (size_t i = 0; i < nr && status == STATUS_DONE; i++)
		status = census_judge(o, pids[i]);
	return status;
}

static int cmd_attach_end(struct attach *a, struct session *s, struct control *c)
{
	const struct options *o = a->options;
	int status;

	log_status(NULL);
	control_finish(c);
	if (o->scan != SCAN_NEVER)
		session_scan(s, tracees_stopper(&a->tracees), true);
	cmd_attach_leave(a, s);
	session_stop(s);
	trace_metrics_end(&a->metrics, s);
	if (session_report(s))
		return STATUS_UNTRUSTED;
	status = attach_status(o, s);
	if (IS_AGENT || status != STATUS_DONE || !o->fail_on_definite || options_spare_older(o))
		return status;
	return cmd_attach_judge_older(o, s);
}

static struct cost_limit cmd_attach_limit(const struct options *o)
{
	/* A user who chooses breakpoints has chosen their price, too; and code in the process sees no mappings. */
	bool is_chosen =
		o->backend != BACKEND_AUTO || o->sample_bytes || source_forbids_code() || o->want_mmap;
	bool is_free = o->follow || (is_chosen && !o->has_max_cost);

	if (is_free)
		debug("attach: tracing has no limit of cost");
	return (struct cost_limit){ .max_cost = is_free ? 0 : o->max_cost,
				    .is_default = !o->has_max_cost,
				    .is_quiet = o->quiet };
}

static int attach_and_trace(void *ctx, const struct options *o, struct session *s, struct control *c)
{
	struct attach *a = ctx;
	int status = attach_targets(s, o);
	struct source *source;

	if (status != STATUS_DONE)
		return status;
	a->tracees.session = s;
	a->tracees.is_attached = true;
	/* Without children, only processes that are about to end join a launch. */
	a->tracees.is_for_ends = !o->follow;
	if (!IS_AGENT)
		a->limit = cmd_attach_limit(o);
	if (!IS_AGENT && o->metrics)
		session_keep_asked(s);
	if (!IS_AGENT && joins_later(o)) {
		a->choice.put = tracees_put_code;
		a->choice.ctx = &a->tracees;
	}
	if (!IS_AGENT && joins_targets(o) && !session_tracer(s, &source) && cmd_attach_join(a, s)) {
		cmd_attach_leave(a, s);
		return STATUS_IMPOSSIBLE;
	}
	control_begin(c, 0);
	control_start_clocks(c);
	control_listen(c);
	if (!o->quiet)
		info("attached to %zu process%s; Ctrl-C stops tracing and reports", session_running(s),
		     session_running(s) == 1 ? "" : "es");
	cmd_attach_trace(a, s, c);
	return cmd_attach_end(a, s, c);
}

int cmd_attach(const struct options *o)
{
	struct attach a = { .options = o, .tracees.options = o };
	const struct tracing_command command = { .attaches = true,
						 .joins_targets = joins_targets(o),
						 .joins_later = joins_later(o),
						 .wants_end = !IS_AGENT && o->scan != SCAN_NEVER,
						 .work = attach_and_trace,
						 .ctx = &a };
	int status;
	int err = trace_metrics_init(&a.metrics, o->metrics, o->push, o->top, o->scan == SCAN_ALWAYS);

	if (err)
		status = err == -EINVAL ? STATUS_USAGE : STATUS_IMPOSSIBLE;
	else
		status = tracing_run(o, &command);
	trace_metrics_fini(&a.metrics);
	if (!IS_AGENT)
		cost_limit_fini(&a.limit);
	return status;
}
