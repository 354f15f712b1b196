/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tracer of the inline source, where the source below is the one that traces by ptrace. */
#include "user/source/inline_source.h"

#include "user/source/source_tracer.h"

static struct source *below(const struct source *s)
{
	return ((const struct inline_source *)(const void *)s)->below;
}

static pid_t tracer_pid(const struct source *s)
{
	return source_ptrace.tracer->pid(below(s));
}

static int launch(struct source *s, pid_t pid)
{
	return source_ptrace.tracer->launch(below(s), pid);
}

static int is_launched(struct source *s, pid_t pid)
{
	return source_ptrace.tracer->is_launched(below(s), pid);
}

static void start(struct source *s, pid_t pid)
{
	source_ptrace.tracer->start(below(s), pid);
}

static int hold(struct source *s, pid_t pid, u64 max_ns)
{
	return source_ptrace.tracer->hold(below(s), pid, max_ns);
}

static void release(struct source *s, pid_t pid)
{
	source_ptrace.tracer->release(below(s), pid);
}

static int call(struct source *s, pid_t pid, struct thread_request *request)
{
	return source_ptrace.tracer->call(below(s), pid, request);
}

static int read_regs(struct source *s, pid_t tid, struct arch_regs *regs)
{
	return source_ptrace.tracer->read_regs(below(s), tid, regs);
}

static void checked(struct source *s)
{
	source_ptrace.tracer->checked(below(s));
}

static pid_t exiting(struct source *s, int *status)
{
	return source_ptrace.tracer->exiting(below(s), status);
}

static void let_end(struct source *s, pid_t pid)
{
	source_ptrace.tracer->let_end(below(s), pid);
}

const struct source_tracer inline_tracer = {
	.pid = tracer_pid,
	.launch = launch,
	.is_launched = is_launched,
	.start = start,
	.hold = hold,
	.release = release,
	.call = call,
	.read_regs = read_regs,
	.checked = checked,
	.exiting = exiting,
	.let_end = let_end,
};
