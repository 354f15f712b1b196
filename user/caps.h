/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this kernel and these privileges allow, found by trying. */
#pragma once

#include "user/lib/types.h"

enum { CAPS_REASON_LEN = 256 };

struct caps {
	bool has_bpf; /* maps and programs can be loaded */
	bool has_ring_buffer;
	bool has_uprobes;	 /* perf uprobe links, or multi */
	bool has_uprobe_multi;	 /* link of many probes */
	bool is_multi_pid_exact; /* its pid filter covers all threads and only them (wrong before 6.10) */
	bool has_cookie;	 /* bpf_get_attach_cookie (5.15) */
	bool is_uretprobe_safe;	 /* a seccomp'ed child survives one (not on 6.11 to 6.13) */
	char reason[CAPS_REASON_LEN]; /* why a backend is not usable: what is missing, what to type */
};
