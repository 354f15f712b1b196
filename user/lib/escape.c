/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes text from a target safe for terminals and JSON. */
#include "user/lib/escape.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT_MAX = 4 /* bytes that one byte becomes */ };

/* Length of the valid UTF-8 sequence at @s, 0 if invalid (overlong, surrogate, beyond U+10FFFF). */
static size_t utf8_len(const u8 *s)
{
	u32 cp;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4 || (s[1] & 0xc0) != 0x80)
		return 0;
	if (s[0] < 0xe0)
		return 2;
	if ((s[2] & 0xc0) != 0x80)
		return 0;
	if (s[0] < 0xf0) {
		cp = (u32)(s[0] & 15) << 12 | (u32)(s[1] & 63) << 6 | (s[2] & 63);
		return cp < 0x800 || (cp >= 0xd800 && cp <= 0xdfff) ? 0 : 3;
	}
	if ((s[3] & 0xc0) != 0x80)
		return 0;
	cp = (u32)(s[0] & 7) << 18 | (u32)(s[1] & 63) << 12 | (u32)(s[2] & 63) << 6 | (s[3] & 63);
	return cp < 0x10000 || cp > 0x10ffff ? 0 : 4;
}

/* The character of the valid UTF-8 sequence of @len bytes, at most 3, at @s; 0 for longer ones. */
static u32 escape_character(const u8 *s, size_t len)
{
	if (len == 2)
		return (u32)(s[0] & 31) << 6 | (s[1] & 63);
	return len == 3 ? (u32)(s[0] & 15) << 12 | (u32)(s[1] & 63) << 6 | (s[2] & 63) : 0;
}

/*
 * Invisible characters that change how the text around them is shown: C1 controls, marks and overrides of the
 * direction of writing (Unicode's Bidi_Control), separators of lines and paragraphs, characters without width.
 */
static bool is_invisible_control(const u8 *s, size_t len)
{
	static const struct {
		u32 first, last;
	} ranges[] = { { 0x80, 0x9f },	   { 0x61c, 0x61c },   { 0x200b, 0x200f },
		       { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff } };
	u32 c = escape_character(s, len);

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* True if the @len bytes at @s are visible text, and no control sequence. */
static bool is_printable(const u8 *s, size_t len)
{
	if (len == 1)
		return s[0] >= 0x20 && s[0] != 0x7f && s[0] != '\\';
	return len != 0 && !is_invisible_control(s, len);
}

/* Write the first unit of @s, escaped if need be, to @out (at most 8 bytes). Returns the bytes of @s used. */
static size_t escape_unit(const u8 *s, char out[8])
{
	size_t len = utf8_len(s);

	if (is_printable(s, len)) {
		memcpy(out, s, len);
		out[len] = '\0';
		return len;
	}
	if (*s == '\\')
		strcpy(out, "\\\\");
	else
		snprintf(out, 8, "\\x%02x", *s);
	return 1;
}

void escape_text(FILE *out, const char *text)
{
	char unit[8];

	for (const u8 *s = (const u8 *)text; *s;) {
		s += escape_unit(s, unit);
		fputs(unit, out);
	}
}

void escape_pattern(FILE *out, const char *text)
{
	const u8 *s = (const u8 *)text;

	while (*s) {
		size_t len = utf8_len(s);

		if (*s != '\\' && !is_printable(s, len)) {
			putc('?', out);
			s++;
			continue;
		}
		fwrite(s, 1, len, out);
		s += len;
	}
}

void escape_text_and(FILE *out, const char *text, char also)
{
	char unit[8];

	for (const u8 *s = (const u8 *)text; *s;) {
		if (*s == (u8)also) {
			fprintf(out, "\\x%02x", *s++);
			continue;
		}
		s += escape_unit(s, unit);
		fputs(unit, out);
	}
}

char *escape_buf(char *buf, size_t size, const char *text)
{
	char unit[8];
	size_t used = 0;

	for (const u8 *s = (const u8 *)text; *s;) {
		s += escape_unit(s, unit);
		if (used + strlen(unit) + 1 > size)
			break;
		memcpy(buf + used, unit, strlen(unit));
		used += strlen(unit);
	}
	if (size)
		buf[used] = '\0';
	return buf;
}

char *escape_new(const char *text)
{
	size_t size = UNIT_MAX * strlen(text) + 1;
	char *escaped = malloc(size);
	char *fitting;

	if (!escaped)
		return NULL;
	escape_buf(escaped, size, text);
	fitting = realloc(escaped, strlen(escaped) + 1);
	return fitting ? fitting : escaped;
}

/* The number of bytes at @s that need no escape in JSON, and are not @special. Most bytes need none. */
static size_t plain_len(const u8 *s, u8 special)
{
	size_t n = 0;

	while (s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\' && s[n] != special)
		n++;
	return n;
}

/* Write the character of @len bytes at @s, 0 = invalid, which plain_len() stopped at. */
static void write_character(FILE *out, const u8 *s, size_t len, u8 special)
{
	if (!len)
		fputs("\\ufffd", out);
	else if (*s == '"' || *s == '\\')
		fprintf(out, "\\%c", *s);
	else if (*s < 0x20 || *s == 0x7f || *s == special)
		fprintf(out, "\\u%04x", *s);
	else if (is_invisible_control(s, len))
		fprintf(out, "\\u%04x", escape_character(s, len));
	else
		fwrite(s, 1, len, out);
}

/* Write @text as a JSON string. @special: a character that is escaped too; '"' adds none. */
static void escape_write_json(FILE *out, const char *text, u8 special)
{
	putc('"', out);
	for (const u8 *s = (const u8 *)text; *s;) {
		size_t plain = plain_len(s, special);
		size_t len = plain ? plain : utf8_len(s);

		if (plain)
			fwrite(s, 1, plain, out);
		else
			write_character(out, s, len, special);
		s += len ? len : 1;
	}
	putc('"', out);
}

void escape_json(FILE *out, const char *text)
{
	escape_write_json(out, text, '"');
}

void escape_script(FILE *out, const char *text)
{
	escape_write_json(out, text, '<');
}

void escape_csv(FILE *out, const char *text)
{
	char unit[8];

	putc('"', out);
	if (*text && strchr("=+-@", *text))
		putc('\'', out);
	for (const u8 *s = (const u8 *)text; *s;) {
		s += escape_unit(s, unit);
		fputs(*unit == '"' ? "\"\"" : unit, out);
	}
	putc('"', out);
}
