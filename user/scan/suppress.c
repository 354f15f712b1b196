/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Match rules with stacks, and write rules. user/scan/suppress_parse.c reads rules. */
#include "user/scan/suppress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/escape.h"
#include "user/scan/suppress_rule.h"

enum { MAX_WRITTEN = 24 }; /* frames; Valgrind reads no more of a rule */

int suppress_new(struct suppress_list **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void suppress_rule_fini(struct suppress_rule *rule)
{
	for (size_t i = 0; i < rule->nr_frames; i++)
		free(rule->frames[i].pattern);
	free(rule->frames);
	if (rule->has_regex)
		regfree(&rule->regex);
}

void suppress_free(struct suppress_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->nr; i++)
		suppress_rule_fini(&list->rules[i]);
	free(list->rules);
	free(list);
}

size_t suppress_count(const struct suppress_list *list)
{
	return list->nr;
}

/* Match all of @text with @pattern, which has * and ?. Retries only from the last *, so the time is bounded. */
static bool match_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			retry = text;
		} else if (*pattern && (*pattern == '?' || *pattern == *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* The pattern of LeakSanitizer is a glob already: make_glob(). */
static bool match_text(const struct suppress_rule *rule, const char *text)
{
	if (!text)
		return false;
	if (rule->kind == RULE_IGNORE)
		return regexec(&rule->regex, text, 0, NULL, 0) == 0;
	return match_glob(rule->frames[0].pattern, text);
}

/* True if the rule matches any name of any frame. */
static bool match_anywhere(const struct suppress_rule *rule, const struct suppress_frame *frames, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (match_text(rule, frames[i].function) || match_text(rule, frames[i].linkage) ||
		    match_text(rule, frames[i].file) || match_text(rule, frames[i].object))
			return true;
	return false;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static bool match_frame(const struct suppress_pattern *p, const struct suppress_frame *frame)
{
	switch (p->kind) {
	case FRAME_FUNCTION:
		return match_glob(p->pattern, or_empty(frame->function)) ||
		       (frame->linkage && match_glob(p->pattern, frame->linkage));
	case FRAME_OBJECT:
		return match_glob(p->pattern, or_empty(frame->object));
	case FRAME_SOURCE:
		return match_glob(p->pattern, or_empty(frame->file));
	default:
		return true;
	}
}

/* Match the frames of the rule with the beginning of the stack. "..." is any number of frames. See match_glob(). */
static bool match_stack(const struct suppress_rule *rule, const struct suppress_frame *frames, size_t nr)
{
	size_t p = 0, at = 0, star = SIZE_MAX, retry = 0;

	while (p < rule->nr_frames) {
		if (rule->frames[p].kind == FRAME_ANY) {
			star = p++;
			retry = at;
		} else if (at < nr && match_frame(&rule->frames[p], &frames[at])) {
			p++;
			at++;
		} else if (star != SIZE_MAX && retry < nr) {
			p = star + 1;
			at = ++retry;
		} else {
			return false;
		}
	}
	return true;
}

int suppress_match(const struct suppress_list *list, enum scan_verdict verdict,
		   const struct suppress_frame *frames, size_t nr)
{
	for (size_t i = 0; i < list->nr; i++) {
		const struct suppress_rule *rule = &list->rules[i];

		if (!(rule->kinds & SUPPRESS_KIND(verdict)))
			continue;
		if (rule->kind == RULE_STACK ? match_stack(rule, frames, nr)
					     : match_anywhere(rule, frames, nr))
			return (int)i;
	}
	return -1;
}

/* Write @text as a line. A byte that is no text, or would end the line, becomes ?, which matches any byte. */
static void suppress_put_line(FILE *out, const char *key, const char *text)
{
	fprintf(out, "   %s", key);
	escape_pattern(out, text);
	putc('\n', out);
}

int suppress_write(FILE *out, const char *name, enum scan_verdict verdict,
		   const struct suppress_frame *frames, size_t nr)
{
	fputs("{\n", out);
	suppress_put_line(out, "", *name ? name : "leak");
	fputs("   Memcheck:Leak\n", out);
	if (verdict >= SCAN_REACHABLE && verdict <= SCAN_INDIRECT)
		fprintf(out, "   match-leak-kinds: %s\n", scan_verdict_name(verdict));
	for (size_t i = 0; i < nr && i < MAX_WRITTEN; i++) {
		const struct suppress_frame *frame = &frames[i];

		if (frame->linkage || frame->function)
			suppress_put_line(out, "fun:", frame->linkage ? frame->linkage : frame->function);
		else
			suppress_put_line(out, "obj:", frame->object ? frame->object : "*");
	}
	fputs("}\n", out);
	return ferror(out) ? -EIO : 0;
}
