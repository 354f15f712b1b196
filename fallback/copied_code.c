/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out which code a copy with a breakpoint in it was copied from. */
#include "fallback/copied_code.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	/* Bytes behind a breakpoint that must be alike, of further instructions: a hook may copy no more. */
	MIN_SAME = 4,
	PAGE_BYTES = 4096,
};

/* One of ours, or of the kernel, which has another number in it on arm64. */
static bool is_trap(const struct copied_code *c, const u8 *code, size_t *len)
{
	u8 ours[CPU_BREAKPOINT_BYTES];

	*len = cpu_breakpoint(c->cpu, c->pc, ours);
	if (c->cpu->machine == EM_AARCH64)
		return code[3] == 0xd4 && (code[2] & 0xe0) == 0x20 && !(code[0] & 0x1f);
	return !memcmp(code, ours, *len);
}

int copied_code_read(struct copied_code *c, const struct cpu *cpu, const struct cpu_regs *regs,
		     const struct cpu_memory *memory)
{
	taddr_t pc = cpu_get(cpu, regs, CPU_PC) - cpu->trap_skip;
	size_t in_page;
	int err;

	*c = (struct copied_code){ .cpu = cpu, .pc = pc, .nr = CPU_CODE_BYTES };
	c->addr = cpu->machine == EM_ARM ? pc & ~1ULL : pc;
	in_page = PAGE_BYTES - c->addr % PAGE_BYTES;
	err = memory->read(memory->ctx, c->addr, c->code, c->nr);
	/* The rest may be in a page that is not mapped. */
	if (err && c->nr > in_page) {
		c->nr = in_page;
		err = memory->read(memory->ctx, c->addr, c->code, c->nr);
	}
	return err;
}

bool copied_code_try(struct copied_code *c, taddr_t addr, const u8 *original, size_t nr)
{
	size_t len, most = nr < c->nr ? nr : c->nr, nr_same = 0;
	bool is_ours = is_trap(c, c->code, &len), is_done;

	/* Another thread may have taken the breakpoint out since. One of the program's own is none of ours. */
	is_done = most >= len && !memcmp(c->code, original, len);
	if (most < len || (!is_ours && !is_done) || is_trap(c, original, &len))
		return false;
	for (size_t at = len; at + len <= most; at += len) {
		size_t ignored;

		if (!memcmp(c->code + at, original + at, len))
			nr_same += len;
		else if (!is_trap(c, c->code + at, &ignored))
			break;
	}
	/* The copy may have taken the place of the original. */
	if (nr_same >= MIN_SAME + len - 1 && addr == c->addr)
		nr_same += CPU_CODE_BYTES;
	if (nr_same < MIN_SAME + len - 1 || nr_same < c->nr_same)
		return false;
	if (nr_same == c->nr_same) {
		c->is_unsure |= memcmp(c->original, original, len) != 0;
		return false;
	}
	memcpy(c->original, original, most);
	c->nr_original = most;
	c->nr_same = nr_same;
	c->is_unsure = false;
	return true;
}

bool copied_code_is_known(const struct copied_code *c)
{
	return c->nr_same && !c->is_unsure;
}

int copied_code_mend(const struct copied_code *c, struct cpu_regs *regs, const struct cpu_memory *memory)
{
	size_t len;

	if (!copied_code_is_known(c))
		return -ENOENT;
	cpu_set(c->cpu, regs, CPU_PC, c->pc);
	if (!is_trap(c, c->code, &len) || !memory->write(memory->ctx, c->addr, c->original, len))
		return 0;
	/* Memory that is shared cannot be written where the program itself may not. */
	return cpu_emulate(c->cpu, regs, c->original, c->nr_original, memory);
}
