/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes linker names readable. */
#include "user/names/demangle.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "user/lib/cleanup.h"

enum { SYMBOL_MAX = 16 << 10 };

struct demangled {
	char *text;
	size_t len;
	jmp_buf full;
};

/* Leave the demangler when the name is long enough: a short symbol can expand to gigabytes. */
static void demangle_append(const char *text, size_t len, void *ctx)
{
	struct demangled *out = ctx;
	size_t room = DEMANGLE_MAX - 1 - out->len;

	memcpy(out->text + out->len, text, len < room ? len : room);
	out->len += len < room ? len : room;
	if (len > room)
		longjmp(out->full, 1); /* the demangler keeps all its state on the stack */
}

/* True if @suffix, which begins with a dot, marks a variant of a function that the compiler made. */
static bool is_clone(const char *suffix)
{
	static const char *const clones[] = {
		".isra.", ".part.",	 ".constprop.", ".cold",    ".lto_priv.",
		".llvm.", ".localalias", ".resume",	".destroy",
	};

	for (size_t i = 0; i < ARRAY_SIZE(clones); i++)
		if (strncmp(suffix, clones[i], strlen(clones[i])) == 0)
			return true;
	return false;
}

/* Length of @symbol without a symbol version and without the marks of clones. */
static size_t base_length(const char *symbol)
{
	size_t len = strcspn(symbol + 1, "@") + 1;

	for (size_t i = 1; i < len; i++)
		if (symbol[i] == '.' && is_clone(symbol + i))
			return i;
	return len;
}

/* The end of the argument that begins at @p: its closing bracket, or the comma behind it. */
static const char *end_of_argument(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		if (*p == '<' || *p == '(')
			depth++;
		else if ((*p == '>' || *p == ')') && depth-- == 0)
			break;
	}
	return p;
}

/* Drop each ", std::allocator<...>" that ends a list of template arguments: it is the default. */
static void drop_allocators(char *text)
{
	static const char start[] = ", std::allocator<";
	char *p = text;

	while ((p = strstr(p, start))) {
		char *end = p + (end_of_argument(p + sizeof(start) - 1) - p);

		if (end[0] == '>' && end[1] == ' ' && end[2] == '>')
			memmove(p, end + 2, strlen(end + 2) + 1);
		else
			p++;
	}
}

/* Replace the long name of std::string by the one that programmers know. */
static void shorten_strings(char *text)
{
	static const char start[] = "std::__cxx11::basic_string<char, std::char_traits<char>>";
	static const char name[] = "std::string";
	char *p = text;

	while ((p = strstr(p, start))) {
		const char *rest = p + sizeof(start) - 1;

		if (strncmp(rest, " >", 2) == 0)
			rest++;
		memcpy(p, name, sizeof(name) - 1);
		p += sizeof(name) - 1;
		memmove(p, rest, strlen(rest) + 1);
	}
}

enum {
	MAX_D_SYMBOL = 1024,
	MAX_D_STEPS = 1 << 20, /* characters that the library may read for one name of D: some milliseconds */
};

/* How far back the reference at @p leads: "Q" and a number in base 26, whose last digit is small. 0 if it is none. */
static size_t d_reference(const char *p)
{
	size_t n = 0;

	for (p++; *p >= 'A' && *p <= 'Z' && n < MAX_D_SYMBOL; p++)
		n = n * 26 + (size_t)(*p - 'A');
	return *p >= 'a' && *p <= 'z' ? n * 26 + (size_t)(*p - 'a') : 0;
}

/*
 * Can @symbol, a name of D of @len bytes, be read in few steps? A reference to a type reads that type again, with the
 * references in it, so each one could double the work. The library refuses a reference that it meets inside of
 * another one unless it stands before that one. A reference to a name, which begins with a digit, reads only the name.
 */
static bool d_is_short(const char *symbol, size_t len)
{
	u32 steps[MAX_D_SYMBOL + 1]; /* of all references before a place */
	u32 more;

	steps[0] = 0;
	for (size_t i = 0; i < len; i++) {
		size_t back = symbol[i] == 'Q' ? d_reference(symbol + i) : 0;

		more = back && back <= i ? (u32)len : 0;
		/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): @back is at most @i. */
		if (more && (symbol[i - back] < '0' || symbol[i - back] > '9'))
			more += steps[i] - steps[i - back];
		steps[i + 1] = steps[i] + more;
		if (steps[i + 1] > MAX_D_STEPS)
			return false;
	}
	return true;
}

/* A name of D, which the library returns as a whole. */
static bool spell_out_d(char *text, const char *symbol)
{
	auto_free char *name = NULL;
	size_t len = strlen(symbol);

	if (strncmp(symbol, "_D", 2) != 0 || len > MAX_D_SYMBOL || !d_is_short(symbol, len))
		return false;
	name = dlang_demangle(symbol, DMGL_DLANG);
	if (!name)
		return false;
	len = strlen(name);
	memcpy(text, name, len < DEMANGLE_MAX ? len + 1 : DEMANGLE_MAX - 4);
	if (len >= DEMANGLE_MAX)
		strcpy(text + DEMANGLE_MAX - 4, "...");
	return true;
}

/*
 * A thunk of D, by which a method of an interface is called: "_DTi", how far the object begins before the interface,
 * and the symbol of the method. The library does not know it. @text is as GNU c++filt shows such thunks of C++.
 */
static bool spell_out_d_thunk(char *text, const char *symbol)
{
	static const char start[] = "_DTi", said[] = "non-virtual thunk to ";
	char method[DEMANGLE_MAX];
	const char *p = symbol + sizeof(start) - 1;

	if (strncmp(symbol, start, sizeof(start) - 1) != 0)
		return false;
	p += strspn(p, "0123456789");
	if (!spell_out_d(method, p))
		return false;
	snprintf(text, DEMANGLE_MAX, "%s%.*s", said, (int)(DEMANGLE_MAX - sizeof(said)), method);
	return true;
}

/* True if @symbol is a name of C++, Rust or D. */
static bool spell_out(char *text, const char *symbol)
{
	enum { OPTIONS = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP };
	struct demangled out = { .text = text };

	if (spell_out_d(text, symbol) || spell_out_d_thunk(text, symbol))
		return true;
	if (strncmp(symbol, "_Z", 2) != 0 && strncmp(symbol, "_R", 2) != 0 && strncmp(symbol, "__Z", 3) != 0)
		return false;
	if (setjmp(out.full)) {
		strcpy(text + DEMANGLE_MAX - 4, "...");
		return true;
	}
	if (!rust_demangle_callback(symbol, OPTIONS, demangle_append, &out)) {
		out.len = 0;
		if (!cplus_demangle_v3_callback(symbol, OPTIONS, demangle_append, &out))
			return false;
	}
	text[out.len] = '\0';
	return out.len > 0;
}

void demangle(char buf[DEMANGLE_MAX], const char *symbol)
{
	char base[SYMBOL_MAX];
	size_t len = *symbol ? base_length(symbol) : 0;

	if (len < sizeof(base)) {
		memcpy(base, symbol, len);
		base[len] = '\0';
		if (spell_out(buf, base)) {
			drop_allocators(buf);
			shorten_strings(buf);
			return;
		}
	}
	if (len >= DEMANGLE_MAX) {
		memcpy(buf, symbol, DEMANGLE_MAX - 4);
		strcpy(buf + DEMANGLE_MAX - 4, "...");
		return;
	}
	memcpy(buf, symbol, len);
	buf[len] = '\0';
}
