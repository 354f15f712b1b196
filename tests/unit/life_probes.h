/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library of allocators and operators of a program, for tests/unit/call/test_life.c. */
#pragma once

#include "call/probe.h"

enum { CODE = 0x400000, LIBRARY = 0x700000, LIBRARY_BYTES = 0x10000, TRAMPOLINE = 0x900000 };
enum {
	MALLOC,
	CALLOC,
	REALLOC,
	OUT,
	FREE,
	NEW,
	DELETE,
	MEMALIGN,
	MAP,
	REMAP,
	UNMAP,
	OWN_NEW,
	OWN_DELETE,
	END_HEAP,
	PATH,
	END_THREAD,
	NR_FNS
};

/* A library of allocators, each function 256 bytes from the last one. */
static const struct call_probe probes[NR_FNS] = {
#define OWN(fn)		      .own_before = (fn)*256, .own_after = LIBRARY_BYTES - (fn)*256
#define RETURNS(number, what) .fn = (number), .kind = (what), .flags = PROBE_RETURNS
	[MALLOC] = { RETURNS(1, ALLOC_MALLOC), .size_arg = 1, OWN(MALLOC) },
	[CALLOC] = { RETURNS(2, ALLOC_MALLOC), .size_arg = 2, .count_arg = 1, OWN(CALLOC) },
	[REALLOC] = { RETURNS(3, ALLOC_REALLOC), .size_arg = 2, .old_arg = 1, OWN(REALLOC) },
	[OUT] = { RETURNS(4, ALLOC_OUT), .size_arg = 3, .out_arg = 1, OWN(OUT) },
	[FREE] = { .fn = 5, .kind = ALLOC_FREE, .old_arg = 1, OWN(FREE) },
	/* Delegates have their own body only. */
	[NEW] = { .fn = 6,
		  .kind = ALLOC_MALLOC,
		  .flags = PROBE_DELEGATES | PROBE_THROWS,
		  .size_arg = 1,
		  .own_after = 256 },
	[DELETE] = { .fn = 7,
		     .kind = ALLOC_FREE,
		     .flags = PROBE_DELEGATES,
		     .size_arg = 2,
		     .old_arg = 1,
		     .own_after = 256 },
	[MEMALIGN] = { RETURNS(8, ALLOC_MALLOC), .size_arg = 2, .align_arg = 1, OWN(MEMALIGN) },
	[MAP] = { RETURNS(9, ALLOC_MMAP), .size_arg = 2, OWN(MAP) },
	[REMAP] = { RETURNS(10, ALLOC_MREMAP), .size_arg = 3, .old_arg = 1, OWN(REMAP) },
	[UNMAP] = { .fn = 11, .kind = ALLOC_MUNMAP, .size_arg = 2, .old_arg = 1, OWN(UNMAP) },
	/* Operators of the program. Their own code is the program's. */
	[OWN_NEW] = { .fn = 12,
		      .kind = ALLOC_MALLOC,
		      .flags = PROBE_RETURNS | PROBE_THROWS | PROBE_WRAPS,
		      .size_arg = 1,
		      .own_before = LIBRARY + OWN_NEW * 256 - CODE },
	[OWN_DELETE] = { .fn = 13,
			 .kind = ALLOC_FREE,
			 .flags = PROBE_RETURNS | PROBE_WRAPS,
			 .old_arg = 1,
			 .own_before = LIBRARY + OWN_DELETE * 256 - CODE },
	[END_HEAP] = { .fn = 14,
		       .kind = ALLOC_DELETE,
		       .flags = PROBE_RETURNS | PROBE_WRAPS,
		       .old_arg = 1,
		       OWN(END_HEAP) },
	[PATH] = { .fn = 15,
		   .kind = ALLOC_MALLOC,
		   .flags = PROBE_RETURNS | PROBE_WRAPS,
		   .out_arg = 2,
		   OWN(PATH) },
	[END_THREAD] = { .fn = 16,
			 .kind = ALLOC_DELETE,
			 .flags = PROBE_RETURNS | PROBE_WRAPS,
			 OWN(END_THREAD) },
#undef RETURNS
#undef OWN
};
