/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How attach and console begin with running processes, and what these and connect end with. */
#pragma once

#include "user/options.h"

struct session;

/*
 * Trace all processes that the targets of @o mean. STATUS_DONE, or another exit status, logged: one could not be
 * traced, or none of them has an allocator.
 */
int attach_targets(struct session *s, const struct options *o) __must_check;

/* The exit status after the last report. */
int attach_status(const struct options *o, struct session *s) __must_check;
