/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In place of musl's function, which is 9 KiB larger: floating point there has all digits and forms. The others of its
 * family call this one. It knows what heaptap's messages use: flags 0 and -, width, precision, and the conversions
 * d u x X c s p f %. Doubles have at most 3 digits behind the point and are below 2^53.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct spec {
	bool is_left, has_zeros;
	int width, precision; /* -1 = none */
	int longs;	      /* letters l in front of the conversion */
};

struct sink {
	FILE *file;
	size_t nr;
	bool has_failed;
};

static void put(struct sink *s, const char *text, size_t len)
{
	s->nr += len;
	s->has_failed |= len && fwrite(text, 1, len, s->file) != len;
}

static void pad(struct sink *s, char c, int nr)
{
	while (nr-- > 0)
		put(s, &c, 1);
}

/* @sign is at most two characters: a minus, or 0x. */
static void put_field(struct sink *s, const struct spec *p, const char *sign, const char *text, size_t len)
{
	int rest = p->width - (int)(strlen(sign) + len);

	if (!p->is_left && !p->has_zeros)
		pad(s, ' ', rest);
	put(s, sign, strlen(sign));
	if (!p->is_left && p->has_zeros)
		pad(s, '0', rest);
	put(s, text, len);
	if (p->is_left)
		pad(s, ' ', rest);
}

/* The digits of @value end before @end. Returns where they begin. */
static char *digits(char *end, uint64_t value, unsigned int base, bool has_capitals)
{
	do {
		*--end = (has_capitals ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
		value /= base;
	} while (value);
	return end;
}

static void put_number(struct sink *s, struct spec *p, const char *sign, uint64_t value, unsigned int base,
		       bool has_capitals)
{
	char room[40];
	char *end = room + sizeof(room), *begin = digits(end, value, base, has_capitals);

	if (p->precision >= 0) {
		p->has_zeros = false;
		while (end - begin < p->precision && begin > room)
			*--begin = '0';
	}
	put_field(s, p, sign, begin, (size_t)(end - begin));
}

/*
 * @value times @times, at most 1000, as a whole number: exactly rounded, and a half to the even one, as musl does. A
 * double is a whole number of 53 bits and a power of two, here a negative one.
 */
static uint64_t scale(double value, uint64_t times)
{
	uint64_t bits, number, half;
	unsigned int shift;

	memcpy(&bits, &value, sizeof(bits));
	shift = 1075 - (bits >> 52 & 2047);
	number = ((bits & ((1ULL << 52) - 1)) | 1ULL << 52) * times;
	if (!shift)
		return number;
	if (shift > 63)
		return 0;
	half = 1ULL << (shift - 1);
	if ((number & (2 * half - 1)) == half)
		half -= !(number >> shift & 1);
	return (number + half) >> shift;
}

static void put_double(struct sink *s, const struct spec *p, double value)
{
	static const uint16_t powers[] = { 1, 10, 100, 1000 };
	char room[48];
	char *end = room + sizeof(room), *begin, *point;
	int places = p->precision < 0 || p->precision > 3 ? 3 : p->precision;

	begin = digits(end, scale(value, powers[places]), 10, false);
	while (end - begin <= places)
		*--begin = '0';
	point = end - places - 1;
	if (places) {
		memmove(begin - 1, begin, (size_t)(point + 1 - begin));
		begin--;
		*point = '.';
	}
	put_field(s, p, value < 0 ? "-" : "", begin, (size_t)(end - begin));
}

static int64_t take_signed(const struct spec *p, va_list *ap)
{
	if (p->longs > 1)
		return va_arg(*ap, long long);
	return p->longs ? va_arg(*ap, long) : va_arg(*ap, int);
}

static uint64_t take_unsigned(const struct spec *p, va_list *ap)
{
	if (p->longs > 1)
		return va_arg(*ap, unsigned long long);
	return p->longs ? va_arg(*ap, unsigned long) : va_arg(*ap, unsigned int);
}

static void put_text(struct sink *s, struct spec *p, const char *text)
{
	size_t len;

	if (!text)
		text = "(null)";
	len = p->precision < 0 ? strlen(text) : strnlen(text, (size_t)p->precision);
	p->has_zeros = false;
	put_field(s, p, "", text, len);
}

static void convert(struct sink *s, struct spec *p, char kind, va_list *ap)
{
	int64_t number;
	char c;

	switch (kind) {
	case 'd':
		number = take_signed(p, ap);
		put_number(s, p, number < 0 ? "-" : "", number < 0 ? -(uint64_t)number : (uint64_t)number, 10,
			   false);
		break;
	case 'u':
		put_number(s, p, "", take_unsigned(p, ap), 10, false);
		break;
	case 'x':
	case 'X':
		put_number(s, p, "", take_unsigned(p, ap), 16, kind == 'X');
		break;
	case 'p':
		put_number(s, p, "0x", (uintptr_t)va_arg(*ap, void *), 16, false);
		break;
	case 'f':
		put_double(s, p, va_arg(*ap, double));
		break;
	case 's':
		put_text(s, p, va_arg(*ap, const char *));
		break;
	default: /* c, and %% */
		c = kind == 'c' ? (char)va_arg(*ap, int) : kind;
		put_field(s, p, "", &c, 1);
	}
}

static int take_int(const char **at, va_list *ap)
{
	int n = 0;

	if (**at == '*') {
		++*at;
		return va_arg(*ap, int);
	}
	for (; **at >= '0' && **at <= '9'; ++*at)
		n = n * 10 + (**at - '0');
	return n;
}

/* @at is behind the percent sign, and comes behind the conversion. */
static void take_spec(struct sink *s, const char **at, va_list *ap)
{
	struct spec p = { .precision = -1 };

	for (; **at == '-' || **at == '0'; ++*at) {
		p.is_left |= **at == '-';
		p.has_zeros |= **at == '0';
	}
	p.width = take_int(at, ap);
	if (p.width < 0) {
		p.is_left = true;
		p.width = -p.width;
	}
	if (**at == '.') {
		++*at;
		p.precision = take_int(at, ap);
	}
	for (; **at && strchr("hljzt", **at); ++*at)
		p.longs += **at == 'j' ? 2 : **at != 'h';
	if (**at)
		convert(s, &p, *(*at)++, ap);
}

int vfprintf(FILE *restrict file, const char *restrict text, va_list list)
{
	struct sink s = { .file = file };
	const char *fmt = text;
	va_list ap;

	va_copy(ap, list);
	while (*fmt) {
		size_t len = strcspn(fmt, "%");

		put(&s, fmt, len);
		fmt += len;
		if (*fmt && fmt++)
			take_spec(&s, &fmt, &ap);
	}
	va_end(ap);
	return s.has_failed ? -1 : (int)s.nr;
}
