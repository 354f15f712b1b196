/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time to compile, cache and search the call frame information of the files given. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user/unwind/cfi.h"
#include "user/lib/elf.h"

static const char *const reasons[NR_CFI_REASONS] = {
	[CFI_CFA_REGISTER] = "CFA register",
	[CFI_CFA_EXPRESSION] = "CFA expression",
	[CFI_OFFSET_RANGE] = "range",
	[CFI_RA_RULE] = "return address",
	[CFI_SP_RULE] = "SP",
	[CFI_FP_RULE] = "FP",
	[CFI_BAD_PROGRAM] = "damaged",
};

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double find_ns(const struct cfi_table *t)
{
	enum { NR_FINDS = 1 << 20 };
	u32 sum = 0, x = 1, span = t->rows[t->nr_rows - 1].pc;
	double start = now_ms();

	for (int i = 0; i < NR_FINDS; i++) {
		x = x * 1664525 + 1013904223;
		sum += cfi_find(t, t->text_base + (u64)x * span / UINT32_MAX);
	}
	__asm__ volatile("" ::"r"(sum));
	return (now_ms() - start) * 1e6 / NR_FINDS;
}

/* From the cache, after it was put there. */
static double load_ms(struct elf *elf)
{
	double start = 0;

	for (int i = 0; i < 2; i++) {
		struct cfi_table *t;

		start = now_ms();
		if (cfi_load(&t, elf))
			return -1;
		if (i == 1 && !t->is_cached)
			start = now_ms() + 1;
		cfi_free(t);
	}
	return now_ms() - start;
}

static void bench(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	struct cfi_table *t = NULL;
	double start = now_ms(), ms;
	struct elf *elf = NULL;

	err = fd < 0 ? -errno : elf_open(&elf, fd);
	if (!err)
		err = cfi_build(&t, elf);
	ms = now_ms() - start;
	if (err) {
		printf("%s: %s\n", path, strerror(-err));
	} else {
		printf("%s\n  %9.2f ms to compile %u FDEs to %zu rows (%zu KiB), %.0f ns a search\n", path,
		       ms, t->stats.nr_fdes, t->nr_rows, t->nr_rows * sizeof(*t->rows) / 1024, find_ns(t));
		printf("  %9.2f ms from the cache (-1 = not kept)\n", load_ms(elf));
		for (int i = 0; i < NR_CFI_REASONS; i++)
			if (t->stats.unsupported[i])
				printf("  %9u times unsupported: %s\n", t->stats.unsupported[i], reasons[i]);
		printf("  bad %u, empty %u, outside %u, overlapping %u%s\n", t->stats.nr_bad_entries,
		       t->stats.nr_empty, t->stats.nr_outside, t->stats.nr_overlapping,
		       t->stats.is_cut ? ", cut" : "");
	}
	cfi_free(t);
	elf_close(elf);
	if (fd >= 0)
		close(fd);
}

/* The second load finds what the first one kept; XDG_CACHE_HOME says where. */
static void bench_cache(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	struct elf *elf = NULL;
	bool is_cached = false;

	err = fd < 0 ? -errno : elf_open(&elf, fd);
	for (int i = 0; i < 2 && !err; i++) {
		struct cfi_table *t = NULL;
		double start = now_ms();

		err = cfi_load(&t, elf);
		is_cached = !err && t->is_cached;
		if (is_cached)
			printf("  %9.2f ms to load from the cache\n", now_ms() - start);
		cfi_free(t);
	}
	if (err || !is_cached)
		printf("  not from the cache: %s\n", err ? strerror(-err) : "it does not keep this file");
	elf_close(elf);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		bench(argv[i]);
		bench_cache(argv[i]);
	}
	return argc < 2;
}
