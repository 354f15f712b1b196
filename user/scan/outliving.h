/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that must not stop half-way when heaptap is killed, SIGKILL included: it runs in a process of its own, which has
 * the memory and the descriptors of the thread that started it. That thread waits.
 */
#pragma once

#include <sys/types.h>

struct outliving {
	pid_t pid;    /* of the process; 0 = none was started */
	pid_t parent; /* heaptap */
};

/*
 * Run @work(@arg) in such a process, and wait for its end. It has the signal mask of the caller, and a process group of
 * its own. It dies with the calling thread, but not between outliving_begin() and outliving_end(). 0; -ENOMEM or
 * -EAGAIN: @work did not run.
 */
int outliving_run(struct outliving *o, void (*work)(void *arg), void *arg)
	__attribute__((warn_unused_result));

/* From here on the process goes on although heaptap may die. Does nothing elsewhere than in the process. */
void outliving_begin(const struct outliving *o);

/* The work may stop again. Does not return if heaptap has died meanwhile. */
void outliving_end(const struct outliving *o);
