/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A CPU as breakpoints need it: registers of a stopped thread, calls, and instructions carried out by us. */
#pragma once

#include <sys/types.h>

#include "user/lib/types.h"

/*
 * Adding a CPU: one file arch/cpu_<name>.c with one struct cpu, and its row in cpus[] of arch/cpu.c. Nothing of
 * it needs more than libc, and nothing of it may look at the machine that it runs on but by the functions below:
 * then tests can try all of them everywhere. A CPU must supply all functions. What must be emulated is
 *  - what places of breakpoints begin with: pushes, adjustments of sp, stores of the link register, bti, endbr;
 *  - returns of every form that compilers make;
 *  - every instruction that need not go on to the next one: branches, calls, jumps. Of others insn_length() is enough.
 * The rest costs a stop of all threads of the process (fallback/step.c), but is right.
 */

enum { CPU_REGS_BYTES = 512, CPU_CODE_BYTES = 16, CPU_BREAKPOINT_BYTES = 4 };

/* General registers in the kernel's order (NT_PRSTATUS), in the byte order of this machine. */
struct cpu_regs {
	_Alignas(8) u8 bytes[CPU_REGS_BYTES];
	u32 size; /* bytes in use */
};

/* Registers by what they mean. Arguments: if not args_on_stack. */
enum cpu_reg {
	CPU_PC,
	CPU_SP,
	CPU_FP,
	CPU_LINK,
	CPU_RESULT,
	CPU_ARG1,
	CPU_ARG2,
	CPU_ARG3,
	CPU_ARG4,
	NR_CPU_REGS
};

/* Memory of the process. Both return 0 or -errno. */
struct cpu_memory {
	void *ctx;
	int (*read)(void *ctx, taddr_t addr, void *buf, size_t len);
	int (*write)(void *ctx, taddr_t addr, const void *buf, size_t len);
};

struct cpu {
	const char *name;   /* as uname -m has it: "x86_64" */
	u16 machine;	    /* EM_* */
	u8 word_size;	    /* bytes */
	bool is_big;	    /* byte order */
	bool has_link;	    /* a call leaves its return address in CPU_LINK, else at CPU_SP */
	bool args_on_stack; /* argument n is the word at sp + n * word_size when a call begins (i386) */
	bool has_step;	    /* PTRACE_SINGLESTEP works */
	u8 trap_skip;	    /* bytes from a breakpoint's address to the pc of a thread that has hit it */
	u32 regs_size;	    /* bytes that NT_PRSTATUS has for threads of it */
	u64 code_mask; /* bits of a return address that count (no signature, no mark of Thumb code); 0 = all */
	/*
	 * A register; 0 for one that there is not. The pc of Thumb code has bit 0 set, both here and in set(), whatever
	 * the kernel does.
	 */
	taddr_t (*get)(const struct cpu_regs *regs, enum cpu_reg reg);
	void (*set)(struct cpu_regs *regs, enum cpu_reg reg, taddr_t value);
	/* The breakpoint for code at @addr, bit 0 set for Thumb, into @code; its length. */
	size_t (*breakpoint)(taddr_t addr, u8 code[CPU_BREAKPOINT_BYTES]);
	/*
	 * Carry out the instruction at pc, whose bytes are @code (CPU_CODE_BYTES of them where so much is
	 * readable): 0, and @regs, pc among them, and the memory are as it leaves them. Else nothing has changed:
	 * -ENOTSUP not one that is known; -errno of the memory: the instruction itself must run, to fault.
	 */
	int (*emulate)(struct cpu_regs *regs, const u8 *code, size_t len, const struct cpu_memory *memory);
	/* Bytes of the instruction at pc. 0 if it is not known, or does not always go on to the next one. */
	size_t (*insn_length)(const struct cpu_regs *regs, const u8 *code, size_t len);
};

/*
 * The CPU whose code thread @tid runs, which stands in a ptrace stop of the caller's. -ENOTSUP: none that is known
 * (x32, a new one); else -errno.
 */
int cpu_of_thread(const struct cpu **out, pid_t tid) __must_check;

/* NULL for one that is not known. For tests, and to ask before anything is traced. */
const struct cpu *cpu_find(u16 elf_machine, u8 word_size, bool is_big);

/* The CPU of programs with addresses of @word_size bytes on this machine. NULL if there is none. */
const struct cpu *cpu_native(u8 word_size);

/* Registers of @tid, which stands in a ptrace stop of the caller's. 0 or -errno: -ESRCH it has been killed. */
int cpu_regs_read(struct cpu_regs *regs, pid_t tid) __must_check;
int cpu_regs_write(const struct cpu_regs *regs, pid_t tid) __must_check;

/* A word of @cpu's in memory, from @bytes. */
taddr_t cpu_word(const struct cpu *cpu, const u8 *bytes);

/* Return address of the call whose first instructions run (nothing pushed), argument @n from 1. 0 or -errno. */
int cpu_call_return(const struct cpu *cpu, const struct cpu_regs *regs, const struct cpu_memory *memory,
		    taddr_t *ret) __must_check;
int cpu_call_arg(const struct cpu *cpu, const struct cpu_regs *regs, const struct cpu_memory *memory, u8 n,
		 taddr_t *arg) __must_check;
