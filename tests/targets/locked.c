/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An allocator of the program's own that begins with an instruction that the kernel cannot run elsewhere. */
#include "tests/targets/truth.h"

enum { NR_ROUNDS = 100 };

static char arena[1 << 16] __attribute__((aligned(16)));
static size_t used;
unsigned long nr_calls __attribute__((visibility("hidden")));

__attribute__((used)) static void *allocate(size_t size)
{
	used += (size + 15) & ~(size_t)15;
	return used > sizeof(arena) ? NULL : arena + used - ((size + 15) & ~(size_t)15);
}

#ifdef __x86_64__
__asm__(".text\n"
	".globl malloc\n"
	".type malloc, @function\n"
	"malloc:\n"
	"	lock addq $1, nr_calls(%rip)\n"
	"	sub $8, %rsp\n"
	"	call allocate\n"
	"	add $8, %rsp\n"
	"	ret\n"
	".size malloc, . - malloc\n");
#else
FN void *malloc(size_t size)
{
	nr_calls++;
	return allocate(size);
}
#endif

FN void free(void *p)
{
	if (p)
		__atomic_fetch_add(&nr_calls, 1, __ATOMIC_RELAXED);
}

int main(void)
{
	truth_begin();
	for (int i = 0; i < NR_ROUNDS; i++) {
		void *p = malloc(100);

		keep(p);
		free(p);
	}
	expect("calls malloc %d", NR_ROUNDS);
	expect("calls free %d", NR_ROUNDS);
	return nr_calls == 2 * NR_ROUNDS ? 0 : 1;
}
