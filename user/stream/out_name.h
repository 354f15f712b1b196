/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of files that heaptap writes: placeholders in them, and owners of the files. */
#pragma once

#include <limits.h>

#include "user/lib/types.h"

/* Values of the placeholders in a name. */
struct out_values {
	pid_t pid;     /* %p */
	u64 number;    /* %n */
	char time[32]; /* %t; 20260131-235959-123 */
};

/* Sets time to the present one. */
void out_values_set_time(struct out_values *v);

/* @pattern with its placeholders filled in; %% is %. 0, -EINVAL for an unknown one, -ENAMETOOLONG. */
int out_expand(const char *pattern, const struct out_values *v, char out[NAME_MAX + 1]) __must_check;

/* The user who typed sudo; false: this program does not run under it as root. */
bool out_find_caller(uid_t *uid, gid_t *gid);

/* Under sudo, give the file @fd to the user who typed the command. 0 or -errno. */
int out_give_to_caller(int fd) __must_check;

/* Under sudo, become the user who typed the command, for good: for a child that runs their program. 0 or -errno. */
int out_become_caller(void) __must_check;

/* May data of ours go to a pipe that @owner has made? Yes for root, for our user, and for who typed sudo. */
bool out_is_trusted_owner(uid_t owner);
