/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as people read them. */
#pragma once

#include "user/lib/types.h"

/* Returned by value, so that human_bytes(n).text can be an argument of printf. */
struct human {
	char text[64];
};

/* "9,216 B", "12.4 KiB", "1.50 GiB": exact below 10,000. */
struct human human_bytes(u64 bytes);

/* "9,216 B", "12.4 KiB (12,698 B)" */
struct human human_bytes_exact(u64 bytes);

/* "+9,216 B", "-12.4 KiB" */
struct human human_change(s64 bytes);

/* "1,203,112" */
struct human human_count(u64 n);

/* "1,442 B in 10 blocks", and what only they lead to: ", and with them 848 B in 13". @mark is before each number. */
struct human_lost {
	char text[192];
};
struct human_lost human_lost(const char *mark, u64 bytes, u64 blocks, u64 more_bytes, u64 more_blocks);

/* "350 us", "12.3 s", "4m 02s", "3d 04h" */
struct human human_duration(u64 ns);

/* "12.3 %" of @whole; "0 %" if @whole is 0. "100 %" and "0 %" only for exact values. */
struct human human_percent(u64 part, u64 whole);
