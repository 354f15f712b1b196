/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A CPU for breakpoints: registers of a stopped thread, arguments of calls, and emulated instructions. */
#pragma once

#include "user/lib/types.h"

/*
 * A new CPU is one file arch/cpu_<name>.c with one struct cpu, and a row in cpus[] of arch/cpu.c. The file may use
 * nothing but libc and the functions of arch/cpu_emulate.h, so that tests of every CPU run on every machine. A CPU must
 * emulate
 *  - the instructions that places of breakpoints begin with: pushes, adjustments of sp, stores of the link register,
 *    bti, endbr;
 *  - returns of every form that compilers make;
 *  - every instruction that may not continue with the next one: branches, calls, jumps.
 * For the others the length is enough: cpu_insn_length(). An instruction without both is right too, but costs a stop
 * of all threads of the process (fallback/tracer_stop.c).
 */

enum { CPU_REGS_BYTES = 512, CPU_CODE_BYTES = 16, CPU_BREAKPOINT_BYTES = 4 };

/* General registers in the kernel's order (NT_PRSTATUS), in the byte order of this machine. */
struct cpu_regs {
	_Alignas(8) u8 bytes[CPU_REGS_BYTES];
	u32 size; /* bytes in use */
};

/* Registers by their meaning. The arguments are only in registers if not args_on_stack. */
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

enum { CPU_NO_WORD = 255 };

struct cpu {
	const char *name;   /* as uname -m prints it: "x86_64" */
	u16 machine;	    /* EM_* */
	u8 word_size;	    /* bytes */
	bool is_big;	    /* byte order */
	bool has_link;	    /* a call leaves its return address in CPU_LINK, else at CPU_SP */
	bool args_on_stack; /* argument n is the word at sp + n * word_size when a call begins (i386) */
	bool has_step;	    /* PTRACE_SINGLESTEP works */
	u8 trap_skip;	    /* bytes from a breakpoint's address to the pc of a thread that has hit it */
	u32 regs_size;	    /* bytes of NT_PRSTATUS for a thread that runs code of this CPU */
	u64 code_mask;	    /* bits of a return address without signature and mark of Thumb code; 0 = all */
	u8 words[NR_CPU_REGS];	   /* index of each register in the kernel's order; CPU_NO_WORD = not there */
	const struct cpu_isa *isa; /* the instruction set */
	const struct cpu_isa
		*thumb; /* the instruction set of code whose pc has bit 0 set (ARM); NULL = none */
	const struct cpu_waits *waits; /* system calls that wait (arch/waits.h); NULL = they are not known */
	/* For a pc that is more than its word (ARM). NULL = the word. */
	taddr_t (*get_pc)(const struct cpu_regs *regs);
	void (*set_pc)(struct cpu_regs *regs, taddr_t value);
};

/*
 * The CPU whose code thread @tid runs. @tid must be in a ptrace stop of the caller. -ENOTSUP if no CPU of the table
 * fits (x32, a new CPU), else -errno.
 */
int cpu_of_thread(const struct cpu **out, pid_t tid) __must_check;

/* CPU of a thread with @regs of cpu_regs_read(), NULL if none fits. */
const struct cpu *cpu_of_regs(const struct cpu_regs *regs);

/* A CPU by the header of an ELF file. NULL if no CPU of the table fits. */
const struct cpu *cpu_find(u16 elf_machine, u8 word_size, bool is_big);

/* The CPU of programs with addresses of @word_size bytes on this machine, or NULL. */
const struct cpu *cpu_native(u8 word_size);

/* Registers of @tid, which must be in a ptrace stop of the caller. 0 or -errno: -ESRCH if @tid was killed. */
int cpu_regs_read(struct cpu_regs *regs, pid_t tid) __must_check;
int cpu_regs_write(const struct cpu_regs *regs, pid_t tid) __must_check;

/* A register; 0 if the CPU does not have it. The pc of Thumb code has bit 0 set, whatever the kernel does. */
taddr_t cpu_get(const struct cpu *cpu, const struct cpu_regs *regs, enum cpu_reg reg);
void cpu_set(const struct cpu *cpu, struct cpu_regs *regs, enum cpu_reg reg, taddr_t value);

/* The word @word of the registers, in the kernel's order; 0 if there are not so many. */
taddr_t cpu_get_word(const struct cpu *cpu, const struct cpu_regs *regs, u8 word);

/*
 * Where the kernel of this machine keeps the word @word of a thread that runs code with addresses of @word_size bytes:
 * a number among the words of its own struct pt_regs.
 */
u8 cpu_kernel_word(u8 word_size, u8 word);

/* A word of @cpu's in memory, from @bytes. */
taddr_t cpu_word(const struct cpu *cpu, const u8 *bytes);

/*
 * The return address, and argument @n from 1, of a call before its first instructions have pushed anything. 0 or
 * -errno.
 */
int cpu_call_return(const struct cpu *cpu, const struct cpu_regs *regs, const struct cpu_memory *memory,
		    taddr_t *ret) __must_check;
int cpu_call_arg(const struct cpu *cpu, const struct cpu_regs *regs, const struct cpu_memory *memory, u8 n,
		 taddr_t *arg) __must_check;

/* Change argument @n from 1 of such a call, in @regs or in the memory. 0 or -errno: nothing has changed. */
int cpu_call_set_arg(const struct cpu *cpu, struct cpu_regs *regs, const struct cpu_memory *memory, u8 n,
		     taddr_t arg) __must_check;

/* Write the breakpoint for code at @addr, bit 0 set for Thumb code, into @code. Returns its length. */
size_t cpu_breakpoint(const struct cpu *cpu, taddr_t addr, u8 code[CPU_BREAKPOINT_BYTES]);

/*
 * Carry out the instruction at pc. @code holds its bytes, CPU_CODE_BYTES of them where so many are readable. 0: @regs,
 * pc included, and the memory are as the instruction leaves them. Otherwise nothing has changed: -ENOTSUP if the
 * instruction is not emulated; -errno of the memory if the instruction itself must run, to fault.
 */
int cpu_emulate(const struct cpu *cpu, struct cpu_regs *regs, const u8 *code, size_t len,
		const struct cpu_memory *memory);

/*
 * Bytes of the instruction at pc, for one that cpu_emulate() refused. 0 if the instruction is not known, or may
 * continue elsewhere than behind itself.
 */
size_t cpu_insn_length(const struct cpu *cpu, const struct cpu_regs *regs, const u8 *code, size_t len);
