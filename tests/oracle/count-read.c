/* SPDX-License-Identifier: GPL-2.0-or-later */
/* count-read FILE [OLDER]: the oracle's page as JSON; with OLDER (a copy of the file) what came since. */
#include "tests/oracle/count.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const names[][2] = {
#define NAME(id, symbol, name) { symbol, name },
	COUNT_FUNCTIONS(NAME)
#undef NAME
};

static int read_page(const char *path, struct count_page *page)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f) {
		perror(path);
		return -1;
	}
	n = fread(page, sizeof(*page), 1, f);
	fclose(f);
	if (n == 1 && page->magic == COUNT_MAGIC)
		return 0;
	fprintf(stderr, "count-read: %s: not a page of count.so (of this word size)\n", path);
	return -1;
}

static void print_functions(const char *key, const uint64_t *now, const uint64_t *before)
{
	const char *comma = "";

	printf("  \"%s\": {", key);
	for (int i = 0; i < NR_COUNT_FNS; i++) {
		if (now[i] == before[i])
			continue;
		printf("%s\"%s\": %" PRIu64, comma, names[i][1], now[i] - before[i]);
		comma = ", ";
	}
	printf("},\n");
}

static uint64_t sum(const uint64_t *v)
{
	uint64_t all = 0;

	for (int i = 0; i < NR_COUNT_FNS; i++)
		all += v[i];
	return all;
}

/* "symbol<TAB>name as in reports", for tests that know symbols */
static int print_names(void)
{
	for (int i = 0; i < NR_COUNT_FNS; i++)
		printf("%s\t%s\n", names[i][0], names[i][1]);
	return 0;
}

int main(int argc, char **argv)
{
	static struct count_page now, before;

	if (argc == 2 && !strcmp(argv[1], "--names"))
		return print_names();
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: count-read FILE [OLDER] | --names\n");
		return 2;
	}
	if (read_page(argv[1], &now) || (argc == 3 && read_page(argv[2], &before)))
		return 1;
	printf("{ \"pid\": %" PRIu64 ",\n", now.pid);
	print_functions("functions", now.calls, before.calls);
	print_functions("failed", now.failed, before.failed);
	print_functions("bytes", now.bytes, before.bytes);
	printf("  \"totals\": { \"allocs\": %" PRIu64 ", \"frees\": %" PRIu64 ", \"alloc_bytes\": %" PRIu64,
	       now.allocs - before.allocs, now.frees - before.frees, sum(now.bytes) - sum(before.bytes));
	printf(", \"live_blocks\": %" PRIu64 ", \"live_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64,
	       now.live_blocks, now.live_bytes, now.peak_bytes);
	printf(", \"unknown_frees\": %" PRIu64 ", \"failed_allocs\": %" PRIu64 " },\n",
	       now.unknown_frees - before.unknown_frees, sum(now.failed) - sum(before.failed));
	printf("  \"untracked\": %" PRIu64 " }\n", now.untracked);
	return 0;
}
