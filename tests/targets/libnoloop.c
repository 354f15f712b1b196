/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Preloaded: when heaptap asks, the kernel is one from before Linux 5.17, without bpf_loop(). */
#include <bpf/libbpf.h>

int has_helper(enum bpf_prog_type type, enum bpf_func_id id,
	       const void *options) __asm__("libbpf_probe_bpf_helper");

int has_helper(enum bpf_prog_type type, enum bpf_func_id id, const void *options)
{
	(void)type;
	(void)options;
	return id != BPF_FUNC_loop;
}
