/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System calls that wait, and that fail with EINTR whenever their thread has stopped: epoll_wait(2), semop(2),
 * sigtimedwait(2), io_getevents(2), io_uring_enter(2), and calls on sockets with a time limit (signal(7)). A program is
 * not to see a ptrace stop, so such a call is begun again when the thread goes on.
 */
#pragma once

#include "arch/cpu.h"

/* How a call is told the longest time to wait. */
enum wait_limit {
	WAIT_UNTOLD,   /* not by an argument that can be changed; or there is no limit */
	WAIT_MS,       /* milliseconds in the lower half of a word; below 0 = no limit */
	WAIT_TIMESPEC, /* the address of a struct timespec; 0 = no limit */
	WAIT_RECEIVE,  /* by SO_RCVTIMEO of the socket that is the lower half of a word */
	WAIT_SEND,     /* likewise, by SO_SNDTIMEO */
};

struct wait_call {
	u16 number;
	u8 limit; /* enum wait_limit */
	u8 word;  /* of the limit, among the registers in the kernel's order */
};

/* The calls of a CPU whose kernel begins a call again if its result says so when the thread goes on. */
struct cpu_waits {
	const struct wait_call *calls;
	u32 nr;
	u8 number; /* the word of the number of the call that is under way */
};

/* The call that the stop of a thread with @regs makes fail with EINTR, or that is to begin again. NULL = none. */
const struct wait_call *waits_find(const struct cpu *cpu, const struct cpu_regs *regs);

/* Have this call begin again when the thread goes on; if a handler of a signal runs first, it fails with EINTR. */
void waits_begin_again(const struct cpu *cpu, struct cpu_regs *regs);

/*
 * The word of WAIT_MS for the rest of a wait with the word @word. It has a mark in its upper half, from which another
 * stop of the same call takes the end of the wait.
 */
u64 waits_left(u64 word, u64 now_ms);

/*
 * The word of WAIT_RECEIVE or WAIT_SEND for a wait of at most @asked_ms (0 = there is no limit) with the word @word: it
 * has such a mark, too. *@is_over: the time is over.
 */
u64 waits_of_socket(u64 word, u64 now_ms, u64 asked_ms, bool *is_over);

/*
 * Thread @tid has come into a stop that it was asked for: should the tracer die, its wait begins again, with all of its
 * time.
 */
void waits_keep(pid_t tid);

/*
 * Thread @tid is in a stop that it was asked for, or of a signal: have its wait begin again for the rest of its time.
 * For WAIT_TIMESPEC, the rest is written to unused memory of the stack. A wait on a socket begins again with all of its
 * time until that is over, and then fails with EAGAIN.
 */
void waits_go_on(pid_t tid);
