/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that are never traced: those that the machine and its users depend on, and heaptap's own. */
#pragma once

#include "user/system/watch.h"

/*
 * Why @p is not to be traced: a few words; NULL = it may be. @names are those of --spare, NULL-terminated or NULL, in
 * addition to heaptap's own; the name "none" takes those away.
 */
const char *spare_reason(const char *const *names, const struct watched *p);
