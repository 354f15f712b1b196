/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that the source traces from their exec on, because their names were chosen (source_choice.chosen). */
#pragma once

#include "user/session/session.h"

/* The record @rec, EVENT_FORK, of such a process. 0 or -ENOMEM. */
int session_take_chosen(struct session *s, const struct event_header *rec) __must_check;

/*
 * Programs with names of source_choice.chosen: how many were traced from their exec on, and how many were not, because
 * of lack of room. False: the source does not choose programs.
 */
bool session_chosen(const struct session *s, u64 *nr_traced, u64 *nr_left_out);

/* Is @pid traced now? */
bool session_traces(struct session *s, pid_t pid);

/*
 * Put the probes in that process @pid would get, of files that all processes share, without tracing it. What goes wrong
 * is logged.
 */
void session_prepare(struct session *s, pid_t pid);
