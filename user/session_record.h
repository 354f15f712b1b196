/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a session does for a recording in parts. */
#pragma once

#include "user/lib/types.h"

struct process;
struct session;

/* Begin another part of the recording if it is time to: before the next record is entered. */
void session_record_part(struct session *s);

/* Introduce the stack @id, that this part of the recording does not know. */
void session_record_stack(struct session *s, const struct process *p, u64 id);
