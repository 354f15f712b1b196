/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What options.c and options_parse.c share, and nobody else. */
#pragma once

#include "user/options.h"

enum { OPTIONS_MAX = 128 };

/* One line on what is wrong with a value: where it stands, which option, why. Returns -EINVAL. */
int __printf(3, 4)
	options_bad_value(const struct options *o, const struct option_row *row, const char *fmt, ...);

/* 0 or -ENOMEM. */
int options_list_add(struct option_list *list, const char *text) __must_check;
