/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cheapest place in a function that sees every call, and how its end can be seen. */
#pragma once

#include "user/probe.h"

/*
 * Fill in place, is_emulated, flags, own range and rets of @site, whose fn, start and end are known.
 * Functions of @list are those that may do the work of another one. -EINVAL: the code cannot be decoded;
 * -EILSEQ: no function begins there;
 * -ENOTSUP: not on this CPU; -ENOSYS: the end of an operator new cannot be seen; -ENOMEM.
 */
int probe_place(struct probe_site *site, struct elf *elf, const struct probe_list *list,
		const struct probe_options *options) __must_check;

/*
 * False if @vaddr lies inside of a function or of an instruction, as far as the file says where those begin
 * (.eh_frame_hdr): a probe there, and above all one on the return, would change what the program does.
 */
bool probe_is_entry(const struct elf *elf, u64 vaddr);
/* True if the file says that a function begins there. */
bool probe_is_start(const struct elf *elf, u64 vaddr);

/*
 * Places in executable code that the resolver of @site names: what it may choose among. At most @max into
 * @out; their number, or -errno.
 */
int probe_choices(const struct probe_site *site, const struct elf *elf, u64 *out, size_t max) __must_check;

/*
 * Direct calls from [@start, @end) to @target: *@calls is the caller's, addresses of the call instructions.
 * What looks like a call without being one is checked by decoding. 0, -EIO or -ENOMEM.
 */
int probe_find_calls(struct elf *elf, u64 start, u64 end, u64 target, u64 **calls, size_t *nr) __must_check;
