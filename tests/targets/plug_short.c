/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded by dlopen.c: has a malloc of its own, and a free of one byte without padding near it, so that no jump has room
 * there.
 */
#include "tests/targets/truth.h"

static char arena[1 << 20] __attribute__((aligned(16)));
static size_t used;

void *plug_short_allocates(int nr);

FN void *malloc(size_t size)
{
	void *p = arena + used;

	used += (size + 15) & ~(size_t)15;
	return used <= sizeof(arena) ? p : NULL;
}

#if defined(__x86_64__)

#define AROUND(name)                                                                                         \
	".globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"                            \
	".rept 40\nlea 1(%rax, %rdi), %rax\n.endr\nret\n.cfi_endproc\n.size " name ", .-" name "\n"

__asm__(".text\n.p2align 4\n" AROUND("plug_short_before"));
__asm__(".globl free\n.type free, @function\nfree:\n.cfi_startproc\nret\n.cfi_endproc\n.size free, .-free\n");
__asm__(AROUND("plug_short_after"));

#else

FN void free(void *p)
{
	keep(p);
}

#endif

FN void *plug_short_allocates(int nr)
{
	void *p = NULL;

	for (int i = 0; i < nr; i++) {
		p = malloc(48);
		keep(p);
		free(p);
	}
	return p;
}
