/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes functions into anonymous memory as a just-in-time compiler does, some with frame pointers; says "ready";
 * lets them allocate when it is answered. late: it writes them when it is answered, first one and then another, which
 * allocates until it is answered again.
 */
#include <poll.h>
#include <sys/mman.h>

#include "tests/targets/stack_truth.h"

enum { CODE_BYTES = 4096, ROUNDS = 50 };

FN void *t_allocates(size_t bytes)
{
	void *block;

	ENTER();
	block = malloc(note(bytes));
	keep(block);
	LEAVE();
	return block;
}

#ifdef __x86_64__
typedef void *function(size_t bytes, void *callee);

/* Each is { return callee(bytes); }. This one keeps a frame pointer: push %rbp; mov %rsp, %rbp; call *%rsi; ... */
static const uint8_t keeping[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3 };
/* This one leaves the register alone. */
static const uint8_t plain[] = { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd6, 0x48, 0x83, 0xc4, 0x08, 0xc3 };
/* The frame pointer holds a number. */
static const uint8_t counting[] = { 0x55, 0xbd, 0x07, 0, 0, 0, 0xff, 0xd6, 0x5d, 0xc3 };

/*
 * And here it is set after the stack pointer was rounded down, next to a copy of the return address: lea 8(%rsp), %r10;
 * and $-64, %rsp; push -8(%r10); push %rbp; mov %rsp, %rbp; push %r10; sub $8, %rsp; call *%rsi; mov -8(%rbp), %r10;
 * leave; lea -8(%r10), %rsp; ret.
 */
static const uint8_t realigning[] = { 0x4c, 0x8d, 0x54, 0x24, 8,    0x48, 0x83, 0xe4, 0xc0, 0x41, 0xff, 0x72,
				      0xf8, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x52, 0x48, 0x83, 0xec, 8,	0xff,
				      0xd6, 0x4c, 0x8b, 0x55, 0xf8, 0xc9, 0x49, 0x8d, 0x62, 0xf8, 0xc3 };

static uint8_t *code_end;

static function *compile(const uint8_t *code, size_t size)
{
	uint8_t *start = code_end;

	memcpy(start, code, size);
	code_end += (size + 15) & ~15UL;
	return (function *)(uintptr_t)start;
}

static void wait_for_answer(void)
{
	char c;

	puts("ready");
	fflush(stdout);
	if (read(0, &c, 1) < 0)
		abort();
}

/* @end: of the stacks of what @f calls. */
FN static void t_calls(function *f, void *callee, const char *end)
{
	static struct shadow shadows[4];
	static unsigned nr;
	struct shadow *outer = shadow;

	shadow = &shadows[nr++ % 4];
	*shadow = (struct shadow){ .outside = OUTSIDE_MAIN, .end = end };
	if (strcmp(end, "no-unwind-info")) {
		shadow_push("main");
		ENTER();
		shadow_push("*");
	}
	free(callee == (void *)malloc ? f(note(40), callee) : f(50, callee));
	shadow = outer;
}

/* A function without a frame pointer finds the frame pointer of this function: the stack leaves this function out. */
__attribute__((optimize("no-omit-frame-pointer"))) FN static void t_is_left_out(function *f)
{
	void *volatile block = f(note(60), (void *)malloc);

	free(block);
}

/* { return f(bytes, callee); }, with a frame full of zeros: what is taken for its return address is none. */
void *t_zeros(size_t bytes, void *callee, function *f);
__asm__(".text\n.type t_zeros, @function\nt_zeros:\n.cfi_startproc\n"
	"mov $11, %ecx\n"
	"1: push $0\n.cfi_adjust_cfa_offset 8\ndec %ecx\njne 1b\n"
	".cfi_adjust_cfa_offset 80\ncall *%rdx\n"
	"add $88, %rsp\n.cfi_adjust_cfa_offset -88\nret\n"
	".cfi_endproc\n.size t_zeros, . - t_zeros\n");

static void realign(function *f)
{
	static struct shadow s = { .end = "no-unwind-info" };

	shadow = &s;
	s.nr = 0;
	shadow_push("t_zeros");
	shadow_push("*");
	free(t_zeros(note(90), (void *)malloc, f));
	shadow = NULL;
}

FN static void t_outside(function *f)
{
	static struct shadow s = { .outside = OUTSIDE_MAIN, .end = "frame-pointers" };

	shadow = &s;
	s.nr = 0;
	shadow_push("main");
	ENTER();
	shadow_push("*");
	t_is_left_out(f);
	shadow = NULL;
}

static function *inner;

FN static void *t_between(size_t bytes)
{
	void *block;

	ENTER();
	shadow_push("*");
	block = inner(note(bytes), (void *)malloc);
	keep(block);
	shadow_pop();
	LEAVE();
	return block;
}

FN static void t_goes_on(function *f)
{
	struct pollfd answer = { .fd = 0, .events = POLLIN };

	do
		free(f(80, (void *)malloc));
	while (!poll(&answer, 1, 1));
}

static void write_late(void)
{
	wait_for_answer();
	for (int i = 0; i < 2; i++) {
		code_end = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (code_end == MAP_FAILED)
			abort();
		inner = compile(keeping, sizeof(keeping));
		if (mprotect((void *)inner, CODE_BYTES, PROT_READ | PROT_EXEC))
			abort();
		if (i)
			t_goes_on(inner);
		else
			free(inner(80, (void *)malloc));
	}
}

int main(int argc, char **argv)
{
	uint8_t *code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	function *keeper, *none, *counter, *realigner;

	(void)argv;
	chains_begin();
	if (code == MAP_FAILED)
		abort();
	if (argc > 1) {
		write_late();
		return 0;
	}
	code_end = code;
	keeper = inner = compile(keeping, sizeof(keeping));
	none = compile(plain, sizeof(plain));
	counter = compile(counting, sizeof(counting));
	realigner = compile(realigning, sizeof(realigning));
	if (mprotect(code, CODE_BYTES, PROT_READ | PROT_EXEC))
		abort();
	wait_for_answer();
	for (int i = 0; i < ROUNDS; i++) {
		t_calls(keeper, (void *)malloc, "frame-pointers");
		t_calls(keeper, (void *)t_allocates, "frame-pointers");
		t_calls(keeper, (void *)t_between, "frame-pointers");
		t_calls(counter, (void *)t_allocates, "no-unwind-info");
		realign(realigner);
		t_outside(none);
	}
	shadow = NULL;
	shadow_push("main");
	t_allocates(70);
	chains_print();
	return 0;
}
#else
int main(void)
{
	return t_allocates(1) == NULL;
}
#endif
