/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as code: what is decoded lies within them, an instruction that is moved is one again and leads to the same
 * place, and a hook leads back behind what it has moved (D8, S1).
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/insn.h"
#include "tests/fuzz/replay.h"
#include "user/inject/code.h"

static const u16 machines[] = { EM_X86_64, EM_386, EM_AARCH64, EM_ARM, EM_RISCV, 0 };

static void decode_all(u16 machine, taddr_t pc, const u8 *code, size_t len)
{
	struct insn insn;

	for (size_t at = 0; at < len; at += insn.length) {
		if (insn_decode(&insn, machine, pc + at, code + at, len - at))
			return;
		if (!insn.length || insn.length > len - at || insn.length > INSN_MAX_LENGTH)
			abort();
	}
}

static void move(taddr_t pc, const u8 *code, size_t len, taddr_t to)
{
	u8 *out = malloc(INSN_MAX_MOVED);
	struct insn before, after;
	int nr = out ? insn_move(EM_X86_64, pc, code, len, to, out) : -ENOMEM;

	if (nr > INSN_MAX_MOVED)
		abort();
	/* A short branch may become a longer one; its target stays. */
	if (nr > 0 &&
	    (insn_decode(&before, EM_X86_64, pc, code, len) ||
	     insn_decode(&after, EM_X86_64, to, out, (size_t)nr) || before.kind != after.kind ||
	     before.target != after.target || before.address != after.address || before.slot != after.slot ||
	     before.writes_args != after.writes_args || after.length != nr))
		abort();
	free(out);
}

/* Of aarch64 one instruction may become several. If it is one again, it leads to the same place, or does nothing. */
static void move_aarch64(taddr_t pc, const u8 *code, size_t len, taddr_t to)
{
	for (size_t at = 0; at < len; at += 4) {
		u8 *out = malloc(INSN_MAX_MOVED);
		struct insn before, after;
		int nr = out ? insn_move(EM_AARCH64, pc + at, code + at, len - at, to, out) : -ENOMEM;

		if (nr == 0 || nr > INSN_MAX_MOVED || (nr > 0 && nr % 4))
			abort();
		if (nr == 4 &&
		    (insn_decode(&before, EM_AARCH64, pc + at, code + at, 4) ||
		     insn_decode(&after, EM_AARCH64, to, out, 4) ||
		     (after.kind != INSN_NOP && (before.kind != after.kind || before.target != after.target ||
						 before.writes_args != after.writes_args))))
			abort();
		free(out);
	}
}

/* Decode the stub from its end of the visit on: somewhere it must jump to what follows the moved instructions. */
static bool leads_back(const struct code_cpu *cpu, const struct code_hook *h, taddr_t stub, taddr_t back)
{
	struct insn insn;

	for (size_t start = 0; start < CODE_STUB_BYTES; start += cpu->step)
		if (!insn_decode(&insn, cpu->machine, stub + start, h->stub + start,
				 CODE_STUB_BYTES - start) &&
		    insn.kind == INSN_JUMP && insn.target == back)
			return true;
	return false;
}

static void hook(const struct code_cpu *cpu, enum code_kind kind, taddr_t pc, const u8 *code, size_t len,
		 size_t at)
{
	const taddr_t stub = pc + 0x10000;
	static const u32 indexes[] = { 7, 8 };
	const struct code_site site = { .kind = kind,
					.addr = pc + at,
					.start = kind == CODE_RET ? pc : pc + at,
					.body = kind == CODE_RET ? code : code + at,
					.len = kind == CODE_RET ? len : len - at,
					.indexes = indexes,
					.nr_indexes = 1 + (pc + at) % 2 };
	struct code_hook *h = calloc(1, sizeof(*h));
	const size_t jump = cpu->jump_bytes;
	const char *why = NULL;
	int err = h ? cpu->hook(h, &site, stub, stub + 0x1000, &why) : -ENOMEM;

	if (err == -ENOTSUP && !why)
		abort();
	if (!err) {
		size_t offset = (size_t)(h->addr - pc);

		/* The jump may reach into the padding behind a ret, where no thread stands. */
		if (kind != CODE_RET && h->displaced < jump)
			abort();
		if (h->addr < pc || offset + h->displaced > len || offset + jump > len)
			abort();
		if (memcmp(h->old, code + offset, jump) != 0)
			abort();
		if (cpu->jump_target(h->addr, h->new) != stub)
			abort();
		if (kind == CODE_ENTRY && !leads_back(cpu, h, stub, h->addr + h->displaced))
			abort();
	}
	free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const taddr_t pc = 0x7f0000001000;
	enum code_kind kind;
	size_t len, at;
	u8 *code;

	if (size < 4)
		return 0;
	len = size - 3;
	at = data[1] % len;
	/* A copy of this length only, so that a read behind it is seen. */
	code = malloc(len);
	if (!code)
		return 0;
	memcpy(code, data + 3, len);
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		decode_all(machines[i], pc, code, len);
		(void)insn_stub_slot(machines[i], pc, code, len < INSN_STUB_BYTES ? len : INSN_STUB_BYTES);
		if (insn_next_call(machines[i], pc, code, len, pc + data[2]) > len)
			abort();
	}
	kind = (enum code_kind)(data[0] % 3);
	move_aarch64(pc, code, len, pc + (taddr_t)((s64)(s8)data[2] * (1 << 24)));
	hook(&code_aarch64, kind, pc, code, len, at & ~3UL);
	if (insn_is_supported(EM_X86_64)) {
		move(pc, code, len, pc + (taddr_t)((s64)(s8)data[2] * (1 << 20)));
		hook(&code_x86_64, kind, pc, code, len, at);
	}
	free(code);
	return 0;
}
