/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages to stderr: one line each, "heaptap: what: which: why". */
#pragma once

#include "user/lib/types.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Show messages up to @level (default LOG_INFO). */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Print one line; bytes of the formatted text that a terminal could act on are escaped. Never fails. */
void log_line(enum log_level level, const char *fmt, ...) __printf(2, 3);

#define error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
