/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every program includes: fixed-width names, helpers, and the differences between kernels. */
#pragma once

#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0

#include <bpf/bpf_helpers.h>
#include <regs.h>

#include "bpf/event.h"
#include "bpf/maps.h"

extern const volatile struct source_config config;
extern struct source_state state;

/* Which probe is this? bpf_get_attach_cookie is new in 5.15; without it each probe has its own programs. */
static __always_inline u64 probe_cookie(void *ctx)
{
	return config.is_cookie_fixed ? config.fixed_cookie : bpf_get_attach_cookie(ctx);
}
