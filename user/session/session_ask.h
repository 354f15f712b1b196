/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts that another heaptap (heaptap scan) has asked for, for who shows the session meanwhile. */
#pragma once

#include "user/lib/types.h"

struct session;

/* From now on such verdicts stay, for session_show(), until the next report. */
void session_keep_asked(struct session *s);
/* When the last one was found, by CLOCK_MONOTONIC; less than 2: none was. */
u64 session_asked_ns(const struct session *s);
/* A report begins, to which they do not belong. */
void session_forget_asked(struct session *s);
