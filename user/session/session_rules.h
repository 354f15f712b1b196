/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Suppressions that a traced program has in itself. */
#pragma once

struct process;
struct session;

/* The suppressions of @p, or NULL. heaptap looks once at each program. */
const struct suppress_list *session_own_rules(const struct session *s, struct process *p);
