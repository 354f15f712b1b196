/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of programs, or patterns of these as in a shell, for the BPF program that sees each exec. */
#pragma once

#include "bpf/chosen_names.h"

/*
 * Make @out of @patterns, NULL-terminated. It chooses what fnmatch() without flags does, of names of at most 15 bytes.
 * 0, or -E2BIG: they are too many or too long.
 */
int chosen_names_make(struct chosen_names *out, const char *const *patterns) __must_check;
