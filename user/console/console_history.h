/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history of the console, in heaptap/history of $XDG_STATE_HOME or ~/.local/state. */
#pragma once

#include "user/lib/types.h"

/* Call @keep for each line, oldest first. A file or directory that other users can write to is not read. */
void console_history_load(void (*keep)(void *ctx, const char *line), void *ctx);

/* Replace the history by the lines @line_at(0), ... up to NULL, mode 0600. On an error nothing is kept. */
void console_history_save(const char *(*line_at)(size_t i));
