/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Read files of suppressions, line by line, into rules. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/scan/suppress_rule.h"

enum {
	MAX_BYTES = 1 << 20,
	MAX_RULES = 10000,
	MAX_LINE = 4096,
	MAX_REPEATS = 8,  /* in an expression */
	MAX_FRAMES = 128, /* of one rule */
};

/* The text that is being read. */
struct suppress_parser {
	struct suppress_list *list;
	const char *name; /* for messages */
	const char *at, *end;
	size_t nr_line;
	char line[MAX_LINE]; /* the current one, without spaces at its ends */
	bool is_in_block;
	size_t block_line;
	struct suppress_rule rule; /* of the present block */
	size_t nr_block_lines;	   /* since the opening brace */
	bool is_for_others;	   /* the block is for another tool or another error: do not keep it */
};

static int suppress_parse_complain(const struct suppress_parser *p, size_t line, const char *what,
				   const char *which)
{
	error("suppressions: %s:%zu: %s%s%s", p->name, line, what, which ? ": " : "", which ? which : "");
	return -EINVAL;
}

/* Read the next line into p->line. 1; 0 at the end; -EINVAL. */
static int suppress_parse_next_line(struct suppress_parser *p)
{
	const char *stop, *next;

	if (p->at == p->end)
		return 0;
	p->nr_line++;
	next = stop = memchr(p->at, '\n', (size_t)(p->end - p->at));
	if (!stop)
		next = stop = p->end;
	else
		next++;
	while (p->at < stop && isspace((unsigned char)*p->at))
		p->at++;
	while (stop > p->at && isspace((unsigned char)stop[-1]))
		stop--;
	if (stop - p->at >= MAX_LINE)
		return suppress_parse_complain(p, p->nr_line, "line too long", NULL);
	if (memchr(p->at, '\0', (size_t)(stop - p->at)))
		return suppress_parse_complain(p, p->nr_line, "not a text file", NULL);
	memcpy(p->line, p->at, (size_t)(stop - p->at));
	p->line[stop - p->at] = '\0';
	p->at = next;
	return 1;
}

/* Add @rule to the list, which then owns its contents. On an error the caller still owns them. */
static int add_rule(struct suppress_list *list, const struct suppress_rule *rule)
{
	int err;

	if (list->nr == MAX_RULES)
		return -E2BIG;
	err = array_reserve(list->rules, list->max, list->nr + 1);
	if (!err)
		list->rules[list->nr++] = *rule;
	return err;
}

static int suppress_parse_keep(struct suppress_parser *p, struct suppress_rule *rule)
{
	int err = add_rule(p->list, rule);

	if (err)
		suppress_rule_fini(rule);
	memset(rule, 0, sizeof(*rule));
	return err == -E2BIG ? suppress_parse_complain(p, p->nr_line, "more than 10000 rules", NULL) : err;
}

static int add_pattern(struct suppress_rule *rule, enum frame_kind kind, const char *pattern)
{
	char *copy = pattern ? strdup(pattern) : NULL;

	if ((pattern && !copy) || array_extend(rule->frames, rule->nr_frames)) {
		free(copy);
		return -ENOMEM;
	}
	rule->frames[rule->nr_frames++] = (struct suppress_pattern){ .kind = kind, .pattern = copy };
	return 0;
}

/* Write a pattern of LeakSanitizer as a glob: for a part of the text, unless ^ or $ tie it to an end. */
static void make_glob(char *glob, const char *pattern)
{
	size_t len = strlen(pattern);
	bool at_start = pattern[0] == '^', at_end = len > at_start && pattern[len - 1] == '$';

	if (!at_start)
		*glob++ = '*';
	memcpy(glob, pattern + at_start, len - at_start - at_end);
	glob += len - at_start - at_end;
	if (!at_end)
		*glob++ = '*';
	*glob = '\0';
}

static int parse_leak(struct suppress_parser *p, const char *pattern)
{
	struct suppress_rule rule = { .kind = RULE_ANYWHERE, .kinds = SUPPRESS_ALL };
	char glob[MAX_LINE + 2];
	int err;

	if (!*pattern)
		return suppress_parse_complain(p, p->nr_line, "no pattern", p->line);
	make_glob(glob, pattern);
	err = add_pattern(&rule, FRAME_FUNCTION, glob);
	if (err) {
		suppress_rule_fini(&rule);
		return err;
	}
	return suppress_parse_keep(p, &rule);
}

/*
 * False for an expression for which the C library would need too much time or memory. Each + and {n,m} makes copies of
 * the part that it repeats, and back references make the search exponential.
 */
static bool is_simple(const char *regex)
{
	int nr_repeats = 0;

	for (; *regex; regex++) {
		if (*regex == '{' || (*regex == '\\' && regex[1] >= '1' && regex[1] <= '9'))
			return false;
		nr_repeats += *regex == '+';
		if (*regex == '\\' && regex[1])
			regex++;
	}
	return nr_repeats <= MAX_REPEATS;
}

static int parse_ignore(struct suppress_parser *p, const char *regex)
{
	struct suppress_rule rule = { .kind = RULE_IGNORE, .kinds = SUPPRESS_ALL };
	char why[128];
	int bad;

	if (!*regex)
		return suppress_parse_complain(p, p->nr_line, "no expression", p->line);
	if (!is_simple(regex))
		return suppress_parse_complain(p, p->nr_line, "no {}, no \\1, at most 8 + in an expression",
					       regex);
	bad = regcomp(&rule.regex, regex, REG_EXTENDED | REG_NOSUB);
	if (bad) {
		regerror(bad, &rule.regex, why, sizeof(why));
		return bad == REG_ESPACE ? -ENOMEM : suppress_parse_complain(p, p->nr_line, regex, why);
	}
	rule.has_regex = true;
	return suppress_parse_keep(p, &rule);
}

/* Parse "tool,tool:kind". Only Memcheck:Leak is for heaptap. */
static int parse_tool(struct suppress_parser *p)
{
	const char *colon = strchr(p->line, ':');

	if (!colon)
		return suppress_parse_complain(p, p->nr_line, "not \"tool:kind\"", p->line);
	p->is_for_others = strcmp(colon, ":Leak") != 0 || !strstr(p->line, "Memcheck");
	return 0;
}

static int parse_kinds(struct suppress_parser *p, char *text)
{
	static const struct {
		const char *name;
		u32 kinds;
	} words[] = {
		{ "all", SUPPRESS_ALL },
		{ "none", 0 },
		{ "definite", SUPPRESS_KIND(SCAN_DEFINITE) },
		{ "indirect", SUPPRESS_KIND(SCAN_INDIRECT) },
		{ "possible", SUPPRESS_KIND(SCAN_POSSIBLE) },
		{ "reachable", SUPPRESS_KIND(SCAN_REACHABLE) },
	};
	char *save = NULL;

	p->rule.kinds = 0;
	for (char *word = strtok_r(text, ", \t", &save); word; word = strtok_r(NULL, ", \t", &save)) {
		size_t i = 0;

		while (i < ARRAY_SIZE(words) && strcmp(word, words[i].name) != 0)
			i++;
		if (i == ARRAY_SIZE(words))
			return suppress_parse_complain(p, p->nr_line, "unknown kind of leak", word);
		p->rule.kinds |= words[i].kinds;
	}
	return 0;
}

/* Parse a frame, or the kinds of leaks. */
static int parse_block_line(struct suppress_parser *p)
{
	static const struct {
		const char *key;
		enum frame_kind kind;
	} keys[] = { { "fun:", FRAME_FUNCTION }, { "obj:", FRAME_OBJECT }, { "src:", FRAME_SOURCE } };
	static const char kinds[] = "match-leak-kinds:";

	if (p->rule.nr_frames == MAX_FRAMES)
		return suppress_parse_complain(p, p->nr_line, "too many frames in one rule", NULL);
	if (strcmp(p->line, "...") == 0)
		return add_pattern(&p->rule, FRAME_ANY, NULL);
	if (strncmp(p->line, kinds, strlen(kinds)) == 0)
		return parse_kinds(p, p->line + strlen(kinds));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strncmp(p->line, keys[i].key, strlen(keys[i].key)) == 0)
			return add_pattern(&p->rule, keys[i].kind, p->line + strlen(keys[i].key));
	return suppress_parse_complain(p, p->nr_line, "neither fun:, obj:, src:, match-leak-kinds: nor ...",
				       p->line);
}

static int end_block(struct suppress_parser *p)
{
	p->is_in_block = false;
	if (p->nr_block_lines < 2)
		return suppress_parse_complain(p, p->nr_line, "a rule needs a name and \"tool:kind\"", NULL);
	if (p->is_for_others) {
		suppress_rule_fini(&p->rule);
		memset(&p->rule, 0, sizeof(p->rule));
		return 0;
	}
	if (!p->rule.nr_frames)
		return suppress_parse_complain(p, p->nr_line, "a rule without frames would match everything",
					       NULL);
	return suppress_parse_keep(p, &p->rule);
}

static int parse_in_block(struct suppress_parser *p)
{
	if (strcmp(p->line, "}") == 0)
		return end_block(p);
	if (p->nr_block_lines++ == 0)
		return 0;
	if (p->nr_block_lines == 2)
		return parse_tool(p);
	return p->is_for_others ? 0 : parse_block_line(p);
}

static int suppress_parse_line(struct suppress_parser *p)
{
	if (!p->line[0] || p->line[0] == '#')
		return 0;
	if (p->is_in_block)
		return parse_in_block(p);
	if (strcmp(p->line, "{") == 0) {
		p->is_in_block = true;
		p->is_for_others = false;
		p->block_line = p->nr_line;
		p->nr_block_lines = 0;
		p->rule = (struct suppress_rule){ .kind = RULE_STACK, .kinds = SUPPRESS_ALL };
		return 0;
	}
	if (strncmp(p->line, "leak:", 5) == 0)
		return parse_leak(p, p->line + 5);
	if (strncmp(p->line, "ignore", 6) == 0 && isspace((unsigned char)p->line[6]))
		return parse_ignore(p, p->line + 7 + strspn(p->line + 7, " \t"));
	/* A report with rules in it, which somebody asked for. */
	if (memmem(p->at, (size_t)(p->end - p->at), "Memcheck:Leak", 13))
		return suppress_parse_complain(
			p, p->nr_line, "no file of rules alone, as heaptap -o FILE.supp writes it", NULL);
	return suppress_parse_complain(p, p->nr_line, "neither leak:PATTERN, ignore REGEX nor {", p->line);
}

int suppress_add_text(struct suppress_list *list, const char *name, const char *text, size_t len)
{
	auto_free struct suppress_parser *p = calloc(1, sizeof(*p));
	int nr;

	if (!p)
		return -ENOMEM;
	p->list = list;
	p->name = name;
	p->at = text;
	p->end = text + len;
	while ((nr = suppress_parse_next_line(p)) == 1) {
		nr = suppress_parse_line(p);
		if (nr)
			break;
	}
	if (!nr && p->is_in_block)
		nr = suppress_parse_complain(p, p->block_line, "no } for this {", NULL);
	suppress_rule_fini(&p->rule);
	return nr;
}

int suppress_add_ignore(struct suppress_list *list, const char *regex, const char *where)
{
	auto_free char *line = NULL;

	if (asprintf(&line, "ignore %s", regex) < 0) {
		line = NULL;
		return -ENOMEM;
	}
	if (strchr(regex, '\n'))
		return -EINVAL;
	return suppress_add_text(list, where, line, strlen(line));
}

int suppress_add_file(struct suppress_list *list, const char *path)
{
	auto_free char *text = malloc(MAX_BYTES + 1);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0;
	ssize_t nr = -1;

	if (!text)
		return -ENOMEM;
	while (fd >= 0 && len <= MAX_BYTES && (nr = read(fd, text + len, MAX_BYTES + 1 - len)) > 0)
		len += (size_t)nr;
	if (nr < 0) {
		int err = -errno;

		error("suppressions: %s: %s", path, strerror(-err));
		return err;
	}
	if (len > MAX_BYTES) {
		error("suppressions: %s: larger than 1 MiB", path);
		return -EFBIG;
	}
	return suppress_add_text(list, path, text, len);
}
