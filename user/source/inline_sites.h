/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a file leads to the piece of code inside a target. */
#pragma once

#include "user/inject/process.h"
#include "user/source/placing.h"

struct elf;

/*
 * List in @out, which has room for all points of @f, the places of the file @elf that lead to the piece, by ELF virtual
 * address. @probes describes all functions of the source. A function whose ret instructions have no room for a jump
 * gets PROBE_AT_RETURN there, unless it can throw. A function that cannot be led to the piece at all is listed
 * nevertheless, and refuses the file when it is put in. 0 or -errno.
 */
int inline_sites_find(struct inject_site *out, size_t *nr, struct call_probe *probes,
		      const struct probed_file *f, struct elf *elf) __must_check;
