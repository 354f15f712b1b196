/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config file: options that a user or a machine always wants. */
#pragma once

#include "user/lib/types.h"

/*
 * Read the config file @path, or for NULL the first that is there: $HEAPTAP_CONFIG,
 * $XDG_CONFIG_HOME/heaptap/config, ~/.config/heaptap/config, /etc/heaptap.conf. Relative paths from the environment
 * are ignored, so a file of the working directory is never used. A file that others could have written is not used,
 * with a warning. *@text and *@used (its path) are owned by the caller, NULL if there is no file.
 * Returns 0, or -errno after one line on stderr.
 */
int config_read(const char *path, char **text, char **used) __must_check;

/*
 * Take one line off *@rest: "name" or "name value", without blanks around. Empty lines and lines that begin with # are
 * skipped. @rest is changed; *@value is "" for a name without a value; *@line grows by the lines taken. False at the
 * end.
 */
bool config_next(char **rest, char **name, char **value, u32 *line);
