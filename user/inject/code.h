/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Machine code of x86_64 that leads from a function to the piece: a jump over its first bytes, and a stub. */
#pragma once

#include "user/lib/types.h"

enum {
	CODE_JUMP_BYTES = 5,
	CODE_HOP_BYTES = 2,    /* a jump that reaches 127 bytes */
	CODE_STUB_BYTES = 256, /* room for one stub; the first one of an island is its head */
	CODE_REACH = 1 << 30,  /* bytes that an island is away at most: jumps reach 2 GiB */
};

enum code_kind {
	CODE_ENTRY, /* of a function */
	CODE_CALL,  /* a call instruction: the stub goes on to its target */
	CODE_RET,   /* a ret instruction; those before it are moved, too */
};

/* The entries of the piece. They lie in the head of each island, and its stubs go through there. */
struct code_ways {
	taddr_t enter, enter_call; /* as in struct piece_head */
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
	const u32 *indexes; /* what the stub tells the piece: one for each function that returns there */
	u32 nr_indexes;
};

struct code_hook {
	taddr_t addr;				       /* where the jump is written */
	u8 len;					       /* of the jump */
	u8 old[CODE_JUMP_BYTES], new[CODE_JUMP_BYTES]; /* the bytes there */
	u8 from_hop[CODE_JUMP_BYTES];		       /* with a hop: the jump that is written there */
	u32 displaced; /* bytes of the instructions that were moved: no thread may stand in the middle of them */
	u8 stub[CODE_STUB_BYTES];
};

/*
 * Make the hook of @site, whose stub will be at @stub. @ways: where a struct code_ways lies, near the stub.
 * 0, or -ENOTSUP with the reason in *@why, a constant.
 */
int code_hook(struct code_hook *out, const struct code_site *site, taddr_t stub, taddr_t ways,
	      const char **why) __must_check;
