/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Are guessed functions an allocator? For user/session/session*.c only. */
#pragma once

#include "user/lib/types.h"

struct process;
struct session;

/* The functions of @p were found by their code (--guess). */
bool process_is_guessed(const struct process *p);

/*
 * Compare the live blocks of @p, which must run or be stopped, with its mappings now: blocks are in the heap or in
 * anonymous memory. Nothing happens for a process that is not guessed or that is not on this machine.
 */
void session_check_guess(const struct session *s, struct process *p);

/*
 * Why the guess is not believed: no block was seen to be released or checked, released blocks had never been
 * allocated, or blocks are not in the heap. NULL = it is believed, or @p is not guessed.
 */
const char *process_guess_doubt(const struct process *p);
