/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording in parts, inside of a session. */
#pragma once

#include "user/lib/types.h"

struct process;
struct session;

/* Begin another part of the recording if it is time. To be called before a record is entered. */
void session_record_part(struct session *s);

/* Write a seek point into the recording if it is time. To be called before a record is entered. */
void session_record_seek(struct session *s);

/* Write the stack @id, which this part of the recording does not have yet. */
void session_record_stack(struct session *s, const struct process *p, u64 id);
