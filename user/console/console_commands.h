/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of the commands; console_commands.c has their table, and console_parse.h says how they are called. */
#pragma once

#include <stddef.h>

struct console;

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
int console_print(struct console *c, size_t nr, char **words);
int console_scan(struct console *c, size_t nr, char **words);
int console_why(struct console *c, size_t nr, char **words);
int console_wait(struct console *c, size_t nr, char **words);
int console_log(struct console *c, size_t nr, char **words);
int console_watch(struct console *c, size_t nr, char **words);
int console_monitor(struct console *c, size_t nr, char **words);
int console_start(struct console *c, size_t nr, char **words);
int console_stop(struct console *c, size_t nr, char **words);
int console_depth(struct console *c, size_t nr, char **words);
int console_filter(struct console *c, size_t nr, char **words);
int console_mark(struct console *c, size_t nr, char **words);
int console_reset(struct console *c, size_t nr, char **words);
int console_record(struct console *c, size_t nr, char **words);
int console_core(struct console *c, size_t nr, char **words);
int console_break(struct console *c, size_t nr, char **words);
int console_continue(struct console *c, size_t nr, char **words);
int console_kill(struct console *c, size_t nr, char **words);
int console_goto(struct console *c, size_t nr, char **words);
int console_quit(struct console *c, size_t nr, char **words);
