/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command lines that are wrong: messages that name what was most likely meant. Each function logs one line. */
#pragma once

#include "user/cli/options.h"

/* @text stands where the command should. */
void mistake_command(const char *text);

/* @text is one argument more than @command takes. */
void mistake_argument(const struct command *command, const char *text);

/*
 * getopt refused an option of @command: the long option @text, "--nmae=x" or "--quiet=x", or the one of a cluster of
 * which @letter (0 = long) is the name. @row is the option's row if getopt knows it, or that of the letter; else NULL.
 */
void mistake_option(const struct command *command, const struct option_row *row, const char *text,
		    int letter);

/*
 * The command that is meant where a PID, a program or a recording is typed in its place, which is logged; NULL: none is
 * clear.
 */
const struct command *mistake_implied(const char *text);

/* Warn if an option of heaptap stands behind the program, which gets it. */
void mistake_late_options(const struct options *o);
