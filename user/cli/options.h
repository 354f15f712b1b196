/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: one table of commands, one of options; both also print the help. */
#pragma once

#include <stdio.h>

#include "user/target/alloc_spec.h"
#include "user/lib/types.h"
#include "user/stream/span.h"

struct option_list {
	const char **items; /* owned, NULL-terminated (NULL when empty); the strings are borrowed */
	size_t nr;
};

/* The command line, parsed, over what the config file says. Strings are argv's or the config's, or NULL. */
struct options {
	const struct command *command;
	char **args; /* arguments that are no options, NULL-terminated: the program of run, the file of report */
	size_t nr_args;
	struct option_list targets; /* --pid; attach: then args */

	u32 backend, on_full;			  /* enum source_backend, source_on_full */
	u32 depth;				  /* frames per stack */
	u64 interval_ns, duration_ns, stop_after; /* stop_after: allocations; 0 = none */
	u32 keep;				  /* files of the last reports; 0 = all */
	bool is_keep_typed;			  /* and not of the config file alone */
	struct option_list outputs;
	const struct report_format *format; /* of outputs without a known ending; NULL = not said */
	bool events;			    /* report: list the events instead */
	bool open;			    /* report: show the HTML page in a browser */
	bool has_between;		    /* report: count only what was allocated then */
	struct span between;
	const char *record;			 /* file of events */
	u64 record_seek, record_size, record_ns; /* bytes between seek points; a part: bytes, time; 0 = one */
	u64 max_memory;				 /* bytes, for the content of a recording; 0 = default */
	u32 sort;				 /* row of report_keys */
	u32 top;				 /* 0 = all */
	bool no_cpp, want_mmap, force, json, has_top; /* has_top: top was chosen */
	bool start_paused;			      /* allocations count from the first HEAPTAP_RESUME on */
	struct option_list usdt; /* notes of other programs that are marks: PROVIDER:NAME */
	struct option_list omit;
	struct alloc_spec *allocs; /* owned */
	size_t nr_allocs;
	u64 min_size, max_size;		 /* bytes; max 0 = no limit */
	u64 older_ns;			 /* 0 = of any age */
	struct option_list execute;	 /* console: commands */
	u64 ring_bytes, sample_bytes;	 /* 0 = the source's own choice; 0 = trace all blocks */
	u32 scan;			 /* enum session_scans: which reports have leak verdicts */
	u32 nr_jobs;			 /* 0 = one for each CPU */
	u32 snapshot;			 /* enum snapshot_way */
	u64 max_copy;			 /* 0 = what there is room for */
	u64 max_pause_ns;		 /* for a scan; 0 = as it suits the command */
	struct option_list suppressions; /* files */
	struct suppress_list *suppress;	 /* owned; the rules of all of them; NULL = none */
	bool no_default_suppressions;
	bool gen_suppressions, libraries, unaligned, perturb, want_all; /* want_all: help on all options */
	bool follow;		  /* trace children, and their children */
	bool as_root;		  /* the program does not run as the user who typed sudo */
	bool no_wait;		  /* run: end with the program, though followed children run on */
	u32 max_procs;		  /* most children that are traced */
	u32 nr_samples, contents; /* leaked blocks of each caller to show, and bytes of them */
	u32 nr_whys;		  /* callers with an example of who holds their blocks */
	u32 leaks;		  /* enum leak_kinds */
	u64 why_addr;		  /* a block to show the holder of, 0 = none */
	u64 pointer_mask;	  /* bits of a word that make an address, 0 = all */
	u32 check;		  /* enum source_check: whose releases are checked */
	/* Rules of --fail-on: at least fail_bytes are definitely lost; a release was wrong. */
	bool fail_on_definite, fail_on_errors;
	u32 fail_growth; /* a rule too: the process grew by so many tenths of a percent; 0 = no rule */
	u64 fail_bytes, fail_growth_bytes; /* the second one of diff; 0 = no rule */
	u32 error_exitcode;		   /* 0 = as it suits the command */
	const char *sysroot, *debug_path, *wrappers;
	const char *baseline, *why_type; /* scan: an earlier census in JSON; show who holds blocks of this */
	const char *callers;		 /* scan: a list of blocks in CSV */
	bool census;			 /* scan: also of a process that is traced */
	const char *user, *cwd;
	const char *listen, *to, *token_file, *metrics, *push;
	bool status;	   /* run: show the status line */
	bool is_program;   /* there was a -- before the arguments */
	bool thin;	   /* connect: the other side leaves out allocations outside min_size, max_size */
	bool insecure_tcp; /* tcp:// may leave this machine */
	bool wait, use_stdio, allow_kill, want_kill, announce, discover, debuginfod;
	/* system: which processes it watches and which it never traces; how many it watches, and traces at a time. */
	struct option_list comms, exes, uids, cgroups, containers, spare;
	u32 max_watched, zoom;
	bool everything, adapts_samples; /* trace all of them at once; --sample auto */
	u32 max_cost;			 /* of tracing, tenths of a percent of a CPU */
	u64 threshold_bytes;		 /* and rules for a report on a process: 0 = none */
	u32 threshold_growth;		 /* tenths of a percent an hour */
	bool quiet, verbose, want_help, want_version, want_formats, has_max_cost /* it was given */;
	u32 color;		    /* enum output_color */
	u32 annotate, older_blocks; /* 0 = none, 1 = as GitHub wants it; 0 = attach judges them, too */
	const char *config;	    /* named by --config */
	char *config_path;	    /* owned; of the file that was read, NULL = none */
	char *config_text;	    /* owned; values from it point into it */
	u32 config_line;	    /* line being parsed; 0 = the command line */
};

/* One command. */
struct command {
	const char *name;
	const char *synopsis; /* of the arguments */
	const char *help;
	int (*run)(const struct options *o); /* returns an exit status */
	size_t min_args, max_args;
	bool stops_at_arg; /* options end at the first argument, which is a program */
};

/* The table of commands; the last row has no name. What the agent has not has no run(). */
extern const struct command commands[];

/* One option. Limits and default are texts as the user would type them. */
struct option_row {
	const char *name; /* long */
	char letter;	  /* short name, 0 = none */
	const char *arg;  /* name of its argument, NULL = it takes none */
	int (*take)(struct options *o, const struct option_row *row, const char *text);
	size_t field; /* of struct options */
	const char *def, *min, *max;
	const char *(*choice)(size_t i); /* its values, NULL at the end */
	u32 commands;			 /* bit per row of the table of commands */
	bool is_only_typed;		 /* not allowed in a config file */
	const char *help;
};

/* The table of options; the last row has no name. */
extern const struct option_row option_rows[];

/* The option of the name @name, which has @len letters, or NULL. */
const struct option_row *option_row_find(const char *name, size_t len);

/*
 * Parse a command line, over the options of the config file; @argv is permuted. Returns 0 (run the command),
 * 1 (help, version or formats were printed), -EINVAL (one line was printed on stderr), or -ENOMEM. options_fini() in
 * any case.
 */
int options_parse(struct options *o, int argc, char **argv) __must_check;
void options_fini(struct options *o);
/* Is there a rule of --fail-on? */
bool options_have_rule(const struct options *o);
/* Print the help of @command, with its most used options or, in groups, all; or the list of commands for NULL. */
void options_help(FILE *out, const struct command *command, bool wants_all);

/* NULL if there is no command @name. */
const struct command *command_find(const char *name);
