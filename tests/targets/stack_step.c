/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps through instructions of its own, of the C library and of the vDSO, allocates in the signal handler after
 * each, and tells its call chains: every rule of what it passes is walked by, inside prologues and epilogues too.
 */
#include <signal.h>
#include <time.h>
#include <ucontext.h>

#include "tests/targets/stack_truth.h"

#ifdef __x86_64__
extern const char t_leaf[], t_leaf_end[];
void t_leaf_called(void);

__asm__(".text\n.type t_leaf, @function\nt_leaf:\nt_leaf_called:\n.cfi_startproc\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbp, -16\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -24\n"
	"mov $-1, %rbp\nmov %rsp, %rbx\n"
	"sub $0x12340, %rsp\n.cfi_adjust_cfa_offset 0x12340\n"
	"add $0x12340, %rsp\n.cfi_adjust_cfa_offset -0x12340\n"
	"lea 8(%rsp), %rbp\n.cfi_def_cfa rbp, 16\n"
	"sub $1000, %rsp\n"
	"and $-256, %rsp\n"
	"lea -8(%rbp), %rsp\n.cfi_def_cfa rsp, 24\n"
	"pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\n"
	"pop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbp\n"
	"ret\n.cfi_endproc\nt_leaf_end:\n.size t_leaf, . - t_leaf\n");

/* The trap flag. */
#define SET_FLAG(name, change)                                                                               \
	__asm__(".text\n.type " name ", @function\n" name ":\n.cfi_startproc\n"                              \
		"pushf\n.cfi_adjust_cfa_offset 8\n" change "\npopf\n.cfi_adjust_cfa_offset -8\nret\n"        \
		".cfi_endproc\n.size " name ", . - " name "\n")

SET_FLAG("step_on", "orq $0x100, (%rsp)");
SET_FLAG("step_off", "andq $~0x100, (%rsp)");
void step_on(void);
void step_off(void);

FN static void t_allocates(size_t bytes)
{
	ENTER();
	ALLOCATE(bytes);
	LEAVE();
}

FN static void t_after_step(int sig, siginfo_t *info, void *context)
{
	uintptr_t pc = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	unsigned nr = shadow->nr;

	(void)sig;
	(void)info;
	if (pc >= (uintptr_t)t_leaf && pc < (uintptr_t)t_leaf_end)
		shadow_push("t_leaf");
	shadow_push("*");
	ENTER();
	t_allocates(1);
	shadow->nr = nr;
}

FN static void t_stepped(void)
{
	time_t now;
	char text[64];

	step_on();
	t_leaf_called();
	/* Of the vDSO. clock_gettime() begins again at each tick of the clock, and steps may take longer than that. */
	now = time(NULL);
	keep(now);
	memset(text, 'x', 63);
	text[63] = 0;
	keep(*text);
	strtol("12345", NULL, 10);
	keep((char *){ strchr(text, 'x') });
	step_off();
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = t_after_step, .sa_flags = SA_SIGINFO };
	time_t now;

	chains_begin();
	/* The dynamic linker has found them before. */
	now = time(NULL);
	free(malloc(1));
	keep(now);
	sigaction(SIGTRAP, &action, NULL);
	ENTER();
	shadow_push("t_stepped");
	for (int i = 0; i < 3; i++)
		t_stepped();
	chains_print();
	return 0;
}
#else
int main(void)
{
	puts("skip: single steps are for x86_64");
	return 0;
}
#endif
