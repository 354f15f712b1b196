/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The console's history in a file of the user's own: heaptap/history in $XDG_STATE_HOME or ~/.local/state. */
#pragma once

#include "user/lib/types.h"

/* Each line of it, oldest first. A file, or a folder, that others could have written is left alone: no history. */
void console_history_load(void (*keep)(void *ctx, const char *line), void *ctx);

/* Put lines @line_at(0), ... up to NULL in its place, mode 0600. Where that cannot be there is no history next time. */
void console_history_save(const char *(*line_at)(size_t i));
