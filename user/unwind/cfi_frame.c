/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the entry of one function in .eh_frame and runs it up to one instruction. For the few frames of a stack. */
#include "user/unwind/cfi_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/unwind/cfi_parse.h"

_Static_assert((int)CFI_FRAME_REGISTERS == (int)CFI_MAX_SAVED, "registers by number");

enum { LOOKS_PER_BYTE = 8 };

struct cfi_frames {
	struct cfi_section section;
	const struct unwind_arch *arch;
	struct cfi_cie cie; /* the last one that was read */
};

int cfi_frames_new(struct cfi_frames **out, const struct elf *elf)
{
	const struct unwind_arch *arch = unwind_arch(elf->machine, elf->word_size);
	struct cfi_frames *f = arch ? calloc(1, sizeof(*f)) : NULL;
	int err;

	if (!f)
		return arch ? -ENOMEM : -ENOTSUP;
	f->arch = arch;
	err = cfi_section_read(&f->section, elf, false);
	if (err) {
		cfi_frames_free(f);
		return err;
	}
	*out = f;
	return 0;
}

void cfi_frames_free(struct cfi_frames *frames)
{
	if (!frames)
		return;
	free(frames->section.data);
	free(frames);
}

/* Rows are not needed: the program stops behind the instruction, with the state there. */
static void cfi_frame_on_row(void *ctx, u64 pc, const struct cfi_state *state)
{
	(void)ctx;
	(void)pc;
	(void)state;
}

static int cfi_frame_describe(const struct cfi_frames *f, const struct cfi_state *state,
			      struct cfi_frame *out)
{
	const struct unwind_arch *arch = f->arch;
	const struct cfi_register *ra = &state->regs[REG_RA];
	bool is_fp = state->cfa_register == arch->fp;

	if (state->cfa_expression.size || (!is_fp && state->cfa_register != arch->sp) ||
	    state->is_elsewhere || f->cie.ra != arch->ra || f->cie.is_signal_frame)
		return -ENOTSUP;
	if (ra->how != HOW_OFFSET && (ra->how != HOW_SAME || !unwind_has_link(arch)))
		return -ENOTSUP;
	out->is_cfa_of_fp = is_fp;
	out->cfa_offset = state->cfa_offset;
	memcpy(out->saved, state->saved, sizeof(out->saved));
	out->ra = state->saved[arch->ra];
	out->fp = state->saved[arch->fp];
	return 0;
}

static int cfi_frame_run(struct cfi_frames *f, const struct cfi_cursor *program, u64 vaddr,
			 struct cfi_frame *out)
{
	struct cfi_run r = {
		.arch = f->arch, .cie = &f->cie, .pc = out->start, .end = vaddr + 1, .row = cfi_frame_on_row
	};
	struct cfi_state state = f->cie.initial;

	if (cfi_program_run(&r, *program, &state))
		return -ENOTSUP;
	return cfi_frame_describe(f, &state, out);
}

/* Bytes that were read: an entry may refer to any CIE. */
static size_t read_cie(struct cfi_frames *f, size_t offset)
{
	if (f->cie.is_valid && f->cie.offset == offset)
		return 0;
	cfi_cie_read(&f->section, f->arch, offset, &f->cie);
	return f->cie.size + 1;
}

int cfi_frames_find(struct cfi_frames *frames, u64 vaddr, struct cfi_frame *out)
{
	u64 budget = (u64)frames->section.size * LOOKS_PER_BYTE, start, length;
	size_t next = 0, cie;
	struct cfi_cursor body;

	*out = (struct cfi_frame){ 0 };
	for (size_t offset = 0; offset < frames->section.size; offset = next) {
		enum cfi_entry kind = cfi_entry_read(&frames->section, offset, &body, &cie, &next);
		u64 cost;

		if (kind == ENTRY_END)
			break;
		if (kind != ENTRY_FDE)
			continue;
		cost = read_cie(frames, cie);
		if (cost > budget)
			break;
		budget -= cost;
		if (frames->cie.is_valid && cfi_fde_read(&frames->cie, &body, &start, &length) &&
		    vaddr - start < length) {
			out->start = start;
			out->end = start + length;
			return cfi_frame_run(frames, &body, vaddr, out);
		}
	}
	return -ENOENT;
}
