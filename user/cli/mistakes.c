/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command lines that are wrong: one line each, which names what was most likely meant. */
#include "user/cli/mistakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/log.h"
#include "user/lib/program_path.h"
#include "user/lib/parse.h"
#include "user/cli/options_private.h"

/* Words that other tools have for what heaptap calls otherwise. */
static const struct {
	const char *word, *meant;
} synonyms[] = {
	{ "record", "run -w FILE PROGRAM" },
	{ "trace", "run PROGRAM' or 'heaptap attach PID" },
	{ "start", "run PROGRAM" },
	{ "exec", "run PROGRAM" },
	{ "profile", "run PROGRAM" },
	{ "memcheck", "run --fail-on definite PROGRAM" },
	{ "leaks", "run PROGRAM' or 'heaptap attach PID" },
	{ "open", "report --open FILE" },
	{ "show", "report FILE" },
	{ "list", "report --events FILE" },
	{ "stop", "console PID' and its command 'stop" },
	{ "status", "doctor" },
};

/* Options that other tools have, and newcomers type. */
static const struct {
	const char *name, *meant;
} foreign_options[] = {
	{ "json", "-o FILE.json, or --format json" },
	{ "xml", "-o FILE.junit.xml" },
	{ "leak-check", "--fail-on definite, which sets the exit status; leaks are shown anyway" },
	{ "log-file", "--output FILE" },
	{ "out", "--output FILE" },
	{ "trace-children", "--follow" },
	{ "follow-forks", "--follow" },
	{ "num-callers", "--depth N" },
	{ "stack-depth", "--depth N" },
	{ "timeout", "--duration DUR" },
	{ "time", "--duration DUR" },
	{ "show-leak-kinds", "-v, which lists possible leaks, too; reports have all kinds" },
	{ "show-reachable", "-n 0: live blocks that are no leaks are in each report" },
	{ "leak-resolution", "--depth N" },
	{ "error-exit-code", "--error-exitcode N" },
	{ "tool", "-o FILE.massif for massif, --fail-on definite for memcheck" },
	{ "massif-out-file", "-o FILE.massif" },
	{ "xml-file", "-o FILE.junit.xml" },
	{ "track-origins", "-v; heaptap sees no reads and writes, only the heap" },
	{ "call-graph", "--depth N: stacks are always taken" },
	{ "threads", "-v: reports have a line of threads" },
	{ "freq", "nothing: each call is seen, there are no samples" },
	{ "count", "--stop-after N" },
	{ "analyze", "'heaptap report FILE' for a recording" },
	{ "use-inject", "nothing: 'heaptap attach PID' needs no injection" },
	{ "raw", "-w FILE, which records all events" },
	{ "merge", "'heaptap diff A B'" },
	{ "live", "'heaptap top PID'" },
	{ "leaks-only", "-s leaked-bytes" },
};

/* The command that takes what was typed in its place: a PID, a recording, a program. NULL: no idea. */
static const char *command_for(const char *text)
{
	size_t len = strlen(text);
	char path[4096];

	if (strspn(text, "0123456789") == len)
		return "attach";
	if (access(text, F_OK))
		return !strchr(text, '/') && program_path(text, path, sizeof(path)) ? "run" : NULL;
	if (len > 8 && !strcmp(text + len - 8, ".heaptap"))
		return "report";
	return access(text, X_OK) ? NULL : "run";
}

const struct command *mistake_implied(const char *text)
{
	const char *name = *text == '-' ? NULL : command_for(text);
	const struct command *command = name ? command_find(name) : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++)
		if (!strcmp(text, synonyms[i].word))
			return NULL;
	if (command)
		info("'heaptap %s' is 'heaptap %s %s'", text, name, text);
	return command;
}

/* An option before the command: name a command that has it. */
static void refuse_early_option(const char *text)
{
	const char *name = text + strspn(text, "-");
	bool is_long = text[1] == '-';

	for (const struct option_row *row = option_rows; row->name; row++) {
		bool is_it = is_long ? strlen(row->name) == strcspn(name, "=") &&
					       !strncmp(row->name, name, strlen(row->name))
				     : row->letter && row->letter == text[1];

		for (const struct command *c = commands; is_it && c->name; c++) {
			/* A PID alone is attached to: run needs a program beside it. */
			if (!is_for(row, c) || (row->letter == 'p' && !strcmp(c->name, "run")))
				continue;
			error("%s: the command comes first, as in 'heaptap %s --%s%s%s ...'%s", text, c->name,
			      row->name, row->arg ? " " : "", row->arg ? row->arg : "",
			      strcmp(text, "-v") != 0 ? "" : "; -V prints the version");
			return;
		}
	}
	error("%s: the command comes first; see 'heaptap help'", text);
}

void mistake_command(const char *text)
{
	const char *names[32]; /* a bit for each in option_row.commands */
	const char *nearest, *command = command_for(text);
	size_t nr = 0;

	for (; commands[nr].name; nr++)
		names[nr] = commands[nr].name;
	nearest = parse_nearest(text, names, nr);
	if (*text == '-') {
		refuse_early_option(text);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++) {
		if (strcmp(text, synonyms[i].word))
			continue;
		error("%s: no such command; did you mean 'heaptap %s'", text, synonyms[i].meant);
		return;
	}
	if (nearest)
		error("%s: no such command; did you mean '%s'", text, nearest);
	else if (command)
		error("%s: no such command; did you mean 'heaptap %s %s'", text, command, text);
	else
		error("%s: no such command; see 'heaptap help'", text);
}

void mistake_argument(const struct command *command, const char *text)
{
	if (!strcmp(command->name, "system"))
		error("system: %s: all processes are watched; 'heaptap attach %s' traces one", text, text);
	else
		error("%s: %s: one argument too many; see 'heaptap help %s'", command->name, text,
		      command->name);
}

/* @shown is the option as it was typed, "-p" or "--pid". */
static void refuse_elsewhere(const struct command *command, const struct option_row *row, const char *shown)
{
	for (const struct command *c = commands; c->name; c++) {
		if (!is_for(row, c))
			continue;
		error("%s: not an option of '%s' but of '%s'", shown, command->name, c->name);
		return;
	}
	error("%s: not an option of '%s'", shown, command->name);
}

/* An option of another tool, or the first letters of several of ours. */
static bool refuse_known(const struct command *command, const char *name)
{
	char all[256] = "";
	size_t used = 0, nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(foreign_options); i++) {
		if (strcmp(name, foreign_options[i].name) != 0)
			continue;
		error("--%s: no option of '%s'; type %s", name, command->name, foreign_options[i].meant);
		return true;
	}
	for (const struct option_row *row = option_rows; *name && row->name; row++) {
		if (!is_for(row, command) || strncmp(row->name, name, strlen(name)) != 0 ||
		    used >= sizeof(all))
			continue;
		used += (size_t)snprintf(all + used, sizeof(all) - used, " --%s", row->name);
		nr++;
	}
	if (nr > 1)
		error("--%s: may be any of%s", name, all);
	return nr > 1;
}

void mistake_option(const struct command *command, const struct option_row *row, const char *text, int letter)
{
	const char *names[OPTIONS_MAX];
	const char *nearest;
	char name[64], shown[72];
	size_t nr = 0;

	if (letter > 0) {
		snprintf(shown, sizeof(shown), "-%c", letter);
		if (letter == '-')
			error("%s: no such option; a space belongs between options of one letter", text);
		else if (row)
			refuse_elsewhere(command, row, shown);
		else
			error("%s: no such option; see 'heaptap help %s'", shown, command->name);
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text + 2, "="), text + 2);
	snprintf(shown, sizeof(shown), "--%s", name);
	if (!row)
		row = option_row_find(name, strlen(name));
	if (!row || !is_for(row, command)) {
		if (refuse_known(command, name))
			return;
	}
	if (row && is_for(row, command)) {
		error("--%s: takes no argument", row->name);
		return;
	}
	if (row) {
		refuse_elsewhere(command, row, shown);
		return;
	}
	for (; nr < OPTIONS_MAX && option_rows[nr].name; nr++)
		names[nr] = is_for(&option_rows[nr], command) ? option_rows[nr].name : NULL;
	nearest = parse_nearest(name, names, nr);
	if (nearest)
		error("--%s: no such option; did you mean --%s", name, nearest);
	else
		error("--%s: no such option; see 'heaptap help %s'", name, command->name);
}

/* Options that hardly another program has. */
static bool mistakes_is_ours(const char *word, const char *next)
{
	static const char *const names[] = { "--fail-on", "--backend", "--no-scan", "--suppressions",
					     "--perturb", "--alloc",   "--nocpp",   "--error-exitcode" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(word, names[i], strlen(names[i])) && strchr("=", word[strlen(names[i])]))
			return true;
	if (!strcmp(word, "-w") && next && strlen(next) > 8)
		return !strcmp(next + strlen(next) - 8, ".heaptap");
	return false;
}

void mistake_late_options(const struct options *o)
{
	/* Behind -- everything is meant for the program. */
	if (!o->command->stops_at_arg || o->is_program)
		return;
	for (size_t i = 1; i < o->nr_args; i++) {
		if (!mistakes_is_ours(o->args[i], i + 1 < o->nr_args ? o->args[i + 1] : NULL))
			continue;
		warn("%s: %s behind %s is an option of that program; options of heaptap come before it",
		     o->command->name, o->args[i], o->args[0]);
		return;
	}
}
