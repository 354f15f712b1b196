/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers of a stopped thread on aarch64: 64-bit code, and 32-bit ARM code on a 64-bit kernel. */
#include "arch/regs.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "arch/tracee.h"

#ifndef NT_ARM_TLS
#define NT_ARM_TLS 0x401
#endif
#ifndef NT_ARM_VFP
#define NT_ARM_VFP 0x400
#endif

enum {
	SIZE_64 = 34 * 8, /* x0 to x30, sp, pc, pstate */
	SP = 31,
	SIZE_32 = 18 * 4, /* r0 to r15, cpsr, r0 at the entry of a system call */
	SP_32 = 13,
	V_END = 32 * 16, /* 32 vector registers; longer ones (SVE) share their first 16 bytes with these */
};

static int get_set(pid_t tid, unsigned int set, void *buf, size_t size, u32 *len)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)set, &iov) != 0)
		return -errno;
	*len = (u32)iov.iov_len;
	return 0;
}

int arch_regs_read(struct arch_regs *regs, pid_t tid)
{
	const u64 *r64 = (const u64 *)(const void *)regs->bytes;
	const u32 *r32 = (const u32 *)(const void *)regs->bytes;
	size_t room = sizeof(regs->bytes) - REGS_VECTOR;
	u32 len;
	int err;

	err = get_set(tid, NT_PRSTATUS, regs->bytes, REGS_VECTOR, &regs->nr_general);
	if (err)
		return err;
	if (regs->nr_general != SIZE_64 && regs->nr_general != SIZE_32)
		return -ENOTSUP;
	regs->word_size = regs->nr_general == SIZE_32 ? 4 : 8;
	regs->sp = regs->word_size == 8 ? r64[SP] : r32[SP_32];
	regs->tp = 0;
	if (get_set(tid, NT_ARM_TLS, &regs->tp, regs->word_size, &len) != 0)
		regs->tp = 0;
	/* The thread pointer may be the only pointer to the thread-local data, so it counts as a register. */
	memcpy(regs->bytes + regs->nr_general, &regs->tp, regs->word_size);
	regs->nr_general += regs->word_size;
	if (get_set(tid, regs->word_size == 8 ? NT_PRFPREG : NT_ARM_VFP, regs->bytes + REGS_VECTOR, room,
		    &regs->nr_vector) != 0)
		regs->nr_vector = 0;
	regs->is_exiting = tracee_exits(tid);
	return 0;
}

bool arch_regs_frame(const struct arch_regs *regs, struct arch_frame *out)
{
	const u64 *r64 = (const u64 *)(const void *)regs->bytes;

	*out = (struct arch_frame){ .pc = r64[SP + 1], .fp = r64[SP - 2], .lr = r64[SP - 1] };
	return regs->word_size == 8;
}

u32 arch_red_zone(u8 word_size)
{
	(void)word_size;
	return 0;
}

/* The block begins behind the two words at the thread pointer. */
taddr_t arch_tls_start(u8 word_size, taddr_t tp, u64 memsz, u64 align)
{
	(void)memsz;
	align = align ? align : 1;
	return (tp + 2 * (taddr_t)word_size + align - 1) / align * align;
}

static const char *name_32(u32 offset, char *buf, size_t size)
{
	static const char *const others[] = { "sp", "lr", "pc", "cpsr", "r0 of the call", "tpidr" };
	u32 index = offset / 4;

	if (index < SP_32)
		snprintf(buf, size, "r%u", index);
	else if (index - SP_32 < ARRAY_SIZE(others))
		snprintf(buf, size, "%s", others[index - SP_32]);
	else
		snprintf(buf, size, "vector+0x%x", offset - REGS_VECTOR);
	return buf;
}

const char *arch_reg_name(u8 word_size, u32 offset, char *buf, size_t size)
{
	static const char *const others[] = { "sp", "pc", "pstate", "tpidr" };
	u32 index = offset / word_size, vector = offset - REGS_VECTOR;

	if (word_size == 4)
		return name_32(offset, buf, size);
	if (offset < REGS_VECTOR && index < SP)
		snprintf(buf, size, "x%u", index);
	else if (offset < REGS_VECTOR && index - SP < ARRAY_SIZE(others))
		snprintf(buf, size, "%s", others[index - SP]);
	else if (offset >= REGS_VECTOR && vector < V_END)
		snprintf(buf, size, "v%u+%u", vector / 16, vector % 16);
	else
		snprintf(buf, size, "vector+0x%x", vector);
	return buf;
}
