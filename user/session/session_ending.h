/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interpreters that drop their objects before they end, which makes leaks of what these held. */
#pragma once

struct process;

/*
 * If @p has ended by itself with leaks, and its interpreter is known to drop objects before that: one sentence about
 * it, for the report. Else NULL.
 */
const char *session_ending_note(const struct process *p);
