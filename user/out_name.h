/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of files that heaptap writes: placeholders, and whose the files are. */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "user/lib/types.h"

/* What the placeholders of a name stand for. */
struct out_values {
	pid_t pid;     /* %p */
	u64 number;    /* %n */
	char time[32]; /* %t; 20260131-235959-123 */
};

/* Sets time to the present one. */
void out_values_set_time(struct out_values *v);

/* @pattern with its placeholders filled in; %% is %. 0, -EINVAL for an unknown one, -ENAMETOOLONG. */
int out_expand(const char *pattern, const struct out_values *v, char out[NAME_MAX + 1]) __must_check;

/* Under sudo the file @fd belongs to who typed the command. 0 or -errno. */
int out_give_to_caller(int fd) __must_check;
