/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The help, printed from the tables of commands and options. */
#include "user/cli/commands.h"
#include "user/cli/mistakes.h"
#include "user/cli/options.h"

#include <string.h>
#include <unistd.h>

#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/lib/wrap.h"

/* NARROW: the texts have lines of their own, because beside the names there is no room. */
enum { HELP_COLUMN = 26, SUMMARY_COLUMN = 36, NARROW_COLUMN = 7, HELP_WIDTH = 100, NARROW = 60 };

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

static void help_command(FILE *out, size_t width, const struct command *command)
{
	u32 bit = 1U << (command - commands);

	fprintf(out, "Usage: heaptap %s [OPTIONS]%s%s\n\n", command->name, *command->synopsis ? " " : "",
		command->synopsis);
	fprintf(out, "heaptap %s: %s.\n\n", command->name, command->help);
	for (const struct option_row *row = option_rows; row->name; row++)
		if (row->commands & bit)
			help_row(out, width, row);
}

/* One command in the list: its help has a column of its own, and a line of its own if the synopsis is long. */
static void help_summary(FILE *out, size_t width, const struct command *c)
{
	int len = fprintf(out, "  %-8s %s", c->name, c->synopsis);
	struct wrap w = wrap_begin(out, width, len, SUMMARY_COLUMN);

	wrap_text(&w, c->help);
	putc('\n', out);
}

void options_help(FILE *out, const struct command *command)
{
	size_t width = help_width(out);

	if (command) {
		help_command(out, width, command);
		return;
	}
	fputs("Usage: heaptap COMMAND [OPTIONS] [ARGUMENTS]\n\n"
	      "Watch the heap of any process, and report who holds the memory.\n\n",
	      out);
	for (const struct command *c = commands; c->name; c++)
		if (c->run)
			help_summary(out, width, c);
	fputs("\n'heaptap help COMMAND' lists the options of a command. The manual is heaptap(1).\n", out);
}

int cmd_help(const struct options *o)
{
	const struct command *command = o->nr_args ? command_find(o->args[0]) : NULL;

	if (o->nr_args && !command) {
		mistake_command(o->args[0]);
		return STATUS_USAGE;
	}
	options_help(stdout, command);
	return STATUS_DONE;
}
