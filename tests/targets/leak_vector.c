/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loses a block whose address is still in a vector register when the program exits, as memcpy() leaves it there. */
#include <sys/syscall.h>

#include "tests/targets/truth.h"

enum { SIZE = 777 };

FN static void *lost_block(size_t size)
{
	return malloc(size);
}

int main(void)
{
	void *p;

	truth_begin();
	p = lost_block(SIZE);
	expect("definite 1 %d lost_block", SIZE);
	fflush(stdout);
#if defined(__x86_64__)
	__asm__ volatile(
		"movq %%rdx, %%xmm13\n\txor %%edx, %%edx\n\txor %%ebx, %%ebx\n\txor %%r12d, %%r12d\n\t"
		"xor %%r13d, %%r13d\n\txor %%r14d, %%r14d\n\txor %%r15d, %%r15d\n\txor %%ebp, %%ebp\n\t"
		"xor %%edi, %%edi\n\tsyscall"
		:
		: "d"(p), "a"(SYS_exit_group)
		: "xmm13", "rbx", "r12", "r13", "r14", "r15", "rdi", "memory");
#else
	keep(p);
	_exit(0);
#endif
	return 0;
}
