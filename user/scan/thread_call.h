/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that a thread of a held process carries out for heaptap. */
#pragma once

#include "arch/thread_call.h"

struct snapshot;

/*
 * Fill in the places of @r: an instruction in the vDSO, and those of a way back, where they are found. 0; -ENOENT;
 * -ENOTSUP on this CPU; or -errno.
 */
int thread_call_places(struct thread_request *r, const struct snapshot *s) __must_check;
