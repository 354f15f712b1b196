/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap completion: scripts that complete command lines in shells, made of the tables of commands and options. */
#include "user/cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "user/cli/options.h"
#include "user/lib/log.h"
#include "user/lib/status.h"

/* Names and numbers of processes, but for threads of the kernel, as words of ps. */
#define PS_NAMES   "ps --ppid 2 -p 2 --deselect -o comm= 2>/dev/null"
#define PS_NUMBERS "ps --ppid 2 -p 2 --deselect -o pid=,comm= 2>/dev/null"

/* Arguments of a command, by the words of its synopsis. */
enum arguments { ARGUMENTS_FILES, ARGUMENTS_PROCESSES, ARGUMENTS_PROGRAM, ARGUMENTS_COMMAND };

static enum arguments arguments_of(const struct command *c)
{
	static const struct {
		const char *word;
		enum arguments arguments;
	} words[] = {
		{ "[COMMAND]", ARGUMENTS_COMMAND },
		{ "PID|NAME", ARGUMENTS_PROCESSES },
		{ "PROGRAM", ARGUMENTS_PROGRAM },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strstr(c->synopsis, words[i].word))
			return words[i].arguments;
	return ARGUMENTS_FILES;
}

static bool has_option(const struct command *c, const struct option_row *row)
{
	return row->commands & 1U << (c - commands);
}

/* The choices of such an option are endings of names. */
static bool takes_file(const struct option_row *row)
{
	return row->arg && !strcmp(row->arg, "FILE");
}

/* Write @text for use between single quotes; characters of @special get a backslash. */
static void cmd_completion_put_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'') {
			fputs("'\\''", stdout);
			continue;
		}
		if (strchr(special, *text))
			putchar('\\');
		putchar(*text);
	}
}

static void put_choices(const struct option_row *row)
{
	for (size_t i = 0; row->choice(i); i++)
		printf("%s%s", i ? " " : "", row->choice(i));
}

static void put_commands(void)
{
	for (const struct command *c = commands; c->name; c++)
		printf("%s%s", c == commands ? "" : " ", c->name);
}

/* "--output|-o" */
static void cmd_completion_put_names(const struct option_row *row)
{
	printf("--%s", row->name);
	if (row->letter)
		printf("|-%c", row->letter);
}

static void bash_arguments(const struct command *c)
{
	static const char *const how[] = {
		[ARGUMENTS_FILES] = "compopt -o default",
		[ARGUMENTS_PROCESSES] =
			"COMPREPLY=($(compgen -W \"$(" PS_NAMES " || ps -eo comm=)\" -- \"$cur\"))",
		[ARGUMENTS_PROGRAM] = "COMPREPLY=($(compgen -c -- \"$cur\")); compopt -o default",
		[ARGUMENTS_COMMAND] = "COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))",
	};

	printf("\t%s)\n\t\toptions='", c->name);
	for (const struct option_row *row = option_rows; row->name; row++)
		if (has_option(c, row))
			printf("--%s ", row->name);
	printf("'\n\t\t[[ $cur == -* ]] || { %s; return; } ;;\n", how[arguments_of(c)]);
}

static void write_bash(void)
{
	fputs("_heaptap() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options\n"
	      "\tlocal commands='",
	      stdout);
	put_commands();
	fputs("'\n"
	      "\tCOMPREPLY=()\n"
	      "\t# --sort=VALUE is three words to bash.\n"
	      "\t[[ $cur != = ]] || { cur=; prev==; }\n"
	      "\t[[ $prev != = ]] || prev=${COMP_WORDS[COMP_CWORD - 1 - (${#cur} > 0)]}\n"
	      "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	      "\t\tCOMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n"
	      "\t\treturn\n"
	      "\tfi\n"
	      "\tcase $prev in\n",
	      stdout);
	for (const struct option_row *row = option_rows; row->name; row++) {
		if (!row->arg)
			continue;
		putchar('\t');
		cmd_completion_put_names(row);
		if (row->choice && !takes_file(row)) {
			fputs(") COMPREPLY=($(compgen -W '", stdout);
			put_choices(row);
			puts("' -- \"$cur\")); return ;;");
		} else {
			puts(") compopt -o default; return ;;");
		}
	}
	puts("\tesac\n\tcase ${COMP_WORDS[1]} in");
	for (const struct command *c = commands; c->name; c++)
		bash_arguments(c);
	puts("\tesac\n"
	     "\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
	     "}\n"
	     "complete -F _heaptap heaptap");
}

/* '*'{--output=,-o+}'[help]:FILE:_files'; = and +: the argument may be in the same word. */
static void zsh_option(const struct option_row *row)
{
	fputs("\t\t\t'*'", stdout);
	if (row->letter)
		printf("{--%s%s,-%c%s}", row->name, row->arg ? "=" : "", row->letter, row->arg ? "+" : "");
	else
		printf("--%s%s", row->name, row->arg ? "=" : "");
	fputs("'[", stdout);
	cmd_completion_put_quoted(row->help, "[]:");
	putchar(']');
	if (row->arg) {
		putchar(':');
		cmd_completion_put_quoted(row->arg, "[]:");
		putchar(':');
		if (row->choice && !takes_file(row)) {
			putchar('(');
			put_choices(row);
			putchar(')');
		} else {
			fputs("_files", stdout);
		}
	}
	puts("' \\");
}

static void write_zsh(void)
{
	static const char *const how[] = {
		[ARGUMENTS_FILES] = "*:file:_files",
		[ARGUMENTS_PROCESSES] = "*:process:_heaptap_processes",
		[ARGUMENTS_PROGRAM] = "*:: :_normal",
		[ARGUMENTS_COMMAND] = "1:command:($commands)",
	};

	fputs("#compdef heaptap\n"
	      "_heaptap_processes() {\n"
	      "\tlocal -a names=(${(f)\"$(" PS_NAMES " || ps -eo comm=)\"})\n"
	      "\t_alternative 'processes:PID:_pids' 'names:name:compadd -a names'\n"
	      "}\n"
	      "_heaptap() {\n\tlocal -a commands=(",
	      stdout);
	put_commands();
	fputs(")\n\tlocal -a described=(", stdout);
	for (const struct command *c = commands; c->name; c++) {
		printf("\n\t\t'%s:", c->name);
		cmd_completion_put_quoted(c->help, ":");
		putchar('\'');
	}
	puts(")\n"
	     "\tif ((CURRENT == 2)); then\n"
	     "\t\t_describe command described\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tshift words\n"
	     "\t((CURRENT--))\n"
	     "\tcase $words[1] in");
	for (const struct command *c = commands; c->name; c++) {
		printf("\t%s)\n\t\t_arguments -s \\\n", c->name);
		for (const struct option_row *row = option_rows; row->name; row++)
			if (has_option(c, row))
				zsh_option(row);
		printf("\t\t\t\"%s\" ;;\n", how[arguments_of(c)]);
	}
	puts("\tesac\n}\n_heaptap \"$@\"");
}

static void fish_option(const struct option_row *row)
{
	fputs("complete -c heaptap -n '__fish_seen_subcommand_from", stdout);
	for (const struct command *c = commands; c->name; c++)
		if (has_option(c, row))
			printf(" %s", c->name);
	printf("' -l %s", row->name);
	if (row->letter)
		printf(" -s %c", row->letter);
	if (row->choice && !takes_file(row)) {
		fputs(" -x -a '", stdout);
		put_choices(row);
		putchar('\'');
	} else if (row->arg) {
		fputs(" -r", stdout);
	}
	fputs(" -d '", stdout);
	cmd_completion_put_quoted(row->help, "");
	puts("'");
}

static void write_fish(void)
{
	static const char *const how[] = {
		[ARGUMENTS_PROCESSES] = "-x -a '(__heaptap_processes)'",
		[ARGUMENTS_PROGRAM] = "-x -a '(__fish_complete_subcommand)'",
	};

	puts("function __heaptap_processes\n"
	     "\tfor line in (" PS_NUMBERS "; or ps -eo pid=,comm=)\n"
	     "\t\tset -l words (string split -m 1 ' ' (string trim $line))\n"
	     "\t\tprintf '%s\\t%s\\n%s\\n' $words[1] $words[2] $words[2]\n"
	     "\tend\n"
	     "end");
	for (const struct command *c = commands; c->name; c++) {
		size_t kind = arguments_of(c);
		const char *arguments = kind < ARRAY_SIZE(how) ? how[kind] : NULL;

		printf("complete -c heaptap -n __fish_use_subcommand -x -a %s -d '", c->name);
		cmd_completion_put_quoted(c->help, "");
		puts("'");
		if (arguments)
			printf("complete -c heaptap -n '__fish_seen_subcommand_from %s' %s\n", c->name,
			       arguments);
	}
	for (const struct option_row *row = option_rows; row->name; row++)
		fish_option(row);
}

int cmd_completion(const struct options *o)
{
	static const struct {
		const char *shell;
		void (*write)(void);
	} shells[] = { { "bash", write_bash }, { "zsh", write_zsh }, { "fish", write_fish } };

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		if (strcmp(shells[i].shell, o->args[0]) != 0)
			continue;
		shells[i].write();
		return STATUS_DONE;
	}
	error("completion: %s: must be bash, zsh or fish", o->args[0]);
	return STATUS_USAGE;
}
