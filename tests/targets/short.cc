/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Operators whose first instructions, or returns, have no room for a jump of five bytes: two bytes with other code
 * right behind them, and a ret that is jumped to, with one byte of padding. rustc and the sanitizers of clang have such
 * functions.
 */
#include "tests/targets/truth.h"

#include <csignal>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

/* operator new[] takes its blocks from here, so that only its ret tells of its end. */
extern "C" {
char short_pool[1 << 16] __attribute__((aligned(16)));
char *short_next = short_pool;
}

#define BEGIN(name) ".globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"
#define END(name)   ".cfi_endproc\n.size " name ", .-" name "\n"

/* operator delete(void *, size_t) jumps to operator delete(void *), which comes next. */
__asm__(".text\n.p2align 4\n" BEGIN("_ZdlPvm") "jmp 1f\n" END("_ZdlPvm"));
__asm__(BEGIN("_ZdlPv") "1: jmp free@PLT\n" END("_ZdlPv"));

/* operator new[](size_t): 31 bytes, of which the ret is the last one. */
__asm__(".p2align 4\n" BEGIN("_Znam") "mov short_next@GOTPCREL(%rip), %rdx\n"
				      "mov (%rdx), %rax\n"
				      "add $63, %rdi\n"
				      "and $-64, %rdi\n"
				      "cmp $0x1000, %rdi\n"
				      "ja 2f\n"
				      "add %rdi, (%rdx)\n"
				      "2: ret\n" END("_Znam"));

/* operator delete[] keeps what it gets. */
__asm__(".p2align 4\n" BEGIN("_ZdaPv") "ret\n" END("_ZdaPv") "nop\n");
__asm__(BEGIN("_ZdaPvm") "ret\n" END("_ZdaPvm"));

/* Padding is behind this one. */
__asm__(".p2align 4\n" BEGIN("short_other") "ret\n" END("short_other") ".p2align 4\n");

#else

/* Other CPUs have one length of instructions. */
void operator delete(void *p) noexcept
{
	free(p);
}
void operator delete(void *p, size_t) noexcept
{
	free(p);
}

#endif

FN static void singles(void)
{
	for (int i = 0; i < 5; i++) {
		int *p = new int(i);

		keep(p);
		operator delete(p, sizeof(*p));
	}
	expect("allocs 5 20 singles");
}

FN static void arrays(void)
{
	for (int i = 0; i < 7; i++) {
		char *p = new char[100];

		keep(p);
		if (i < 4)
			delete[] p;
	}
	expect("allocs 7 700 arrays");
	expect("live 3 300 arrays");
}

/*
 * short: works at once. short wait: says "ready", works at SIGUSR1, and waits for its end. short run COMMAND: has the
 * shell run COMMAND, and ends with its status.
 */
int main(int argc, char **argv)
{
	sigset_t usr1;
	int sig;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	truth_begin();
	if (argc > 2)
		return WEXITSTATUS(system(argv[2]));
	if (argc > 1) {
		sigprocmask(SIG_BLOCK, &usr1, NULL);
		printf("ready\n");
		fflush(stdout);
		sigwait(&usr1, &sig);
	}
	singles();
	arrays();
	fflush(stdout);
	while (argc > 1)
		pause();
	return 0;
}
