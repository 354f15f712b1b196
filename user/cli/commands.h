/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of the table of commands, each in a file of its name. */
#pragma once

/* Rows of commands[]. */
enum {
	RUN,
	ATTACH,
	SCAN,
	MARK,
	SERVE,
	CONNECT,
	REPORT,
	DIFF,
	CONSOLE,
	TOP,
	SYSTEM,
	DOCTOR,
	DEMO,
	COMPLETION,
	HELP,
	NR_COMMANDS
};

struct options;

/* Each returns an enum exit_status and has said why on stderr if it is not STATUS_DONE. */
int cmd_run(const struct options *o);
int cmd_attach(const struct options *o);
int cmd_scan(const struct options *o);
int cmd_report(const struct options *o);
int cmd_serve(const struct options *o);
int cmd_connect(const struct options *o);
int cmd_diff(const struct options *o);
int cmd_console(const struct options *o);
int cmd_system(const struct options *o);
int cmd_top(const struct options *o);
int cmd_mark(const struct options *o);
int cmd_doctor(const struct options *o);
int cmd_demo(const struct options *o);
int cmd_completion(const struct options *o);
int cmd_help(const struct options *o);
