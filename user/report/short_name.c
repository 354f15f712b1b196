/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shortens names of functions: parameters first, then template arguments from the inside out, then the end. */
#include "user/report/short_name.h"

#include <stdio.h>
#include <string.h>

#include "user/lib/escape.h"

/* A longer name is only cut. */
enum { MAX_NAME = 4096 };

static const char dots[] = "...";

/* Is @name[@i] a < or > of an operator, such as operator<< and operator->, or of an arrow? */
static bool short_name_is_operator(const char *name, size_t i)
{
	static const char word[] = "operator";
	const size_t len = sizeof(word) - 1;
	size_t begin = i;

	if (name[i] == '>' && i && name[i - 1] == '-')
		return true;
	while (begin && strchr("<>=-", name[begin - 1]))
		begin--;
	return begin >= len && !strncmp(name + begin - len, word, len);
}

/* Copy @name with "<...>" in place of template arguments below @depth others. False: brackets do not match. */
static bool drop_templates(char *out, const char *name, u32 depth)
{
	size_t used = 0;
	u32 open = 0;

	for (size_t i = 0; name[i] && used < MAX_NAME - sizeof(dots); i++) {
		bool is_bracket = strchr("<>", name[i]) && !short_name_is_operator(name, i);

		if (is_bracket && name[i] == '>' && !open--)
			return false;
		if (open <= depth)
			out[used++] = name[i];
		if (is_bracket && name[i] == '<' && open++ == depth) {
			memcpy(out + used, dots, sizeof(dots) - 1);
			used += sizeof(dots) - 1;
		}
	}
	out[used] = '\0';
	return !open;
}

/* The '(' that belongs to the ')' at @end; @end if there is none. */
static size_t find_open(const char *name, size_t end)
{
	u32 open = 0;

	for (size_t i = end + 1; i-- > 0;) {
		open += name[i] == ')';
		if (name[i] == '(' && !--open)
			return i;
	}
	return end;
}

/* The '(' of the parameters of the function, and their ')' in *@end. NULL: none, as in (anonymous namespace). */
static char *find_parameters(char *name, char **end)
{
	static const char word[] = "operator";
	const size_t len = sizeof(word) - 1;
	size_t begin;

	*end = strrchr(name, ')');
	begin = *end ? find_open(name, (size_t)(*end - name)) : 0;
	if (!begin || strchr(": ", name[begin - 1]) ||
	    (begin >= len && !strncmp(name + begin - len, word, len)))
		return NULL;
	/* Behind the parameters there are only qualifiers, or a mark such as [clone .cold]. */
	if (!strchr(" &[", (*end)[1]) || strstr(*end, "::"))
		return NULL;
	return name + begin;
}

/* Put "..." in place of the parameters of the function. */
static void drop_parameters(char *name)
{
	char *end, *list = find_parameters(name, &end);

	if (!list || end - list <= (ptrdiff_t)sizeof(dots))
		return;
	memcpy(list + 1, dots, sizeof(dots) - 1);
	memmove(list + sizeof(dots), end, strlen(end) + 1);
}

char *bare_name(char *buf, size_t size, const char *name, size_t width)
{
	char bare[MAX_NAME], *end, *list;

	snprintf(bare, sizeof(bare), "%s", name);
	list = find_parameters(bare, &end);
	if (list)
		*list = '\0';
	return short_name(buf, size, bare, width);
}

char *short_name(char *buf, size_t size, const char *name, size_t width)
{
	char whole[MAX_NAME], shown[MAX_NAME];
	size_t len = strlen(name);

	snprintf(whole, sizeof(whole), "%s", name);
	snprintf(shown, sizeof(shown), "%s", name);
	if (len > width && len < sizeof(whole)) {
		drop_parameters(whole);
		snprintf(shown, sizeof(shown), "%s", whole);
		for (u32 depth = 3; strlen(shown) > width && depth-- > 0;)
			if (!drop_templates(shown, whole, depth))
				snprintf(shown, sizeof(shown), "%s", whole);
	}
	if (strlen(shown) >= size && size > sizeof(dots))
		memcpy(shown + size - sizeof(dots), dots, sizeof(dots));
	return escape_buf(buf, size, shown);
}

/* Behind the outermost scope of @name; NULL: it has none. */
static const char *behind_scope(const char *name)
{
	u32 open = 0;

	for (size_t i = 0; name[i]; i++) {
		if (strchr("(<", name[i]) && !(name[i] == '<' && short_name_is_operator(name, i)))
			open++;
		else if (open && strchr(")>", name[i]) &&
			 !(name[i] == '>' && short_name_is_operator(name, i)))
			open--;
		else if (!open && name[i] == ':' && name[i + 1] == ':' && name[i + 2])
			return name + i + 2;
	}
	return NULL;
}

char *fit_place(char *buf, size_t size, const char *place, size_t width)
{
	char text[MAX_NAME], name[MAX_NAME];
	const char *begin = name, *file = "", *next;
	size_t len, room;
	char *at;

	snprintf(text, sizeof(text), "%s", place);
	at = text[0] && text[strlen(text) - 1] == ')' ? strrchr(text, '(') : NULL;
	if (at > text && at[-1] == ' ') {
		file = place + (at - text) - 1;
		at[-1] = '\0';
	}
	len = strlen(file);
	bare_name(name, sizeof(name), text, width > len ? width - len : 0);
	while (strlen(begin) + len > width && (next = behind_scope(begin)))
		begin = next;
	if (strlen(begin) + len > width)
		file = "", len = 0;
	room = width > sizeof(dots) ? width - (sizeof(dots) - 1) : 0;
	if (strlen(begin) > width && room)
		snprintf(buf, size, "%.*s%s%s", (int)(room / 2), begin, dots,
			 begin + strlen(begin) - (room - room / 2));
	else
		snprintf(buf, size, "%s%s", begin, file);
	return buf;
}

char *clean_path(char *to, const char *path)
{
	char *end = to, *first = to; /* first: behind what ".." cannot leave out */

	if (*path == '/')
		*end++ = '/', first = end;
	for (size_t n; *path; path += n) {
		bool is_up;

		n = strcspn(path, "/");
		is_up = n == 2 && !strncmp(path, "..", 2);
		if (is_up && end > first) {
			for (end--; end > first && end[-1] != '/';)
				end--;
		} else if (n && !(n == 1 && *path == '.')) {
			memcpy(end, path, n);
			end += n;
			*end++ = '/';
			if (is_up)
				first = end;
		}
		n += strspn(path + n, "/");
	}
	if (end - to > 1)
		end--;
	*end = '\0';
	return to;
}
