/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 32-bit ARM for breakpoints. The instructions are in arch/cpu_arm_a32.c and arch/cpu_arm_t32.c. */
#include "arch/cpu_arm.h"

#include <elf.h>
#include <errno.h>

enum { NO_ITSTATE = (int)~0x0600fc00U };

static bool arm_is_thumb(const struct cpu_regs *regs)
{
	return cpu_regs_word(regs, 4, ARM_CPSR) & ARM_THUMB;
}

static taddr_t get_pc(const struct cpu_regs *regs)
{
	return cpu_regs_word(regs, 4, ARM_PC) | arm_is_thumb(regs);
}

/* Bit 0 of @value chooses the instruction set. The state of an IT block is cleared if pc leaves it. */
static void set_pc(struct cpu_regs *regs, taddr_t value)
{
	u32 cpsr = (u32)cpu_regs_word(regs, 4, ARM_CPSR);

	if (((u32)value & ~1U) != (u32)cpu_regs_word(regs, 4, ARM_PC))
		cpsr &= (u32)NO_ITSTATE;
	cpsr = value & 1 ? cpsr | ARM_THUMB : cpsr & ~(u32)ARM_THUMB;
	cpu_regs_set_word(regs, 4, ARM_CPSR, cpsr);
	cpu_regs_set_word(regs, 4, ARM_PC, value & ~1ULL);
}

u32 arm_reg(const struct cpu_insn *in, u32 nr)
{
	if (nr == ARM_PC)
		return (u32)in->pc + (arm_is_thumb(&in->regs) ? 4 : 8);
	return (u32)cpu_insn_get(in, nr);
}

bool arm_carry(const struct cpu_insn *in)
{
	return arm_reg(in, ARM_CPSR) & ARM_C;
}

bool arm_flags_hold(u32 flags, u32 cond)
{
	bool is_less = !(flags & ARM_N) != !(flags & ARM_V);
	const bool is_true[] = {
		flags & ARM_Z,
		flags & ARM_C,
		flags & ARM_N,
		flags & ARM_V,
		(flags & ARM_C) && !(flags & ARM_Z),
		!is_less,
		!is_less && !(flags & ARM_Z),
		true,
	};

	return cond >= 14 || is_true[cond >> 1] != (cond & 1);
}

bool arm_condition(const struct cpu_insn *in, u32 cond)
{
	return arm_flags_hold(arm_reg(in, ARM_CPSR), cond);
}

struct arm_shifted arm_shift(const struct cpu_insn *in, u32 value, u32 type, u32 amount)
{
	bool carry = arm_carry(in);

	if (type == 0)
		return (struct arm_shifted){ value << amount, amount ? value >> (32 - amount) & 1 : carry };
	if (type == 3 && !amount)
		return (struct arm_shifted){ value >> 1 | (u32)carry << 31, value & 1 };
	if (type == 3)
		return (struct arm_shifted){ value >> amount | value << (32 - amount),
					     value >> (amount - 1) & 1 };
	/* A right shift by 0 means a shift by 32. */
	if (!amount)
		return (struct arm_shifted){ type == 2 ? (u32)((s32)value >> 31) : 0, value >> 31 };
	return (struct arm_shifted){ type == 2 ? (u32)((s32)value >> amount) : value >> amount,
				     value >> (amount - 1) & 1 };
}

int arm_go(struct cpu_insn *in, u32 addr)
{
	in->next = addr & (arm_is_thumb(&in->regs) ? ~1U : ~3U);
	return 0;
}

int arm_interwork(struct cpu_insn *in, u32 addr)
{
	u32 cpsr = arm_reg(in, ARM_CPSR);

	if ((addr & 3) == 2)
		return -ENOTSUP;
	cpu_insn_set(in, ARM_CPSR, addr & 1 ? cpsr | ARM_THUMB : cpsr & ~(u32)ARM_THUMB);
	return arm_go(in, addr);
}

int arm_put(struct cpu_insn *in, u32 nr, u32 value)
{
	if (nr == ARM_PC)
		return arm_interwork(in, value);
	cpu_insn_set(in, nr, value);
	return 0;
}

/* a + b + carry; *@flags: the carry and overflow of the sum. */
static u32 add_with_carry(u32 a, u32 b, bool carry, u32 *flags)
{
	u64 sum = (u64)a + b + carry;
	u32 r = (u32)sum;

	*flags = (sum >> 32 ? ARM_C : 0) | (~(a ^ b) & (a ^ r) & 1U << 31 ? ARM_V : 0);
	return r;
}

int arm_calculate(struct cpu_insn *in, enum arm_op op, bool sets_flags, u32 to, u32 a, struct arm_shifted b)
{
	u32 cpsr = arm_reg(in, ARM_CPSR), r, flags = (b.carry ? ARM_C : 0) | (cpsr & ARM_V);
	bool carry = arm_carry(in);

	switch (op) {
	case ARM_AND:
	case ARM_TST:
		r = a & b.value;
		break;
	case ARM_EOR:
	case ARM_TEQ:
		r = a ^ b.value;
		break;
	case ARM_SUB:
	case ARM_CMP:
		r = add_with_carry(a, ~b.value, true, &flags);
		break;
	case ARM_RSB:
		r = add_with_carry(~a, b.value, true, &flags);
		break;
	case ARM_ADD:
	case ARM_CMN:
		r = add_with_carry(a, b.value, false, &flags);
		break;
	case ARM_ADC:
		r = add_with_carry(a, b.value, carry, &flags);
		break;
	case ARM_SBC:
		r = add_with_carry(a, ~b.value, carry, &flags);
		break;
	case ARM_RSC:
		r = add_with_carry(~a, b.value, carry, &flags);
		break;
	case ARM_ORR:
		r = a | b.value;
		break;
	case ARM_MOV:
		r = b.value;
		break;
	case ARM_BIC:
		r = a & ~b.value;
		break;
	case ARM_MVN:
		r = ~b.value;
		break;
	case ARM_ORN:
		r = a | ~b.value;
		break;
	default:
		return -ENOTSUP;
	}
	if (sets_flags) {
		if (to == ARM_PC && (op < ARM_TST || op > ARM_CMN))
			return -ENOTSUP; /* a return from an exception */
		flags |= (r & ARM_N) | (r ? 0 : ARM_Z);
		cpu_insn_set(in, ARM_CPSR, (cpsr & ~(u32)(ARM_N | ARM_Z | ARM_C | ARM_V)) | flags);
	}
	return op >= ARM_TST && op <= ARM_CMN ? 0 : arm_put(in, to, r);
}

int arm_multiple(struct cpu_insn *in, bool is_load, u32 addr, u32 list, u32 base, u32 new_base)
{
	u8 bytes[16 * 4];
	size_t size = 0;
	int err;

	if (!list || addr & 3 || (base < 16 && is_load && list >> base & 1))
		return -ENOTSUP;
	for (u32 nr = 0; nr < 16; nr++) {
		if (!(list >> nr & 1))
			continue;
		cpu_insn_bytes(in, bytes + size, 4, arm_reg(in, nr));
		size += 4;
	}
	err = is_load ? in->memory->read(in->memory->ctx, addr, bytes, size)
		      : in->memory->write(in->memory->ctx, addr, bytes, size);
	if (err)
		return err;
	if (base < 16)
		cpu_insn_set(in, base, new_base);
	for (u32 nr = 0, at = 0; nr < 16 && is_load && !err; nr++)
		if (list >> nr & 1)
			err = arm_put(in, nr, (u32)cpu_word(in->cpu, bytes + 4 * (size_t)at++));
	return err;
}

int arm_load(struct cpu_insn *in, u32 nr, u32 addr, u32 size, bool is_signed)
{
	u64 value;
	int err;

	if (addr & (size - 1) || (nr == ARM_PC && size != 4))
		return -ENOTSUP;
	err = is_signed ? cpu_insn_load_signed(in, addr, size, &value)
			: cpu_insn_load(in, addr, size, &value);
	return err ? err : arm_put(in, nr, (u32)value);
}

int arm_store(struct cpu_insn *in, u32 nr, u32 addr, u32 size)
{
	return addr & (size - 1) || nr == ARM_PC ? -ENOTSUP : cpu_insn_store(in, addr, size, arm_reg(in, nr));
}

const struct cpu cpu_arm = {
	.name = "arm",
	.machine = EM_ARM,
	.word_size = 4,
	.has_link = true,
	.regs_size = ARM_NR_WORDS * 4,
	.code_mask = ~1ULL,
	.words = { [CPU_PC] = ARM_PC,
		   [CPU_SP] = ARM_SP,
		   [CPU_FP] = ARM_FP,
		   [CPU_LINK] = ARM_LR,
		   [CPU_RESULT] = 0,
		   [CPU_ARG1] = 0,
		   [CPU_ARG2] = 1,
		   [CPU_ARG3] = 2,
		   [CPU_ARG4] = 3 },
	.isa = &arm_a32,
	.thumb = &arm_t32,
	.get_pc = get_pc,
	.set_pc = set_pc,
};
