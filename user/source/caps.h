/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out by trials what this kernel and these privileges allow. */
#pragma once

#include "user/lib/types.h"
#include "user/source/kernel_facts.h"

enum { CAPS_REASON_LEN = 256 };

/* Settings and rights of heaptap that explain why a trial failed. Never used to guess a feature. */
struct caps_env {
	u64 privileges;	  /* effective capabilities, bit = capability number */
	bool is_root;	  /* effective uid 0 */
	bool is_confined; /* in a user namespace: the privileges count for nothing outside it */
	u32 seccomp;	  /* of heaptap itself: 0 none, 1 strict, 2 filter */
	char lockdown
		[24]; /* "none", "integrity", "confidentiality"; "" = not in this kernel or not to be seen */
	int unprivileged_bpf_disabled, perf_event_paranoid, ptrace_scope; /* sysctls; -1 = not to be seen */
	u64 memlock_bytes;						  /* limit, U64_MAX = none */
};

struct caps {
	bool has_bpf; /* maps and programs can be loaded */
	bool has_ring_buffer;
	bool has_uprobes;	 /* perf uprobe links, or multi */
	bool has_perf_uprobes;	 /* perf uprobe links; tried with CAPS_FULL or where there is no multi */
	bool has_uprobe_multi;	 /* link of many probes */
	bool is_multi_pid_exact; /* its pid filter covers all threads and only them (wrong before 6.10) */
	bool has_cookie;	 /* bpf_get_attach_cookie (5.15) */
	bool is_uretprobe_safe;	 /* a seccomp'ed child survives one (not on 6.11 to 6.13) */
	struct way_to_probe way; /* of the links that would be used */
	bool is_memlock_counted; /* maps count against RLIMIT_MEMLOCK (before 5.11); caps_probe() raised it */
	char reason[CAPS_REASON_LEN]; /* why a backend is not usable: what is missing, what to type */
	char advice[CAPS_REASON_LEN]; /* what to type alone; "" if nothing helps */
	struct caps_env env;
	struct kernel_facts_file facts; /* with CAPS_QUICK: known before, and found by these trials */
};

enum caps_effort {
	CAPS_QUICK, /* all that attaching must know; a trial that is known from this boot is not made again */
	CAPS_FULL,  /* what the doctor shows too: links that would not be used here */
};

/*
 * Try what the BPF source needs and fill *@caps, on children of our own and on heaptap's own program
 * file; no target is touched. Call it before links exist: a forked child holds copies of descriptors.
 * Blocks for some 20 ms (CAPS_FULL 40), 4 s at most; the kernel needs up to 0.4 s more to take the
 * trials' probes out, in the background: caps_settle(). Where maps count against RLIMIT_MEMLOCK the
 * limit stays raised (limits.h).
 * Returns 0 if the BPF source works here; else the reason is in @caps: -EPERM no permission,
 * -EOPNOTSUPP not with this kernel. Logs nothing.
 */
int caps_probe(struct caps *caps, enum caps_effort effort) __must_check;

/*
 * Collect what has ended of the trials, without waiting: for each round of a loop. Until then a child that plain
 * wait(2) calls do not see is a zombie.
 */
void caps_reap(void);

/* Wait until nothing is left of the trials (at detach, at the end). */
void caps_settle(void);

/* Log one line: why the BPF source is not usable for @what ("attach", "run"), and what to type instead. */
void caps_explain(const struct caps *caps, const char *what);

/* Read only the surroundings. Tries nothing. */
void caps_read_env(struct caps_env *env);

/* Advice for a root whose container has not the capabilities. */
#define CAPS_FOR_CONTAINER                                                                                   \
	"give the container the capabilities BPF, PERFMON, SYS_PTRACE and DAC_READ_SEARCH "                  \
	"(before Linux 6.6 also SYS_ADMIN), or run heaptap on the host"

/* Advice if the kernel has refused access to a process; static text. NULL: no right is missing. */
const char *caps_ptrace_advice(void);

/* A capability that tracing asks for. */
struct caps_privilege {
	const char *name; /* "CAP_BPF" */
	u8 bit;
	const char *use; /* what for */
};

enum { CAPS_NR_PRIVILEGES = 4 };
extern const struct caps_privilege caps_privileges[CAPS_NR_PRIVILEGES];

/* Is it held, itself or by CAP_SYS_ADMIN that includes it? */
bool caps_has_privilege(const struct caps_env *env, const struct caps_privilege *p);
