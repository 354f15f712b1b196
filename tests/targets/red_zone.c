/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Leaves the only pointer to a block below the stack pointer: in a function that calls another one, whose red zone is
 * dead ("caller"), or in a leaf function, which may read it again ("leaf"). Then kills itself there.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/targets/truth.h"

#if defined(__x86_64__)
/* Leave the complement of @hidden where @instructions put it, and nowhere else, and end. */
#define END_WITH(instructions, hidden, pid)                                                                  \
	do {                                                                                                 \
		long number = SYS_kill;                                                                      \
                                                                                                             \
		__asm__ volatile("not %0\n\t" instructions "\n\txor %k0, %k0\n\tsyscall"                     \
				 : "+d"(hidden), "+a"(number)                                                \
				 : "D"(pid), "S"(SIGTERM)                                                    \
				 : "rcx", "r11", "memory");                                                  \
	} while (0)

FN static void called(void)
{
	__asm__ volatile("" : : : "memory");
}

/* The pushes stand for an earlier call, which has left its values there. */
FN static void end_in_caller(uintptr_t hidden, long pid)
{
	called();
	END_WITH("push %0\n\tpush %0\n\tpop %0\n\tpop %0", hidden, pid);
}

FN static void end_in_leaf(uintptr_t hidden, long pid)
{
	END_WITH("mov %0, -16(%%rsp)", hidden, pid);
}

FN static void *leader(void)
{
	return malloc(1000);
}

FN static void *held(void)
{
	return malloc(1000);
}

int main(int argc, char **argv)
{
	bool is_leaf = argc > 1 && strcmp(argv[1], "leaf") == 0;
	uintptr_t hidden;

	truth_begin();
	expect(is_leaf ? "reachable 1 1000 held" : "definite 1 1000 leader");
	fflush(stdout);
	hidden = ~(uintptr_t)(is_leaf ? held() : leader());
	(is_leaf ? end_in_leaf : end_in_caller)(hidden, getpid());
	return 0;
}
#else
int main(void)
{
	return 77;
}
#endif
