/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of commands. */
#include "user/cli/commands.h"

#include "user/cli/options.h"
#include "user/lib/serve_only.h"

/* Commands that the agent has not are without a name there. */
/* clang-format off */
#if IS_AGENT
#define COMMAND_OF_HOST(...) { "" }
#else
#define COMMAND_OF_HOST(...) { __VA_ARGS__ }
#endif
#if IS_SERVE_ONLY /* these are missing, too */
#define COMMAND_OF_BOOKS(...) { "" }
#else
#define COMMAND_OF_BOOKS(...) { __VA_ARGS__ }
#endif
/* clang-format on */

const struct command commands[] = {
	[RUN] = COMMAND_OF_BOOKS("run", "[--] PROGRAM [ARG...]",
				 "start a program, trace it from its first allocation, report at its end",
				 cmd_run, 1, SIZE_MAX, .stops_at_arg = true),
	[ATTACH] = COMMAND_OF_BOOKS("attach", "PID|NAME...",
				    "trace running processes until Ctrl-C, --duration or their end",
				    cmd_attach, 1, SIZE_MAX),
	[SCAN] = COMMAND_OF_HOST(
		"scan", "PID|NAME|CORE",
		"find leak verdicts now: on a process that a run or attach traces, or from the books of its "
		"allocator",
		cmd_scan, 1, 1),
	[MARK] = COMMAND_OF_HOST(
		"mark", "PID|NAME MARKER",
		"name this moment in the recording of a process, or in the one that the heaptap PID makes",
		cmd_mark, 2, 2),
	[REPORT] = COMMAND_OF_HOST("report", "FILE|DIRECTORY",
				   "report on a recording or a list of events; names for a JSON report; "
				   "or the growth over a directory of reports",
				   cmd_report, 1, 1),
	[SERVE] = { "serve", "PID|NAME... | -- PROGRAM [ARG...]",
		    "on the target: trace for a 'heaptap connect' elsewhere, which counts and reports",
		    cmd_serve, 1, SIZE_MAX },
	[CONNECT] = COMMAND_OF_HOST("connect", "ADDRESS [-- PROGRAM [ARG...]]",
				    "on the host: trace what a 'heaptap serve' elsewhere serves, "
				    "at ssh://[user@]host/PID|NAME, unix:/path or tcp://host[:port]",
				    cmd_connect, 0, SIZE_MAX),
	[DIFF] = COMMAND_OF_HOST(
		"diff", "A B [C...] | DIRECTORY",
		"compare two recordings or saved JSON reports, caller by caller; of more, show the growth",
		cmd_diff, 1, SIZE_MAX),
	[CONSOLE] = COMMAND_OF_HOST(
		"console", "PID|NAME|FILE|ADDRESS",
		"ask a running process, here or elsewhere, or a recording, command by command", cmd_console,
		1, SIZE_MAX),
	[TOP] = COMMAND_OF_HOST(
		"top", "PID|NAME...|ADDRESS",
		"show on the whole screen who holds memory in running processes, here or elsewhere", cmd_top,
		1, SIZE_MAX),
	[SYSTEM] = COMMAND_OF_HOST(
		"system", "",
		"watch all processes of this machine, and trace those that grow: how fast, and where",
		cmd_system, 0, 0),
	[DOCTOR] = COMMAND_OF_HOST("doctor", "[PID|NAME]",
				   "say what works here, what does not, and the command that would help",
				   cmd_doctor, 0, 1),
	[DEMO] = COMMAND_OF_HOST("demo", "",
				 "trace a small leaking program, and explain the lines of its report",
				 cmd_demo, 0, 1),
	[COMPLETION] = COMMAND_OF_HOST("completion", "bash|zsh|fish",
				       "print a script that completes command lines in this shell",
				       cmd_completion, 1, 1),
	[HELP] = { "help", "[COMMAND]", "explain a command and its most used options", cmd_help, 0, 1 },
	[NR_COMMANDS] = { NULL },
};
