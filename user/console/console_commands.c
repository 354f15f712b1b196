/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of the commands of the console, and the help made of it. */
#include "user/console/console.h"

#include <errno.h>
#include <string.h>

#include "user/report/report.h"
#include "user/report/report_rows.h"

/* clang-format off: one line for each row */
const struct console_command console_commands[] = {
	{ "help", "[COMMAND]", "say what the commands do", console_help, 0, 1, .first_word = WORDS_COMMANDS },
	{ "status", "", "how much is live, peak, leaks, what was lost; what heaptap costs", console_status,
	  .repeats = true },
	{ "report", "[FILE]", "the whole report; into FILE by its ending, as --output", console_report, 0, 1,
	  .first_word = WORDS_FILES, .repeats = true },
	{ "top", "[KEY] [N]", "one line for each of the first N callers by KEY", console_top, 0, 2,
	  .first_word = WORDS_KEYS, .repeats = true },
	{ "stacks", "[KEY] [N]", "the same callers with their stacks, as in the report", console_stacks, 0, 2,
	  .first_word = WORDS_KEYS, .repeats = true },
	{ "caller", "ID", "one caller, with its stack; ID as top shows it", console_caller, 1, 1,
	  .repeats = true },
	{ "blocks", "[ID|leaked] [N]",
	  "the N largest live blocks: all, those of one caller, or those that a verdict now calls leaked",
	  console_blocks, 0, 2, .repeats = true },
	{ "scan", "[PID]", "a leak verdict now; of a recording, the last one that it has", console_scan, 0, 1,
	  .repeats = true },
	{ "why", "[ADDRESS]",
	  "who holds the block at ADDRESS (0x...), or one of each caller that grew or perhaps leaks",
	  console_why, 0, 1, .repeats = true },
	{ "baseline", "", "remember how things are, for diff and for the key growth", console_baseline },
	{ "diff", "[KEY] [N]", "what the first N callers by KEY hold more or less than at the baseline",
	  console_diff, 0, 2, .first_word = WORDS_KEYS, .repeats = true },
	{ "set", "[NAME VALUE]", "change what commands show, as the option of this name does", console_set, 0,
	  2, .first_word = WORDS_SETTINGS },
	{ "show", "[ADDRESS] [SIZE]",
	  "what is in the block at ADDRESS (0x...): bytes, strings, pointers; without it, all that can be set",
	  console_show, 0, 2, .repeats = true },
	{ "print", "ADDRESS|NAME [FORMAT]",
	  "memory at ADDRESS, or the global variable NAME, as gdb's x: a count, one of x z d u o t c a f s, a "
	  "size b h w g (4xg)",
	  console_print, 1, 2, CONSOLE_LIVE, .repeats = true },
	{ "processes", "", "the processes, what they hold, what became of them", console_processes,
	  .repeats = true },
	{ "monitor", "[DUR] [N]", "a line of status each DUR (1s), N times or until Ctrl-C", console_monitor,
	  0, 2, CONSOLE_LIVE },
	{ "wait", "WHAT [DUR]",
	  "for DUR (10s), for the end, or until live>10M, blocks>=5 and the like; at most DUR", console_wait,
	  1, 2, CONSOLE_LIVE },
	{ "watch", "[DUR] [N] COMMAND...",
	  "run a command that shows something each DUR (2s), N times or until Ctrl-C", console_watch, 1,
	  CONSOLE_MAX_WORDS - 1, CONSOLE_LIVE, WORDS_COMMANDS },
	{ "log", "[FUNCTION] [on|off|N]",
	  "print each call of an allocator function (malloc, free, new, all), or of FILE:FUNCTION with six words, at "
	  "most N (100) a second; off: none",
	  console_log, 0, 2, CONSOLE_LIVE },
	{ "stop", "[PID]", "look away: calls are not seen until start", console_stop, 0, 1, CONSOLE_LIVE },
	{ "start", "[PID]", "look again; blocks of before may be gone meanwhile, and are unsure",
	  console_start, 0, 1, CONSOLE_LIVE },
	{ "depth", "N", "take N frames of each new stack, 0 = none", console_depth, 1, 1, CONSOLE_LIVE },
	{ "filter", "[MIN] [MAX]", "see only allocations of MIN to MAX bytes from now on; of all sizes again",
	  console_filter, 0, 2, CONSOLE_LIVE },
	{ "reset", "[PID]", "forget all blocks and counts, as if attached now", console_reset, 0, 1,
	  CONSOLE_LIVE },
	{ "save", "FILE", "the report into FILE; .json can be compared later by heaptap diff", console_report,
	  1, 1, .first_word = WORDS_FILES },
	{ "record", "[FILE]", "record all events into FILE from now on; without FILE no more", console_record,
	  0, 1, CONSOLE_LIVE, WORDS_FILES },
	{ "mark", "NAME", "give this moment a name in the recording, for --between and goto", console_mark, 1,
	  1, CONSOLE_LIVE },
	{ "core", "FILE [ID]",
	  "a core of the process for gdb, now, or when the caller ID (as top shows it) allocates next",
	  console_core, 1, 2, CONSOLE_LIVE, WORDS_FILES },
	{ "break", "FUNCTION|ID",
	  "hold the process when it next calls an allocator function or FILE:FUNCTION, or when the caller ID allocates "
	  "next",
	  console_break, 1, 1, CONSOLE_LIVE },
	{ "continue", "", "let the process run on that break holds", console_continue, 0, 0, CONSOLE_LIVE },
	{ "kill", "[PID] [SIGNAL] [yes]",
	  "send SIGTERM or another signal to a traced process; asks first, unless told yes", console_kill, 0,
	  3, CONSOLE_LIVE },
	{ "goto", "WHERE",
	  "replay the recording up to a time (3.5s), a marker, its end; FROM,TO: what came in between",
	  console_goto, 1, 1, CONSOLE_RECORDING },
	{ "quit", "", "leave; processes run on, --output is written", console_quit },
	{ NULL },
};
/* clang-format on */

int console_help(struct console *c, size_t nr, char **words)
{
	const struct console_command *one = NULL;
	int width = 0;

	if (nr && console_find(words[0], &one))
		return console_refuse(c, -EINVAL, "help: %s: no such command", words[0]);
	for (const struct console_command *cmd = console_commands; cmd->name; cmd++) {
		int len = (int)(strlen(cmd->name) + strlen(cmd->args) + 1);

		width = len > width ? len : width;
	}
	for (const struct console_command *cmd = one ? one : console_commands; cmd->name; cmd++) {
		int len = fprintf(c->out, "  %s %s", cmd->name, cmd->args);

		fprintf(c->out, "%*s  %s%s\n", width + 2 - len, "", cmd->help,
			cmd->where == CONSOLE_LIVE && c->path ? " (not of a recording)" : "");
		if (one)
			return 0;
	}
	fputs("\nA command may be shortened to what no other one begins with.\n", c->out);
	return 0;
}

static const char *command_word(size_t i)
{
	return console_commands[i].name;
}

static const char *key_word(size_t i)
{
	return report_keys[i].name;
}

const char *console_words(const char *line, size_t start, const char *text, size_t i)
{
	static const char *(*const lists[])(size_t i) = {
		[WORDS_COMMANDS] = command_word,
		[WORDS_KEYS] = key_word,
		[WORDS_SETTINGS] = console_setting,
	};
	const struct console_command *cmd;
	size_t skip = strspn(line, " \t"), len = strlen(text), k;
	const char *(*list)(size_t i) = command_word;
	char name[32];

	if (skip < start) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(line + skip, " \t"), line + skip);
		if (console_find(name, &cmd) || cmd->first_word >= ARRAY_SIZE(lists))
			return NULL;
		list = lists[cmd->first_word];
	}
	for (k = 0; list && list(k); k++)
		if (!strncmp(list(k), text, len) && !i--)
			return list(k);
	return NULL;
}

int console_quit(struct console *c, size_t nr, char **words)
{
	(void)nr;
	(void)words;
	c->is_over = true;
	return 0;
}
