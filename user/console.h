/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The console: a session on a running process or a recording, and commands to it from somebody or a script. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "user/console_parse.h"
#include "user/options.h"

struct connection;
struct console_input;
struct control;
struct outputs;
struct report;
struct session;

/* All that its commands may look at and change; cmd_console.c makes it. */
struct console {
	struct options options; /* a copy that `set` changes; what it owns is the original's */
	struct session *session;
	struct control *control;
	struct outputs *outs;	     /* of --output; NULL = none */
	struct console_input *input; /* NULL = commands are those of --execute */
	const char *path;	     /* of the recording; NULL = the processes run */
	struct connection *remote;   /* borrowed; where they run, NULL = here */
	FILE *out;		     /* what the command at hand prints goes here */
	bool is_terminal;
	bool is_over;	     /* no more commands */
	bool is_interrupted; /* Ctrl-C: leave the command */
	bool has_source;     /* events may still come */
	u32 line_nr;	     /* of a script, 0 = none */
	u32 round;
	size_t nr_running;
	pid_t pid;	       /* the one process that commands are about, 0 = all */
	u64 nr_bad, nr_failed; /* commands that were wrong; that could not be done */
	char *record;	       /* owned; the file of `record` */
	char *baseline;	       /* owned; a JSON report. NULL = none yet */
	size_t baseline_len;
	struct console_cost {
		u64 time_ns, cpu_ns, events;
	} cost; /* of heaptap itself, at the last status */
};

enum console_news { NEWS_NONE, NEWS_INPUT, NEWS_INTERRUPT, NEWS_END };

/* What a round waits for. */
enum console_wait {
	WAIT_NOT,   /* whatever is there */
	WAIT_A_BIT, /* the next thing, but not long */
	WAIT_INPUT, /* that of the console too */
};

/* Wait as @wait says, and do what is asked for: events are entered, others answered. NEWS_END sets c->is_over. */
enum console_news console_round(struct console *c, enum console_wait wait);

/* Run one line, which is changed. What is wrong with it is logged and counted. */
void console_run(struct console *c, char *line);

/* All commands there are: of --execute, of a script, or typed. */
void console_serve(struct console *c);

/* One line on why the command cannot be done, behind where it stands. Returns @err. */
int __printf(3, 4) console_refuse(const struct console *c, int err, const char *fmt, ...);

/* Ask on the terminal; true for "yes". Without a terminal nobody says yes. */
bool console_ask(struct console *c, const char *question);

/* What may stand at letter @start of @line; console_words_fn. */
const char *console_words(const char *line, size_t start, const char *text, size_t i);

/* What `set` can set: number @i, NULL behind the last. */
const char *console_setting(size_t i);

/* Commands that show something; see the table for what they do. */
int console_help(struct console *c, size_t nr, char **words);
int console_status(struct console *c, size_t nr, char **words);
int console_report(struct console *c, size_t nr, char **words);
int console_top(struct console *c, size_t nr, char **words);
int console_stacks(struct console *c, size_t nr, char **words);
int console_caller(struct console *c, size_t nr, char **words);
int console_blocks(struct console *c, size_t nr, char **words);
int console_baseline(struct console *c, size_t nr, char **words);
int console_diff(struct console *c, size_t nr, char **words);
int console_processes(struct console *c, size_t nr, char **words);
int console_set(struct console *c, size_t nr, char **words);
int console_show(struct console *c, size_t nr, char **words);

/* What the next status says of heaptap itself counts from now. */
void console_begin_cost(struct console *c);

/* Commands to what runs. */
int console_scan(struct console *c, size_t nr, char **words);
int console_why(struct console *c, size_t nr, char **words);
int console_monitor(struct console *c, size_t nr, char **words);
int console_start(struct console *c, size_t nr, char **words);
int console_stop(struct console *c, size_t nr, char **words);
int console_depth(struct console *c, size_t nr, char **words);
int console_filter(struct console *c, size_t nr, char **words);
int console_mark(struct console *c, size_t nr, char **words);
int console_reset(struct console *c, size_t nr, char **words);
int console_record(struct console *c, size_t nr, char **words);
int console_kill(struct console *c, size_t nr, char **words);
int console_goto(struct console *c, size_t nr, char **words);
int console_quit(struct console *c, size_t nr, char **words);
