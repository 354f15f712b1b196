/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The growth over many reports, for `heaptap report DIRECTORY` and `heaptap diff` of three files or more. */
#pragma once

#include "user/lib/types.h"

struct options;

/* Is @path a directory? */
bool series_is_directory(const char *path);

/* Read the reports that o->args names, or those in the directory that is the only one. Returns an exit status. */
int series_command(const struct options *o);
