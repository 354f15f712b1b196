/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user of a program that heaptap starts: under sudo it is not root. */
#pragma once

#include "user/lib/types.h"

struct options;

/*
 * The name of the user for launch_options, or NULL: as we are. By --user, --as-root, and whoever typed sudo, which is
 * told. *@user is owned by the caller. 0, -EINVAL or -ENOMEM, logged.
 */
int run_as(const struct options *o, char **user) __must_check;
