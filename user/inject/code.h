/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Machine code that leads from a function to the piece, on each CPU: a jump over its first bytes, and a stub. */
#pragma once

#include "user/lib/types.h"

enum {
	CODE_MAX_JUMP = 5,     /* bytes of a jump on any CPU */
	CODE_STUB_BYTES = 256, /* room for one stub; the first one of an island is its head */
};

enum code_kind {
	CODE_ENTRY, /* of a function */
	CODE_CALL,  /* a call instruction: the stub goes on to its target */
	CODE_RET,   /* a ret instruction; on x86 those before it are moved, too */
};

/* The entries of the piece. They lie in the head of each island, and its stubs go through there. */
struct code_ways {
	taddr_t enter, enter_call; /* as in struct piece_head */
	taddr_t keys, counters;	   /* of threads, of sampled blocks; 0 = calls are not sampled */
};

/* A place that is to lead to the piece. */
struct code_site {
	enum code_kind kind;
	taddr_t addr;	/* of the instruction */
	taddr_t start;	/* of the function, for CODE_RET; else addr */
	const u8 *body; /* from start on, to the end of the function, and the padding behind it */
	size_t len;
	size_t padding; /* bytes behind the function that no code runs */
	taddr_t hop;	/* of bytes near it that no code runs: a jump of two bytes leads there; 0 = none */
	const struct call_probe
		*sampled;   /* an entry whose stub counts bytes for samples; NULL = it does not */
	const u32 *indexes; /* what the stub tells the piece: one for each function that returns there */
	u32 nr_indexes;
};

struct code_hook {
	taddr_t addr;				   /* where the jump is written */
	u8 len;					   /* of the jump */
	u8 old[CODE_MAX_JUMP], new[CODE_MAX_JUMP]; /* the bytes there */
	u8 from_hop[CODE_MAX_JUMP];		   /* with a hop: the jump that is written there */
	u32 displaced; /* bytes of the instructions that were moved: no thread may stand in the middle of them */
	u8 stub[CODE_STUB_BYTES];
};

/* A CPU, as far as the inline source must know it. Tests of every CPU run on every machine. */
struct code_cpu {
	u16 machine;		 /* ELF */
	u8 jump_bytes;		 /* of a jump, and of a call */
	u8 hop_bytes;		 /* of a jump that reaches 127 bytes; 0 = none is needed */
	u8 step;		 /* bytes from one place where an instruction may begin to the next one */
	u8 nr_pc_words;		 /* words behind a saved program counter by which it is known */
	u8 below_stack;		 /* bytes below the stack pointer that hold where the piece goes to */
	u8 scratch[2];		 /* registers that do, by their number in the kernel's order; 0 = none */
	s8 saved_link, saved_sp; /* where a signal frame has them: words from the program counter */
	bool has_link;	  /* return addresses are in a register, which the function saves, perhaps signed */
	bool reorders;	  /* loads: a thread may see what another one did last before what it did first */
	bool has_guards;  /* mappings whose code indirect jumps reach only by instructions for that */
	u32 reach;	  /* bytes that an island is away from code at most */
	u64 address_mask; /* bits of a return address without its signature */

	/* As code_hook(). */
	int (*hook)(struct code_hook *out, const struct code_site *site, taddr_t stub, taddr_t ways,
		    const char **why);
	/* Where the jump @code of ours, of jump_bytes, leads from @addr. */
	taddr_t (*jump_target)(taddr_t addr, const u8 *code);
	/* Is @code, of @step bytes, a breakpoint? */
	bool (*is_breakpoint)(const u8 *code);
	/* Has somebody a breakpoint on the jump @jump of ours, of @len bytes, where now is @now? */
	bool (*is_under_breakpoint)(const u8 *now, const u8 *jump, size_t len);
	/*
	 * May the word at @word of a stack be the program counter to which a signal handler returns? The kernel has
	 * written nr_pc_words words behind it.
	 */
	bool (*is_saved_pc)(const u64 *word);
};

extern const struct code_cpu code_x86_64, code_aarch64;

/* The CPU of this machine, on which there is no piece if it is neither. */
static inline const struct code_cpu *code_native(void)
{
#if defined(__aarch64__)
	return &code_aarch64;
#else
	return &code_x86_64;
#endif
}

/*
 * Make the hook of @site on this machine, whose stub will be at @stub. @ways: where a struct code_ways lies, near the
 * stub. 0, or -ENOTSUP with the reason in *@why, a constant.
 */
static inline __must_check int code_hook(struct code_hook *out, const struct code_site *site, taddr_t stub,
					 taddr_t ways, const char **why)
{
	return code_native()->hook(out, site, stub, ways, why);
}
