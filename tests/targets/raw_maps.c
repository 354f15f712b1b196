/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory from the kernel without a function of the C library for it; for --mmap. */
#include "tests/targets/truth.h"

#include <sys/mman.h>
#include <sys/syscall.h>

static size_t page;

/* As a program does that has no C library. */
FN static char *raw_map(size_t bytes)
{
#ifdef __x86_64__
	register long flags __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS, fd __asm__("r8") = -1,
			    offset __asm__("r9") = 0;
	long at;

	__asm__ volatile("syscall"
			 : "=a"(at)
			 : "a"(SYS_mmap), "D"(0L), "S"(bytes), "d"(3L), "r"(flags), "r"(fd), "r"(offset)
			 : "rcx", "r11", "memory");
	return (char *)at;
#else
	return (char *)syscall(SYS_mmap, 0, bytes, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#endif
}

FN static void whole(void)
{
	syscall(SYS_munmap, raw_map(4 * page), 4 * page);
	expect("bytes 0 whole");
}

FN static void middle(void)
{
	syscall(SYS_munmap, raw_map(5 * page) + 2 * page, page);
	expect("bytes %zu middle", 4 * page);
}

FN static void remapped(void)
{
	char *p = (char *)syscall(SYS_mremap, raw_map(4 * page), 4 * page, 16 * page, MREMAP_MAYMOVE);

	syscall(SYS_mremap, p, 16 * page, 6 * page, 0);
	expect("bytes %zu remapped", 6 * page);
}

FN static void by_library(void)
{
	if (mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		abort();
	expect("bytes %zu by_library", 3 * page);
}

/* The data grows by 40 pages, and 10 of them go back. */
FN static void data(void)
{
	char *now = (char *)syscall(SYS_brk, 0), *end = now + 40 * page;

	if ((char *)syscall(SYS_brk, end) != end)
		abort();
	syscall(SYS_brk, end - 10 * page);
	expect("bytes %zu data", 30 * page);
}

FN static void by_sbrk(void)
{
	if (sbrk(7 * (long)page) == (void *)-1)
		abort();
	expect("bytes %zu by_sbrk", 7 * page);
}

/* The allocator maps these, and moves and unmaps them: they are no mappings of the program. */
FN static void allocator(void)
{
	char *p = malloc(1000000), *q = malloc(3000000);

	keep(p);
	p = realloc(p, 5000000);
	keep(p);
	free(p);
	keep(q);
	expect("bytes 3000000 allocator");
}

FN static void failing(void)
{
	if ((long)raw_map((size_t)1 << (sizeof(size_t) * 8 - 2)) >= 0)
		abort();
	expect("bytes 0 failing");
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	truth_begin();
	whole();
	middle();
	remapped();
	by_library();
	data();
	by_sbrk();
	allocator();
	failing();
	return 0;
}
