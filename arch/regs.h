/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All registers of a stopped thread as plain words. A leak scan takes them for roots. */
#pragma once

#include "user/lib/types.h"

enum {
	REGS_VECTOR = 1024,    /* offset in bytes[] where the floating point and vector state begins */
	REGS_MAX_BYTES = 16384 /* room for AVX-512 and AMX */
};

/* Registers of one thread. bytes[] holds words of word_size in the byte order of this machine. */
struct arch_regs {
	taddr_t sp;	/* stack pointer */
	taddr_t tp;	/* thread pointer (TLS base); 0 = unknown */
	u32 nr_general; /* bytes of general registers, from bytes[0] */
	u32 nr_vector;	/* bytes of vector state, from bytes[REGS_VECTOR] */
	u8 word_size;	/* 4 or 8: of the code that the thread runs */
	/*
	 * The thread is in exit or exit_group, so its vector state is of no more use: functions keep nothing there for
	 * those that they call, and these return to nobody. memcpy() copies pointers by way of it, and leaves them.
	 */
	bool is_exiting;
	_Alignas(8) u8 bytes[REGS_MAX_BYTES];
};

/*
 * Read the registers of @tid, which must be in a ptrace stop of the calling thread. Returns 0, -ESRCH if @tid is not
 * stopped or has ended, or -errno. Vector state that the kernel does not offer is left out.
 */
int arch_regs_read(struct arch_regs *regs, pid_t tid) __must_check;

/* Where the code of a thread is: enough to find its callers. */
struct arch_frame {
	taddr_t pc, fp;
	taddr_t lr; /* link register; 0 on CPUs without one */
};

/* Take the frame from @regs. False on CPUs, or for code of a word size, that are not known here. */
bool arch_regs_frame(const struct arch_regs *regs, struct arch_frame *out);

/* Bytes below the stack pointer that code may use without moving it. */
u32 arch_red_zone(u8 word_size);

/* The address of the program's own thread-local block (PT_TLS) of @memsz bytes, from the thread pointer @tp. */
taddr_t arch_tls_start(u8 word_size, taddr_t tp, u64 memsz, u64 align);

/* Name of the word at byte @offset of bytes[]: "rbx", "xmm3+8", "vector+0x240". Returns @buf. */
const char *arch_reg_name(u8 word_size, u32 offset, char *buf, size_t size);
