/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers, sizes and durations as people type them. */
#include "user/lib/parse.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	u64 scale;
};

static const struct unit sizes[] = {
	{ "", 1 },	     { "b", 1 },
	{ "k", 1ULL << 10 }, { "kib", 1ULL << 10 },
	{ "m", 1ULL << 20 }, { "mib", 1ULL << 20 },
	{ "g", 1ULL << 30 }, { "gib", 1ULL << 30 },
	{ "t", 1ULL << 40 }, { "tib", 1ULL << 40 },
};

static const struct unit durations[] = {
	{ "", 1000000000 },
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", 1000000000 },
	{ "m", 60 * 1000000000ULL },
	{ "h", 3600 * 1000000000ULL },
	{ "d", 86400 * 1000000000ULL },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The value of a digit of numbers up to base 16; 16 for other characters. */
static u32 parse_digit(char c)
{
	u32 letter = (u32)(c | 0x20) - 'a';

	return is_digit(c) ? (u32)(c - '0') : letter < 6 ? letter + 10 : 16;
}

/* Parse the digits at *@text, and move it behind them. */
static int take_digits(const char **text, u32 base, u64 *out)
{
	const char *s = *text;
	u64 value = 0;
	u32 digit;

	for (; (digit = parse_digit(*s)) < base; s++)
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return -ERANGE;
	if (s == *text)
		return -EINVAL;
	*text = s;
	*out = value;
	return 0;
}

/* All of @text is digits. */
static int parse_digits(const char *text, u32 base, u64 *out)
{
	u64 value;
	int err = take_digits(&text, base, &value);

	if (!err && *text)
		err = -EINVAL;
	if (!err)
		*out = value;
	return err;
}

/* Parse a fraction such as ".25" at *@text. 0 if there is no fraction. */
static int take_fraction(const char **text, double *out)
{
	const char *s = *text;
	double weight = 0.1;

	*out = 0;
	if (*s != '.')
		return 0;
	if (!is_digit(*++s))
		return -EINVAL;
	for (; is_digit(*s); s++, weight /= 10)
		*out += (*s - '0') * weight;
	*text = s;
	return 0;
}

static int parse_scaled(const char *text, const struct unit *units, size_t nr, u64 *out)
{
	const char *s = text;
	double fraction;
	u64 value;
	int err;

	err = take_digits(&s, 10, &value);
	if (err)
		return err;
	err = take_fraction(&s, &fraction);
	if (err)
		return err;
	for (const struct unit *u = units; u < units + nr; u++) {
		if (strcasecmp(s, u->name))
			continue;
		if (__builtin_mul_overflow(value, u->scale, &value) ||
		    __builtin_add_overflow(value, (u64)(fraction * (double)u->scale + 0.5), &value))
			return -ERANGE;
		*out = value;
		return 0;
	}
	return -EINVAL;
}

int parse_u64(const char *text, u64 *out)
{
	return parse_digits(text, 10, out);
}

int parse_hex(const char *text, u64 *out)
{
	return strncmp(text, "0x", 2) ? -EINVAL : parse_digits(text + 2, 16, out);
}

int parse_number(const char *text, u64 *out)
{
	if (*text != '0')
		return parse_u64(text, out);
	return (text[1] | 0x20) == 'x' ? parse_digits(text + 2, 16, out) : parse_digits(text, 8, out);
}

int parse_percent(const char *text, u32 *out)
{
	u64 whole, tenths = 0;

	if (take_digits(&text, 10, &whole))
		return -EINVAL;
	if (*text == '.') {
		if (!is_digit(text[1]))
			return -EINVAL;
		tenths = text[1] - '0';
		text += 2;
	}
	if (strcmp(text, "%"))
		return -EINVAL;
	if (whole > UINT32_MAX / 10 - 1)
		return -ERANGE;
	*out = whole * 10 + tenths;
	return 0;
}

int parse_size(const char *text, u64 *bytes)
{
	return parse_scaled(text, sizes, ARRAY_SIZE(sizes), bytes);
}

int parse_duration(const char *text, u64 *ns)
{
	u64 sum = 0, part, last = UINT64_MAX;
	char piece[64];
	size_t len;
	int err;

	/* Pairs of a number and a unit, the largest unit first. A single number needs no unit. */
	do {
		len = strspn(text, "0123456789.");
		len += strcspn(text + len, "0123456789.");
		if (len >= sizeof(piece))
			return -EINVAL;
		memcpy(piece, text, len);
		piece[len] = '\0';
		text += len;
		err = parse_scaled(piece, durations, ARRAY_SIZE(durations), &part);
		if (err)
			return err;
		if (part >= last || (sum && is_digit(piece[len - 1])))
			return -EINVAL;
		last = part;
		if (__builtin_add_overflow(sum, part, &sum))
			return -ERANGE;
	} while (*text);
	*ns = sum;
	return 0;
}

enum { NEAREST_MAX_LEN = 32 };

/* The number of letters to add, drop or change that makes @b of @a. Both are shorter than NEAREST_MAX_LEN. */
static size_t parse_distance(const char *a, const char *b)
{
	size_t row[NEAREST_MAX_LEN + 1];
	size_t len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 1; j <= len; j++) {
			size_t best = diagonal + (a[i] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[len];
}

const char *parse_nearest(const char *text, const char *const *names, size_t nr)
{
	const char *nearest = NULL;
	size_t best = (strlen(text) + 2) / 3 + 1;

	if (strlen(text) >= NEAREST_MAX_LEN)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		size_t d;

		if (!names[i] || strlen(names[i]) >= NEAREST_MAX_LEN)
			continue;
		d = parse_distance(text, names[i]);
		if (d < best) {
			best = d;
			nearest = names[i];
		}
	}
	return nearest;
}
