/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses formats such as "4xg", and writes values in them. */
#include "user/console/print_format.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	char letter;
	u8 size;
} sizes[] = { { 'b', 1 }, { 'h', 2 }, { 'w', 4 }, { 'g', 8 } };

/* The size that @letter names, or 0. */
static u8 print_format_size_of(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (sizes[i].letter == letter)
			return sizes[i].size;
	return 0;
}

/* Letters that say by themselves how long a value is; a size next to them has another meaning or none. */
static int choose_size(struct print_format *f, u8 size, u8 word_size)
{
	switch (f->letter) {
	case 'a':
		f->size = word_size;
		return 0;
	case 'c':
	case 's':
		f->size = 1;
		return size > 1 ? -EINVAL : 0;
	case 'f':
		f->size = size ? size : 8;
		return f->size < 4 ? -EINVAL : 0;
	default:
		f->size = size ? size : 4;
		return 0;
	}
}

int print_format_parse(struct print_format *f, const char *text, u8 word_size)
{
	char *end = (char *)text;
	u8 size = 0;
	unsigned long count = 1;
	int err;

	*f = (struct print_format){ .letter = '\0' };
	if (isdigit((unsigned char)*text))
		count = strtoul(text, &end, 10);
	for (; *end; end++) {
		if (!size && print_format_size_of(*end))
			size = print_format_size_of(*end);
		else if (!f->letter && strchr("xzduotcafs", *end))
			f->letter = *end;
		else
			return -EINVAL;
	}
	if (!f->letter)
		f->letter = 'x';
	err = choose_size(f, size, word_size);
	if (err || !count)
		return -EINVAL;
	if (count > PRINT_MAX_BYTES / f->size)
		return -ERANGE;
	f->count = (u32)count;
	return 0;
}

u32 print_format_columns(const struct print_format *f)
{
	if (f->letter == 's' || f->letter == 'a')
		return 1;
	if (f->letter == 't' && f->size > 1)
		return 8 / f->size;
	return f->size <= 2 ? 8 : 16 / f->size;
}

u64 print_format_value(const struct print_format *f, const u8 *bytes)
{
	u16 half;
	u32 word;
	u64 giant;

	switch (f->size) {
	case 1:
		return *bytes;
	case 2:
		memcpy(&half, bytes, sizeof(half));
		return half;
	case 4:
		memcpy(&word, bytes, sizeof(word));
		return word;
	default:
		memcpy(&giant, bytes, sizeof(giant));
		return giant;
	}
}

static void write_bits(FILE *out, u64 value, u8 size)
{
	for (int bit = size * 8; bit-- > 0;)
		fputc(value >> bit & 1 ? '1' : '0', out);
}

static s64 sign_extend(u64 value, u8 size)
{
	u32 shift = 64 - size * 8;

	return (s64)(value << shift) >> shift;
}

static void write_float(FILE *out, const struct print_format *f, const u8 *bytes)
{
	float single;
	double both;

	if (f->size == 4) {
		memcpy(&single, bytes, sizeof(single));
		fprintf(out, "%.9g", (double)single);
		return;
	}
	memcpy(&both, bytes, sizeof(both));
	fprintf(out, "%.17g", both);
}

/* One letter in quotes, as gdb writes it: 65 'A', 10 '\n'. */
static void write_char(FILE *out, u8 c)
{
	static const char plain[] = "abtnvfr";

	fprintf(out, "%d ", (s8)c);
	if (c == '\'' || c == '\\')
		fprintf(out, "'\\%c'", c);
	else if (c >= 0x20 && c < 0x7f)
		fprintf(out, "'%c'", c);
	else if (c >= '\a' && c <= '\r')
		fprintf(out, "'\\%c'", plain[c - '\a']);
	else
		fprintf(out, "'\\%03o'", c);
}

void print_format_write(FILE *out, const struct print_format *f, const u8 *bytes)
{
	u64 value = print_format_value(f, bytes);

	switch (f->letter) {
	case 'd':
		fprintf(out, "%" PRId64, sign_extend(value, f->size));
		break;
	case 'u':
		fprintf(out, "%" PRIu64, value);
		break;
	case 'o':
		fprintf(out, "%#" PRIo64, value);
		break;
	case 't':
		write_bits(out, value, f->size);
		break;
	case 'f':
		write_float(out, f, bytes);
		break;
	case 'c':
		write_char(out, *bytes);
		break;
	case 'a':
		fprintf(out, "0x%" PRIx64, value);
		break;
	default:
		fprintf(out, "0x%0*" PRIx64, f->size * 2, value);
	}
}
