/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies code of its own, with whatever a tracer has put into it, and runs the copy. remaps WHAT [wait]: "private" and
 * "shared" move such memory to where the C library's code was, as programs do that want large pages; "hook" runs the
 * first instructions of own_malloc() elsewhere, as libraries do that hook functions; "own" has a breakpoint of its own.
 * wait: for a byte on stdin first. "older" copies before that what it moves later.
 */
#include "tests/targets/truth.h"

#include <inttypes.h>
#include <stdint.h>
#include <sys/mman.h>

enum { NR_PAIRS = 1000, PAGE = 4096 };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* A family for --alloc. */
void *own_malloc(size_t size);
void own_free(void *p);

FN void own_free(void *p)
{
	free(p);
}

static void pairs(void *(*allocate)(size_t), void (*release)(void *))
{
	for (size_t i = 0; i < NR_PAIRS; i++) {
		void *p = allocate(i + 1);

		keep(p);
		release(p);
	}
}

/* Where the C library has its code. */
static int find_code(uintptr_t *start, size_t *len)
{
	static char text[1 << 14];
	FILE *maps = fopen("/proc/self/maps", "r");
	uintptr_t at, end;
	char line[512], how[8];
	int err = -1;

	if (!maps)
		fail("maps");
	setvbuf(maps, text, _IOFBF, sizeof(text));
	while (err && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &at, &end, how) != 3 || how[2] != 'x' ||
		    !strstr(line, "/libc"))
			continue;
		*start = at;
		*len = end - at;
		err = 0;
	}
	fclose(maps);
	return err;
}

static char *copy_range(uintptr_t start, size_t len, int sharing)
{
	char *copy = mmap(NULL, len, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		fail("mmap");
	memcpy(copy, (const void *)start, len);
	if (mprotect(copy, len, PROT_READ | PROT_EXEC))
		fail("mprotect");
	__builtin___clear_cache(copy, copy + len);
	return copy;
}

/* Move @copy to where the code is. The call returns to code that is the same as before. */
static void move_range(char *copy, uintptr_t start, size_t len)
{
	if (mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) == MAP_FAILED)
		fail("mremap");
}

/* A tracer may have split its mapping. Memory that was moved has no name of the library any more. */
static void move_code(int sharing)
{
	uintptr_t start;
	size_t len, nr = 0;

	for (; !find_code(&start, &len); nr++)
		move_range(copy_range(start, len, sharing), start, len);
	if (!nr)
		fail("no code of the C library");
}

#ifdef __x86_64__
#define TRAP "int3"

/* The first two instructions run anywhere. */
enum { HOOKED_BYTES = 8 };
__asm__(".globl own_malloc\n"
	".type own_malloc, %function\n"
	"own_malloc:\n"
	"lea 8(%rdi), %rdi\n"
	"lea -8(%rdi), %rdi\n"
	"nop\n"
	"jmp malloc@PLT\n"
	".size own_malloc, . - own_malloc\n");

static void hook(void)
{
	static const unsigned char jump[] = { 0xff, 0x25, 0, 0, 0, 0 }; /* jmp *0(%rip) */
	uintptr_t rest = (uintptr_t)own_malloc + HOOKED_BYTES;
	char *copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		fail("mmap");
	memcpy(copy, (const void *)(uintptr_t)own_malloc, HOOKED_BYTES);
	memcpy(copy + HOOKED_BYTES, jump, sizeof(jump));
	memcpy(copy + HOOKED_BYTES + sizeof(jump), &rest, sizeof(rest));
	if (mprotect(copy, PAGE, PROT_READ | PROT_EXEC))
		fail("mprotect");
	pairs((void *(*)(size_t))(uintptr_t)copy, own_free);
}
#else
#define TRAP "brk #0"

void *own_malloc(size_t size)
{
	return malloc(size);
}

static void hook(void)
{
	fail("hook: not on this CPU");
}
#endif

int main(int argc, char **argv)
{
	char byte, *older = NULL;
	uintptr_t start;
	size_t len;

	if (argc < 2)
		return 1;
	truth_begin();
	if (!strcmp(argv[1], "older") && !find_code(&start, &len))
		older = copy_range(start, len, MAP_PRIVATE);
	if (argc > 2 && read(0, &byte, 1) != 1)
		fail("stdin");
	if (!strcmp(argv[1], "own")) {
		__asm__ volatile(TRAP);
	} else if (!strcmp(argv[1], "hook")) {
		pairs(own_malloc, own_free);
		hook();
	} else {
		pairs(malloc, free);
		if (older)
			move_range(older, start, len);
		else
			move_code(!strcmp(argv[1], "shared") ? MAP_SHARED : MAP_PRIVATE);
	}
	pairs(malloc, free);
	return 0;
}
