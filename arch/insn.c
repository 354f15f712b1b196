/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the decoder of a file's CPU. */
#include "arch/insn_private.h"

#include <elf.h>
#include <errno.h>

#include "arch/native.h"

/*
 * Tests read files of other CPUs too. Only builds for x86 ask for the library that decodes x86, and the agent has no
 * decoder of another CPU.
 */
static const struct insn_decoder *const decoders[] = {
#if defined(__x86_64__) && !defined(WITHOUT_CAPSTONE)
	&insn_x86,
#endif
#ifdef HAS_AARCH64
	&insn_aarch64,
#endif
	NULL,
};

static const struct insn_decoder *decoder_of(u16 elf_machine)
{
	const struct insn_decoder *const *d = decoders;

	while (*d && !(*d)->is_known(elf_machine))
		d++;
	return *d;
}

bool insn_is_supported(u16 elf_machine)
{
	return decoder_of(elf_machine);
}

bool insn_has_calls(u16 elf_machine)
{
	return decoder_of(elf_machine) || insn_calls_of(elf_machine);
}

bool insn_is_probed_here(u16 elf_machine)
{
#if defined(__x86_64__)
	return elf_machine == EM_X86_64 || elf_machine == EM_386;
#elif defined(__aarch64__)
	return elf_machine == EM_AARCH64;
#else
	(void)elf_machine;
	return false;
#endif
}

int insn_decode(struct insn *out, u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	const struct insn_decoder *d = decoder_of(elf_machine);

	return d ? d->decode(out, elf_machine, pc, code, len) : -ENOTSUP;
}

taddr_t insn_stub_slot(u16 elf_machine, taddr_t pc, const u8 *code, size_t len)
{
	const struct insn_decoder *d = decoder_of(elf_machine);

	return d ? d->stub_slot(elf_machine, pc, code, len) : 0;
}

static size_t next_plain_call(const struct insn_calls *c, taddr_t pc, const u8 *code, size_t len,
			      taddr_t target)
{
	for (size_t at = -pc & (c->step - 1U); at + 8 <= len; at += c->step)
		if (c->is_call(pc + at, code + at, target))
			return at;
	return len;
}

size_t insn_next_call(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t target)
{
	const struct insn_decoder *d = decoder_of(elf_machine);
	const struct insn_calls *c = insn_calls_of(elf_machine);
	struct insn insn;

	if (!d)
		return c ? next_plain_call(c, pc, code, len, target) : len;
	for (size_t at = 0; at < len; at += d->step) {
		at += d->next_call(pc + at, code + at, len - at, target);
		if (at < len && !d->decode(&insn, elf_machine, pc + at, code + at, len - at) &&
		    insn.kind == INSN_CALL)
			return at;
	}
	return len;
}

int insn_move(u16 elf_machine, taddr_t pc, const u8 *code, size_t len, taddr_t to, u8 *out)
{
	const struct insn_decoder *d = decoder_of(elf_machine);

	return d && d->move ? d->move(elf_machine, pc, code, len, to, out) : -ENOTSUP;
}
