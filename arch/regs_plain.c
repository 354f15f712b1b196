/* SPDX-License-Identifier: GPL-2.0-or-later */
/* General and floating-point registers of a stopped thread, on CPUs that need nothing but arch/cpu.h. */
#include "arch/regs.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch/cpu.h"
#include "arch/tracee.h"

#if !defined(__x86_64__) && !defined(__aarch64__)

#if defined(__arm__)
enum { GET_THREAD_AREA = 22 };
static const char *const names[] = { "r0", "r1", "r2",	"r3",  "r4", "r5", "r6", "r7",
				     "r8", "r9", "r10", "r11", "ip", "sp", "lr", "pc" };
#elif defined(__riscv)
enum { TP_WORD = 4 };
static const char *const names[] = { "pc", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
				     "a1", "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
				     "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6" };
#elif defined(__mips__)
enum { GET_THREAD_AREA = 25 };
static const char *const names[] = { "",   "",	 "",   "",   "",   "",	 "zero", "at", "v0", "v1",
				     "a0", "a1", "a2", "a3", "t0", "t1", "t2",	 "t3", "t4", "t5",
				     "t6", "t7", "s0", "s1", "s2", "s3", "s4",	 "s5", "s6", "s7",
				     "t8", "t9", "k0", "k1", "gp", "sp", "fp",	 "ra", "lo", "hi" };
#elif defined(__powerpc__)
enum { TP_WORD = 2 };
static const char *const names[] = { "r0",  "sp",  "r2",  "r3",	 "r4",	"r5",  "r6",  "r7",  "r8",
				     "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17",
				     "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26",
				     "r27", "r28", "r29", "r30", "r31", "pc" };
#elif defined(__i386__)
enum { GET_THREAD_AREA = 25, GS_WORD = 10 };
static const char *const names[] = { "ebx", "ecx", "edx", "esi", "edi", "ebp", "eax" };
#endif

#if defined(__i386__)
/* The base of the segment that gs selects. */
static taddr_t thread_pointer(pid_t tid, const u8 *words)
{
	u32 gs, area[4];

	memcpy(&gs, words + GS_WORD * 4, sizeof(gs));
	if (syscall(SYS_ptrace, GET_THREAD_AREA, tid, (void *)(uintptr_t)(gs >> 3), area))
		return 0;
	return area[1];
}
#elif defined(__arm__) || defined(__mips__)
static taddr_t thread_pointer(pid_t tid, const u8 *words)
{
	u32 tp = 0;

	(void)words;
	return syscall(SYS_ptrace, GET_THREAD_AREA, tid, NULL, &tp) ? 0 : tp;
}
#else
static taddr_t thread_pointer(pid_t tid, const u8 *words)
{
	unsigned long tp;

	(void)tid;
	memcpy(&tp, words + TP_WORD * sizeof(tp), sizeof(tp));
	return tp;
}
#endif

int arch_regs_read(struct arch_regs *regs, pid_t tid)
{
	struct iovec vector = { regs->bytes + REGS_VECTOR, sizeof(regs->bytes) - REGS_VECTOR };
	const struct cpu *cpu;
	struct cpu_regs general;
	int err = cpu_regs_read(&general, tid);

	if (!err)
		err = cpu_of_thread(&cpu, tid);
	if (err)
		return err;
	memcpy(regs->bytes, general.bytes, general.size);
	regs->nr_general = general.size;
	regs->word_size = cpu->word_size;
	regs->sp = cpu_get(cpu, &general, CPU_SP);
	regs->tp = thread_pointer(tid, regs->bytes);
	regs->nr_vector = 0;
	if (!ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRFPREG, &vector))
		regs->nr_vector = (u32)vector.iov_len;
	regs->is_exiting = tracee_exits(tid);
	return 0;
}

/*
 * The block ends at the thread pointer (i386), begins behind two words (ARM), begins at the pointer (riscv),
 * or begins as far below it as short offsets reach.
 */
taddr_t arch_tls_start(u8 word_size, taddr_t tp, u64 memsz, u64 align)
{
	(void)word_size;
	align = align ? align : 1;
#if defined(__i386__)
	return tp - (memsz + align - 1) / align * align;
#elif defined(__arm__)
	(void)memsz;
	return (tp + 8 + align - 1) / align * align;
#elif defined(__riscv)
	(void)memsz;
	return tp;
#else
	(void)memsz;
	return tp - 0x7000;
#endif
}

bool arch_regs_frame(const struct arch_regs *regs, struct arch_frame *out)
{
	(void)regs;
	*out = (struct arch_frame){ 0 };
	return false;
}

/* The CPUs here have no red zone. 64-bit PowerPC would have one. */
u32 arch_red_zone(u8 word_size)
{
	(void)word_size;
	return 0;
}

const char *arch_reg_name(u8 word_size, u32 offset, char *buf, size_t size)
{
	u32 index = offset / word_size;

	if (offset < REGS_VECTOR && index < ARRAY_SIZE(names))
		snprintf(buf, size, "%s", names[index]);
	else if (offset < REGS_VECTOR)
		snprintf(buf, size, "register+0x%x", offset);
	else
		snprintf(buf, size, "vector+0x%x", offset - REGS_VECTOR);
	return buf;
}

#endif
