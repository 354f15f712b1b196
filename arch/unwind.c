/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPUs whose call frame information heaptap follows. */
#include "arch/unwind.h"

#include <elf.h>

#include "arch/native.h"

#ifdef HAS_X86
/* A direct call (e8 and a distance), or an indirect one: ff, operation 2 in the next byte, and up to 5 bytes more. */
static bool is_call_x86(u64 code)
{
	static const u8 starts[] = { 1, 2, 4, 5, 6 };
	bool is_call = (code >> 24 & 0xff) == 0xe8;

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		is_call |= (code >> 8 * starts[i] & 0x38ff) == 0x10ff;
	return is_call;
}
#endif

#ifdef HAS_AARCH64
/* bl, blr, and blr of a signed address. */
static bool is_call_aarch64(u64 code)
{
	u32 insn = code >> 32;

	return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfffffc1f) == 0xd63f0000 ||
	       (insn & 0xfefff800) == 0xd63f0800;
}
#endif

/*
 * The saved registers have the order of the kernel's struct sigcontext. x86_64 ends with rbp rbx rdx rax rcx rsp rip.
 * i386 has ebp esp ebx edx ecx eax trapno err eip. aarch64 has x0 to x30, sp, pc. The code is the rt_sigreturn of C
 * libraries (musl) and vDSOs that have no unwind information for it.
 */
static const struct unwind_arch arches[] = {
#ifdef HAS_X86
	{ .machine = EM_X86_64,
	  .is_call = is_call_x86,
	  .word_size = 8,
	  .sp = 7,
	  .fp = 6,
	  .ra = 16,
	  .signal_pc = 8,
	  .signal_fp = -40,
	  .signal_sp = 160,
	  .signal_code = 0x0f0000000fc0c748 }, /* mov $15,%rax; syscall */
	{ .machine = EM_386,
	  .is_call = is_call_x86,
	  .word_size = 4,
	  .sp = 4,
	  .fp = 5,
	  .ra = 8,
	  .signal_pc = 28,
	  .signal_fp = -4,
	  .signal_sp = 188,
	  .signal_code_unused = 8,
	  .signal_code = 0x80cd000000adb8,	  /* mov $173,%eax; int $0x80 */
	  .coroutine_code = 0x7400243c839c248d }, /* glibc: lea (%esp,%ebx,4),%esp; cmpl $0,(%esp); je */
#endif
#ifdef HAS_AARCH64
	{ .machine = EM_AARCH64,
	  .is_call = is_call_aarch64,
	  .word_size = 8,
	  .sp = 31,
	  .fp = 29,
	  .ra = 30,
	  .has_link = true,
	  .signal_pc = 8,
	  .signal_fp = -16,
	  .signal_lr = -8,
	  .signal_sp = 560, /* siginfo 128, ucontext's head 176, fault address 8, 31 registers */
	  .signal_code = 0xd4000001d2801168, /* mov x8, #139; svc #0 */
	  .is_signal_cfi_partial = true },
#endif
#ifdef HAS_ARM
	/*
	 * ARM code has no chain of frame pointers that code without information would keep. ARM uses two registers
	 * for frames; the table has the one of Thumb code.
	 */
	{ .machine = EM_ARM, .word_size = 4, .sp = 13, .fp = 7, .ra = 14, .has_link = true },
#endif
#ifdef HAS_RISCV
	{ .machine = EM_RISCV, .word_size = 8, .sp = 2, .fp = 8, .ra = 1, .has_link = true },
#endif
#ifdef HAS_MIPS
	{ .machine = EM_MIPS, .word_size = 4, .sp = 29, .fp = 30, .ra = 31, .has_link = true },
#endif
#ifdef HAS_POWERPC
	{ .machine = EM_PPC,
	  .word_size = 4,
	  .sp = 1,
	  .fp = 31,
	  .ra = 65,
	  .has_link = true,
	  .has_back_chain = true },
#endif
};

const struct unwind_arch *unwind_arch(u16 machine, u8 word_size)
{
	for (size_t i = 0; i < ARRAY_SIZE(arches); i++)
		if (arches[i].machine == machine && arches[i].word_size == word_size)
			return &arches[i];
	return NULL;
}
