/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Patterns of names become steps from bit to bit: one bit for each byte that a pattern wants. */
#include "user/source/chosen_names.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

enum { MAX_STATES = 64, PIECE_BYTES = 32 };

/* The length of "[...]" at @at; 0 = there is no end, so it is the byte '['. */
static size_t bracket_length(const char *at)
{
	size_t n = 1;

	n += at[n] == '!' || at[n] == '^';
	n += at[n] == ']';
	while (at[n] && at[n] != ']') {
		const char *end = at[n] == '[' && at[n + 1] == ':' ? strstr(at + n + 2, ":]") : NULL;

		n += at[n] == '\\' && at[n + 1] ? 1 : 0;
		n = end ? (size_t)(end - at) + 2 : n + 1;
	}
	return at[n] ? n + 1 : 0;
}

/* The length of the part of a pattern at @at that stands for one byte. */
static size_t piece_length(const char *at)
{
	size_t n = *at == '[' ? bracket_length(at) : 0;

	return n ? n : 1 + (size_t)(*at == '\\' && at[1]);
}

/* The bytes that the @len bytes at @piece stand for lead from @bit to the next one. */
static int chosen_names_add_step(struct chosen_names *out, u64 bit, const char *piece, size_t len)
{
	char text[PIECE_BYTES];

	if (len >= sizeof(text))
		return -E2BIG;
	memcpy(text, piece, len);
	text[len] = '\0';
	for (int c = 1; c < 256; c++) {
		const char name[2] = { (char)c };

		if (!fnmatch(text, name, 0))
			out->steps[c] |= bit;
	}
	return 0;
}

int chosen_names_make(struct chosen_names *out, const char *const *patterns)
{
	int state = 0, err = 0;

	*out = (struct chosen_names){ 0 };
	for (; *patterns && !err; patterns++, state++) {
		if (state < MAX_STATES)
			out->begins |= 1ULL << state;
		for (const char *at = *patterns; *at && !err;) {
			size_t len = piece_length(at);

			if (state >= MAX_STATES - 1)
				return -E2BIG;
			if (*at == '*')
				out->stays |= 1ULL << state;
			else
				err = chosen_names_add_step(out, 1ULL << state++, at, len);
			at += len;
		}
		if (state >= MAX_STATES)
			return -E2BIG;
		out->ends |= 1ULL << state;
	}
	return err;
}
