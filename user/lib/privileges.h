/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gives up what a process of heaptap does not need. */
#pragma once

#include "user/lib/types.h"

/* The jobs that a process of heaptap may still have. */
enum privileges_for {
	PRIVILEGES_TRACING,  /* attach, stop, read, write reports */
	PRIVILEGES_LINKS,    /* own links of BPF programs */
	PRIVILEGES_GUARDING, /* change code of targets by ptrace */
	PRIVILEGES_KEEPING,  /* both */
	PRIVILEGES_SCANNING, /* stop and read a process, write reports */
	PRIVILEGES_SUSPENDING, /* the same of a process with a filter of system calls: only who has none suspends it */
	PRIVILEGES_FILES,   /* read files, write reports */
	PRIVILEGES_PEER,    /* the same, and talk to a heaptap elsewhere, or to symbol servers */
	PRIVILEGES_HOLDING, /* resume a process that was stopped */
	PRIVILEGES_SENDING, /* send to a server what another process of heaptap has made */
};

/*
 * Call it before there are other threads: capabilities belong to each thread by itself. Programs that heaptap starts
 * have had their fork already (launch_prepare()). From now on, this thread and those that it makes have only the
 * capabilities that @what needs, and those of the mask @more; a job that needs CAP_SYS_PTRACE and has it not keeps all
 * that it has. No program that they execute gains privileges, system calls that @what does not need and that change the
 * machine or other processes fail with EPERM, and the memory of heaptap is in no core file. There is no way back. A
 * kernel without one of these keeps that one as it was. Makes system calls only, but for messages of -v.
 */
void privileges_drop(enum privileges_for what, u64 more);

/*
 * The capabilities that making files in the @nr directories @dirs takes, as a mask. @dirs NULL: they are not known yet.
 * @gives_away: the files get another owner. This thread has no capabilities for a moment.
 */
u64 privileges_to_write(const int *dirs, size_t nr, bool gives_away);
