/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the kernel about the time stamp counter. */
#include "user/inject/counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inline/cpu.h"
#include "user/lib/cleanup.h"

/* Is @word one of the words of @line? */
static bool has_word(const char *line, const char *word)
{
	static const char between[] = " \t\n";

	for (const char *at = line; *at; at += strcspn(at, between)) {
		at += strspn(at, between);
		if (strcspn(at, between) == strlen(word) && !strncmp(at, word, strlen(word)))
			return true;
	}
	return false;
}

/* Has the first line of the file at @path that begins with @key all these words? */
static bool line_has(const char *path, const char *key, const char *word, const char *other)
{
	auto_fclose FILE *f = fopen(path, "re");
	auto_free char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0)
		if (!strncmp(line, key, strlen(key)))
			return has_word(line, word) && has_word(line, other);
	return false;
}

bool counter_is_reliable(const char *clocksource, const char *cpuinfo)
{
	return line_has(clocksource, "", "tsc", "tsc") &&
	       line_has(cpuinfo, "flags", "constant_tsc", "nonstop_tsc");
}

u64 counter_rounds(u64 ns)
{
	enum { NR_TRIES = 5, NR_ROUNDS = 1024 };
	u64 least_ns = UINT64_MAX;

	for (u32 i = 0; i < NR_TRIES; i++) {
		u64 begin_ns = clock_now_ns(), took_ns;

		for (u32 round = 0; round < NR_ROUNDS; round++)
			relax_round();
		took_ns = clock_now_ns() - begin_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	return ns * NR_ROUNDS / (least_ns + 1);
}
