/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What commands of the console show, changed while it runs: the options that mean something then. */
#include "user/console.h"

#include <errno.h>
#include <string.h>

#include "user/leaks.h"
#include "user/lib/human.h"
#include "user/lib/parse.h"
#include "user/report.h"
#include "user/session_live.h"

static void print_sort(FILE *out, const struct console *c)
{
	fputs(report_keys[c->options.sort].name, out);
}

static void print_top(FILE *out, const struct console *c)
{
	fprintf(out, "%u", c->options.top);
}

static void print_min(FILE *out, const struct console *c)
{
	fputs(c->options.min_size ? human_bytes(c->options.min_size).text : "any", out);
}

static void print_max(FILE *out, const struct console *c)
{
	fputs(c->options.max_size ? human_bytes(c->options.max_size).text : "any", out);
}

static void print_older(FILE *out, const struct console *c)
{
	fputs(c->options.older_ns ? human_duration(c->options.older_ns).text : "any", out);
}

static void print_leaks(FILE *out, const struct console *c)
{
	static const char *const words[] = {
		[LEAKS_ALL] = "all", [LEAKS_NEW] = "new", [LEAKS_LEAKED] = "leaked"
	};

	fputs(words[c->options.leaks], out);
}

static void print_why(FILE *out, const struct console *c)
{
	fprintf(out, "%u", c->options.nr_whys);
}

static void print_pause(FILE *out, const struct console *c)
{
	fputs(c->options.max_pause_ns ? human_duration(c->options.max_pause_ns).text : "500 ms", out);
}

static void print_verbose(FILE *out, const struct console *c)
{
	fputs(c->options.verbose ? "on" : "off", out);
}

static void print_force(FILE *out, const struct console *c)
{
	fputs(c->options.force ? "on" : "off", out);
}

static void print_process(FILE *out, const struct console *c)
{
	if (c->pid)
		fprintf(out, "%d", (int)c->pid);
	else
		fputs("all", out);
}

/* The option that a setting is, NULL for the one that is none. */
#define PROCESS NULL

static const struct {
	const char *name, *option;
	void (*print)(FILE *out, const struct console *c);
	size_t flag;	/* of struct options: on or off */
	size_t nothing; /* the same: a u64 that 0 switches off */
} settings[] = {
	{ "sort", "sort", print_sort },
	{ "top", "top", print_top },
	{ "min-size", "min-size", print_min, .nothing = offsetof(struct options, min_size) },
	{ "max-size", "max-size", print_max, .nothing = offsetof(struct options, max_size) },
	{ "older", "older", print_older, .nothing = offsetof(struct options, older_ns) },
	{ "process", PROCESS, print_process },
	{ "leaks", "leaks", print_leaks },
	{ "why", "why", print_why },
	{ "max-pause", "max-pause", print_pause },
	{ "verbose", "verbose", print_verbose, .flag = offsetof(struct options, verbose) },
	{ "force", "force", print_force, .flag = offsetof(struct options, force) },
};

const char *console_setting(size_t i)
{
	return i < ARRAY_SIZE(settings) ? settings[i].name : NULL;
}

static int set_flag(struct console *c, size_t i, const char *value)
{
	if (strcmp(value, "on") && strcmp(value, "off"))
		return console_refuse(c, -EINVAL, "set: %s: %s: must be on or off", settings[i].name, value);
	*(bool *)((char *)&c->options + settings[i].flag) = !strcmp(value, "on");
	return 0;
}

static int set_process(struct console *c, const char *value)
{
	u64 pid = 0;

	if (strcmp(value, "all") && (parse_u64(value, &pid) || pid > INT32_MAX))
		return console_refuse(c, -EINVAL, "set: process: %s: must be a PID, or all", value);
	if (pid && !session_knows(c->session, (pid_t)pid))
		return console_refuse(c, -EINVAL, "set: process: %s: is not traced here", value);
	c->pid = (pid_t)pid;
	return 0;
}

/* The option's own parser says what is wrong with @value. */
static int set_option(struct console *c, size_t i, const char *value)
{
	const struct option_row *row = option_row_find(settings[i].option, strlen(settings[i].option));
	struct options o = c->options;
	int err;

	if (settings[i].nothing && !strcmp(value, "0")) {
		*(u64 *)((char *)&c->options + settings[i].nothing) = 0;
		return 0;
	}
	err = row ? row->take(&o, row, value) : -EINVAL;
	if (err)
		return -EINVAL;
	if (o.max_size && o.min_size > o.max_size)
		return console_refuse(c, -EINVAL, "set: min-size must not be larger than max-size");
	/* An address is for `why`. */
	o.why_addr = c->options.why_addr;
	c->options = o;
	return 0;
}

int console_set(struct console *c, size_t nr, char **words)
{
	const char *names[ARRAY_SIZE(settings)];
	const char *nearest;

	if (!nr)
		return console_show(c, 0, words);
	if (nr == 1)
		return console_refuse(c, -EINVAL, "set: %s: needs a value", words[0]);
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		names[i] = settings[i].name;
		if (strcmp(settings[i].name, words[0]))
			continue;
		if (settings[i].flag)
			return set_flag(c, i, words[1]);
		return settings[i].option ? set_option(c, i, words[1]) : set_process(c, words[1]);
	}
	nearest = parse_nearest(words[0], names, ARRAY_SIZE(names));
	return console_refuse(c, -EINVAL,
			      nearest ? "set: %s: no such setting; did you mean %s"
				      : "set: %s: no such setting; see 'show'",
			      words[0], nearest);
}

int console_show(struct console *c, size_t nr, char **words)
{
	(void)nr;
	(void)words;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		fprintf(c->out, "  %-10s  ", settings[i].name);
		settings[i].print(c->out, c);
		fputc('\n', c->out);
	}
	return 0;
}
