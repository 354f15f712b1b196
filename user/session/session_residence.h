/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The resident memory of processes at the attach and at a report. For user/session/session*.c only. */
#pragma once

#include "user/report/report_residence.h"

struct process;
struct session;

/*
 * @p was attached to: what it has allocated so far is in no book. Reads nothing unless reports are to have it
 * (session_options.wants_residence). Events go on meanwhile.
 */
void session_residence_begin(struct session *s, struct process *p);

/* A report is about to be written: read the memory of each process that runs on this machine. None is stopped. */
void session_residence_read(struct session *s);
/* As session_residence_read(), of an attached process that is held at its end: the next report has that. */
void session_residence_at_end(struct session *s, struct process *p);
/* The events of @p end now: the next report has its memory of this moment. Events are read meanwhile. */
void session_residence_stop(struct session *s, struct process *p);
/* The report was written. */
void session_residence_forget(struct session *s);

void session_residence_free(struct process *p);
