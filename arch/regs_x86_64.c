/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers of a stopped thread on x86: 64-bit code, and 32-bit code on a 64-bit kernel. */
#include "arch/regs.h"

#if defined(__x86_64__)

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <asm/ldt.h>

#include "arch/tracee.h"

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

enum {
	GET_THREAD_AREA = 25, /* ptrace request, absent from the C library's headers on 64 bit */
	SIZE_32 = 17 * 4,     /* general registers of 32-bit code */
	XMM_START = 160,
	XMM_END = 416, /* in the saved state, after 8 x87 registers from 32 on */
	X87_START = 32,
};

/* In the order of the kernel's register set. */
static const char *const names_64[] = { "r15",	   "r14",      "r13", "r12", "rbp",    "rbx", "r11",
					"r10",	   "r9",       "r8",  "rax", "rcx",    "rdx", "rsi",
					"rdi",	   "orig_rax", "rip", "cs",  "eflags", "rsp", "ss",
					"fs_base", "gs_base",  "ds",  "es",  "fs",     "gs" };
static const char *const names_32[] = { "ebx", "ecx", "edx",	"esi", "edi", "ebp",
					"eax", "ds",  "es",	"fs",  "gs",  "orig_eax",
					"eip", "cs",  "eflags", "esp", "ss",  "gs_base" };
enum { RBP_64 = 4, RIP_64 = 16, RSP_64 = 19, FS_BASE_64 = 21 };
enum { EBP_32 = 5, GS_32 = 10, EIP_32 = 12, ESP_32 = 15 };

static int get_set(pid_t tid, unsigned int set, void *buf, size_t size, u32 *len)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)set, &iov) != 0)
		return -errno;
	*len = (u32)iov.iov_len;
	return 0;
}

/* TLS base of 32-bit code: the segment that gs selects. */
static taddr_t thread_area(pid_t tid, u32 gs)
{
	struct user_desc desc = { 0 };

	if (syscall(SYS_ptrace, GET_THREAD_AREA, tid, (void *)(uintptr_t)(gs >> 3), &desc) != 0)
		return 0;
	return desc.base_addr;
}

int arch_regs_read(struct arch_regs *regs, pid_t tid)
{
	const u64 *r64 = (const u64 *)(const void *)regs->bytes;
	u32 *r32 = (u32 *)(void *)regs->bytes;
	size_t room = sizeof(regs->bytes) - REGS_VECTOR;
	int err;

	err = get_set(tid, NT_PRSTATUS, regs->bytes, REGS_VECTOR, &regs->nr_general);
	if (err)
		return err;
	regs->word_size = regs->nr_general == SIZE_32 ? 4 : 8;
	regs->sp = regs->word_size == 8 ? r64[RSP_64] : r32[ESP_32];
	regs->tp = regs->word_size == 8 ? r64[FS_BASE_64] : thread_area(tid, r32[GS_32]);
	/* The base of the segment counts as a register: it may be the only pointer to the thread-local data. */
	if (regs->word_size == 4) {
		r32[SIZE_32 / 4] = (u32)regs->tp;
		regs->nr_general += 4;
	}
	if (get_set(tid, NT_X86_XSTATE, regs->bytes + REGS_VECTOR, room, &regs->nr_vector) != 0 &&
	    get_set(tid, NT_PRFPREG, regs->bytes + REGS_VECTOR, room, &regs->nr_vector) != 0)
		regs->nr_vector = 0;
	regs->is_exiting = tracee_exits(tid);
	return 0;
}

bool arch_regs_frame(const struct arch_regs *regs, struct arch_frame *out)
{
	const u64 *r64 = (const u64 *)(const void *)regs->bytes;
	const u32 *r32 = (const u32 *)(const void *)regs->bytes;
	bool is_64 = regs->word_size == 8;

	*out = (struct arch_frame){ .pc = is_64 ? r64[RIP_64] : r32[EIP_32],
				    .fp = is_64 ? r64[RBP_64] : r32[EBP_32] };
	return true;
}

u32 arch_red_zone(u8 word_size)
{
	return word_size == 8 ? 128 : 0;
}

/* The block ends at the thread pointer. */
taddr_t arch_tls_start(u8 word_size, taddr_t tp, u64 memsz, u64 align)
{
	(void)word_size;
	align = align ? align : 1;
	return tp - (memsz + align - 1) / align * align;
}

const char *arch_reg_name(u8 word_size, u32 offset, char *buf, size_t size)
{
	const char *const *names = word_size == 8 ? names_64 : names_32;
	size_t nr = word_size == 8 ? ARRAY_SIZE(names_64) : ARRAY_SIZE(names_32);
	u32 vector = offset - REGS_VECTOR;

	if (offset < REGS_VECTOR && offset / word_size < nr)
		snprintf(buf, size, "%s", names[offset / word_size]);
	else if (offset >= REGS_VECTOR && vector >= XMM_START && vector < XMM_END)
		snprintf(buf, size, "xmm%u+%u", (vector - XMM_START) / 16, vector % 16);
	else if (offset >= REGS_VECTOR && vector >= X87_START && vector < XMM_START)
		snprintf(buf, size, "st%u+%u", (vector - X87_START) / 16, vector % 16);
	else
		snprintf(buf, size, "vector+0x%x", vector);
	return buf;
}

#endif
