/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86_64 and i386 for breakpoints; the emulation is in arch/cpu_x86_emulate.c. */
#include "arch/cpu_x86.h"

#include <elf.h>

#include "arch/waits.h"

/* Words in the kernel's order: 64-bit, 32-bit. */
enum { RBP = 4, R10 = 7, R8 = 9, RAX, RCX, RDX, RSI, RDI, ORIG_RAX, RIP, RSP = 19, NR_WORDS_64 = 27 };
enum { EDX = 2, EBP = 5, EAX = 6, ORIG_EAX = 11, EIP, ESP = 15, NR_WORDS_32 = 17 };

/* All instructions that matter here are emulated, and the CPU can step: lengths are not needed. */
static const struct cpu_isa isa = {
	.emulate = cpu_x86_emulate,
	.breakpoint = { 0xcc }, /* int3 */
	.breakpoint_size = 1,
};

/* arch/x86/entry/syscalls/syscall_64.tbl */
static const struct wait_call calls_64[] = {
	{ 0, WAIT_RECEIVE, RDI },    /* read */
	{ 1, WAIT_SEND, RDI },	     /* write */
	{ 19, WAIT_RECEIVE, RDI },   /* readv */
	{ 20, WAIT_SEND, RDI },	     /* writev */
	{ 40, WAIT_UNTOLD, 0 },	     /* sendfile */
	{ 42, WAIT_UNTOLD, 0 },	     /* connect */
	{ 43, WAIT_RECEIVE, RDI },   /* accept */
	{ 44, WAIT_SEND, RDI },	     /* sendto */
	{ 45, WAIT_RECEIVE, RDI },   /* recvfrom */
	{ 46, WAIT_SEND, RDI },	     /* sendmsg */
	{ 47, WAIT_RECEIVE, RDI },   /* recvmsg */
	{ 65, WAIT_UNTOLD, 0 },	     /* semop */
	{ 128, WAIT_TIMESPEC, RDX }, /* rt_sigtimedwait */
	{ 208, WAIT_TIMESPEC, R8 },  /* io_getevents */
	{ 220, WAIT_TIMESPEC, R10 }, /* semtimedop */
	{ 232, WAIT_MS, R10 },	     /* epoll_wait */
	{ 275, WAIT_UNTOLD, 0 },     /* splice */
	{ 281, WAIT_MS, R10 },	     /* epoll_pwait */
	{ 288, WAIT_RECEIVE, RDI },  /* accept4 */
	{ 299, WAIT_RECEIVE, RDI },  /* recvmmsg */
	{ 307, WAIT_SEND, RDI },     /* sendmmsg */
	{ 327, WAIT_RECEIVE, RDI },  /* preadv2 */
	{ 328, WAIT_SEND, RDI },     /* pwritev2 */
	{ 333, WAIT_TIMESPEC, R8 },  /* io_pgetevents */
	{ 426, WAIT_UNTOLD, 0 },     /* io_uring_enter */
	{ 441, WAIT_TIMESPEC, R10 }, /* epoll_pwait2 */
};

/* syscall_32.tbl: their registers have no room for a mark. */
static const struct wait_call calls_32[] = {
	{ 3, WAIT_UNTOLD, 0 },	 /* read */
	{ 4, WAIT_UNTOLD, 0 },	 /* write */
	{ 102, WAIT_UNTOLD, 0 }, /* socketcall */
	{ 117, WAIT_UNTOLD, 0 }, /* ipc */
	{ 145, WAIT_UNTOLD, 0 }, /* readv */
	{ 146, WAIT_UNTOLD, 0 }, /* writev */
	{ 177, WAIT_UNTOLD, 0 }, /* rt_sigtimedwait */
	{ 187, WAIT_UNTOLD, 0 }, /* sendfile */
	{ 239, WAIT_UNTOLD, 0 }, /* sendfile64 */
	{ 247, WAIT_UNTOLD, 0 }, /* io_getevents */
	{ 256, WAIT_UNTOLD, 0 }, /* epoll_wait */
	{ 313, WAIT_UNTOLD, 0 }, /* splice */
	{ 319, WAIT_UNTOLD, 0 }, /* epoll_pwait */
	{ 337, WAIT_UNTOLD, 0 }, /* recvmmsg */
	{ 345, WAIT_UNTOLD, 0 }, /* sendmmsg */
	{ 362, WAIT_UNTOLD, 0 }, /* connect */
	{ 364, WAIT_UNTOLD, 0 }, /* accept4 */
	{ 369, WAIT_UNTOLD, 0 }, /* sendto */
	{ 370, WAIT_UNTOLD, 0 }, /* sendmsg */
	{ 371, WAIT_UNTOLD, 0 }, /* recvfrom */
	{ 372, WAIT_UNTOLD, 0 }, /* recvmsg */
	{ 378, WAIT_UNTOLD, 0 }, /* preadv2 */
	{ 379, WAIT_UNTOLD, 0 }, /* pwritev2 */
	{ 385, WAIT_UNTOLD, 0 }, /* io_pgetevents */
	{ 416, WAIT_UNTOLD, 0 }, /* io_pgetevents_time64 */
	{ 417, WAIT_UNTOLD, 0 }, /* recvmmsg_time64 */
	{ 420, WAIT_UNTOLD, 0 }, /* semtimedop_time64 */
	{ 421, WAIT_UNTOLD, 0 }, /* rt_sigtimedwait_time64 */
	{ 426, WAIT_UNTOLD, 0 }, /* io_uring_enter */
	{ 441, WAIT_UNTOLD, 0 }, /* epoll_pwait2 */
};

static const struct cpu_waits waits_64 = { calls_64, ARRAY_SIZE(calls_64), ORIG_RAX };
static const struct cpu_waits waits_32 = { calls_32, ARRAY_SIZE(calls_32), ORIG_EAX };

const struct cpu cpu_x86_64 = {
	.name = "x86_64",
	.machine = EM_X86_64,
	.word_size = 8,
	.has_step = true,
	.trap_skip = 1,
	.regs_size = NR_WORDS_64 * 8,
	.words = { [CPU_PC] = RIP,
		   [CPU_SP] = RSP,
		   [CPU_FP] = RBP,
		   [CPU_LINK] = CPU_NO_WORD,
		   [CPU_RESULT] = RAX,
		   [CPU_ARG1] = RDI,
		   [CPU_ARG2] = RSI,
		   [CPU_ARG3] = RDX,
		   [CPU_ARG4] = RCX },
	.isa = &isa,
	.waits = &waits_64,
};

const struct cpu cpu_i386 = {
	.name = "i386",
	.machine = EM_386,
	.word_size = 4,
	.args_on_stack = true,
	.has_step = true,
	.trap_skip = 1,
	.regs_size = NR_WORDS_32 * 4,
	.words = { [CPU_PC] = EIP,
		   [CPU_SP] = ESP,
		   [CPU_FP] = EBP,
		   [CPU_LINK] = CPU_NO_WORD,
		   [CPU_RESULT] = EAX,
		   [CPU_ARG1... CPU_ARG4] = CPU_NO_WORD },
	.isa = &isa,
	.waits = &waits_32,
};
