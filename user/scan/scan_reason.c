/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a scan gives no verdict: the only table of these texts. */
#include "user/scan/scan_reason.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/thread_call.h"
#include "user/lib/cgroup_dir.h"
#include "user/lib/cleanup.h"
#include "user/lib/human.h"
#include "user/lib/proc.h"
#include "user/lib/yama.h"

static const struct {
	int err;
	const char *text;
} reasons[] = {
	{ -ESRCH, "it ended or became another program" },
	{ -ENODATA, "events were lost while it went on" },
	{ -E2BIG, "more pointers than it may have memory for" },
	{ -ENOMEM, "not enough memory" },
	{ -EOVERFLOW, "too many blocks or events" },
	{ -EPROTO, "the other side sent data that cannot be understood" },
	{ -ETIMEDOUT, "the other side did not answer in time" },
	{ -EINTR, "interrupted" },
	{ -ECANCELED, "it was broken off" },
	{ -EPIPE, "tracing ended meanwhile, because of a signal or because the probes were lost" },
};

static const struct {
	int err;
	const char *text;
} copy_reasons[] = {
	{ -ENOTSUP, "it is traced by another process, or this CPU or kernel cannot do it" },
	{ -EBUSY, "none of its threads can carry out the call at this moment" },
	{ -EPERM, "a seccomp filter forbids it, and heaptap may not suspend the filter" },
	{ -EAGAIN, "it may have no more processes" },
	{ -ENOMEM, "not enough memory" },
	{ -EFBIG, "it shares too much memory with other processes" },
	{ -ETIME, "to keep its shared memory would take longer than the pause" },
	{ -ESRCH, "it ended" },
	{ -ENOTTY, NO_SIGNAL_MASK },
	{ -EUSERS, "its cgroup allows no more processes" },
	{ -EALREADY, "it uses userfaultfd itself" },
	{ -EMFILE, "it may open no more files" },
	{ -E2BIG, "it has grown beyond the room for a copy" },
	{ -EOPNOTSUPP, "devices write to pages that it has pinned" },
};

const char *scan_reason_copy(int err)
{
	for (size_t i = 0; i < ARRAY_SIZE(copy_reasons); i++)
		if (copy_reasons[i].err == err)
			return copy_reasons[i].text;
	return strerror(-err);
}

/* The process that traces a thread of @pid, 0 if there is no such process. */
static pid_t scan_reason_find_tracer(pid_t pid)
{
	auto_free pid_t *tids = NULL;
	struct proc_status status = { 0 };
	size_t nr = 0;

	if (proc_threads(pid, &tids, &nr))
		return 0;
	for (size_t i = 0; i < nr; i++)
		if (!proc_read_status(&status, tids[i]) && status.tracer_pid)
			return status.tracer_pid;
	return 0;
}

static void scan_reason_explain_denied(struct scan_reason *r, pid_t pid)
{
	struct proc_stat stat = { .comm = "unknown" };
	struct proc_status own = { .caps_effective = 0 };
	const char *why = yama_reason();
	pid_t tracer = scan_reason_find_tracer(pid);

	if (!IS_AGENT && !why && !proc_read_status(&own, getpid()) &&
	    own.caps_effective & 1ULL << CAP_SYS_PTRACE)
		why = "the kernel protects it, although heaptap has CAP_SYS_PTRACE";
	if (!tracer) {
		snprintf(r->text, sizeof(r->text), "no permission to stop the process%s%s", why ? ": " : ", ",
			 why ? why : "which needs CAP_SYS_PTRACE");
		return;
	}
	if (proc_read_stat(&stat, tracer))
		snprintf(stat.comm, sizeof(stat.comm), "unknown");
	snprintf(r->text, sizeof(r->text), "the process is traced by %s (PID %d) already", stat.comm,
		 (int)tracer);
}

struct scan_reason scan_reason(int err, pid_t pid, u64 max_pause_ns)
{
	struct scan_reason r;

	snprintf(r.text, sizeof(r.text), "%s", strerror(-err));
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].err == err)
			snprintf(r.text, sizeof(r.text), "%s", reasons[i].text);
	if (err == -ETIME && !IS_AGENT && cgroup_dir_is_frozen(pid))
		snprintf(r.text, sizeof(r.text), "its control group is frozen");
	else if (err == -ETIME)
		snprintf(r.text, sizeof(r.text), "the process would have been stopped for longer than %s",
			 human_duration(max_pause_ns).text);
	if (err == -EPERM || err == -EACCES)
		scan_reason_explain_denied(&r, pid);
	return r;
}

void scan_reason_note(char *out, size_t size, const char *text)
{
	snprintf(out, size, "scan given up: %s", text);
}
