/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as people read them. */
#include "user/lib/human.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EXACT_BELOW = 10000 }; /* bytes */

struct human human_count(u64 n)
{
	struct human h;
	char digits[24];
	char *out = h.text;
	size_t len = snprintf(digits, sizeof(digits), "%" PRIu64, n);

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
	return h;
}

struct human human_bytes(u64 bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	struct human h;
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes < EXACT_BELOW) {
		h = human_count(bytes);
		strcat(h.text, " B");
		return h;
	}
	/* 1023.95 would be printed as 1024.0 */
	while (value >= 1023.95 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(h.text, sizeof(h.text), value < 9.995 ? "%.2f %s" : "%.1f %s", value, units[unit]);
	return h;
}

struct human human_bytes_exact(u64 bytes)
{
	struct human h = human_bytes(bytes);

	if (bytes >= EXACT_BELOW) {
		strcat(h.text, " (");
		strcat(h.text, human_count(bytes).text);
		strcat(h.text, " B)");
	}
	return h;
}

struct human human_change(s64 bytes)
{
	struct human h = human_bytes(bytes < 0 ? 0 - (u64)bytes : (u64)bytes);

	memmove(h.text + 1, h.text, strlen(h.text) + 1);
	h.text[0] = bytes < 0 ? '-' : '+';
	return h;
}

struct human_lost human_lost(const char *mark, u64 bytes, u64 blocks, u64 more_bytes, u64 more_blocks)
{
	struct human_lost h;
	int n = snprintf(h.text, sizeof(h.text), "%s%s in %s%s block%s", mark, human_bytes(bytes).text, mark,
			 human_count(blocks).text, blocks == 1 ? "" : "s");

	if (more_blocks)
		snprintf(h.text + n, sizeof(h.text) - (size_t)n, ", and with %s %s%s in %s%s",
			 blocks == 1 ? "it" : "them", mark, human_bytes(more_bytes).text, mark,
			 human_count(more_blocks).text);
	return h;
}

struct human human_duration(u64 ns)
{
	struct human h;
	u64 s = ns / 1000000000;

	if (ns < 1000)
		snprintf(h.text, sizeof(h.text), "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(h.text, sizeof(h.text), "%" PRIu64 " us", ns / 1000);
	else if (ns < 1000000000)
		snprintf(h.text, sizeof(h.text), "%" PRIu64 " ms", ns / 1000000);
	else if (s < 60)
		snprintf(h.text, sizeof(h.text), "%" PRIu64 ".%" PRIu64 " s", s, ns / 100000000 % 10);
	else if (s < 3600)
		snprintf(h.text, sizeof(h.text), "%" PRIu64 "m %02" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(h.text, sizeof(h.text), "%" PRIu64 "h %02" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(h.text, sizeof(h.text), "%" PRIu64 "d %02" PRIu64 "h", s / 86400, s / 3600 % 24);
	return h;
}

struct human human_percent(u64 part, u64 whole)
{
	struct human h;
	double percent = whole ? 100.0 * (double)part / (double)whole : 0;

	if (!whole || !part)
		strcpy(h.text, "0 %");
	else if (part == whole)
		strcpy(h.text, "100 %");
	else if (percent < 0.05)
		strcpy(h.text, "<0.1 %");
	else if (part < whole && percent > 99.9)
		strcpy(h.text, "99.9 %");
	else
		snprintf(h.text, sizeof(h.text), "%.1f %%", percent);
	return h;
}
