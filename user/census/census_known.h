/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The knowledge of a trace of the blocks of a census: their callers. The trace is the list of live blocks that the
 * command "blocks" of the console writes as CSV.
 */
#pragma once

#include <stdio.h>

#include "user/census/census.h"

struct census_known;

/*
 * Read the blocks of process @pid from the list in @path. *@out: of the caller, census_known_free(). 0; -EBADMSG:
 * no such list; -ENODATA: it has no block of the process; -EFBIG; -ENOMEM; or -errno.
 */
int census_known_new(struct census_known **out, const char *path, pid_t pid) __must_check;
void census_known_free(struct census_known *k); /* NULL is fine */

/* Look each block up in @c. Once. */
void census_known_join(struct census_known *k, const struct census *c);

/* Callers with the most live bytes, at most @top (0 = all); for people, and as the key "known". */
void census_known_text(FILE *out, const struct census_known *k, u32 top);
void census_known_json(struct json *j, const struct census_known *k);
