/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interpreters that drop their objects before they end, which makes leaks of what these held. */
#pragma once

struct process;

/*
 * What the interpreter of @p does before it ends, if @p has ended so and its last verdict has leaks: one sentence
 * for the report. NULL: nothing of this kind.
 */
const char *session_ending_note(const struct process *p);
