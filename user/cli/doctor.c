/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap doctor: collects what is known of this machine; doctor_print.c shows it. */
#include "user/cli/doctor.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "user/cli/commands.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/lib/proc.h"
#include "user/source/inline_limits.h"
#include "user/source/limits.h"
#include "user/cli/options.h"
#include "user/source/source.h"
#include "user/source/source_open.h"
#include "user/target/target.h"

void doctor_add_help(struct doctor *d, const char *fmt, ...)
{
	char *slot;
	va_list ap;

	if (d->nr_help == ARRAY_SIZE(d->help))
		return;
	slot = d->help[d->nr_help];
	va_start(ap, fmt);
	vsnprintf(slot, sizeof(d->help[0]), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < d->nr_help; i++)
		if (!strcmp(d->help[i], slot))
			return;
	d->nr_help += *slot != '\0';
}

/* One more finding, of no value yet. */
static struct doctor_finding *doctor_add(struct doctor *d, enum doctor_group group, const char *key,
					 const char *label)
{
	struct doctor_finding *f = &d->findings[d->nr_findings];

	/* The last slot is overwritten rather than left: the tables below are far smaller. */
	if (d->nr_findings + 1 < DOCTOR_MAX_FINDINGS)
		d->nr_findings++;
	*f = (struct doctor_finding){ .group = group, .type = DOCTOR_UNKNOWN, .key = key, .label = label };
	return f;
}

/* ---- privileges ---- */

/* Capabilities of heaptap's own file are enough: no root. CAP_SYS_ADMIN only where there are no multi links. */
static void advise_setcap(struct doctor *d)
{
	const char *admin = d->caps.has_uprobe_multi || !d->caps.has_bpf ? "" : "cap_sys_admin,";
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (len <= 0)
		return;
	exe[len] = '\0';
	doctor_add_help(d, "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,%scap_dac_read_search+ep %s",
			admin, exe);
}

/* Reading files is no condition of tracing, and CAP_SYS_ADMIN is one only where there are no multi links. */
static bool is_needed(const struct doctor *d, const struct caps_privilege *p)
{
	return p->bit != CAP_SYS_ADMIN || !d->caps.has_uprobe_multi;
}

static void examine_privileges(struct doctor *d)
{
	bool is_missing = false;
	struct doctor_finding *reading;

	for (size_t i = 0; i < CAPS_NR_PRIVILEGES; i++) {
		const struct caps_privilege *p = &caps_privileges[i];
		struct doctor_finding *f = doctor_add(d, DOCTOR_PRIVILEGES, p->name, p->name);

		f->type = DOCTOR_BOOL;
		f->number = caps_has_privilege(&d->caps.env, p);
		f->note = p->use;
		is_missing |= !f->number && is_needed(d, p);
	}
	reading = doctor_add(d, DOCTOR_PRIVILEGES, "CAP_DAC_READ_SEARCH", "CAP_DAC_READ_SEARCH");
	reading->type = DOCTOR_BOOL;
	reading->number = !!(d->caps.env.privileges & (1ULL << CAP_DAC_READ_SEARCH));
	reading->note = reading->number ? "read program files that only their owners may read"
					: "frames of program files that are not ours to read have no names";
	if (is_missing && !d->caps.env.is_root)
		doctor_add_help(d, "sudo heaptap ...");
	if (!d->caps.env.is_root && (is_missing || !reading->number))
		advise_setcap(d);
	else if (is_missing)
		doctor_add_help(d, CAPS_FOR_CONTAINER);
}

/* ---- features ---- */

static const struct feature {
	const char *key, *label;
	size_t field;	  /* of struct caps, a bool */
	const char *note; /* when it is missing */
} features[] = {
	{ "bpf", "BPF maps and programs", offsetof(struct caps, has_bpf), NULL },
	{ "ring_buffer", "BPF ring buffer", offsetof(struct caps, has_ring_buffer), "Linux 5.8 has it" },
	{ "uprobes", "uprobes", offsetof(struct caps, has_uprobes), NULL },
	{ "perf_uprobes", "uprobes by perf links", offsetof(struct caps, has_perf_uprobes), NULL },
	{ "uprobe_multi", "uprobes by multi links", offsetof(struct caps, has_uprobe_multi),
	  "Linux 6.6 has them: attaching takes longer without" },
	{ "multi_pid_filter", "pid filter of multi links", offsetof(struct caps, is_multi_pid_exact),
	  "Linux 6.10 has it right: perf links are used instead" },
	{ "cookie", "probe cookies", offsetof(struct caps, has_cookie),
	  "Linux 5.15 has them: each probe needs a program of its own without" },
	{ "safe_uretprobes", "return probes under seccomp", offsetof(struct caps, is_uretprobe_safe),
	  "they would kill processes with a filter: probes on return instructions are used instead" },
};

static void examine_features(struct doctor *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		struct doctor_finding *f = doctor_add(d, DOCTOR_FEATURES, features[i].key, features[i].label);

		f->type = DOCTOR_BOOL;
		f->number = *(const bool *)((const char *)&d->caps + features[i].field);
		/* Where BPF itself is missing, the rest was not even tried. */
		if (!d->caps.has_bpf && i > 0)
			f->type = DOCTOR_UNKNOWN;
		else if (!f->number)
			f->note = features[i].note;
	}
	doctor_add_help(d, "%s", d->caps.advice);
}

/* ---- settings ---- */

/* The meaning of a value of a setting: of its rows, the last one that is not above the value counts. */
static const struct meaning {
	const char *key;
	int value;
	const char *note;
} meanings[] = {
	{ "ptrace_scope", 0, "processes of the same user may be read" },
	{ "ptrace_scope", 1, "only descendants may be read without CAP_SYS_PTRACE" },
	{ "ptrace_scope", 2, "CAP_SYS_PTRACE is needed to read a process" },
	{ "ptrace_scope", 3, "nobody may ptrace, until the next boot" },
	{ "unprivileged_bpf_disabled", 0, "programs of everybody" },
	{ "unprivileged_bpf_disabled", 1, "CAP_BPF is needed" },
	{ "perf_event_paranoid", -1, "events of everybody" },
	{ "perf_event_paranoid", 2, "CAP_PERFMON is needed for probes" },
	{ "seccomp", 0, "heaptap runs under no filter" },
	{ "seccomp", 1, "heaptap runs under a filter" },
};

static const char *doctor_meaning_of(const char *key, s64 value)
{
	const char *note = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (!strcmp(meanings[i].key, key) && value >= meanings[i].value)
			note = meanings[i].note;
	return note;
}

static void add_number(struct doctor *d, const char *key, const char *label, s64 value, bool is_known)
{
	struct doctor_finding *f = doctor_add(d, DOCTOR_SETTINGS, key, label);

	if (!is_known)
		return;
	f->type = DOCTOR_NUMBER;
	f->number = value;
	f->note = doctor_meaning_of(key, value);
}

/* The value of a word NAME=VALUE of the kernel's command line, or "". */
static void boot_option(const char *name, char *value, size_t size)
{
	char text[4096];
	char *word, *rest = text;
	size_t len = strlen(name);

	*value = '\0';
	if (proc_read_text("/proc/cmdline", text, sizeof(text)) <= 0)
		return;
	while ((word = strsep(&rest, " ")))
		if (!strncmp(word, name, len) && word[len] == '=')
			snprintf(value, size, "%s", word + len + 1);
}

static void examine_settings(struct doctor *d)
{
	const struct caps_env *env = &d->caps.env;
	struct doctor_finding *f;

	f = doctor_add(d, DOCTOR_SETTINGS, "lockdown", "kernel lockdown");
	if (*env->lockdown) {
		f->type = DOCTOR_TEXT;
		snprintf(f->text, sizeof(f->text), "%s", env->lockdown);
	}
	add_number(d, "ptrace_scope", "Yama ptrace_scope", env->ptrace_scope, env->ptrace_scope >= 0);
	add_number(d, "perf_event_paranoid", "perf_event_paranoid", env->perf_event_paranoid,
		   access("/proc/sys/kernel/perf_event_paranoid", R_OK) == 0);
	add_number(d, "unprivileged_bpf_disabled", "unprivileged_bpf_disabled",
		   env->unprivileged_bpf_disabled, env->unprivileged_bpf_disabled >= 0);
	add_number(d, "memlock_bytes", "RLIMIT_MEMLOCK", (s64)env->memlock_bytes,
		   env->memlock_bytes != UINT64_MAX);
	d->findings[d->nr_findings - 1].note = d->caps.is_memlock_counted ? "counts here: heaptap raises it"
									  : "does not count on this kernel";
	if (!d->caps.has_bpf)
		d->findings[d->nr_findings - 1].note = NULL;
	add_number(d, "seccomp", "seccomp", env->seccomp, true);
	f = doctor_add(d, DOCTOR_SETTINGS, "user_namespace", "in a user namespace");
	f->type = DOCTOR_BOOL;
	f->number = env->is_confined;
	f = doctor_add(d, DOCTOR_SETTINGS, "proc_mem_force_override", "proc_mem.force_override");
	boot_option("proc_mem.force_override", f->text, sizeof(f->text));
	if (*f->text)
		f->type = DOCTOR_TEXT;
}

/* ---- backends ---- */

/* Why run, or attach, does not put code into programs unless asked; NULL: they may. */
static const char *doctor_against_code(const struct caps *caps, bool is_launch)
{
	return source_forbids_code() ? "HEAPTAP_NO_CODE is set" : inline_limits_here(caps, is_launch);
}

static bool usable_by_bpf(struct doctor *d)
{
	const struct caps *caps = &d->caps;
	const char *why;

	if (*caps->reason) {
		snprintf(d->how, sizeof(d->how), "bpf: %s", caps->reason);
		return false;
	}
	why = doctor_against_code(caps, true);
	snprintf(d->how, sizeof(d->how), "%s, %s; run: %s%s; attach: %s",
		 caps->has_uprobe_multi && caps->is_multi_pid_exact ? "uprobes by multi links"
								    : "uprobes by perf links",
		 caps->is_uretprobe_safe ? "return probes" : "probes on return instructions",
		 why ? "bpf: " : "inline", why ? why : "",
		 doctor_against_code(caps, false) ? "bpf, for moments where that is too dear"
						  : "bpf, inline where that is too dear, else for moments");
	return true;
}

static bool usable_by_ptrace(struct doctor *d)
{
	const char *run, *attach;
	struct caps caps;

	if (source_ptrace.probe(&caps)) {
		snprintf(d->how, sizeof(d->how), "ptrace: %s", caps.reason);
		return false;
	}
	if (source_inline_traced.probe(&caps)) {
		run = attach = caps.reason;
	} else {
		run = doctor_against_code(&caps, true);
		attach = doctor_against_code(&caps, false);
	}
	snprintf(d->how, sizeof(d->how), "run: %s%s; attach: %s%s; bpf: %s",
		 run ? "breakpoints, which are slower: " : "inline", run ? run : "",
		 attach ? "breakpoints, which are slower: " : "inline", attach ? attach : "", d->caps.reason);
	return true;
}

/* In order of preference, as sources are taken. */
static const struct backend {
	const char *name;
	bool (*is_usable)(struct doctor *d); /* fills how */
} backends[] = {
	{ "bpf", usable_by_bpf },
	{ "ptrace", usable_by_ptrace },
};

static void doctor_choose_backend(struct doctor *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(backends) && !d->backend; i++)
		if (backends[i].is_usable(d))
			d->backend = backends[i].name;
}

/* ---- the command ---- */

static int examine_targets(struct doctor *d, const char *name_or_pid)
{
	auto_free pid_t *pids = NULL;
	size_t nr = 0;
	int err = target_find(name_or_pid, &pids, &nr);

	if (err)
		return err;
	if (nr > DOCTOR_MAX_TARGETS)
		d->nr_left_out = nr - DOCTOR_MAX_TARGETS;
	for (size_t i = 0; i < nr - d->nr_left_out; i++) {
		int ret = doctor_examine_target(d, pids[i]);

		err = err ? err : ret;
	}
	/* Some of several processes may have ended meanwhile. */
	return d->nr_targets ? doctor_find_breakpoints(d, pids, nr) : err;
}

static void doctor_free(struct doctor *d)
{
	doctor_object_fini(&d->libc);
	doctor_breakpoints_fini(&d->breakpoints);
	for (size_t i = 0; i < d->nr_targets; i++) {
		struct doctor_target *t = &d->targets[i];

		for (size_t k = 0; k < t->nr_objects; k++)
			doctor_object_fini(&t->objects[k]);
		free(t->exe);
	}
	free(d);
}

static void examine_machine(struct doctor *d)
{
	struct utsname name = { 0 };

	uname(&name);
	snprintf(d->release, sizeof(d->release), "%s", name.release);
	snprintf(d->machine, sizeof(d->machine), "%s", name.machine);
	/* The reason is in caps; what is missing in detail is shown by the features. */
	(void)!caps_probe(&d->caps, CAPS_FULL);
	limits_restore(RLIMIT_MEMLOCK);
	doctor_choose_backend(d);
	examine_privileges(d);
	examine_features(d);
	examine_settings(d);
	doctor_examine_libc(d);
}

int doctor_run(FILE *out, const char *name_or_pid, bool want_json)
{
	struct doctor *d = calloc(1, sizeof(*d));
	int err = 0;

	if (!d)
		return -ENOMEM;
	examine_machine(d);
	if (name_or_pid)
		err = examine_targets(d, name_or_pid);
	else
		err = doctor_find_breakpoints(d, NULL, 0);
	if (!err) {
		(want_json ? doctor_print_json : doctor_print_text)(out, d);
		if (fflush(out) != 0 || ferror(out))
			err = -EIO;
		else if (!d->backend)
			err = -EOPNOTSUPP;
	}
	doctor_free(d);
	caps_settle();
	return err;
}

int cmd_doctor(const struct options *o)
{
	int err = doctor_run(stdout, o->nr_args ? o->args[0] : NULL, o->json);

	switch (err) {
	case 0:
		return STATUS_DONE;
	case -ESRCH: /* refused, with a line that says why */
	case -EINVAL:
		return STATUS_NO_TARGET;
	case -EIO: /* main says so of stdout */
		return STATUS_UNTRUSTED;
	case -ENOMEM:
		error("doctor: %s", strerror(ENOMEM));
		return STATUS_IMPOSSIBLE;
	default:
		return STATUS_IMPOSSIBLE;
	}
}
