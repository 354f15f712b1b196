/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: one table of commands, one of options; both also print the help. */
#pragma once

#include <stdio.h>

#include "user/alloc_spec.h"
#include "user/lib/types.h"
#include "user/span.h"

struct report_options;
struct suppress_list;

/* What heaptap ends with, unless `run` passes on the program's own status. */
enum exit_status {
	STATUS_DONE = 0,
	STATUS_FINDINGS = 1,	 /* that --fail-on asked for */
	STATUS_USAGE = 2,	 /* the command line is wrong */
	STATUS_IMPOSSIBLE = 3,	 /* no permission, or not possible on this kernel */
	STATUS_NO_TARGET = 4,	 /* no such target, or it ended at once */
	STATUS_UNTRUSTED = 5,	 /* the result cannot be trusted, or could not be written */
	STATUS_CANNOT_RUN = 126, /* the program could not be started */
	STATUS_NOT_FOUND = 127,	 /* there is no such program */
};

enum option_backend { BACKEND_AUTO, BACKEND_BPF, BACKEND_PTRACE };
enum option_check { CHECK_STARTED, CHECK_ALWAYS, CHECK_NEVER };
enum option_scan { SCAN_AT_END, SCAN_ALWAYS, SCAN_NEVER };
enum option_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct option_list {
	const char **items; /* owned, NULL-terminated (NULL when empty); the strings are borrowed */
	size_t nr;
};

struct command;

/* The command line, parsed, over what the config file says. Strings are argv's or the config's, or NULL. */
struct options {
	const struct command *command;
	char **args; /* what is no option, NULL-terminated: run's program, report's file */
	size_t nr_args;
	struct option_list targets; /* attach: --pid and args, in this order */

	u32 backend;		      /* enum option_backend */
	u32 depth;		      /* frames per stack */
	u64 interval_ns, duration_ns; /* 0 = none */
	struct option_list outputs;
	bool events;	  /* report: list them instead */
	bool has_between; /* report: only of what was allocated then */
	struct span between;
	const char *record;	    /* file of events */
	u64 record_size, record_ns; /* of a part, bytes and time; 0 = one part */
	u64 max_memory;		    /* bytes, for what a recording says; 0 = default */
	u32 sort;		    /* row of report_keys */
	u32 top;		    /* 0 = all */
	bool no_cpp, want_mmap, force, json;
	struct option_list omit;
	struct alloc_spec *allocs; /* owned */
	size_t nr_allocs;
	u64 min_size, max_size;		 /* bytes; max 0 = no limit */
	u64 older_ns;			 /* 0 = of any age */
	struct option_list execute;	 /* console: commands */
	u64 ring_bytes;			 /* 0 = the source's own choice */
	u32 scan;			 /* enum option_scan: which reports have leak verdicts */
	u64 max_pause_ns;		 /* for a scan; 0 = as it suits the command */
	struct option_list suppressions; /* files */
	struct suppress_list *suppress;	 /* owned; the rules of all of them; NULL = none */
	bool gen_suppressions, unaligned, perturb;
	bool follow;	  /* children, and theirs */
	u32 max_procs;	  /* at most so many of them */
	u32 nr_whys;	  /* callers whose blocks' holders are shown */
	u32 leaks;	  /* enum leak_kinds */
	u64 why_addr;	  /* the block whose holder is asked for, 0 = none */
	u64 pointer_mask; /* bits of a word that make an address, 0 = all */
	u32 check;	  /* enum option_check: whose releases are looked at */
	/* End with error_exitcode if at least fail_bytes are lost for sure; if a release was wrong. */
	bool fail_on_definite, fail_on_errors;
	u32 fail_growth; /* the same if the process grew by so many tenths of a percent; 0 = not asked for */
	u64 fail_bytes;
	u32 error_exitcode; /* 0 = as it suits the command */
	const char *sysroot, *debug_path;
	const char *user, *cwd;
	const char *listen, *to, *token_file;
	bool is_program; /* the arguments came behind -- */
	bool thin;	 /* connect: the other side sends no allocations outside min_size, max_size */
	bool wait, use_stdio, allow_kill, want_kill, announce, discover, debuginfod;
	bool quiet, verbose, want_help, want_version;
	u32 color; /* enum option_color */

	const char *config; /* that --config names */
	char *config_path;  /* owned; that was read, NULL = none */
	char *config_text;  /* owned; values from it point into it */
	u32 config_line;    /* that is being parsed, 0 = the command line is */
};

/* One command. */
struct command {
	const char *name;
	const char *synopsis; /* of its arguments */
	const char *help;
	int (*run)(const struct options *o); /* returns an exit status */
	size_t min_args, max_args;
	bool stops_at_arg; /* options end at the first argument: the rest is a program's */
	bool is_left_out;  /* of the agent */
};

/* The table of commands; the last row has no name. */
extern const struct command commands[];

/* One option. Limits and default are texts as the user would type them. */
struct option_row {
	const char *name; /* long */
	char letter;	  /* short, 0 = none */
	const char *arg;  /* name of its argument, NULL = it takes none */
	int (*take)(struct options *o, const struct option_row *row, const char *text);
	size_t field; /* of struct options */
	const char *def, *min, *max;
	const char *(*choice)(size_t i); /* words that it takes, NULL at the end */
	u32 commands;			 /* bit per row of the table of commands */
	bool is_only_typed;		 /* no option for a config file */
	bool is_left_out;		 /* of the agent */
	const char *help;
};

/* The table of options; the last row has no name. */
extern const struct option_row option_rows[];

/* NULL if there is no option of the name that @name of @len letters is. */
const struct option_row *option_row_find(const char *name, size_t len);

/*
 * Parse a command line, over the options of the config file; @argv is permuted. Returns 0 (run the command),
 * 1 (help or version was printed), -EINVAL (one line was printed on stderr), or -ENOMEM. options_fini() in
 * any case.
 */
int options_parse(struct options *o, int argc, char **argv) __must_check;
void options_fini(struct options *o);

/* --fail-on asks for something. */
bool options_have_rule(const struct options *o);

/* Print the help of @command, or the list of commands for NULL. */
void options_help(FILE *out, const struct command *command);

/* NULL if there is no command @name. */
const struct command *command_find(const char *name);

/* How reports to @out (NULL: a file, never coloured) shall look: as the terminal and the environment say. */
struct report_options options_for_report(const struct options *o, FILE *out);
