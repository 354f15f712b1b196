/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the trials before a source is chosen, and says why one failed. */
#include "user/source/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "user/source/caps_bpf.h"
#include "user/source/caps_trial.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source/limits.h"

/* Younger than the headers that older systems build with (Linux 5.8). */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

const struct caps_privilege caps_privileges[CAPS_NR_PRIVILEGES] = {
	{ "CAP_BPF", CAP_BPF, "load BPF maps and programs" },
	{ "CAP_PERFMON", CAP_PERFMON, "attach BPF programs to probes" },
	{ "CAP_SYS_ADMIN", CAP_SYS_ADMIN, "place uprobes where there are no multi links" },
	{ "CAP_SYS_PTRACE", CAP_SYS_PTRACE, "read maps and memory of other users' processes" },
};

bool caps_has_privilege(const struct caps_env *env, const struct caps_privilege *p)
{
	if (env->privileges & (1ULL << p->bit))
		return true;
	/* The two youngest were parts of CAP_SYS_ADMIN, which still includes them. */
	return (p->bit == CAP_BPF || p->bit == CAP_PERFMON) && env->privileges & (1ULL << CAP_SYS_ADMIN);
}

/* ---- surroundings ---- */

static int read_sysctl(const char *path)
{
	char text[32];

	return proc_read_text(path, text, sizeof(text)) > 0 ? atoi(text) : -1;
}

/* The word in brackets of "none [integrity] confidentiality". */
static void read_lockdown(char *word, size_t size)
{
	char text[128];
	char *start, *end;

	*word = '\0';
	if (proc_read_text("/sys/kernel/security/lockdown", text, sizeof(text)) <= 0)
		return;
	start = strchr(text, '[');
	end = start ? strchr(start, ']') : NULL;
	if (end)
		snprintf(word, size, "%.*s", (int)(end - start - 1), start + 1);
}

/* The first namespace maps all ids to themselves; anything else, nothing included, is one that somebody made. */
static bool in_user_namespace(void)
{
	char text[256];
	unsigned long inside, outside, count;
	char *end;

	if (proc_read_text("/proc/self/uid_map", text, sizeof(text)) < 0)
		return false; /* no such namespaces in this kernel */
	inside = strtoul(text, &end, 10);
	outside = strtoul(end, &end, 10);
	count = strtoul(end, NULL, 10);
	return inside != 0 || outside != 0 || count != UINT32_MAX;
}

void caps_read_env(struct caps_env *env)
{
	struct proc_status status;
	struct rlimit limit;

	*env = (struct caps_env){ .is_root = geteuid() == 0 };
	if (proc_read_status(&status, getpid()) == 0) {
		env->privileges = status.caps_effective;
		env->seccomp = status.seccomp;
	}
	env->is_confined = in_user_namespace();
	read_lockdown(env->lockdown, sizeof(env->lockdown));
	env->unprivileged_bpf_disabled = read_sysctl("/proc/sys/kernel/unprivileged_bpf_disabled");
	env->perf_event_paranoid = read_sysctl("/proc/sys/kernel/perf_event_paranoid");
	env->ptrace_scope = read_sysctl("/proc/sys/kernel/yama/ptrace_scope");
	env->memlock_bytes = UINT64_MAX;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		env->memlock_bytes = limit.rlim_cur;
}

/* ---- limits ---- */

/* 0 if @fd is a descriptor, which is closed, else @fd: the errno. */
static int close_result(int fd)
{
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* A map that cannot be made with a limit of 0 and can be made without counts against the limit. */
static int try_map(struct caps *caps)
{
	struct rlimit now, none;
	int err;

	if (getrlimit(RLIMIT_MEMLOCK, &now) != 0)
		return close_result(caps_bpf_counters(1));
	none = now;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_MEMLOCK, &none);
	err = close_result(caps_bpf_counters(1));
	setrlimit(RLIMIT_MEMLOCK, &now);
	if (err != -EPERM)
		return err;
	limits_lift(RLIMIT_MEMLOCK);
	err = close_result(caps_bpf_counters(1));
	caps->is_memlock_counted = !err;
	if (err)
		limits_restore(RLIMIT_MEMLOCK);
	return err;
}

/* ---- why a trial failed ---- */

/* A failed trial, as rules see it. */
struct failure {
	const char *what; /* "bpf(2)" */
	u64 needs;	  /* bits of the capabilities that it asks for */
	int err;	  /* what the kernel said, positive */
	const struct caps_env *env;
};

static bool is_denied(const struct failure *f)
{
	return f->err == EPERM || f->err == EACCES;
}

static bool lacks_privilege(const struct failure *f)
{
	for (size_t i = 0; i < CAPS_NR_PRIVILEGES; i++) {
		const struct caps_privilege *p = &caps_privileges[i];

		if (is_denied(f) && f->needs & (1ULL << p->bit) && !caps_has_privilege(f->env, p))
			return true;
	}
	return false;
}

/* Root without them has lost them on purpose: a container. sudo gives nothing back. */
static bool root_lacks_privilege(const struct failure *f)
{
	return f->env->is_root && lacks_privilege(f);
}

static bool is_denied_in_namespace(const struct failure *f)
{
	return is_denied(f) && f->env->is_confined;
}

static bool is_filtered(const struct failure *f)
{
	return (is_denied(f) || f->err == ENOSYS) && f->env->seccomp;
}

static bool is_locked_down(const struct failure *f)
{
	return is_denied(f) && *f->env->lockdown && strcmp(f->env->lockdown, "none") != 0;
}

static bool is_out_of_memlock(const struct failure *f)
{
	return f->err == EPERM && f->env->memlock_bytes != UINT64_MAX && f->env->memlock_bytes < 1 << 20;
}

static bool is_missing(const struct failure *f)
{
	return f->err == ENOSYS;
}

static bool has_no_pmu(const struct failure *f)
{
	return f->err == ENODEV;
}

static bool has_no_sysfs(const struct failure *f)
{
	return f->err == ENODEV && access("/sys/bus/event_source/devices", F_OK) != 0;
}

static bool caps_is_silent(const struct failure *f)
{
	return f->err == ENODATA;
}

/* user/agent/no_bpf.c returns this error in the agent. */
static bool caps_is_left_out(const struct failure *f)
{
	return f->err == ENOPKG;
}

static bool is_any(const struct failure *f)
{
	(void)f;
	return true;
}

#define FOR_BPF	    (1ULL << CAP_BPF | 1ULL << CAP_PERFMON)
#define FOR_UPROBES (FOR_BPF | 1ULL << CAP_SYS_ADMIN)
#define SUDO	    "sudo heaptap ..."
#define ON_HOST	    "run heaptap on the host, as its root"

/*
 * The first that applies explains the failure. A user namespace comes before missing privileges: there
 * the privileges could be had and would not help.
 */
static const struct rule {
	bool (*applies)(const struct failure *f);
	int err; /* that caps_probe() returns */
	const char *why;
	const char *advice; /* "" = nothing to type */
} rules[] = {
	{ is_denied_in_namespace, -EPERM,
	  "forbidden in a user namespace (rootless container): its root is not the machine's", ON_HOST },
	{ root_lacks_privilege, -EPERM, "no permission", CAPS_FOR_CONTAINER },
	{ lacks_privilege, -EPERM, "no permission", SUDO },
	{ is_filtered, -EPERM, "forbidden by the seccomp filter that heaptap runs under",
	  "docker run --security-opt seccomp=unconfined ..." },
	{ is_locked_down, -EPERM, "forbidden by kernel lockdown",
	  "boot without lockdown= and without Secure Boot" },
	{ is_out_of_memlock, -EPERM, "forbidden, and RLIMIT_MEMLOCK is too low and cannot be raised",
	  "ulimit -l unlimited" },
	{ is_denied, -EPERM, "forbidden, perhaps by a security module (SELinux, AppArmor): see the audit log",
	  "" },
	{ is_missing, -EOPNOTSUPP, "not in this kernel", "" },
	{ has_no_sysfs, -EOPNOTSUPP, "/sys is not mounted", "mount -t sysfs sysfs /sys" },
	{ has_no_pmu, -EOPNOTSUPP, "not in this kernel (CONFIG_UPROBE_EVENTS)", "" },
	{ caps_is_left_out, -EOPNOTSUPP, "not in the agent", "" },
	{ caps_is_silent, -EOPNOTSUPP, "placed, but no call arrived", "" },
	{ is_any, -EOPNOTSUPP, NULL, "" },
};

/* " (CAP_BPF and CAP_PERFMON missing)" */
static void list_missing(const struct caps_env *env, char *buf, size_t size)
{
	const char *names[CAPS_NR_PRIVILEGES];
	size_t nr = 0, used = 0;

	for (size_t i = 0; i < CAPS_NR_PRIVILEGES; i++)
		if (!caps_has_privilege(env, &caps_privileges[i]))
			names[nr++] = caps_privileges[i].name;
	*buf = '\0';
	for (size_t i = 0; i < nr && used < size; i++) {
		const char *before = i == 0 ? " (" : i + 1 == nr ? " and " : ", ";

		used += (size_t)snprintf(buf + used, size - used, "%s%s%s", before, names[i],
					 i + 1 == nr ? " missing)" : "");
	}
}

const char *caps_ptrace_advice(void)
{
	struct caps_env env;

	caps_read_env(&env);
	/* Root of a user namespace with the capability may trace whom it has made, and was refused somebody else. */
	if (env.privileges & (1ULL << CAP_SYS_PTRACE))
		return env.is_confined ? ON_HOST : NULL;
	if (env.is_root)
		return "give the container the capability SYS_PTRACE, or run heaptap on the host";
	return env.is_confined ? ON_HOST : SUDO;
}

/* Fill reason and advice from the first rule that applies; what caps_probe() returns. */
static int source_caps_explain(struct caps *caps, const char *what, u64 needs, int err)
{
	struct failure f = { .what = what, .needs = needs, .err = -err, .env = &caps->env };
	const struct rule *r = rules;
	char missing[128] = "";

	while (!r->applies(&f))
		r++;
	if (r->err == -EPERM && lacks_privilege(&f))
		list_missing(&caps->env, missing, sizeof(missing));
	else if (r->applies == is_locked_down)
		snprintf(missing, sizeof(missing), " (%s)", caps->env.lockdown);
	snprintf(caps->advice, sizeof(caps->advice), "%s", r->advice);
	snprintf(caps->reason, sizeof(caps->reason), "%s: %s%s%s%s", what, r->why ? r->why : strerror(-err),
		 missing, *r->advice ? ": try: " : "", r->advice);
	return r->err;
}

void caps_explain(const struct caps *caps, const char *what)
{
	error("%s: bpf: %s", what, *caps->reason ? caps->reason : "usable");
}

/* ---- all trials ---- */

static int try_program(bool has_cookie)
{
	auto_close int counters = caps_bpf_counters(1);

	return counters < 0 ? counters
			    : close_result(caps_bpf_program(counters, 0, CAPS_LINK_PERF, has_cookie));
}

static int probe_bpf(struct caps *caps)
{
	int err = try_map(caps);

	if (!err)
		err = try_program(false);
	if (err)
		return source_caps_explain(caps, "bpf(2)", FOR_BPF, err);
	caps->has_bpf = true;
	caps->has_ring_buffer = close_result(caps_bpf_ring()) == 0;
	caps->has_cookie = try_program(true) == 0;
	if (caps->has_ring_buffer)
		return 0;
	snprintf(caps->reason, sizeof(caps->reason),
		 "ring buffer: not in this kernel (Linux 5.8 and later have it)");
	return -EOPNOTSUPP;
}

/* Multi links first; perf links where the kernel has no multi links, or to show them. */
static int probe_uprobes(struct caps *caps, enum caps_effort effort)
{
	struct trial_result multi = { 0 }, perf = { 0 };
	int err = trial_run(&multi, CAPS_LINK_MULTI, caps, effort);

	if (err)
		return source_caps_explain(caps, "trial", 0, err);
	caps->has_uprobe_multi = !multi.err;
	caps->is_multi_pid_exact = multi.is_pid_exact;
	caps->is_uretprobe_safe = multi.is_return_safe;
	caps->way = multi.way;
	caps->has_uprobes = caps->has_uprobe_multi;
	if (caps->has_uprobe_multi && effort == CAPS_QUICK)
		return 0;

	err = trial_run(&perf, CAPS_LINK_PERF, caps, effort);
	caps->has_perf_uprobes = !err && !perf.err;
	if (caps->has_uprobe_multi)
		return 0;
	if (err)
		return source_caps_explain(caps, "trial", 0, err);
	caps->is_uretprobe_safe = perf.is_return_safe;
	caps->way = perf.way;
	caps->has_uprobes = caps->has_perf_uprobes;
	return perf.err ? source_caps_explain(caps, "uprobes", FOR_UPROBES, perf.err) : 0;
}

int caps_probe(struct caps *caps, enum caps_effort effort)
{
	int err;

	*caps = (struct caps){ 0 };
	caps_read_env(&caps->env);
	err = probe_bpf(caps);
	if (caps->has_bpf) {
		int uprobes_err = probe_uprobes(caps, effort);

		err = err ? err : uprobes_err;
	}
	return err;
}

void caps_reap(void)
{
	trial_reap();
}

void caps_settle(void)
{
	trial_settle();
}
