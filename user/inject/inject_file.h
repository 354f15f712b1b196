/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file in a target whose functions are led to the piece, and the breakpoints of this trace in it. */
#pragma once

#include "user/inject/code.h"

/* A breakpoint of this trace that stays in other processes, and what the file has there: one step of instructions. */
struct inject_own {
	taddr_t addr;
	u8 code[CODE_MAX_JUMP];
};

/* The file of functions. */
struct inject_file {
	int fd;	      /* -1 = it cannot be opened */
	taddr_t near; /* where it is mapped */
	const char *path;
	const taddr_t *kept; /* addresses in it that get breakpoints of this trace */
	size_t nr_kept;
	const struct inject_own *own; /* those in the functions */
	size_t nr_own;
	bool must_move; /* pages must not be changed where they are */
};
