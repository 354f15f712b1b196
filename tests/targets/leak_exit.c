/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers that the frames of exit() cover when the program ends: "return" from main, "exit" and "abort" behind a call
 * that kept pointers on its stack, "handler": exit() in a function that exit() calls. Blocks that a caller of exit()
 * holds on its stack or in a register are reachable.
 */
#include "tests/targets/truth.h"

enum { NR_SLOTS = 60, SIZE = 40 };

struct slots {
	void *volatile p[NR_SLOTS];
};

FN static void *lost_block(void)
{
	return malloc(SIZE);
}

FN static void *held_block(void)
{
	return malloc(SIZE + 8);
}

FN static void *in_register(void)
{
	return malloc(SIZE + 16);
}

FN static void fill(struct slots *slots)
{
	for (int i = 0; i < NR_SLOTS; i++)
		slots->p[i] = lost_block();
}

/* The slots end with this frame, and the next call covers them. */
FN static void leave_pointers(void)
{
	struct slots slots;

	fill(&slots);
}

FN static void end(const char *how)
{
	if (!strcmp(how, "abort"))
		abort();
	exit(0);
}

/* The function that ends the program is called with two blocks in use: one on the stack, one in a register. */
FN static void hold_and_end(const char *how)
{
	void *volatile on_stack = held_block();
#ifdef __x86_64__
	register void *p __asm__("r12") = in_register();
#else
	register void *p __asm__("esi") = in_register();
#endif

	__asm__ volatile("" : "+r"(p));
	leave_pointers();
	end(how);
	__asm__ volatile("" : : "r"(p), "r"(on_stack));
}

FN static void handler(void)
{
	hold_and_end("exit");
}

static void expectations(int is_held)
{
	expect("definite %d %d lost_block", NR_SLOTS, NR_SLOTS * SIZE);
	if (is_held) {
		expect("reachable 1 %d held_block", SIZE + 8);
		expect("reachable 1 %d in_register", SIZE + 16);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	struct slots slots = { { NULL } };

	truth_begin();
	expectations(strcmp(how, "return"));
	if (!strcmp(how, "return")) {
		fill(&slots);
		return 0;
	}
	if (!strcmp(how, "handler"))
		atexit(handler);
	else
		hold_and_end(how);
	exit(0);
}
