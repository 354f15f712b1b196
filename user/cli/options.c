/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: the table of options, and the parsers of its rows. */
#include "user/cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "user/cli/commands.h"
#include "user/lib/array.h"
#include "user/lib/log.h"
#include "user/lib/parse.h"
#include "user/lib/serve_only.h"
#include "user/cli/options_private.h"
#include "user/report/output.h"
#include "user/report/report_rows.h"
#include "user/scan/leaks_marks.h"
#include "user/scan/snapshot_way.h"
#include "user/session/session_options.h"
#include "user/scan/suppress.h"

/* Options that an agent has not are without a row there. */
/* clang-format off */
#if IS_SERVE_ONLY
#define OF_BOOKS(...)
#else
#define OF_BOOKS(...)	      __VA_ARGS__,
#endif
#define OF_HOST_FN static __attribute__((unused)) /* only such rows use it */
/* clang-format on */

static int take_flag(struct options *o, const struct option_row *row, const char *text);
static int take_u32(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_u64(struct options *o, const struct option_row *row, const char *text);
static int take_size(struct options *o, const struct option_row *row, const char *text);
static int take_duration(struct options *o, const struct option_row *row, const char *text);
static int options_take_text(struct options *o, const struct option_row *row, const char *text);
static int take_list(struct options *o, const struct option_row *row, const char *text);
static int take_usdt(struct options *o, const struct option_row *row, const char *text);
static int take_choice(struct options *o, const struct option_row *row, const char *text);
static int take_alloc(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_format(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_html(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_scan(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_no_scan(struct options *o, const struct option_row *row, const char *text);
static int take_check(struct options *o, const struct option_row *row, const char *text);
static int take_no_check(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_ignore(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_why(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_mask(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_threshold(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_cost(struct options *o, const struct option_row *row, const char *text);
OF_HOST_FN int take_between(struct options *o, const struct option_row *row, const char *text);

static const char *backend_choice(size_t i)
{
	static const char *const words[] = { [BACKEND_AUTO] = "auto",
					     [BACKEND_BPF] = "bpf",
					     [BACKEND_PTRACE] = "ptrace",
					     [BACKEND_INLINE] = "inline",
					     NULL };

	return words[i];
}

OF_HOST_FN const char *on_full_choice(size_t i)
{
	static const char *const words[] = { [ON_FULL_WAIT] = "wait", [ON_FULL_DROP] = "drop", NULL };

	return words[i];
}

static const char *color_choice(size_t i)
{
	static const char *const words[] = {
		[COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never", NULL
	};

	return words[i];
}

OF_HOST_FN const char *leaks_choice(size_t i)
{
	static const char *const words[] = {
		[LEAKS_ALL] = "all", [LEAKS_NEW] = "new", [LEAKS_LEAKED] = "leaked", NULL
	};

	return words[i];
}

OF_HOST_FN const char *snapshot_choice(size_t i)
{
	static const char *const words[] = { [SNAPSHOT_STOP] = "stop",
					     [SNAPSHOT_FORK] = "fork",
					     [SNAPSHOT_AUTO] = "auto",
					     [SNAPSHOT_PRECOPY] = "precopy",
					     NULL };

	return words[i];
}

OF_HOST_FN const char *annotate_choice(size_t i)
{
	static const char *const words[] = { "none", "github", NULL };

	return words[i];
}

OF_HOST_FN const char *older_blocks_choice(size_t i)
{
	static const char *const words[] = { "yes", "no", NULL };

	return words[i];
}

OF_HOST_FN const char *sort_choice(size_t i)
{
	return report_keys[i].name;
}

OF_HOST_FN const char *output_choice(size_t i)
{
	return report_formats[i].ending;
}

OF_HOST_FN const char *format_choice(size_t i)
{
	return report_formats[i].name;
}

/* The agent lists its options without the text. */
#define HELP(text) .help = IS_AGENT ? NULL : (text)
#define FIELD(f)   offsetof(struct options, f)
#define IN(c)	   (1U << (c))
#define TRACING	   (IN(RUN) | IN(ATTACH) | IN(CONSOLE) | IN(TOP))
#define SERVING	   (TRACING | IN(SERVE))
#define WATCHING   (TRACING | IN(CONNECT))
#define BOTH	   (TRACING | IN(SERVE) | IN(CONNECT))
#define ALL	   (IN(NR_COMMANDS) - 1)

const struct option_row option_rows[] = {
#include "user/cli/option_rows.inc"
};

_Static_assert(ARRAY_SIZE(option_rows) <= OPTIONS_MAX, "room in options_parse.c");

int options_bad_value(const struct options *o, const struct option_row *row, const char *fmt, ...)
{
	char why[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (o->config_line)
		error("config: %s:%u: %s: %s", o->config_path, o->config_line, row->name, why);
	else
		error("--%s: %s", row->name, why);
	return -EINVAL;
}

static void *options_field_of(struct options *o, const struct option_row *row)
{
	return (char *)o + row->field;
}

static int take_flag(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(bool *)options_field_of(o, row) = true;
	return 0;
}

/* Parse @text within the limits of @row, which are parsed the same way. */
static int options_take_number(const struct options *o, const struct option_row *row, const char *text,
			       int (*parse)(const char *, u64 *), const char *what, u64 *out)
{
	u64 min = 0;
	u64 max = 0;
	int err = parse(text, out);

	if (err == -EINVAL)
		return options_bad_value(o, row, "%s: must be %s", text, what);
	if (parse(row->min, &min) || parse(row->max, &max))
		return -EINVAL;
	if (!err && *out >= min && *out <= max)
		return 0;
	return options_bad_value(o, row, "%s: must be between %s and %s", text, row->min, row->max);
}

static int take_u32(struct options *o, const struct option_row *row, const char *text)
{
	u64 value;

	if (options_take_number(o, row, text, parse_u64, "a number", &value))
		return -EINVAL;
	*(u32 *)options_field_of(o, row) = value;
	return 0;
}

static int take_u64(struct options *o, const struct option_row *row, const char *text)
{
	return options_take_number(o, row, text, parse_u64, "a number", options_field_of(o, row));
}

static int take_size(struct options *o, const struct option_row *row, const char *text)
{
	return options_take_number(o, row, text, parse_size, "a size such as 4096, 64K or 1M",
				   options_field_of(o, row));
}

static int take_duration(struct options *o, const struct option_row *row, const char *text)
{
	return options_take_number(o, row, text, parse_duration, "a duration such as 500ms, 10s or 2h",
				   options_field_of(o, row));
}

static int options_take_text(struct options *o, const struct option_row *row, const char *text)
{
	if (!*text)
		return options_bad_value(o, row, "must not be empty");
	*(const char **)options_field_of(o, row) = text;
	return 0;
}

int options_list_add(struct option_list *list, const char *text)
{
	/* One more for the NULL at the end. */
	if (array_extend(list->items, list->nr + 1))
		return -ENOMEM;
	list->items[list->nr++] = text;
	list->items[list->nr] = NULL;
	return 0;
}

static int take_list(struct options *o, const struct option_row *row, const char *text)
{
	if (!*text)
		return options_bad_value(o, row, "must not be empty");
	return options_list_add(options_field_of(o, row), text);
}

static int take_html(struct options *o, const struct option_row *row, const char *text)
{
	size_t len = strlen(text);

	if (len <= 5 || strcmp(text + len - 5, ".html"))
		return options_bad_value(o, row, "%s: must end in .html", text);
	return options_list_add(options_field_of(o, row), text);
}

static int take_usdt(struct options *o, const struct option_row *row, const char *text)
{
	enum { MAX_PROVIDER = 23, MAX_NAME = 39 };
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (!len || len > MAX_PROVIDER || !colon[1] || strlen(colon + 1) > MAX_NAME)
		return options_bad_value(o, row, "%s: must be PROVIDER:NAME", text);
	return take_list(o, row, text);
}

static int take_choice(struct options *o, const struct option_row *row, const char *text)
{
	char words[512] = "";
	size_t used = 0;

	for (size_t i = 0; row->choice(i); i++) {
		if (!strcmp(row->choice(i), text)) {
			*(u32 *)options_field_of(o, row) = i;
			return 0;
		}
		used += snprintf(words + used, sizeof(words) - used, " %s", row->choice(i));
		if (used >= sizeof(words))
			break;
	}
	return options_bad_value(o, row, "%s: must be one of%s", text, words);
}

static int take_format(struct options *o, const struct option_row *row, const char *text)
{
	if (!strcmp(text, "list") && !o->config_line) {
		o->want_formats = true;
		return 0;
	}
	o->format = report_format_named(text);
	return o->format ? 0 : options_bad_value(o, row, "%s: no such format; see --format list", text);
}

static int take_alloc(struct options *o, const struct option_row *row, const char *text)
{
	const char *why;
	int err = array_extend(o->allocs, o->nr_allocs);

	if (err)
		return err;
	err = alloc_spec_parse(&o->allocs[o->nr_allocs], text, &why);
	if (err == -EINVAL)
		options_bad_value(o, row, "%s: %s", text, why);
	if (!err)
		o->nr_allocs++;
	return err;
}

static int take_scan(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(u32 *)options_field_of(o, row) = SCAN_ALWAYS;
	return 0;
}

static int take_no_scan(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(u32 *)options_field_of(o, row) = SCAN_NEVER;
	return 0;
}

static int take_check(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(u32 *)options_field_of(o, row) = CHECK_ALWAYS;
	return 0;
}

static int take_no_check(struct options *o, const struct option_row *row, const char *text)
{
	(void)text;
	*(u32 *)options_field_of(o, row) = CHECK_NEVER;
	return 0;
}

static int take_ignore(struct options *o, const struct option_row *row, const char *text)
{
	int err = o->suppress ? 0 : suppress_new(&o->suppress);
	char where[32] = "--ignore";

	(void)row;
	if (o->config_line)
		snprintf(where, sizeof(where), "config line %u", o->config_line);
	return err ? err : suppress_add_ignore(o->suppress, text, where);
}

/* A number, an address if it begins with 0x, or the name of a type, which only a census knows. */
static int take_why(struct options *o, const struct option_row *row, const char *text)
{
	bool is_type = *text && !strchr("0123456789-+", *text);

	if (!IS_AGENT && is_type && o->command && !strcmp(o->command->name, "scan")) {
		o->why_type = text;
		o->census = true;
		return 0;
	}
	if (strncmp(text, "0x", 2))
		return take_u32(o, row, text);
	if (parse_hex(text, &o->why_addr) || !o->why_addr)
		return options_bad_value(
			o, row, "%s: must be a number of callers, or an address such as 0x55d0c0de10", text);
	return 0;
}

static int take_mask(struct options *o, const struct option_row *row, const char *text)
{
	if (parse_hex(text, options_field_of(o, row)) || !*(u64 *)options_field_of(o, row))
		return options_bad_value(o, row, "%s: must be a mask such as 0x0000fffffffffff8", text);
	return 0;
}

static int take_between(struct options *o, const struct option_row *row, const char *text)
{
	const char *why;

	if (span_parse(&o->between, text, &why))
		return options_bad_value(o, row, "%s: %s", text, why);
	o->has_between = true;
	return 0;
}

static int take_cost(struct options *o, const struct option_row *row, const char *text)
{
	char bare[16];

	/* "5" is "5%". */
	snprintf(bare, sizeof(bare), "%s%%", text);
	if (parse_percent(text, options_field_of(o, row)) && parse_percent(bare, options_field_of(o, row)))
		return options_bad_value(o, row, "%s: must be a percentage such as 5%% or 0.5%%", text);
	o->has_max_cost = text != row->def;
	return 0;
}

/* A size, or a growth in an hour. */
static int take_threshold(struct options *o, const struct option_row *row, const char *text)
{
	const char *slash = strrchr(text, '/');
	char percent[16] = "";

	if (!strncmp(text, "growth:", 7) && slash && !strcmp(slash, "/h"))
		snprintf(percent, sizeof(percent), "%.*s", (int)(slash - text - 7), text + 7);
	if (*percent && !parse_percent(percent, &o->threshold_growth) && o->threshold_growth)
		return 0;
	if (!parse_size(text, &o->threshold_bytes) && o->threshold_bytes)
		return 0;
	return options_bad_value(
		o, row, "%s: must be a size such as 500M, or growth:10%%/h with any percentage", text);
}

bool options_have_rule(const struct options *o)
{
	return o->fail_on_definite || o->fail_on_errors || o->fail_growth;
}

const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (c->run && !strcmp(c->name, name))
			return c;
	return NULL;
}

void options_fini(struct options *o)
{
	for (size_t i = 0; i < o->nr_allocs; i++)
		alloc_spec_fini(&o->allocs[i]);
	free(o->allocs);
	free(o->targets.items);
	free(o->outputs.items);
	free(o->execute.items);
	free(o->omit.items);
	free(o->usdt.items);
	free(o->comms.items);
	free(o->exes.items);
	free(o->uids.items);
	free(o->cgroups.items);
	free(o->containers.items);
	free(o->spare.items);
	free(o->suppressions.items);
	suppress_free(o->suppress);
	free(o->config_path);
	free(o->config_text);
	memset(o, 0, sizeof(*o));
}
