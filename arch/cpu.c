/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the CPU of a thread, and reads its registers and the arguments of calls. */
#include "arch/cpu.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "arch/cpu_emulate.h"
#include "arch/native.h"

/*
 * All CPUs, so that tests of each run on every machine. Threads run code of the CPUs that their kernel supports. The
 * agent has only these.
 */
static const struct cpu *const cpus[] = {
#ifdef HAS_X86
	&cpu_x86_64,  &cpu_i386,
#endif
#ifdef HAS_AARCH64
	&cpu_aarch64,
#endif
#ifdef HAS_ARM
	&cpu_arm,
#endif
#ifdef HAS_RISCV
	&cpu_riscv64,
#endif
#ifdef HAS_MIPS
	&cpu_mipsel,
#endif
#ifdef HAS_POWERPC
	&cpu_powerpc,
#endif
};

#if defined(__x86_64__) || defined(__i386__)
static const u16 native[] = { EM_X86_64, EM_386 };
#elif defined(__aarch64__) || defined(__arm__)
static const u16 native[] = { EM_AARCH64, EM_ARM };
#elif defined(__riscv)
static const u16 native[] = { EM_RISCV };
#elif defined(__mips__)
static const u16 native[] = { EM_MIPS };
#elif defined(__powerpc64__) || defined(__powerpc__)
static const u16 native[] = { EM_PPC64, EM_PPC };
#else
static const u16 native[] = { EM_NONE };
#endif

static bool is_native(const struct cpu *cpu)
{
	bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	for (size_t i = 0; i < ARRAY_SIZE(native); i++)
		if (cpu->machine == native[i] && cpu->is_big == is_big)
			return true;
	return false;
}

const struct cpu *cpu_of_regs(const struct cpu_regs *regs)
{
	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++)
		if (is_native(cpus[i]) && cpus[i]->regs_size == regs->size)
			return cpus[i];
	return NULL;
}

int cpu_of_thread(const struct cpu **out, pid_t tid)
{
	struct cpu_regs regs;
	int err = cpu_regs_read(&regs, tid);

	if (err)
		return err;
	*out = cpu_of_regs(&regs);
	return *out ? 0 : -ENOTSUP;
}

const struct cpu *cpu_find(u16 elf_machine, u8 word_size, bool is_big)
{
	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++)
		if (cpus[i]->machine == elf_machine && cpus[i]->word_size == word_size &&
		    cpus[i]->is_big == is_big)
			return cpus[i];
	return NULL;
}

const struct cpu *cpu_native(u8 word_size)
{
	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++)
		if (is_native(cpus[i]) && cpus[i]->word_size == word_size)
			return cpus[i];
	return NULL;
}

int cpu_regs_read(struct cpu_regs *regs, pid_t tid)
{
	struct iovec iov = { .iov_base = regs->bytes, .iov_len = sizeof(regs->bytes) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &iov))
		return -errno;
	regs->size = (u32)iov.iov_len;
	return 0;
}

int cpu_regs_write(const struct cpu_regs *regs, pid_t tid)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)regs->bytes, .iov_len = regs->size };

	return ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &iov) ? -errno : 0;
}

taddr_t cpu_get(const struct cpu *cpu, const struct cpu_regs *regs, enum cpu_reg reg)
{
	if (reg == CPU_PC && cpu->get_pc)
		return cpu->get_pc(regs);
	return cpu->words[reg] == CPU_NO_WORD ? 0 : cpu_regs_word(regs, cpu->word_size, cpu->words[reg]);
}

taddr_t cpu_get_word(const struct cpu *cpu, const struct cpu_regs *regs, u8 word)
{
	return (u32)(word + 1) * cpu->word_size <= cpu->regs_size ? cpu_regs_word(regs, cpu->word_size, word)
								  : 0;
}

u8 cpu_kernel_word(u8 word_size, u8 word)
{
#ifdef __x86_64__
	/* ebx, ecx, edx, esi, edi, ebp, eax; further on esp */
	static const u8 words[] = { 5, 11, 12, 13, 14, 4, 10, [15] = 19 };

	if (word_size == 4)
		return word < ARRAY_SIZE(words) ? words[word] : 0;
#endif
	(void)word_size;
	return word;
}

void cpu_set(const struct cpu *cpu, struct cpu_regs *regs, enum cpu_reg reg, taddr_t value)
{
	if (reg == CPU_PC && cpu->set_pc)
		cpu->set_pc(regs, value);
	else if (cpu->words[reg] != CPU_NO_WORD)
		cpu_regs_set_word(regs, cpu->word_size, cpu->words[reg], value);
}

taddr_t cpu_word(const struct cpu *cpu, const u8 *bytes)
{
	taddr_t word = 0;

	for (u8 i = 0; i < cpu->word_size; i++)
		word = word << 8 | bytes[cpu->is_big ? i : cpu->word_size - 1 - i];
	return word;
}

static int read_word(const struct cpu *cpu, const struct cpu_memory *memory, taddr_t addr, taddr_t *word)
{
	u8 bytes[8];
	int err = memory->read(memory->ctx, addr, bytes, cpu->word_size);

	if (!err)
		*word = cpu_word(cpu, bytes);
	return err;
}

int cpu_call_return(const struct cpu *cpu, const struct cpu_regs *regs, const struct cpu_memory *memory,
		    taddr_t *ret)
{
	if (!cpu->has_link)
		return read_word(cpu, memory, cpu_get(cpu, regs, CPU_SP), ret);
	*ret = cpu_get(cpu, regs, CPU_LINK);
	return 0;
}

int cpu_call_arg(const struct cpu *cpu, const struct cpu_regs *regs, const struct cpu_memory *memory, u8 n,
		 taddr_t *arg)
{
	if (n < 1 || n > 4)
		return -EINVAL;
	if (cpu->args_on_stack)
		return read_word(cpu, memory, cpu_get(cpu, regs, CPU_SP) + (taddr_t)n * cpu->word_size, arg);
	*arg = cpu_get(cpu, regs, CPU_ARG1 + n - 1);
	return 0;
}

int cpu_call_set_arg(const struct cpu *cpu, struct cpu_regs *regs, const struct cpu_memory *memory, u8 n,
		     taddr_t arg)
{
	u8 bytes[8];

	if (n < 1 || n > 4)
		return -EINVAL;
	if (!cpu->args_on_stack) {
		cpu_set(cpu, regs, CPU_ARG1 + n - 1, arg);
		return 0;
	}
	for (u8 i = 0; i < cpu->word_size; i++, arg >>= 8)
		bytes[cpu->is_big ? cpu->word_size - 1 - i : i] = (u8)arg;
	return memory->write(memory->ctx, cpu_get(cpu, regs, CPU_SP) + (taddr_t)n * cpu->word_size, bytes,
			     cpu->word_size);
}
