/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaves allocator calls by longjmp and siglongjmp; the calls after that must be counted as ever. */
#include "tests/targets/truth.h"

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <new>

enum { NR_ROUNDS = 50 };

static jmp_buf out;
static sigjmp_buf out_of_fault;

static void jump()
{
	longjmp(out, 1);
}

static void on_fault(int)
{
	siglongjmp(out_of_fault, 1);
}

FN static void *request(size_t size)
{
	void *p = malloc(size);

	keep(p);
	return p;
}

/* Allocate with @levels more frames on the stack than the call that was left. */
FN static void *deeper(int levels, size_t size)
{
	char room[200] = { 0 };
	void *p;

	__asm__ volatile("" : : "r"(room) : "memory");
	p = levels ? deeper(levels - 1, size) : request(size);
	keep(p);
	return p;
}

/* operator new fails, its handler jumps out: the call never returns. */
FN static void from_new_handler()
{
	volatile size_t huge = SIZE_MAX / 2 - 100;

	if (setjmp(out))
		return;
	if (::operator new(huge, std::align_val_t(64)))
		abort();
}

/* The result cannot be stored: SIGSEGV inside posix_memalign. */
FN static void from_fault()
{
	void **volatile nowhere = (void **)64;

	if (sigsetjmp(out_of_fault, 1))
		return;
	if (posix_memalign((void **)nowhere, 64, 100) == 0)
		abort();
}

int main()
{
	struct sigaction sa = {};

	truth_begin();
	sa.sa_handler = on_fault;
	sigaction(SIGSEGV, &sa, nullptr);
	std::set_new_handler(jump);
	for (int i = 0; i < NR_ROUNDS; i++) {
		from_new_handler();
		free(deeper(i % 5, 32));
		deeper(i % 7, 16);
		from_fault();
		free(request(24));
		deeper(i % 3, 8);
	}
	expect("live %d %d request", NR_ROUNDS * 2, NR_ROUNDS * 24);
	expect("allocs %d %d request", NR_ROUNDS * 4, NR_ROUNDS * 80);
	expect("calls free %d", NR_ROUNDS * 2);
	expect("unknown 0");
	return 0;
}
