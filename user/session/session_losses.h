/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of a session: what of a process was lost, and what of its books is unsure because of that. */
#pragma once

#include "user/source/losses.h"

struct event_header;
struct process;
struct session;

/* Losses of @p that its source has counted. Costs little as long as nothing of any process was lost. */
struct losses session_source_losses(struct session *s, struct process *p);

/* Calls of @p that were lost since its trace began: they have cost it what those that were seen did. */
u64 session_lost_calls(struct session *s, struct process *p);

/* The losses of @old, which has executed @image, are in the sums of its PID. */
void session_carry_losses(const struct session *s, const struct process *old, struct process *image);

/* Make the blocks of @p unsure if more than @unseen frees were lost, or did not fit into the heap. */
void session_taint_if_unseen(struct session *s, struct process *p, u64 unseen);

/* The record @rec of losses of @p. Returns 0. */
int session_enter_losses(struct session *s, struct process *p, const struct event_header *rec);

/* Before a verdict and before the probes go: are they still in the memory of @p? If not, that is a loss. */
void session_look(struct session *s, struct process *p);
