/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For user/unwind/cfi*.c only: reads the sections, the entries and the instructions of call frame information. */
#pragma once

#include "arch/unwind.h"
#include "user/unwind/cfi.h"
#include "user/lib/elf.h"

/* The section as bytes. */
struct cfi_section {
	const struct elf *elf; /* borrowed */
	u8 *data;	       /* owned */
	size_t size;
	u64 vaddr;     /* of data[0] */
	u64 data_base; /* what DW_EH_PE_datarel is relative to */
	bool is_debug; /* .debug_frame */
	bool is_sized; /* the size is that of the section: continue behind a terminator */
	bool is_cut;   /* larger than CFI_MAX_FRAME_BYTES */
};

/* A position in the section. A read beyond @end sets is_bad; then everything read is 0. */
struct cfi_cursor {
	const struct cfi_section *section;
	const u8 *p, *end;
	bool is_bad;
};

/* How a register of the caller is found. */
enum cfi_how { HOW_SAME, HOW_OFFSET, HOW_EXPRESSION, HOW_UNDEFINED, HOW_OTHER };

struct cfi_expression {
	const u8 *p; /* borrowed from the section */
	size_t size;
};

struct cfi_register {
	enum cfi_how how;
	s64 offset; /* HOW_OFFSET: saved at CFA + offset */
	struct cfi_expression expression;
};

enum { REG_SP, REG_FP, REG_RA, NR_REGS };
enum { CFI_MAX_SAVED = 32 }; /* general registers have lower numbers on the CPUs of arch/unwind.h */

/* The state that the instructions so far lead to. */
struct cfi_state {
	u64 cfa_register;
	s64 cfa_offset;
	struct cfi_expression cfa_expression; /* size 0 = register and offset */
	struct cfi_register regs[NR_REGS];
	s16 saved[CFI_MAX_SAVED]; /* by DWARF number: saved at CFA + this many bytes; 0 = not saved */
	bool is_elsewhere;	  /* a register is saved in a way that saved[] cannot tell */
};

struct cfi_cie {
	size_t offset, size; /* in the section */
	bool is_valid;
	bool is_signal_frame;
	bool has_augmentation;
	u8 pointer_encoding;
	u64 ra; /* return address column */
	u64 code_align;
	s64 data_align;
	struct cfi_cursor program;
	struct cfi_state initial;
};

/* An FDE that is kept, by address. */
struct cfi_fde {
	u32 start, end; /* pc - text_base */
	u32 offset;	/* in the section */
};

/* cfi_section.c: find and read the section. -ENOENT if the file does not have it. */
int cfi_section_read(struct cfi_section *out, const struct elf *elf, bool want_debug) __must_check;
bool cfi_has_debug_frame(const struct elf *elf);

/* cfi_parse.c */
u64 cursor_fixed(struct cfi_cursor *c, size_t size);
u64 cursor_uleb(struct cfi_cursor *c);
s64 cursor_sleb(struct cfi_cursor *c);
const u8 *cursor_skip(struct cfi_cursor *c, u64 size);
u64 cursor_pointer(struct cfi_cursor *c, u8 encoding);

enum cfi_entry { ENTRY_END, ENTRY_BAD, ENTRY_CIE, ENTRY_FDE };

/*
 * Read the entry at @offset: its kind, its contents behind the CIE field, and the offsets of the CIE of an FDE and of
 * the next entry.
 */
enum cfi_entry cfi_entry_read(const struct cfi_section *s, size_t offset, struct cfi_cursor *body,
			      size_t *cie, size_t *next);
void cfi_cie_read(const struct cfi_section *s, const struct unwind_arch *arch, size_t offset,
		  struct cfi_cie *cie);
/* Read start and length of an FDE, and move @body to its instructions. False if it is damaged. */
bool cfi_fde_read(const struct cfi_cie *cie, struct cfi_cursor *body, u64 *start, u64 *length);

/* cfi_program.c: run instructions. Calls @row for each change, with the state from @pc on. */
struct cfi_run {
	const struct unwind_arch *arch;
	const struct cfi_cie *cie;
	u64 pc;	 /* the start, then the address that the program has reached */
	u64 end; /* stop there */
	void (*row)(void *ctx, u64 pc, const struct cfi_state *state);
	void *ctx;
};

/* 0, or -EINVAL if the instructions make no sense: *@state is then that before the bad one. */
int cfi_program_run(struct cfi_run *run, struct cfi_cursor program, struct cfi_state *state) __must_check;

/* cfi_pack.c: the rule of the row. Counts in @stats what does not fit into a rule. */
u32 cfi_pack(const struct unwind_arch *arch, const struct cfi_cie *cie, const struct cfi_state *state,
	     struct cfi_stats *stats);
