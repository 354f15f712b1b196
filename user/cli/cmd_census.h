/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of heaptap scan that needs no trace. */
#pragma once

#include <sys/types.h>

struct options;
struct outputs;

/* Take a census of @pid and write it to @outs. Returns an enum exit_status, and has said why if it is no result. */
int census_process(const struct options *o, struct outputs *outs, pid_t pid);
