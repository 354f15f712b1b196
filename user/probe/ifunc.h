/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocator functions that a resolver chooses when a program starts (STT_GNU_IFUNC): find the function chosen. */
#pragma once

#include "user/probe/probe.h"
#include "user/target/target.h"

/*
 * Replace the sites of @list that are resolvers by the functions that the GOTs of @t hold for them. @elf defines the
 * resolvers, and @map is its mapping in @t. Reads the target's memory without stopping the target. While no GOT has
 * the result, all functions are taken that the resolver's code names, because it will choose one of them. A resolver
 * that names no function is left out and counted. 0 or -ENOMEM.
 */
int ifunc_resolve(struct probe_list *list, struct elf *elf, const struct target *t, const struct mapping *map,
		  const struct probe_options *options) __must_check;
