/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The versions of mimalloc, as their sources have them. */
#include "user/scan/mimalloc_layout.h"

enum {
	SEGMENT = 4 << 20, /* version 1 */
	MAX_PREFIXED = 1024,
	MAX_TRIPLED = 64,
	MAX_SINGLE = 512,
};

static const struct mimalloc_segment_layout segment_182 = { false, 4, 11, 12, 13, 14, 16, 17, 8 },
					    segment_184 = { false, 4, 11, 12, 13, 15, 16, 17, 10 },
					    segment_189 = { false, 4, 12, 13, 14, 18, 19, 20, 10 },
					    slices_206 = { true, 41, 45, 42, 40, 39, 43, 46, 10 },
					    slices_207 = { true, 28, 31, 29, 27, 26, 30, 33, 10 },
					    slices_214 = { true, 28, 31, 29, 27, 26, 30, 33, 12 },
					    slices_219 = { true, 31, 34, 32, 28, 27, 33, 36, 12 };

const struct mimalloc_layout mimalloc_layouts[NR_MIMALLOC_LAYOUTS] = {
	{ "2.0.6", &slices_206, 1, 49, 2, 4, 5, 3, 32, 3, 1, 16, 128, 0, 6, START_PREFIX, 2840 },
	{ "2.0.7", &slices_207, 1, 49, 2, 4, 5, 3, 32, 3, 1, 16, 128, 0, 6, START_PREFIX, 2840 },
	{ "2.0.9", &slices_207, 1, 49, 2, 4, 5, 3, 32, 3, 1, 16, 384, 0, 6, START_PREFIX, 2840 },
	{ "2.1.0 to 2.1.2", &slices_207, 1, 49, 2, 4, 5, 3, 32, 3, 1, 16, 0, 0, 6, START_TRIPLE, 2840 },
	{ "2.1.4 to 2.1.7", &slices_214, 1, 49, 2, 3, 7, 5, 0, 4, 1, 16, 6, 0, 8, START_AT, 8 },
	{ "2.1.9 to 2.4", &slices_219, 1, 49, 2, 3, 7, 5, 0, 4, 1, 16, 6, 0, 8, START_AT, 8 },
	{ "3.0 to 3.3", NULL, 0, 1, 1, 3, 4, 5, 0, 2, 2, 16, 6, 12, 0, START_AT, 0 },
	{ "3.4", NULL, 0, 1, 1, 3, 4, 5, 0, 2, 2, 16, 6, 11, 0, START_WORDS, 0 },
	{ "since 3.4", NULL, 0, 1, 1, 3, 7, 4, 0, 2, 6, 0, 5, 12, 0, START_BYTES, 0 },
	{ "since 3.4", NULL, 1, 1, 2, 4, 8, 5, 0, 3, 7, 0, 6, 13, 0, START_BYTES, 0 },
	{ "1.9", &segment_189, 0, 49, 1, 2, 6, 4, 0, 3, 0, 16, 5, 0, 7, START_AT, 8 },
	{ "1.8", &segment_184, 0, 49, 1, 2, 6, 4, 0, 3, 0, 16, 5, 0, 7, START_AT, 8 },
	{ "1.8", &segment_182, 0, 49, 1, 3, 4, 2, 32, 2, 0, 16, 0, 0, 5, START_MULTIPLE, 2840 },
};

taddr_t mimalloc_first(const struct mimalloc_layout *l, const u64 *words, taddr_t books, taddr_t start,
		       u64 slot)
{
	switch (l->how) {
	case START_AT:
		return words[l->start];
	case START_WORDS:
		return books + (u64)(u32)words[l->start] * 8;
	case START_BYTES:
		return start + words[l->start];
	case START_MULTIPLE:
		/* Only the first page of a segment, behind the books, begins elsewhere. */
		return start % MIMALLOC_SLICE && slot && slot <= SEGMENT / 32
			       ? (start + slot - 1) / slot * slot
			       : start;
	case START_PREFIX:
		return start + (slot >= 8 && slot <= MAX_PREFIXED ? l->start : 0);
	default:
		return start + (slot <= MAX_TRIPLED ? 3 * slot : slot <= MAX_SINGLE ? slot : 0);
	}
}
