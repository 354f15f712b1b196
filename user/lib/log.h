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

/*
 * While it is on, a line that stderr does not take at once is left out, and the next one that it takes says how many
 * were: events must be read also where nobody reads messages. Not in the agent.
 */
void log_never_wait(bool is_on);

/*
 * Like log_line() for an error, for a thread beside the one that prints: never waits, and the line is lost if stderr
 * takes nothing now.
 */
void log_now(const char *fmt, ...) __printf(1, 2);

/*
 * Show @text in one line of the terminal, in place of the one before; NULL = no more. Cut to the width of the terminal,
 * escaped, without escape codes. Nothing happens if stderr is no terminal or heaptap runs in its background.
 * log_line() removes the line first, and whoever else prints must do so too. Any thread may call it.
 */
void log_status(const char *text);
/* May a line be shown: stderr is a terminal, and stdout is no pipe, whose reader may use the terminal too. */
bool log_status_is_possible(void);
/* The columns that such a line may have; 0 = none is shown. */
u32 log_status_columns(void);

/* Give messages to @take with @ctx instead of printing them; NULL = print them again. Any thread may call @take. */
void log_divert(void (*take)(void *ctx, enum log_level level, const char *line), void *ctx);

#define error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
