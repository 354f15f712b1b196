/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The help, printed from the tables of commands and options. */
#include "user/cli/commands.h"
#include "user/cli/mistakes.h"
#include "user/cli/options.h"

#include <string.h>
#include <unistd.h>

#include "user/lib/status.h"
#include "user/lib/wrap.h"

/* NARROW: the texts have lines of their own, because beside the names there is no room. */
enum {
	FEW_OPTIONS = 16,
	HELP_COLUMN = 26,
	SUMMARY_COLUMN = 36,
	NARROW_COLUMN = 7,
	HELP_WIDTH = 100,
	NARROW = 60
};

/* Position of the next word. */
struct wrap {
	FILE *out;
	size_t column;
	int begin; /* of each line */
	size_t width;
};

static size_t help_width(FILE *out)
{
	size_t width = isatty(fileno(out)) ? wrap_width(out) : HELP_WIDTH;

	return width < HELP_WIDTH ? width : HELP_WIDTH;
}

/* Go to the column of the texts. @len columns of the line are used. */
static struct wrap wrap_begin(FILE *out, size_t width, int len, int column)
{
	struct wrap w = { .out = out, .width = width };

	w.begin = w.width < NARROW ? NARROW_COLUMN : column;
	w.column = w.begin - 1;
	if (len >= w.begin) {
		putc('\n', out);
		len = 0;
	}
	fprintf(out, "%*s", w.begin - 1 - len, "");
	return w;
}

static void wrap_word(struct wrap *w, const char *word, size_t len)
{
	if (w->column + 1 + len > w->width && w->column >= (size_t)w->begin) {
		fprintf(w->out, "\n%*s", w->begin - 1, "");
		w->column = w->begin - 1;
	}
	fprintf(w->out, " %.*s", (int)len, word);
	w->column += 1 + len;
}

static void wrap_text(struct wrap *w, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		wrap_word(w, text, len);
		text += len + strspn(text + len, " ");
	}
}

/* The default and the limits of a value: "(default 64; 0 to 127)". */
static void wrap_limits(struct wrap *w, const struct option_row *row)
{
	char text[512] = "";
	size_t used = 0;

	if (row->def)
		used = snprintf(text, sizeof(text), "; default %s", row->def);
	if (row->min)
		used += snprintf(text + used, sizeof(text) - used, "; %s to %s", row->min, row->max);
	for (size_t i = 0; row->choice && row->choice(i) && used < sizeof(text); i++)
		used += snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "; one of ",
				 row->choice(i));
	if (!used || used + 2 > sizeof(text))
		return;
	text[0] = '(';
	memmove(text + 1, text + 2, used - 1);
	strcat(text, ")");
	wrap_text(w, text);
}

static void help_row(FILE *out, size_t width, const struct option_row *row)
{
	struct wrap w;
	char left[64];
	int len;

	if (row->letter)
		len = snprintf(left, sizeof(left), "  -%c, --%s", row->letter, row->name);
	else
		len = snprintf(left, sizeof(left), "      --%s", row->name);
	if (row->arg)
		len += snprintf(left + len, sizeof(left) - len, " %s", row->arg);
	fputs(left, out);
	if (!IS_AGENT || row->def || row->min || row->choice) {
		w = wrap_begin(out, width, len, HELP_COLUMN);
		if (!IS_AGENT)
			wrap_text(&w, row->help);
		wrap_limits(&w, row);
	}
	putc('\n', out);
}

/* Options by what they are for. The first group is all that most people need; what is in none comes last. */
static const struct {
	const char *title, *names; /* names between blanks */
} groups[] = {
	{ "Most used",
	  " pid output record sort top duration interval follow depth fail-on suppressions no-scan why open zoom comm "
	  "between callers baseline listen to quiet help " },
	{ "Reports and files",
	  " format force html keep annotate record-size record-time record-seek min-size max-size older events json "
	  "color status verbose libraries gen-suppressions thin census " },
	{ "Leaks and wrong releases",
	  " scan leaks check no-check ignore no-default-suppressions perturb pointer-mask unaligned max-pause "
	  "snapshot jobs max-copy " },
	{ "Tests and CI", " error-exitcode older-blocks stop-after threshold " },
	{ "Cost", " backend sample max-cost max-memory ring-size on-full spare " },
	{ "Names and stacks", " wrappers sysroot debug-path debuginfod nocpp " },
	{ "Other machines and services",
	  " metrics push token-file insecure-tcp announce discover wait stdio allow-kill kill " },
};

/* The number of the group of @row; that behind the last one for an option that is in none. */
static size_t group_of(const struct option_row *row)
{
	char name[64];
	size_t i = 0;

	snprintf(name, sizeof(name), " %s ", row->name);
	while (i < ARRAY_SIZE(groups) && !strstr(groups[i].names, name))
		i++;
	return i;
}

/* Print the options of group @i. Returns how many the command has. */
static size_t help_group(FILE *out, size_t width, u32 bit, size_t i, bool has_title)
{
	size_t nr = 0;

	for (const struct option_row *row = option_rows; row->name; row++) {
		if (!(row->commands & bit) || group_of(row) != i)
			continue;
		if (!nr++ && has_title)
			fprintf(out, "%s%s:\n", i ? "\n" : "",
				i < ARRAY_SIZE(groups) ? groups[i].title : "For experts");
		help_row(out, width, row);
	}
	return nr;
}

static size_t count_options(u32 bit)
{
	size_t nr = 0;

	for (const struct option_row *row = option_rows; row->name; row++)
		nr += (row->commands & bit) != 0;
	return nr;
}

static void help_command(FILE *out, size_t width, const struct command *command, bool wants_all)
{
	u32 bit = 1U << (command - commands);
	size_t nr = count_options(bit), shown = 0;
	bool is_short = !IS_AGENT && !wants_all && nr > FEW_OPTIONS;

	fprintf(out, "Usage: heaptap %s [OPTIONS]%s%s\n\n", command->name, *command->synopsis ? " " : "",
		command->synopsis);
	fprintf(out, "heaptap %s: %s.\n\n", command->name, command->help);
	if (IS_AGENT || (!wants_all && !is_short)) {
		for (const struct option_row *row = option_rows; row->name; row++)
			if (row->commands & bit)
				help_row(out, width, row);
		return;
	}
	for (size_t i = 0; i < (is_short ? 1 : ARRAY_SIZE(groups) + 1); i++)
		shown += help_group(out, width, bit, i, !is_short);
	if (is_short)
		fprintf(out, "\n'heaptap help %s --all' lists %zu more options.\n", command->name,
			nr - shown);
}

/* One command in the list: its help has a column of its own, and a line of its own if the synopsis is long. */
static void help_summary(FILE *out, size_t width, const struct command *c)
{
	int len = fprintf(out, "  %-8s %s", c->name, c->synopsis);
	struct wrap w = wrap_begin(out, width, len, SUMMARY_COLUMN);

	wrap_text(&w, c->help);
	putc('\n', out);
}

void options_help(FILE *out, const struct command *command, bool wants_all)
{
	size_t width = help_width(out);

	if (command) {
		help_command(out, width, command, wants_all);
		return;
	}
	fputs("Usage: heaptap COMMAND [OPTIONS] [ARGUMENTS]\n\n"
	      "Watch the heap of any process, and report who holds the memory.\n\n",
	      out);
	for (const struct command *c = commands; c->name; c++)
		if (c->run)
			help_summary(out, width, c);
	fputs("\n'heaptap PROGRAM' is 'heaptap run PROGRAM', 'heaptap PID' 'heaptap attach PID'.\n", out);
	if (!IS_AGENT)
		fputs("Where RSS grows and nothing leaks: 'heaptap attach PID' says where it went,\n"
		      "'heaptap scan PID' what is free (fragmentation) and what pins it,\n"
		      "'--mmap' who maps memory.\n",
		      out);
	fputs("'heaptap help COMMAND' lists the options of a command. See also heaptap(1).\n", out);
}

int cmd_help(const struct options *o)
{
	const struct command *command = o->nr_args ? command_find(o->args[0]) : NULL;

	if (o->nr_args && !command) {
		mistake_command(o->args[0]);
		return STATUS_USAGE;
	}
	options_help(stdout, command, o->want_all);
	return STATUS_DONE;
}
