/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocator functions that are chosen when a program starts (STT_GNU_IFUNC): found where the target bound them. */
#pragma once

#include "user/probe.h"
#include "user/target.h"

struct elf;

/*
 * Replace the sites of @list that are resolvers by the functions that @t's GOTs hold for them. @map is
 * where @elf, which defines them, lies in @t. Reads the target's memory, does not stop it. Where nobody has
 * bound the result yet, all functions that the resolver's code names are taken, as one will be it; a resolver
 * that names none is left out and counted. 0 or -ENOMEM.
 */
int ifunc_resolve(struct probe_list *list, struct elf *elf, const struct target *t, const struct mapping *map,
		  const struct probe_options *options) __must_check;
