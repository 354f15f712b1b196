/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command `set`, and `show` without a block: options that can change while the console runs. */
#include "user/console/console.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/scan/leaks.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/lib/parse.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"
#include "user/session/session_live.h"

static void print_sort(FILE *out, const struct console *c)
{
	fputs(c->options.output.report.sort->name, out);
}

static void print_top(FILE *out, const struct console *c)
{
	fprintf(out, "%u", c->options.output.report.top);
}

static void print_min(FILE *out, const struct console *c)
{
	fputs(c->options.output.report.min_size ? human_bytes(c->options.output.report.min_size).text : "any",
	      out);
}

static void print_max(FILE *out, const struct console *c)
{
	fputs(c->options.output.report.max_size ? human_bytes(c->options.output.report.max_size).text : "any",
	      out);
}

static void print_older(FILE *out, const struct console *c)
{
	fputs(c->options.output.report.older_ns ? human_duration(c->options.output.report.older_ns).text
						: "any",
	      out);
}

static void console_set_print_leaks(FILE *out, const struct console *c)
{
	static const char *const words[] = {
		[LEAKS_ALL] = "all", [LEAKS_NEW] = "new", [LEAKS_LEAKED] = "leaked"
	};

	fputs(words[c->options.session.verdict.leaks], out);
}

static void print_why(FILE *out, const struct console *c)
{
	fprintf(out, "%u", c->options.session.verdict.nr_whys);
}

static void print_pause(FILE *out, const struct console *c)
{
	fputs(c->options.session.verdict.max_pause_ns
		      ? human_duration(c->options.session.verdict.max_pause_ns).text
		      : "500 ms",
	      out);
}

static void print_verbose(FILE *out, const struct console *c)
{
	fputs(c->options.output.report.verbose ? "on" : "off", out);
}

static void print_force(FILE *out, const struct console *c)
{
	fputs(c->options.output.force ? "on" : "off", out);
}

static void console_set_print_process(FILE *out, const struct console *c)
{
	if (c->pid)
		fprintf(out, "%d", (int)c->pid);
	else
		fputs("all", out);
}

int console_read_pid(const struct console *c, const char *command, const char *word, pid_t *pid)
{
	u64 value = 0;

	if (strcmp(word, "all") && (parse_u64(word, &value) || value > INT32_MAX))
		return console_refuse(c, -EINVAL, "%s: %s: must be a PID, or all", command, word);
	if (value && !session_knows(c->session, (pid_t)value))
		return console_refuse(c, -EINVAL, "%s: %s: is not traced here", command, word);
	*pid = (pid_t)value;
	return 0;
}

static int console_set_process(struct console *c, const char *value)
{
	return console_read_pid(c, "set: process", value, &c->pid);
}

static void print_core_limit(FILE *out, const struct console *c)
{
	fputs(c->core_limit ? human_bytes(c->core_limit).text : "none", out);
}

static int set_core_limit(struct console *c, const char *value)
{
	if (!strcmp(value, "none"))
		c->core_limit = 0;
	else if (parse_size(value, &c->core_limit))
		return console_refuse(c, -EINVAL, "set: core-limit: %s: must be a size such as 512M, or none",
				      value);
	return 0;
}

static void print_sysroot(FILE *out, const struct console *c)
{
	const char *dir = c->options.session.names.sysroot;

	escape_text(out, dir ? dir : "none");
}

/* Names that were read already are read anew, of the files there. */
static int set_sysroot(struct console *c, const char *value)
{
	struct stat st;
	char *dir;

	if (!strcmp(value, "none"))
		value = "";
	else if (stat(value, &st) || !S_ISDIR(st.st_mode))
		return console_refuse(c, -EINVAL, "set: sysroot: %s: must be a directory, or none", value);
	dir = strdup(value);
	if (!dir)
		return console_refuse(c, -ENOMEM, "set: sysroot: %s", strerror(ENOMEM));
	c->options.session.names.sysroot = value[0] ? dir : NULL;
	session_forget_names(c->session);
	free(c->sysroot);
	c->sysroot = dir;
	return 0;
}

static void print_pager(FILE *out, const struct console *c)
{
	fputs(c->has_no_pager ? "off" : "on", out);
}

static int set_pager(struct console *c, const char *value)
{
	c->has_no_pager = !strcmp(value, "off");
	return 0;
}

static const struct {
	const char *name; /* also the name of the option, if there is one */
	void (*print)(FILE *out, const struct console *c);
	int (*set)(struct console *c, const char *value); /* NULL = it is an option */
	bool is_flag;					  /* on or off */
} settings[] = {
	{ "sort", print_sort },
	{ "top", print_top },
	{ "min-size", print_min },
	{ "max-size", print_max },
	{ "older", print_older },
	{ "process", console_set_print_process, console_set_process },
	{ "sysroot", print_sysroot, set_sysroot },
	{ "pager", print_pager, set_pager, .is_flag = true },
	{ "leaks", console_set_print_leaks },
	{ "why", print_why },
	{ "max-pause", print_pause },
	{ "verbose", print_verbose, .is_flag = true },
	{ "force", print_force, .is_flag = true },
	{ "core-limit", print_core_limit, set_core_limit },
};

const char *console_setting(size_t i)
{
	return i < ARRAY_SIZE(settings) ? settings[i].name : NULL;
}

/* The parser of an option checks the value. */
static int set_value(struct console *c, size_t i, const char *value)
{
	int err;

	if (settings[i].is_flag && strcmp(value, "on") && strcmp(value, "off"))
		return console_refuse(c, -EINVAL, "set: %s: %s: must be on or off", settings[i].name, value);
	if (settings[i].set)
		return settings[i].set(c, value);
	err = c->options.set(c->options.ctx, settings[i].name, value);
	if (err == -ERANGE)
		return console_refuse(c, -EINVAL, "set: min-size must not be larger than max-size");
	return err;
}

int console_set(struct console *c, size_t nr, char **words)
{
	const char *names[ARRAY_SIZE(settings)];
	const char *nearest;

	if (!nr)
		return console_settings(c);
	if (nr == 1)
		return console_refuse(c, -EINVAL, "set: %s: needs a value", words[0]);
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		names[i] = settings[i].name;
		if (strcmp(settings[i].name, words[0]))
			continue;
		return set_value(c, i, words[1]);
	}
	nearest = parse_nearest(words[0], names, ARRAY_SIZE(names));
	return console_refuse(c, -EINVAL,
			      nearest ? "set: %s: no such setting; did you mean %s"
				      : "set: %s: no such setting; see 'show'",
			      words[0], nearest);
}

int console_settings(struct console *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		fprintf(c->out, "  %-10s  ", settings[i].name);
		settings[i].print(c->out, c);
		fputc('\n', c->out);
	}
	return 0;
}
