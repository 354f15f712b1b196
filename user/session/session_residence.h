/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The resident memory of processes at the attach and at a report. For user/session/session*.c only. */
#pragma once

#include "user/report/report_residence.h"

struct process;
struct session;

/* @p is about to be attached to. Reads nothing unless reports are to have it (session_options.wants_residence). */
void session_residence_begin(const struct session *s, struct process *p);

/* A report is about to be written: read the memory of each process that runs on this machine. None is stopped. */
void session_residence_read(struct session *s);
/* The report was written. */
void session_residence_forget(struct session *s);

void session_residence_free(struct process *p);
