/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs whose runtime keeps objects in memory of its own. */
#pragma once

struct process;

/* A note for reports that says what is not seen of @p, NULL for programs that only use malloc. */
const char *session_note_runtime(const struct process *p);
