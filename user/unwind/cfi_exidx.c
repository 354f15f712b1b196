/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ARM's own unwind information (.ARM.exidx, .ARM.extab) as rows. A function has one row, which is valid between its
 * prologue and epilogue, that is at every call. Code without entries has no rows.
 */
#include "user/unwind/cfi_exidx.h"

#include <elf.h>
#include <errno.h>

#include "arch/unwind.h"
#include "bpf/cfi_rule.h"
#include "user/unwind/cfi.h"

#ifndef PT_ARM_EXIDX
#define PT_ARM_EXIDX 0x70000001
#endif

enum {
	ENTRY_BYTES = 8,
	CANNOT_UNWIND = 1,
	MAX_OPERATIONS = 4 * 256,
	FINISH = 0xb0,
	REG_SP = 13,
	REG_LR,
	REG_PC
};

/* The bytes that undo a prologue, and the state that they lead to. */
struct undo {
	const struct elf *elf;
	u64 next;	/* virtual address of the next word of them */
	u32 word;	/* the rest of the present word, next byte uppermost */
	u32 nr_in_word; /* left in it */
	u32 nr_words;	/* left behind it */
	bool is_bad;
	bool is_fp;	  /* sp counts from the frame pointer, else from SP */
	s64 sp;		  /* bytes */
	s64 fp_at, lr_at; /* offsets where they are saved, relative as sp; -1 = not saved */
	u32 nr_done;
};

static int cfi_exidx_read_word(const struct elf *elf, u64 vaddr, u32 *word)
{
	u8 raw[4];
	int err = elf_read_vaddr(elf, vaddr, raw, sizeof(raw));

	if (!err)
		*word = elf_u32(elf, raw);
	return err;
}

/* An address relative to the word at @vaddr, in 31 bits. */
static u64 cfi_exidx_relative(u64 vaddr, u32 word)
{
	return (u32)(vaddr + (u64)((s64)((u64)word << 33) >> 33));
}

/* The next byte. Behind the last byte, "finish" repeats. */
static u8 cfi_exidx_take(struct undo *u)
{
	if (!u->nr_in_word) {
		if (!u->nr_words)
			return FINISH;
		if (cfi_exidx_read_word(u->elf, u->next, &u->word)) {
			u->is_bad = true;
			return FINISH;
		}
		u->next += 4;
		u->nr_words--;
		u->nr_in_word = 4;
	}
	u->nr_in_word--;
	return (u8)(u->word >> 8 * u->nr_in_word);
}

/* Registers of @mask, from register @first on, are saved at sp upwards. */
static void cfi_exidx_pop(struct undo *u, u32 mask, u32 first, u8 fp)
{
	for (u32 nr = first; mask; nr++, mask >>= 1) {
		if (!(mask & 1))
			continue;
		if (nr == fp)
			u->fp_at = u->sp;
		if (nr == REG_SP)
			u->is_bad = true;
		if (nr == REG_LR || nr == REG_PC)
			u->lr_at = u->sp;
		u->sp += 4;
	}
}

/* Operations of two bytes, and floating-point registers, which only use space. */
static void do_long(struct undo *u, u8 op, u8 fp)
{
	u32 second, shift = 0;

	if (op >> 4 == 8) {
		second = (u32)(op & 15) << 8 | cfi_exidx_take(u);
		u->is_bad |= !second; /* refuses to unwind */
		cfi_exidx_pop(u, second, 4, fp);
	} else if (op == 0xb1) {
		second = cfi_exidx_take(u);
		u->is_bad |= !second || second > 15;
		cfi_exidx_pop(u, second & 15, 0, fp);
	} else if (op == 0xb2) {
		u64 more = 0;

		do {
			second = cfi_exidx_take(u);
			more |= (u64)(second & 127) << shift;
			shift += 7;
		} while (second & 128 && shift < 28);
		u->sp += 0x204 + (s64)(more << 2);
	} else if (op == 0xb3 || op == 0xc8 || op == 0xc9) {
		u->sp += 8 * ((cfi_exidx_take(u) & 15) + 1) + (op == 0xb3 ? 4 : 0);
	} else if (op >> 3 == 0x17 || op >> 3 == 0x1a) {
		u->sp += 8 * ((op & 7) + 1) + (op >> 3 == 0x17 ? 4 : 0);
	} else {
		u->is_bad = true; /* coprocessors and future operations */
	}
}

static void do_operation(struct undo *u, u8 op, u8 fp)
{
	if (op >> 6 == 0) {
		u->sp += ((op & 63) << 2) + 4;
	} else if (op >> 6 == 1) {
		u->sp -= ((op & 63) << 2) + 4;
	} else if (op >> 4 ==
		   9) { /* sp from a register: only from the frame pointer, and as the first thing */
		u->is_bad |= (op & 15) != fp || u->nr_done;
		u->is_fp = true;
	} else if (op >> 4 == 10) {
		cfi_exidx_pop(u, (2U << (op & 7)) - 1, 4, fp);
		if (op & 8)
			cfi_exidx_pop(u, 1, REG_LR, fp);
	} else {
		do_long(u, op, fp);
	}
}

static u32 cfi_exidx_pack(const struct undo *u)
{
	s64 lr = u->sp - u->lr_at, fp = u->sp - u->fp_at;
	u32 kind = u->is_fp ? CFI_FP : CFI_SP;

	if (u->is_bad || u->sp & 3 || u->sp / 4 > CFI_MAX_CFA_WORDS || u->sp < 0)
		return CFI_UNSUPPORTED;
	if (u->lr_at < 0)
		return u->fp_at < 0 ? cfi_rule(kind, (s32)(u->sp / 4), CFI_SAME, 0) : CFI_UNSUPPORTED;
	if (lr / 4 > CFI_MAX_SAVE_WORDS || lr <= 0 || (u->fp_at >= 0 && fp / 4 > CFI_MAX_SAVE_WORDS))
		return CFI_UNSUPPORTED;
	if (u->fp_at < 0)
		return cfi_rule(kind, (s32)(u->sp / 4), CFI_RA_AT_CFA, (u32)lr / 4);
	if (u->fp_at + 4 == u->lr_at)
		return cfi_rule(kind, (s32)(u->sp / 4), CFI_PAIR_AT_CFA, (u32)fp / 4);
	return cfi_rule(kind, (s32)(u->sp / 4), CFI_RA_AT_CFA_FP_LOST, (u32)lr / 4);
}

/* The rule of the operations in @first, and in the words that follow at @next. */
static u32 cfi_exidx_run(const struct elf *elf, const struct unwind_arch *arch, u32 first, u32 nr_in_word,
			 u32 nr_words, u64 next)
{
	struct undo u = { .elf = elf,
			  .word = first,
			  .nr_in_word = nr_in_word,
			  .nr_words = nr_words,
			  .next = next,
			  .fp_at = -1,
			  .lr_at = -1 };

	for (; u.nr_done < MAX_OPERATIONS && !u.is_bad; u.nr_done++) {
		u8 op = cfi_exidx_take(&u);

		if (op == FINISH)
			break;
		do_operation(&u, op, arch->fp);
	}
	return cfi_exidx_pack(&u);
}

u32 cfi_exidx_rule(const struct elf *elf, const struct unwind_arch *arch, u64 vaddr, u32 word)
{
	u32 nr_words = 0;

	if (word == CANNOT_UNWIND)
		return CFI_NONE;
	if (word >> 31) /* three bytes in the entry itself */
		return word >> 24 == 0x80 ? cfi_exidx_run(elf, arch, word, 3, 0, 0) : CFI_UNSUPPORTED;
	vaddr = cfi_exidx_relative(vaddr, word);
	if (cfi_exidx_read_word(elf, vaddr, &word))
		return CFI_UNSUPPORTED;
	vaddr += 4;
	if (!(word >> 31)) { /* its own personality routine (C++), then operations */
		if (cfi_exidx_read_word(elf, vaddr, &word))
			return CFI_UNSUPPORTED;
		nr_words = word >> 24;
		return cfi_exidx_run(elf, arch, word, 3, nr_words, vaddr + 4);
	}
	if (word >> 24 == 0x80)
		return cfi_exidx_run(elf, arch, word, 3, 0, 0);
	if (word >> 24 != 0x81 && word >> 24 != 0x82)
		return CFI_UNSUPPORTED;
	nr_words = word >> 16 & 255;
	return cfi_exidx_run(elf, arch, word, 2, nr_words, vaddr);
}

int cfi_exidx_each(const struct elf *elf, const struct unwind_arch *arch,
		   int (*fn)(void *ctx, u64 vaddr, u32 rule), void *ctx)
{
	const struct elf_segment *table = NULL;
	u64 last = 0;
	int err = 0;

	for (u32 i = 0; i < elf->nr_segments && !table; i++)
		if (elf->segments[i].type == PT_ARM_EXIDX)
			table = &elf->segments[i];
	if (elf->machine != EM_ARM || !table || table->filesz < ENTRY_BYTES)
		return -ENOENT;
	for (u64 at = 0; at + ENTRY_BYTES <= table->filesz && at < CFI_MAX_FDES * (u64)ENTRY_BYTES && !err;
	     at += ENTRY_BYTES) {
		u64 vaddr = table->vaddr + at, start;
		u32 first, second;

		if (cfi_exidx_read_word(elf, vaddr, &first) || cfi_exidx_read_word(elf, vaddr + 4, &second))
			return -EIO;
		start = cfi_exidx_relative(vaddr, first) & ~1ULL;
		/* Entries are sorted; others are damaged. */
		if (start >= last)
			err = fn(ctx, start, cfi_exidx_rule(elf, arch, vaddr + 4, second));
		last = start > last ? start : last;
	}
	return err;
}
