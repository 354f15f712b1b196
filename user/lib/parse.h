/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers, sizes and durations as people type them; used by options, specs and config values. */
#pragma once

#include "user/lib/types.h"

/* A decimal number, "12". 0, -EINVAL for other text, -ERANGE beyond 64 bits. *@out is set only on success. */
int parse_u64(const char *text, u64 *out) __must_check;

/* A hexadecimal number with its 0x, "0x7f10". As parse_u64(). */
int parse_hex(const char *text, u64 *out) __must_check;

/* A number as in C: "12", "0x7f10", octal "017". As parse_u64(). */
int parse_number(const char *text, u64 *out) __must_check;

/* Tenths of a percent: "5%", "0.5%". As parse_u64(). */
int parse_percent(const char *text, u32 *out) __must_check;

/*
 * Bytes: "4096", "64K", "1.5MiB"; units B K M G T (with or without iB), powers of 1024, any case.
 * 0, -EINVAL, -ERANGE.
 */
int parse_size(const char *text, u64 *bytes) __must_check;

/*
 * A duration in ns: "500ms", "10s", "1.5h", "1m30s"; units ns us ms s m h d, seconds without one.
 * 0, -EINVAL, -ERANGE.
 */
int parse_duration(const char *text, u64 *ns) __must_check;

/*
 * The name that @text was most likely meant to be: at most a third of its letters differ. Names that are
 * NULL are skipped. NULL if no name is similar.
 */
const char *parse_nearest(const char *text, const char *const *names, size_t nr);
