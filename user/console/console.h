/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The console: a session on a running process or a recording, and commands to it from somebody or a script. */
#pragma once

#include <stdio.h>

#include "user/console/console_commands.h"
#include "user/console/console_parse.h"
#include "user/report/output.h"
#include "user/session/code_choice.h"
#include "user/session/session_options.h"
#include "user/stream/span.h"

/* The options of the command line. `set` changes some of them. Strings and lists are borrowed. */
struct console_options {
	struct session_options session; /* borrowed by the session, which sees changes at once */
	struct output_options output;
	const char *const *execute; /* commands */
	size_t nr_execute;
	bool quiet;
	u32 max_cost; /* code_choice_round() */
	/*
	 * Set the option @name to @value: "on" or "off" if the option has no argument, "0" for no limit. 0; -EINVAL,
	 * logged; or -ERANGE: --min-size would be larger than --max-size.
	 */
	int (*set)(void *ctx, const char *name, const char *value);
	void *ctx; /* of set() */
};

/* The state of the console, for its commands. user/cli/cmd_console.c makes it. */
struct console {
	struct console_options options;
	struct session *session;
	struct control *control;
	struct outputs *outs;	     /* of --output; NULL = none */
	struct console_input *input; /* NULL = commands are those of --execute */
	const char *path;	     /* of the recording; NULL = the processes run */
	struct connection *remote;   /* borrowed; the machine of the processes, NULL = this one */
	FILE *out;		     /* output of the command that runs */
	const char *file;	     /* borrowed; that the output goes to. NULL = standard output */
	bool appends;		     /* to the file */
	bool is_terminal, has_no_pager;
	bool is_over;	     /* no more commands */
	bool is_interrupted; /* Ctrl-C: leave the command */
	bool has_ctrl_c;     /* since the command began: the terminal shows it as "^C" */
	bool has_source;     /* events may still come */
	u32 line_nr;	     /* of a script, 0 = none */
	u32 round;
	size_t nr_running;
	pid_t pid;		     /* the process that commands show, 0 = all */
	u64 nr_bad, nr_failed;	     /* commands that were wrong; commands that failed */
	bool is_eager;		     /* rounds wait for no more than a moment */
	u64 core_limit;		     /* bytes of memory in a core, 0 = all */
	char *record;		     /* owned; the file of `record` */
	char *sysroot;		     /* owned; of `set`. NULL = that of the options */
	struct console_log *log;     /* owned; calls to print, NULL = none */
	struct console_calls *calls; /* owned; of any function, to print */
	struct held_process *held;   /* owned; that `break` has stopped, NULL = none */
	struct span between;	     /* of `goto` */
	struct code_choice choice;   /* of running processes */
	char *baseline;		     /* owned; a JSON report. NULL = none yet */
	size_t baseline_len;
	struct console_cost {
		u64 time_ns, cpu_ns, events;
	} cost; /* of heaptap itself, at the last status */
};

enum console_news { NEWS_NONE, NEWS_INPUT, NEWS_INTERRUPT, NEWS_END };

/* How long a round waits. */
enum console_wait {
	WAIT_NOT,   /* not at all */
	WAIT_A_BIT, /* for the next event or signal, but not long */
	WAIT_INPUT, /* for the next event, signal or input of the console */
};

/* Wait as @wait says, enter events and answer requests. NEWS_END sets c->is_over. */
enum console_news console_round(struct console *c, enum console_wait wait);

/* Why console_wait_for() returned. */
enum wait_end {
	WAIT_ENOUGH,
	WAIT_TIMED_OUT,
	WAIT_ENDED,	 /* no process runs any more */
	WAIT_BROKEN_OFF, /* Ctrl-C, or the console is to end */
};

/* Enter events for @ns (0: without a limit), or until @is_enough (may be NULL) is true. */
enum wait_end console_wait_for(struct console *c, u64 ns,
			       bool (*is_enough)(const struct console *c, void *arg), void *arg);

/* Run one line, which is changed. Errors are logged and counted. */
void console_run(struct console *c, char *line);

/* Run all commands: of --execute, of a script, or typed. */
void console_serve(struct console *c);

/* How reports look where the output of the command goes. */
struct report_options console_look(const struct console *c);

/* Make a verdict, or take the one that the recording has, and @show it. 0, -ECANCELED after Ctrl-C, or -errno. */
int console_with_verdict(struct console *c, int (*show)(void *ctx, const struct report *r), void *ctx);

/* Log why the command failed, with the line of the script. Returns @err. */
int __printf(3, 4) console_refuse(const struct console *c, int err, const char *fmt, ...);

/* Ask on the terminal. True for "yes", false without a terminal. */
bool console_ask(struct console *c, const char *question);

/* The words that may begin at letter @start of @line; a console_words_fn. */
const char *console_words(const char *line, size_t start, const char *text, size_t i);

/* The name of setting number @i of `set`, or NULL behind the last one. */
const char *console_setting(size_t i);

/*
 * The one process of @r that runs here, for @command; else NULL, logged: 'set process' chooses one.
 */
const struct report_process *console_only_process(const struct console *c, const char *command,
						  const struct report *r);

/* Read @word, a PID or "all", for @command; *@pid is 0 for all. 0; or -EINVAL, logged: no such process is traced. */
int console_read_pid(const struct console *c, const char *command, const char *word, pid_t *pid);

/* Print all settings. */
int console_settings(struct console *c);

/* Let the process run that `break` has stopped, if there is one. */
void console_break_end(struct console *c);

/* Start the counters again that `status` shows of heaptap itself. */
void console_begin_cost(struct console *c);
