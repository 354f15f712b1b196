/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cheapest place in a function that sees every call, and how its end can be seen. */
#pragma once

#include "user/probe/probe.h"

/*
 * Fill in place, is_emulated, flags, own range and rets of @site, whose fn, start and end are known. A function of
 * @list may do the work of another one. -EINVAL: the code cannot be decoded; -EILSEQ: no function begins at start;
 * -ENOTSUP: not on this CPU; -ENOSYS: the end of an operator new cannot be seen; -ENOMEM.
 */
int probe_place(struct probe_site *site, struct elf *elf, const struct probe_list *list,
		const struct probe_options *options) __must_check;

/*
 * False if .eh_frame_hdr of the file shows that @vaddr lies inside a function or an instruction. A probe there would
 * change what the program does, above all a return probe.
 */
bool probe_is_entry(struct elf *elf, u64 vaddr);
/* False if decoding from the beginning of the function around @vaddr shows that no instruction begins there. */
bool probe_is_instruction(struct elf *elf, u64 vaddr);
/* True if the file says that a function begins there. */
bool probe_is_start(const struct elf *elf, u64 vaddr);
/* The function around @vaddr by its call frame information. False: it has none. */
bool probe_function_of(const struct elf *elf, u64 vaddr, u64 *start, u64 *end);

/*
 * Write at most @max addresses to @out: the functions that the resolver of @site may choose, because its code names
 * them. Returns their number, or -errno.
 */
int probe_choices(const struct probe_site *site, const struct elf *elf, u64 *out, size_t max) __must_check;

/*
 * Find the direct calls of @target in [@start, @end). *@calls are the addresses of the call instructions, owned by the
 * caller. Candidates are decoded, because other bytes may look like a call. 0, -EIO or -ENOMEM.
 */
int probe_find_calls(struct elf *elf, u64 start, u64 end, u64 target, u64 **calls, size_t *nr) __must_check;
