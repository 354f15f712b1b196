/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tracer of the inline source, where the source below is the one that traces by ptrace. */
#include "user/source/inline_source.h"

#include "user/source/source_tracer.h"

static struct source *inline_tracer_below(const struct source *s)
{
	return ((const struct inline_source *)(const void *)s)->below;
}

static pid_t inline_tracer_pid(const struct source *s)
{
	return source_ptrace.tracer->pid(inline_tracer_below(s));
}

static int inline_tracer_launch(struct source *s, pid_t pid)
{
	return source_ptrace.tracer->launch(inline_tracer_below(s), pid);
}

static int inline_tracer_is_launched(struct source *s, pid_t pid)
{
	return source_ptrace.tracer->is_launched(inline_tracer_below(s), pid);
}

static void inline_tracer_start(struct source *s, pid_t pid)
{
	source_ptrace.tracer->start(inline_tracer_below(s), pid);
}

static int inline_tracer_hold(struct source *s, pid_t pid, u64 max_ns)
{
	return source_ptrace.tracer->hold(inline_tracer_below(s), pid, max_ns);
}

static void inline_tracer_release(struct source *s, pid_t pid)
{
	source_ptrace.tracer->release(inline_tracer_below(s), pid);
}

static int inline_tracer_call(struct source *s, pid_t pid, struct thread_request *request)
{
	return source_ptrace.tracer->call(inline_tracer_below(s), pid, request);
}

static int inline_tracer_read_regs(struct source *s, pid_t tid, struct arch_regs *regs)
{
	return source_ptrace.tracer->read_regs(inline_tracer_below(s), tid, regs);
}

static void inline_tracer_checked(struct source *s)
{
	source_ptrace.tracer->checked(inline_tracer_below(s));
}

static pid_t inline_tracer_exiting(struct source *s, int *status)
{
	return source_ptrace.tracer->exiting(inline_tracer_below(s), status);
}

static void inline_tracer_let_end(struct source *s, pid_t pid)
{
	source_ptrace.tracer->let_end(inline_tracer_below(s), pid);
}

const struct source_tracer inline_tracer = {
	.pid = inline_tracer_pid,
	.launch = inline_tracer_launch,
	.is_launched = inline_tracer_is_launched,
	.start = inline_tracer_start,
	.hold = inline_tracer_hold,
	.release = inline_tracer_release,
	.call = inline_tracer_call,
	.read_regs = inline_tracer_read_regs,
	.checked = inline_tracer_checked,
	.exiting = inline_tracer_exiting,
	.let_end = inline_tracer_let_end,
};
