/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The begin of attach and console with running processes, and the exit status of these and connect. */
#pragma once

#include "user/cli/options.h"

struct session;

/*
 * Trace all processes that the targets of @o mean. STATUS_DONE, or another exit status, logged: one could not be
 * traced, or none of them has an allocator.
 */
int attach_targets(struct session *s, const struct options *o) __must_check;

/* @err is of session_report(): does nobody read the only output any more, and nothing is recorded? */
bool attach_is_unread(const struct options *o, int err);

/* The exit status after the last report. */
int attach_status(const struct options *o, struct session *s) __must_check;
