/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by user/cli/options.c, options_parse.c and mistakes.c only. */
#pragma once

#include "user/cli/options.h"

enum { OPTIONS_MAX = 128 };

/* Does @command have the option? */
static inline bool is_for(const struct option_row *row, const struct command *command)
{
	return row->commands & 1U << (command - commands);
}

/* Log what is wrong with a value: place in the config file, option, reason. Returns -EINVAL. */
int __printf(3, 4)
	options_bad_value(const struct options *o, const struct option_row *row, const char *fmt, ...);

/* 0 or -ENOMEM. */
int options_list_add(struct option_list *list, const char *text) __must_check;

/* Take a size, or "off": --sample. 0, or -EINVAL, logged. */
int options_take_sample(struct options *o, const struct option_row *row, const char *text);

/* Take a rule of --fail-on; the rules of several options add up. 0, or -EINVAL, logged. */
int options_take_fail_on(struct options *o, const struct option_row *row, const char *text);
