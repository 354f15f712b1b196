/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plan to lead the functions of a file to the piece: stubs of an island, and jumps to them. Changes nothing. */
#pragma once

#include "user/inject/process.h"

struct inject_plan {
	u8 *stubs;		      /* owned; the bytes of the island */
	struct inject_patch *patches; /* owned */
	size_t nr;		      /* patches: functions may return at the same instruction */
	size_t bad; /* number of the site that cannot be led to the piece, after -EOPNOTSUPP */
};

/* How many bytes of a function are looked at. */
enum { INJECT_MAX_BODY = 4096 };

/* Reads code from where a plan is made for: 0 or -errno. */
typedef int inject_read_code(void *ctx, taddr_t addr, void *bytes, size_t len);

/*
 * Plan the stubs of @sites in @island, whose head holds @ways. Code comes from @read. 0, -EOPNOTSUPP with the reason
 * in @why, -ENOMEM, or the error of @read. End with inject_plan_fini() in any case.
 */
int inject_plan_make(struct inject_plan *plan, const struct inject_site *sites, size_t nr,
		     const struct inject_island *island, const struct code_ways *ways, inject_read_code *read,
		     void *ctx, char why[INJECT_WHY_LEN]) __must_check;
void inject_plan_fini(struct inject_plan *plan);

/* Bytes of an island for @nr sites. */
u64 inject_plan_bytes(size_t nr);
