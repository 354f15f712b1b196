/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a file leads to the piece of code inside a target. */
#pragma once

#include "user/inject/process.h"
#include "user/source/placing.h"

/*
 * List in @out, which has room for all points of @f, the places of the file @elf that lead to the piece, by ELF virtual
 * address: calls at the first instruction of a function, wherever breakpoints see them. A function whose ret
 * instructions have no room for a jump gets PROBE_AT_RETURN, unless it can throw. 0, -ENOTSUP: a function cannot be led
 * to the piece, @why has its name and the reason, or another -errno.
 */
int inline_sites_find(struct inject_site *out, size_t *nr, const struct probed_file *f, struct elf *elf,
		      char why[INJECT_WHY_LEN]) __must_check;
