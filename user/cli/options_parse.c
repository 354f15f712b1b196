/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line, parsed by the tables of options.c, over the config file. */
#include "user/cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/commands.h"
#include "user/cli/config.h"
#include "user/cli/mistakes.h"
#include "user/lib/log.h"
#include "user/lib/parse.h"
#include "user/lib/serve_only.h"
#include "user/cli/options_private.h"
#include "user/cli/options_rooms.h"
#include "user/report/format.h"
#include "user/source/sample_pace.h"
#include "user/source/source_open.h"
#include "user/scan/suppress.h"

enum { FIRST_ID = 256 };

/* getopt's tables for the options of one command. */
struct getopt_tables {
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 + 2 * OPTIONS_MAX + 1];
};

static void options_parse_make_tables(struct getopt_tables *t, const struct command *command)
{
	struct option *l = t->longs;
	char *s = t->shorts;

	memset(t, 0, sizeof(*t));
	if (command->stops_at_arg)
		*s++ = '+';
	*s++ = ':'; /* tell a missing argument from an unknown option */
	for (const struct option_row *row = option_rows; row->name; row++) {
		if (!is_for(row, command))
			continue;
		*l++ = (struct option){ row->name, row->arg ? required_argument : no_argument, NULL,
					FIRST_ID + (int)(row - option_rows) };
		if (!row->letter)
			continue;
		*s++ = row->letter;
		if (row->arg)
			*s++ = ':';
	}
}

static const struct option_row *options_parse_row_of(int id)
{
	if (id >= FIRST_ID)
		return &option_rows[id - FIRST_ID];
	for (const struct option_row *row = option_rows; row->name; row++)
		if (row->letter == id)
			return row;
	return NULL;
}

const struct option_row *option_row_find(const char *name, size_t len)
{
	for (const struct option_row *row = option_rows; row->name; row++)
		if (strlen(row->name) == len && !strncmp(row->name, name, len))
			return row;
	return NULL;
}

/* The options in @argv, argv[0] being the command; *@end becomes the index of the first argument. */
static int parse_options(struct options *o, int argc, char **argv, int *end)
{
	struct getopt_tables tables;
	int err = 0;
	int id;

	options_parse_make_tables(&tables, o->command);
	opterr = 0;
	optind = 0; /* glibc and musl: begin anew */
	while (!err && (id = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
		if (id == '?') {
			mistake_option(o->command, optopt ? options_parse_row_of(optopt) : NULL,
				       argv[optind - 1], optopt < FIRST_ID ? optopt : 0);
			return -EINVAL;
		}
		if (id == ':') {
			error("--%s: needs an argument, %s", options_parse_row_of(optopt)->name,
			      options_parse_row_of(optopt)->arg);
			return -EINVAL;
		}
		err = options_parse_row_of(id)->take(o, options_parse_row_of(id), optarg);
		o->has_top |= options_parse_row_of(id)->field == offsetof(struct options, top);
	}
	*end = optind;
	return err;
}

static int set_defaults(struct options *o)
{
	for (const struct option_row *row = option_rows; row->name; row++) {
		int err = row->def ? row->take(o, row, row->def) : 0;

		if (err)
			return err;
	}
	return 0;
}

/* One line of the config file. An option that the command does not take is for other commands. */
static int apply_line(struct options *o, const char *name, const char *value)
{
	const struct option_row *row = option_row_find(name, strlen(name));

	if (!row || row->is_only_typed) {
		error("config: %s:%u: %s: %s", o->config_path, o->config_line, name, "no such option");
		return -EINVAL;
	}
	if (!row->arg && *value)
		return options_bad_value(o, row, "takes no argument");
	if (row->arg && !*value)
		return options_bad_value(o, row, "needs an argument, %s", row->arg);
	return is_for(row, o->command) ? row->take(o, row, value) : 0;
}

static int apply_config(struct options *o)
{
	char *rest = o->config_text;
	int err = 0;
	char *name;
	char *value;

	while (!err && config_next(&rest, &name, &value, &o->config_line))
		err = apply_line(o, name, value);
	o->config_line = 0;
	return err;
}

/* The options of the config file, then those of the command line over them. */
static int parse_all(struct options *o, int argc, char **argv, int *end)
{
	struct options typed = { .command = o->command };
	const char *config;
	int err;

	/* The first time only looks for --config, --help and --version. */
	err = parse_options(&typed, argc, argv, end);
	config = typed.config;
	o->is_keep_typed = typed.keep;
	o->want_help = typed.want_help;
	o->want_all = typed.want_all;
	o->want_version = typed.want_version;
	o->want_formats = typed.want_formats;
	options_fini(&typed);
	if (err || o->want_help || o->want_version || o->want_formats || o->command->run == cmd_help)
		return err;
	err = IS_AGENT ? 0 : config_read(config, &o->config_text, &o->config_path);
	if (!IS_AGENT && !err)
		err = apply_config(o);
	return err ? err : parse_options(o, argc, argv, end);
}

/* Read suppressions before anything is traced, so that a mistake in a rule (logged) ends heaptap now. */
static int read_suppressions(struct options *o)
{
	int err;

	if (IS_AGENT)
		return 0;
	err = o->suppress ? 0 : suppress_new(&o->suppress);
	if (!err && !o->no_default_suppressions)
		err = suppress_add_text(o->suppress, "default", suppress_builtin, strlen(suppress_builtin));
	for (size_t i = 0; i < o->suppressions.nr && !err; i++)
		err = suppress_add_file(o->suppress, o->suppressions.items[i]);
	return err == -ENOMEM ? err : err ? -EINVAL : 0;
}

/* Have the reports names of their own, or the parts of the recording? */
static bool writes_series(const struct options *o)
{
	bool is_one = o->record_size || o->record_ns;

	for (size_t i = 0; i < o->outputs.nr && !is_one; i++)
		is_one = strstr(o->outputs.items[i], "%n") || strstr(o->outputs.items[i], "%t");
	return is_one;
}

/* Can a trace of samples do what else @o asks for? */
static int options_check_sample(const struct options *o)
{
	const struct session_options so = options_session(o);
	const char *why =
		o->want_mmap ? "mappings are not sampled: leave out --mmap" : session_needs_all(&so);

	if (why)
		error("--sample: %s", why);
	return why ? -EINVAL : 0;
}

/* Check the arguments behind the options: enough, and not too many. Arguments of attach count as --pid. */
static int check_args(struct options *o, int argc, char **argv)
{
	const struct command *c = o->command;
	size_t given = argc;

	o->args = argv;
	o->nr_args = argc;
	/* getopt leaves a -- in front of the arguments. */
	o->is_program = argc && !strcmp(argv[-1], "--");
	if ((!IS_SERVE_ONLY && c->run == cmd_attach) ||
	    (!IS_AGENT && (c->run == cmd_scan || c->run == cmd_console || c->run == cmd_top)) ||
	    (c->run == cmd_serve && !o->is_program)) {
		for (int i = 0; i < argc; i++)
			if (options_list_add(&o->targets, argv[i]))
				return -ENOMEM;
		given = o->targets.nr;
	}
	if (given < c->min_args) {
		error("%s: needs %s; see 'heaptap help %s'", c->name, c->synopsis, c->name);
		return -EINVAL;
	}
	if (given > c->max_args) {
		mistake_argument(c, o->targets.nr ? o->targets.items[c->max_args] : argv[c->max_args]);
		return -EINVAL;
	}
	if (o->fail_on_errors && o->check == CHECK_NEVER) {
		error("--fail-on: errors are not looked for with --no-check");
		return -EINVAL;
	}
	if (!IS_AGENT && o->sample_bytes && options_check_sample(o))
		return -EINVAL;
	/* --error-exitcode alone asks for the usual rule. */
	if (o->error_exitcode && !o->fail_on_errors && !o->fail_growth)
		o->fail_on_definite = true;
	if (o->max_size && o->min_size > o->max_size) {
		error("--min-size: must not be larger than --max-size");
		return -EINVAL;
	}
	if (o->is_keep_typed && !writes_series(o)) {
		error("--keep: needs --output with %%n or %%t in its name, or --record-size or --record-time");
		return -EINVAL;
	}
	return 0;
}

static bool is_one_of(const char *text, const char *const *words)
{
	while (*words && strcmp(text, *words) != 0)
		words++;
	return *words;
}

/* --help and --version in place of a command; 0 if @text is neither. @behind is the next word, or NULL. */
static int without_command(const char *text, const char *behind)
{
	static const char *const version[] = { "--version", "-V", "version", NULL };
	static const char *const help[] = { "--help", "-h", NULL };

	if (is_one_of(text, version)) {
		puts("heaptap " HEAPTAP_VERSION);
		return 1;
	}
	if (!is_one_of(text, help))
		return 0;
	options_help(stdout, behind ? command_find(behind) : NULL, false);
	return 1;
}

int options_parse(struct options *o, int argc, char **argv)
{
	int end;
	int err;

	memset(o, 0, sizeof(*o));
	err = set_defaults(o);
	if (err)
		return err;
	if (argc < 2) {
		options_help(stderr, NULL, false);
		return -EINVAL;
	}
	if (without_command(argv[1], argv[2]))
		return 1;
	o->command = command_find(argv[1]);
	if (o->command)
		argc--, argv++;
	else if (!IS_AGENT)
		o->command = mistake_implied(argv[1]);
	if (!o->command) {
		mistake_command(argv[1]);
		return -EINVAL;
	}
	err = parse_all(o, argc, argv, &end);
	if (err)
		return err == -ENOMEM ? err : -EINVAL;
	if (o->want_version)
		return without_command("--version", NULL);
	if (o->want_help) {
		options_help(stdout, o->command, false);
		return 1;
	}
	if (!IS_SERVE_ONLY && o->want_formats) {
		report_formats_list(stdout);
		return 1;
	}
	err = check_args(o, argc - end, argv + end);
	if (!err)
		mistake_late_options(o);
	return err ? err : read_suppressions(o);
}

int options_take_fail_on(struct options *o, const struct option_row *row, const char *text)
{
	bool is_diff = o->command && !strcmp(o->command->name, "diff");

	if (!strcmp(text, "errors")) {
		o->fail_on_errors = true;
		return 0;
	}
	if (!strncmp(text, "growth:", 7) && !parse_percent(text + 7, &o->fail_growth) && o->fail_growth)
		return 0;
	if (is_diff && !strncmp(text, "growth:", 7) && !parse_size(text + 7, &o->fail_growth_bytes))
		return 0;
	if (!strcmp(text, "definite") || !strcmp(text, "leaks"))
		o->fail_bytes = 0;
	else if (strncmp(text, "definite:", 9) || parse_size(text + 9, &o->fail_bytes))
		return options_bad_value(
			o, row,
			"%s: must be leaks or definite, definite:64K with any size, growth:5%% with any percentage, "
			"or errors; diff: also growth:64K",
			text);
	o->fail_on_definite = true;
	return 0;
}

int options_take_sample(struct options *o, const struct option_row *row, const char *text)
{
	const u64 most = 64ULL << 30;

	o->sample_bytes = 0;
	o->adapts_samples = !strcmp(text, "auto");
	if (o->adapts_samples)
		o->sample_bytes = 1ULL << SAMPLE_FIRST_LOG;
	if (o->adapts_samples || !strcmp(text, "off"))
		return 0;
	if (!parse_size(text, &o->sample_bytes) && o->sample_bytes && o->sample_bytes <= most)
		return 0;
	return options_bad_value(o, row, "%s: must be auto, off, or a size from 1 to 64G, such as 512K",
				 text);
}
