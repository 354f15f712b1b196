/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The suppressions that a program has in itself for LeakSanitizer. */
#pragma once

#include "user/scan/suppress.h"

struct elf;

/*
 * Add the rules that __lsan_default_suppressions() of @elf returns: a function of a few instructions that returns the
 * address of a constant string. 0; -ENOENT without such a function; -ENOTSUP if it does more, or on another CPU;
 * -EINVAL for a bad rule, logged; or -errno.
 */
int suppress_add_program(struct suppress_list *list, struct elf *elf) __must_check;
