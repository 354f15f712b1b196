/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has somebody changed the code that probes go to? A hooked function in memory is not the function of the file. */
#pragma once

#include "user/source/placing.h"

/*
 * Under a uprobe the kernel runs the instruction that the file has, not the one in memory: a target whose allocator was
 * hooked (a jump written over its first bytes) would crash or run old code. Compares the code of @f's functions in @t
 * with the file, from the beginning of each function to its probe. Breakpoints of other tracers, and calls that
 * the kernel makes of them, are no difference.
 * Reads the target's memory, does not stop it. NULL: no difference, or the memory cannot be read; else the name of the
 * first function that differs.
 */
const char *changed_code_find(const struct target *t, const struct mapping *map, const struct probed_file *f,
			      const struct elf *elf);

/* 0; -EINPROGRESS: @map is gone; -EOPNOTSUPP, logged: the code of the target is not that of the file. */
int changed_code_refuse(const struct target *t, const struct mapping *map, const struct probed_file *f,
			const struct elf *elf) __must_check;

struct proc_memory;

/*
 * How many places of @list's probes, and of the linker's hook, have a breakpoint in @mem where @elf, the file of @map,
 * has other code. *@function is the name of the first such function, static. Places that cannot be read count as
 * unchanged.
 */
size_t changed_code_breakpoints(const struct proc_memory *mem, const struct mapping *map,
				const struct probe_list *list, const struct elf *elf, const char **function);

/* Add places of @f's probes in @map to the @nr of @out, half of what fits at most. How many it has then. */
size_t changed_code_watch(struct watched_code *out, size_t nr, const struct mapping *map,
			  const struct probed_file *f);

/* Has a heaptap that lives code in @t? Breakpoints in that would end @t when it goes out. Logged. */
bool changed_code_is_in_use(const struct target *t);

/*
 * How many places of @f's probes in @map have the code of the file in @mem, and not the kernel's breakpoint. *@function
 * names the first one.
 */
size_t changed_code_overwritten(const struct proc_memory *mem, const struct mapping *map,
				const struct probed_file *f, const char **function);

struct copied_code;

/* copied_code_try() for all places of @f. The name of the function of the best one; NULL: none was better. */
const char *changed_code_copied(const struct probed_file *f, struct copied_code *c);

/*
 * The kernel puts a breakpoint for all processes into each new mapping of the file. So heaptap maps @f's file, too.
 * The name of a function of @f with such a breakpoint at one of its places; NULL: there is none, or the file cannot be
 * mapped.
 */
const char *changed_code_of_others(const struct probed_file *f);
