/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guardian: a small process that traces the targets for heaptap. When heaptap ends, however that happens, the
 * guardian puts the code of the targets back and detaches. All functions but guardian_new() and guardian_free() wait
 * for its answer. -EPIPE: the guardian has died, and each target ends when it runs into a breakpoint.
 */
#pragma once

#include "fallback/command.h"

struct guardian;

/* Start the guardian. @ring_bytes: room for records. 0 or -errno. */
int guardian_new(struct guardian **out, const struct tracer_options *o, u64 ring_bytes) __must_check;
/* Ends the guardian, and waits until it has detached from all targets. */
void guardian_free(struct guardian *g);

pid_t guardian_pid(const struct guardian *g);

/*
 * A copy, owned by the caller, of the socket to the guardian. When it is shut down, the guardian detaches from all
 * targets and exits with 0. -errno.
 */
int guardian_lifeline(const struct guardian *g);
struct ring *guardian_ring(const struct guardian *g);
const struct guardian_state *guardian_state(const struct guardian *g);
/* The call that a process is to be stopped at. */
struct call_wish *guardian_wish(const struct guardian *g);

/* Losses of @pid since it was attached, all zero if it is not known. */
struct call_losses guardian_losses(const struct guardian *g, pid_t pid);

/* A process that is about to end, and is stopped until COMMAND_LET_END; 0 = none. *@status as wait(2) gives it. */
pid_t guardian_exiting(const struct guardian *g, int *status);

/* A command without data. 0 or -errno of the function of fallback/tracer.h. */
int guardian_do(struct guardian *g, enum command_op op, pid_t pid, u64 start, u64 end) __must_check;

/* With data, in as many messages as it takes. */
int guardian_set_probes(struct guardian *g, u32 first, const struct call_probe *probes, u32 nr) __must_check;
int guardian_set_notes(struct guardian *g, u32 first, const struct note_probe *notes, u32 nr) __must_check;
int guardian_add_places(struct guardian *g, pid_t pid, const struct place *places, u32 nr,
			u32 *nr_done) __must_check;
int guardian_set_maps(struct guardian *g, pid_t pid, const struct tracer_map *maps, u32 nr) __must_check;
int guardian_regs(struct guardian *g, pid_t tid, struct arch_regs *regs) __must_check;
/* Carries out @r, and fills in its result. */
int guardian_call(struct guardian *g, pid_t pid, struct thread_request *r) __must_check;

/* Has the changer of the options change @pid, which is held. @fd: goes along; -1 = none. */
int guardian_change(struct guardian *g, pid_t pid, int fd) __must_check;

/* Rows are copied to memory that the guardian may only read. */
int guardian_set_table(struct guardian *g, const struct command_table *table, const void *rows,
		       size_t bytes) __must_check;
