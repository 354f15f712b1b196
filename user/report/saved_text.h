/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints a saved JSON report for people. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

/*
 * Write the JSON report @text of @len bytes as text: its processes, and of each the @top callers that leak or hold
 * most, 0 = all. 0; -ENOMEM; or -EBADMSG as saved_read(), with *@why and *@at.
 */
int saved_print(FILE *out, const char *text, size_t len, u32 top, const char **why, size_t *at) __must_check;
