/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps 1 TiB ("huge") or 64 TiB ("vast") and touches few pages of it, or registers memory with userfaultfd that nobody
 * ever fills ("uffd"); loses and keeps blocks, says so, and waits for a line on stdin ("wait" as a second argument) or
 * ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/targets/truth.h"

enum { NR_PAGES = 64, PAGE = 4096 };

#define HUGE_BYTES (1UL << 40)
#define VAST_BYTES (64UL << 40)

FN static char *bigmap_block(void)
{
	return malloc(120);
}

FN static void bigmap_loses(void)
{
	for (int i = 0; i < 7; i++) {
		char *p = malloc(130);

		keep(p);
	}
}

/* Pages far from each other, each with the only pointer to a block. */
static int map_huge(unsigned long bytes)
{
	char *base =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return -1;
	for (unsigned long i = 0; i < NR_PAGES; i++)
		*(char **)(base + i * (bytes / NR_PAGES) + 2048) = bigmap_block();
	return 0;
}

/* One page is there before nobody fills the rest; it holds a pointer. */
static int map_unfilled(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	char *base = mmap(NULL, NR_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || base == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return -1;
	*(char **)(base + 40) = bigmap_block();
	reg.range.start = (unsigned long)base;
	reg.range.len = NR_PAGES * PAGE;
	return ioctl(fd, UFFDIO_REGISTER, &reg);
}

int main(int argc, char **argv)
{
	int is_vast = argc > 1 && !strcmp(argv[1], "vast"), err;
	int is_huge = is_vast || (argc > 1 && !strcmp(argv[1], "huge"));
	char c;

	truth_begin();
	if (argc > 2) {
		puts("ready");
		fflush(stdout);
		while (read(0, &c, 1) == 1 && c != '\n')
			;
	}
	err = is_huge ? map_huge(is_vast ? VAST_BYTES : HUGE_BYTES) : map_unfilled();
	if (err) {
		printf("impossible: %s\n", strerror(errno));
		fflush(stdout);
		_exit(77);
	}
	bigmap_loses();
	scrub();
	expect("reachable %d %d bigmap_block", is_huge ? NR_PAGES : 1, 120 * (is_huge ? NR_PAGES : 1));
	expect("definite 7 910 bigmap_loses");
	puts("built");
	fflush(stdout);
	if (argc > 2)
		while (read(0, &c, 1) == 1 && c != '\n')
			;
	_exit(0);
}
