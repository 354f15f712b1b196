/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps, programs and probes for the trials of caps_probe(), by plain system calls. */
#pragma once

#include "user/lib/types.h"

enum caps_bpf_link { CAPS_LINK_MULTI, CAPS_LINK_PERF };

/* Descriptors are close-on-exec. Each function returns a descriptor or 0, or the -errno of the kernel. */

/* A map of @nr counters (u64). */
int caps_bpf_counters(u32 nr) __must_check;
int caps_bpf_counter_read(int counters, u32 slot, u64 *value) __must_check;

/* A ring buffer, of the smallest size. */
int caps_bpf_ring(void) __must_check;

/* A program that adds its cookie, or 1 without @has_cookie, to a counter. For links of kind @link. */
int caps_bpf_program(int counters, u32 slot, enum caps_bpf_link link, bool has_cookie) __must_check;

/* A program on a place in heaptap's own program file. */
struct caps_probe {
	int prog, perf, link; /* owned; -1 = none */
};

#define CAPS_NO_PROBE ((struct caps_probe){ -1, -1, -1 })

enum { CAPS_COOKIE = 3 }; /* of every probe, so that a wrong cookie shows as a wrong count */

/*
 * Place @p->prog at @offset of our program file, for process @pid only. -ENODEV: no uprobe PMU. On
 * error caps_bpf_detach() as well.
 */
int caps_bpf_attach(struct caps_probe *p, enum caps_bpf_link link, bool has_cookie, u64 offset, pid_t pid,
		    bool is_return) __must_check;

/* Take it out. Blocks for a grace period of the kernel: some 50 ms. */
void caps_bpf_detach(struct caps_probe *p);
