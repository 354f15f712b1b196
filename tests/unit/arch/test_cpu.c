/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Emulated instructions: those of this machine are compared with the CPU, which steps through a real program. Of every
 * other CPU a few instructions are carried out. tests/arch/native.c compares all of them on the CPU itself.
 */
#include "arch/cpu.h"
#include "tests/unit/skip.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 150000, MAX_WRITES = 4, SYSCALL_WORD_64 = 15 };

/* Memory of the stepped process. Writes are not made, but kept in a list. */
struct world {
	pid_t pid;
	struct {
		taddr_t addr;
		u8 bytes[16];
		size_t len;
	} writes[MAX_WRITES];
	size_t nr_writes;
};

static int read_memory(void *ctx, taddr_t addr, void *buf, size_t len)
{
	const struct world *w = ctx;
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };

	return process_vm_readv(w->pid, &to, 1, &from, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

static int note_write(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	struct world *w = ctx;

	assert_true(w->nr_writes < MAX_WRITES && len <= sizeof(w->writes[0].bytes));
	w->writes[w->nr_writes].addr = addr;
	w->writes[w->nr_writes].len = len;
	memcpy(w->writes[w->nr_writes++].bytes, buf, len);
	return 0;
}

static pid_t start_stepped(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl("/bin/ls", "ls", "-l", "/dev/null", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

/* Carry one instruction out by emulation and by the CPU. False at the end of the program. *@nr_emulated grows. */
static bool step_both(const struct cpu *cpu, pid_t pid, size_t *nr_emulated)
{
	struct world w = { .pid = pid };
	struct cpu_memory memory = { &w, read_memory, note_write };
	struct cpu_regs before, ours, theirs;
	u8 code[CPU_CODE_BYTES], bytes[16];
	taddr_t pc;
	int status, err;

	assert_int_equal(cpu_regs_read(&before, pid), 0);
	ours = before;
	pc = cpu_get(cpu, &before, CPU_PC);
	err = read_memory(&w, pc, code, sizeof(code)) ? -EFAULT
						      : cpu_emulate(cpu, &ours, code, sizeof(code), &memory);
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		return false;
	if (err) {
		assert_memory_equal(&ours, &before, sizeof(ours));
		return true;
	}
	++*nr_emulated;
	assert_int_equal(cpu_regs_read(&theirs, pid), 0);
	/* The kernel keeps the number of the system call in one word, and changes it after the call. */
	if (cpu->machine == EM_X86_64)
		memcpy(ours.bytes + SYSCALL_WORD_64 * 8, theirs.bytes + SYSCALL_WORD_64 * 8, 8);
	if (memcmp(ours.bytes, theirs.bytes, ours.size))
		print_error("differs: %02x %02x %02x %02x %02x %02x %02x\n", code[0], code[1], code[2],
			    code[3], code[4], code[5], code[6]);
	assert_memory_equal(ours.bytes, theirs.bytes, ours.size);
	for (size_t i = 0; i < w.nr_writes; i++) {
		assert_int_equal(read_memory(&w, w.writes[i].addr, bytes, w.writes[i].len), 0);
		assert_memory_equal(bytes, w.writes[i].bytes, w.writes[i].len);
	}
	return true;
}

static void test_like_the_cpu(void **state)
{
	pid_t pid = start_stepped();
	const struct cpu *cpu;
	size_t nr_emulated = 0, nr = 0;
	int status;

	(void)state;
	assert_int_equal(cpu_of_thread(&cpu, pid), 0);
	if (!cpu->has_step) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		skip_because("no single step on %s", cpu->name);
	}
	while (nr < STEPS && step_both(cpu, pid, &nr_emulated))
		nr++;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	print_message("%zu of %zu instructions emulated\n", nr_emulated, nr);
	assert_true(nr_emulated > nr / 4);
}

/* Where registers point to when an instruction begins; the stack is the only memory. */
enum {
	AT_PC = 0x10000,
	AT_SP = 0x20000,
	AT_LINK = 0x30000,
	NOWHERE = 0x1234,
	STACK_HALF = 256,
	ANY_LENGTH = 255
};

static const struct machine {
	u16 machine;
	u8 word_size;
	bool is_big;
	u8 breakpoint_size;
} machines[] = {
	{ EM_X86_64, 8, false, 1 }, { EM_386, 4, false, 1 },   { EM_AARCH64, 8, false, 4 },
	{ EM_ARM, 4, false, 4 },    { EM_RISCV, 8, false, 2 }, { EM_MIPS, 4, false, 4 },
	{ EM_PPC, 4, true, 4 },
};

/* An instruction, and how it leaves the registers that matter. */
static const struct insn_case {
	const char *text;
	u16 machine;
	const char *code; /* its bytes, in hexadecimal */
	u8 length;	  /* as cpu_insn_length() has it */
	int err;
	u32 pc;
	enum cpu_reg reg;
	u32 value;
} cases[] = {
	{ "i386: push %ebp", EM_386, "55", 0, 0, AT_PC + 1, CPU_SP, AT_SP - 4 },
	{ "i386: call .+8", EM_386, "e803000000", 0, 0, AT_PC + 8, CPU_SP, AT_SP - 4 },
	{ "i386: ret", EM_386, "c3", 0, 0, 0, CPU_SP, AT_SP + 4 },
	{ "x86_64: ret", EM_X86_64, "c3", 0, 0, 0, CPU_SP, AT_SP + 8 },
	{ "aarch64: stp x29, x30, [sp, #-16]!", EM_AARCH64, "fd7bbfa9", 4, 0, AT_PC + 4, CPU_SP, AT_SP - 16 },
	{ "aarch64: bti c", EM_AARCH64, "5f2403d5", 4, 0, AT_PC + 4, CPU_SP, AT_SP },
	{ "aarch64: bl .+8", EM_AARCH64, "02000094", 0, 0, AT_PC + 8, CPU_LINK, AT_PC + 4 },
	{ "aarch64: ret", EM_AARCH64, "c0035fd6", 0, 0, AT_LINK, CPU_SP, AT_SP },
	{ "aarch64: mul x0, x0, x1", EM_AARCH64, "007c019b", 4, -ENOTSUP },
	{ "aarch64: udf #0", EM_AARCH64, "00000000", 0, -ENOTSUP },
	{ "aarch64: ldr x0, [x0]", EM_AARCH64, "000040f9", 4, -EFAULT },
	{ "arm: push {r4, lr}", EM_ARM, "10402de9", 4, 0, AT_PC + 4, CPU_SP, AT_SP - 8 },
	{ "arm: bl .+8", EM_ARM, "000000eb", 0, 0, AT_PC + 8, CPU_LINK, AT_PC + 4 },
	{ "arm: bleq .+8, not taken", EM_ARM, "0000000b", 0, 0, AT_PC + 4, CPU_LINK, AT_LINK },
	{ "arm: bx lr", EM_ARM, "1eff2fe1", 0, 0, AT_LINK, CPU_SP, AT_SP },
	{ "arm: mul r0, r1, r2", EM_ARM, "910200e0", 4, -ENOTSUP },
	{ "riscv64: addi sp, sp, -16", EM_RISCV, "4111", 2, 0, AT_PC + 2, CPU_SP, AT_SP - 16 },
	{ "riscv64: jal .+8", EM_RISCV, "ef008000", 0, 0, AT_PC + 8, CPU_LINK, AT_PC + 4 },
	{ "riscv64: ret", EM_RISCV, "8280", 0, 0, AT_LINK, CPU_SP, AT_SP },
	{ "riscv64: mul a0, a0, a1", EM_RISCV, "3305b502", 4, -ENOTSUP },
	{ "riscv64: ld a0, 0(a0)", EM_RISCV, "0861", 2, -EFAULT },
	{ "mipsel: addiu sp, sp, -32", EM_MIPS, "e0ffbd27", 4, 0, AT_PC + 4, CPU_SP, AT_SP - 32 },
	{ "mipsel: jal .+16; nop", EM_MIPS, "0440000c00000000", 0, 0, AT_PC + 16, CPU_LINK, AT_PC + 8 },
	{ "mipsel: jr ra; addiu sp, sp, 32", EM_MIPS, "0800e0032000bd27", 0, 0, AT_LINK, CPU_SP, AT_SP + 32 },
	{ "mipsel: jal .+16; break", EM_MIPS, "0440000c0d000000", 0, -ENOTSUP },
	{ "mipsel: mult a0, a1", EM_MIPS, "18008500", 4, -ENOTSUP },
	{ "ppc: stwu r1, -16(r1)", EM_PPC, "9421fff0", 4, 0, AT_PC + 4, CPU_SP, AT_SP - 16 },
	{ "ppc: bl .+8", EM_PPC, "48000009", 0, 0, AT_PC + 8, CPU_LINK, AT_PC + 4 },
	{ "ppc: blr", EM_PPC, "4e800020", 0, 0, AT_LINK, CPU_SP, AT_SP },
	{ "ppc: mullw r3, r3, r4", EM_PPC, "7c6321d6", 4, -ENOTSUP },
};

/* Thumb code: pc has bit 0 set, before and after. */
static const struct insn_case thumb_cases[] = {
	{ "thumb: push {r4, lr}", EM_ARM, "10b5", 2, 0, AT_PC + 3, CPU_SP, AT_SP - 8 },
	{ "thumb: bl .+4", EM_ARM, "00f000f8", 0, 0, AT_PC + 5, CPU_LINK, AT_PC + 5 },
	{ "thumb: bx lr, to ARM code", EM_ARM, "7047", 0, 0, AT_LINK, CPU_SP, AT_SP },
	{ "thumb: muls r0, r1", EM_ARM, "4843", 2, -ENOTSUP },
};

/* A stack full of zeroes; other addresses fault. */
static bool is_on_stack(taddr_t addr, size_t len)
{
	return addr >= AT_SP - STACK_HALF && addr + len <= AT_SP + STACK_HALF;
}

static int read_stack(void *ctx, taddr_t addr, void *buf, size_t len)
{
	(void)ctx;
	memset(buf, 0, len);
	return is_on_stack(addr, len) ? 0 : -EFAULT;
}

static int write_stack(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	(void)ctx;
	(void)buf;
	return is_on_stack(addr, len) ? 0 : -EFAULT;
}

static const struct cpu *cpu_of_machine(u16 machine)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (machines[i].machine == machine)
			return cpu_find(machine, machines[i].word_size, machines[i].is_big);
	return NULL;
}

static size_t bytes_of(const char *text, u8 code[CPU_CODE_BYTES])
{
	size_t nr = strlen(text) / 2;
	unsigned int byte;

	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
		code[i] = (u8)byte;
	}
	return nr;
}

static void check_case(const struct insn_case *c, u32 thumb)
{
	const struct cpu_memory memory = { NULL, read_stack, write_stack };
	const struct cpu *cpu = cpu_of_machine(c->machine);
	struct cpu_regs before = { .size = cpu->regs_size }, after;
	u8 code[CPU_CODE_BYTES] = { 0 };
	size_t nr;

	cpu_set(cpu, &before, CPU_ARG1, NOWHERE);
	cpu_set(cpu, &before, CPU_PC, AT_PC | thumb);
	cpu_set(cpu, &before, CPU_SP, AT_SP);
	cpu_set(cpu, &before, CPU_LINK, AT_LINK);
	nr = bytes_of(c->code, code);
	after = before;
	print_message("%s\n", c->text);
	if (c->length != ANY_LENGTH)
		assert_int_equal(cpu_insn_length(cpu, &before, code, sizeof(code)), c->length);
	assert_int_equal(cpu_emulate(cpu, &after, code, nr, &memory), c->err);
	if (c->err) {
		assert_memory_equal(&after, &before, sizeof(after));
		return;
	}
	assert_int_equal(cpu_get(cpu, &after, CPU_PC), c->pc);
	assert_int_equal(cpu_get(cpu, &after, c->reg), c->value);
	/* An instruction that is cut off is not known. */
	after = before;
	assert_int_equal(cpu_emulate(cpu, &after, code, nr - 1, &memory), -ENOTSUP);
	assert_memory_equal(&after, &before, sizeof(after));
}

static void test_every_cpu(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_case(&cases[i], 0);
	for (size_t i = 0; i < ARRAY_SIZE(thumb_cases); i++)
		check_case(&thumb_cases[i], 1);
}

/* Length of Thumb code: 0 where the instruction behind is in the same IT block, and a breakpoint conditional. */
static void test_length_in_it_block(void **state)
{
	static const u8 it[CPU_CODE_BYTES] = { 0x04, 0xbf };  /* itt eq */
	static const u8 mov[CPU_CODE_BYTES] = { 0x01, 0x20 }; /* moveq r0, #1 */
	const struct cpu_memory memory = { NULL, read_stack, write_stack };
	const struct cpu *cpu = cpu_of_machine(EM_ARM);
	struct cpu_regs regs = { .size = cpu->regs_size };

	(void)state;
	cpu_set(cpu, &regs, CPU_PC, AT_PC | 1);
	assert_int_equal(cpu_emulate(cpu, &regs, it, sizeof(it), &memory), 0);
	assert_int_equal(cpu_insn_length(cpu, &regs, mov, sizeof(mov)), 0);
	assert_int_equal(cpu_emulate(cpu, &regs, mov, sizeof(mov), &memory), 0);
	assert_int_equal(cpu_insn_length(cpu, &regs, mov, sizeof(mov)), 2);
	assert_int_equal(cpu_emulate(cpu, &regs, mov, sizeof(mov), &memory), 0);
	/* The flags are clear: the condition did not hold. Behind the block mov has no condition. */
	assert_int_equal(cpu_get(cpu, &regs, CPU_RESULT), 0);
	assert_int_equal(cpu_emulate(cpu, &regs, mov, sizeof(mov), &memory), 0);
	assert_int_equal(cpu_get(cpu, &regs, CPU_RESULT), 1);
}

static int read_words(void *ctx, taddr_t addr, void *buf, size_t len)
{
	memcpy(buf, (const u8 *)ctx + (addr - AT_SP), len);
	return 0;
}

static int write_words(void *ctx, taddr_t addr, const void *buf, size_t len)
{
	memcpy((u8 *)ctx + (addr - AT_SP), buf, len);
	return 0;
}

/* Arguments that are changed are read so, also where they lie on the stack, and others stay. */
static void test_arguments(void **state)
{
	u8 stack[5 * sizeof(u64)] = { 0 };
	const struct cpu_memory memory = { stack, read_words, write_words };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		const struct cpu *cpu = cpu_of_machine(machines[i].machine);
		struct cpu_regs regs = { .size = cpu->regs_size };
		taddr_t arg;

		cpu_set(cpu, &regs, CPU_SP, AT_SP);
		for (u8 n = 1; n <= 4; n++)
			assert_int_equal(cpu_call_set_arg(cpu, &regs, &memory, n, 0x12345600 + n), 0);
		for (u8 n = 1; n <= 4; n++) {
			assert_int_equal(cpu_call_arg(cpu, &regs, &memory, n, &arg), 0);
			assert_int_equal(arg, 0x12345600 + n);
		}
		assert_int_equal(cpu_call_set_arg(cpu, &regs, &memory, 0, 1), -EINVAL);
		assert_int_equal(cpu_call_set_arg(cpu, &regs, &memory, 5, 1), -EINVAL);
	}
}

static void test_breakpoints(void **state)
{
	u8 code[CPU_BREAKPOINT_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		assert_int_equal(cpu_breakpoint(cpu_of_machine(machines[i].machine), AT_PC, code),
				 machines[i].breakpoint_size);
	assert_int_equal(cpu_breakpoint(cpu_of_machine(EM_ARM), AT_PC | 1, code), 2);
}

/* Registers that a CPU does not have are 0: the link register of x86, arguments of i386. */
static void test_registers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		const struct cpu *cpu = cpu_of_machine(machines[i].machine);
		struct cpu_regs regs = { .size = 0 };

		assert_non_null(cpu);
		for (enum cpu_reg r = CPU_PC; r <= CPU_LINK; r++)
			cpu_set(cpu, &regs, r, 0x1000 + 16 * r);
		for (enum cpu_reg r = CPU_PC; r <= CPU_FP; r++)
			assert_int_equal(cpu_get(cpu, &regs, r), 0x1000 + 16 * r);
		assert_int_equal(cpu_get(cpu, &regs, CPU_LINK), cpu->has_link ? 0x1000 + 16 * CPU_LINK : 0);
		for (enum cpu_reg r = CPU_ARG1; r <= CPU_ARG4; r++)
			cpu_set(cpu, &regs, r, 0x2000 + 16 * r);
		for (enum cpu_reg r = CPU_ARG1; r <= CPU_ARG4; r++)
			assert_int_equal(cpu_get(cpu, &regs, r), cpu->args_on_stack ? 0 : 0x2000 + 16 * r);
	}
	assert_null(cpu_find(EM_NONE, 8, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_the_cpu),	   cmocka_unit_test(test_every_cpu),
		cmocka_unit_test(test_length_in_it_block), cmocka_unit_test(test_breakpoints),
		cmocka_unit_test(test_registers),	   cmocka_unit_test(test_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
