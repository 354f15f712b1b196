/* SPDX-License-Identifier: GPL-2.0-or-later */
/* trap: breakpoints of its own, one of them where an allocator of its own begins, and a handler for SIGTRAP. */
#include "tests/targets/truth.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t nr_traps;

static void on_trap(int sig)
{
	(void)sig;
	nr_traps++;
}

/* Traps, then allocates; what the compiler does before has no place in it. */
#if defined(__x86_64__) || defined(__i386__)
#define TRAP "int3\n"
#define JUMP "jmp trap_malloc\n"
#elif defined(__aarch64__)
/* A handler of a real breakpoint would have to move the program counter on this CPU. */
#define TRAP "nop\n"
#define JUMP "b trap_malloc\n"
#endif

void *trap_malloc(size_t size);
void *own_malloc(size_t size);

__attribute__((used, noinline)) void *trap_malloc(size_t size)
{
	return malloc(size);
}

__asm__(".globl own_malloc\n"
	".type own_malloc, %function\n"
	"own_malloc:\n" TRAP JUMP ".size own_malloc, . - own_malloc\n");

int main(void)
{
	struct sigaction sa = { .sa_handler = on_trap };

	truth_begin();
	sigaction(SIGTRAP, &sa, NULL);
	for (int i = 0; i < 10; i++) {
		void *p = own_malloc(33);

		keep(p);
		raise(SIGTRAP);
	}
	expect("calls malloc 10");
	return nr_traps == (TRAP[0] == 'i' ? 20 : 10) ? 0 : 1;
}
