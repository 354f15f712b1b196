/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap console: a recording, or running processes, and commands on what is known of them. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/cli/attach.h"
#include "user/cli/commands.h"
#include "user/remote/connection.h"
#include "user/console/console.h"
#include "user/console/console_input.h"
#include "user/cli/options_rooms.h"
#include "user/cli/tracing.h"
#include "user/session/control.h"
#include "user/lib/log.h"
#include "user/lib/privileges.h"
#include "user/lib/status.h"
#include "user/report/output.h"
#include "user/stream/recorder.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/session/session_replay.h"

/* One run of the console. */
struct console_run {
	struct options options; /* a copy that `set` changes; the original owns strings and lists */
	struct console console;
};

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/* Is the argument an address of another machine? */
static bool is_address(const struct options *o)
{
	return o->nr_args && connection_is_address(o->args[0]);
}

/* The recording that the argument means; NULL for processes: a PID, or a name that no file has. */
static const char *cmd_console_find_file(const struct options *o)
{
	const char *name = o->nr_args == 1 && o->targets.nr == 1 ? o->args[0] : NULL;
	struct stat st;

	if (!name || is_number(name) || is_address(o))
		return NULL;
	if (!strcmp(name, "-") || strchr(name, '/'))
		return name;
	return stat(name, &st) || S_ISDIR(st.st_mode) ? NULL : name;
}

/* Nothing is traced here. Commands make files wherever the user says. */
static void keep_files(void)
{
	privileges_drop(PRIVILEGES_PEER, privileges_to_write(NULL, 0, true));
}

static int open_recording(struct console_run *r)
{
	struct console *c = &r->console;
	int err;

	if (!strcmp(c->path, "-") && !c->options.nr_execute) {
		error("console: -: the commands come from there: use --execute");
		return STATUS_USAGE;
	}
	if (r->options.sample_bytes) {
		error("console: --sample: %s: a recording has what was recorded: leave it out", c->path);
		return STATUS_USAGE;
	}
	keep_files();
	c->options.session.keeps_place = true;
	err = session_new_replay(&c->session, &c->options.session, c->outs, c->path);
	return err ? session_replay_status(err) : STATUS_DONE;
}

/* Signals are answered while a command is busy, or nobody reads what it prints. */
static void cmd_console_guard(struct console *c)
{
	control_guard(c->control, "console");
	if (c->is_terminal)
		control_keep(c->control, SIGINT);
}

static int cmd_console_open_processes(struct console_run *r)
{
	struct console *c = &r->console;
	int status = tracing_choose_sampler(&c->options.session.source, &r->options, true);

	if (status != STATUS_DONE)
		return status;
	c->options.session.is_unwanted = control_is_stop_pending;
	c->options.session.source.code = CODE_LATER;
	if (session_new(&c->session, &c->options.session, c->outs, false))
		return STATUS_IMPOSSIBLE;
	privileges_drop(PRIVILEGES_TRACING, 0);
	cmd_console_guard(c);
	session_guard(c->session, c->control);
	status = attach_targets(c->session, &r->options);
	if (status != STATUS_DONE)
		return status;
	c->has_source = true;
	control_begin(c->control, 0);
	control_start_clocks(c->control);
	console_begin_cost(c);
	c->nr_running = session_running(c->session);
	control_listen(c->control);
	if (!c->options.quiet)
		info("attached to %zu process%s%s", c->nr_running, c->nr_running == 1 ? "" : "es",
		     c->is_terminal ? "; 'help' lists the commands, 'quit' leaves" : "");
	return STATUS_DONE;
}

static int look_only(void *ctx, const struct report *r)
{
	(void)ctx;
	(void)r;
	return 0;
}

/* The last report, for --output; --fail-on judges it, whether it is written or not. */
static int cmd_console_report(struct console_run *r)
{
	struct console *c = &r->console;

	if (c->outs)
		return session_report(c->session);
	return options_have_rule(&r->options) ? session_show(c->session, 0, look_only, NULL) : 0;
}

/* No command can be answered before the other side has begun to trace. */
static int cmd_console_open_address(struct console_run *r)
{
	struct console *c = &r->console;
	const struct connection_options co = options_connection(&r->options, &c->options.session);

	if (connection_init(c->remote, &co))
		return STATUS_USAGE;
	if (connection_open(c->remote, &c->session, c->outs))
		return STATUS_NO_TARGET;
	keep_files();
	cmd_console_guard(c);
	session_guard(c->session, c->control);
	control_begin(c->control, 0);
	c->has_source = true;
	control_listen(c->control);
	while (!source_remote_is_started(c->remote->source) && c->has_source && !c->is_over)
		console_round(c, WAIT_A_BIT);
	if (!c->options.quiet && source_remote_is_started(c->remote->source))
		info("connected");
	console_begin_cost(c);
	c->nr_running = session_running(c->session);
	return STATUS_DONE;
}

static void end_here(struct console *c)
{
	if (c->has_source && c->options.session.scan != SCAN_NEVER)
		session_scan(c->session, NULL, true);
	session_stop(c->session);
}

static int end_there(struct console *c)
{
	if (c->has_source)
		connection_stop(c->remote, c->session, true);
	session_stop(c->session);
	return connection_status(c->remote);
}

/* Tracing ends; reports are written where they were asked for. */
static int cmd_console_finish(struct console_run *r)
{
	struct console *c = &r->console;
	bool wants_report = c->outs || options_have_rule(&r->options);
	int end = STATUS_DONE, status;

	control_finish(c->control);
	/* No verdict that nobody sees. */
	if (!wants_report)
		c->options.session.scan = SCAN_NEVER;
	if (c->remote)
		end = end_there(c);
	else if (!c->path)
		end_here(c);
	if (c->remote && !source_remote_is_started(c->remote->source))
		return end;
	if (cmd_console_report(r))
		return STATUS_UNTRUSTED;
	/* A person at a terminal has read what was wrong. */
	if (!c->is_terminal && c->nr_bad)
		return STATUS_USAGE;
	if (!c->is_terminal && c->nr_failed)
		return STATUS_UNTRUSTED;
	status = wants_report ? attach_status(&r->options, c->session) : session_status(c->session);
	return status == STATUS_DONE ? end : status;
}

static int cmd_console_serve(struct console_run *r)
{
	struct console *c = &r->console;
	bool has_list = c->options.nr_execute;
	int err = 0;

	if (!has_list)
		err = console_input_new(&c->input, c->is_terminal, console_words);
	if (err) {
		error("console: %s", strerror(-err));
		return STATUS_IMPOSSIBLE;
	}
	console_serve(c);
	return cmd_console_finish(r);
}

static int open_and_serve(struct console_run *r)
{
	const struct control_times times = options_times(&r->options);
	struct console *c = &r->console;
	int status = STATUS_DONE, err;

	/* Ctrl-C ends the reading of a file; in a trace it is a command's from the start. */
	if (c->path) {
		status = open_recording(r);
		if (status != STATUS_DONE)
			return status;
	}
	err = control_new(&c->control, &times, false);
	if (err) {
		error("console: signals: %s", strerror(-err));
		return STATUS_IMPOSSIBLE;
	}
	if (c->path) {
		cmd_console_guard(c);
		control_begin(c->control, 0);
		control_start_clocks(c->control);
	} else {
		status = c->remote ? cmd_console_open_address(r) : cmd_console_open_processes(r);
	}
	return status == STATUS_DONE ? cmd_console_serve(r) : status;
}

/* Copy the options that `set` can change. */
static void take_settings(struct console_options *co, const struct options *o)
{
	const struct session_options so = options_session(o);
	u64 why_addr = co->session.verdict.why_addr;

	co->output = options_output(o);
	co->session.recorder.force = o->force;
	co->session.verdict = so.verdict;
	/* An address is for `why`, not for `set`. */
	co->session.verdict.why_addr = why_addr;
}

static int take_value(struct options *o, const struct option_row *row, const char *value)
{
	if (row->arg)
		return row->take(o, row, value) ? -EINVAL : 0;
	*(bool *)((char *)o + row->field) = !strcmp(value, "on");
	return 0;
}

/* console_options. */
static int set_option(void *ctx, const char *name, const char *value)
{
	static const char *const limits[] = { "min-size", "max-size", "older" };
	const struct option_row *row = option_row_find(name, strlen(name));
	struct console_run *r = ctx;
	struct options o = r->options;
	bool is_limit = false;
	int err = row ? 0 : -EINVAL;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		is_limit |= !strcmp(limits[i], name);
	if (!err && is_limit && !strcmp(value, "0"))
		*(u64 *)((char *)&o + row->field) = 0;
	else if (!err)
		err = take_value(&o, row, value);
	if (!err && o.max_size && o.min_size > o.max_size)
		err = -ERANGE;
	if (err)
		return err;
	r->options = o;
	take_settings(&r->console.options, &o);
	return 0;
}

int cmd_console(const struct options *o)
{
	struct console_run r = { .options = *o, .console = { .path = cmd_console_find_file(o) } };
	struct console *c = &r.console;
	struct connection remote = { 0 };
	int status = STATUS_USAGE, err = 0;

	c->options = (struct console_options){ .session = options_session(o),
					       .output = options_output(o),
					       .execute = o->execute.items,
					       .nr_execute = o->execute.nr,
					       .quiet = o->quiet,
					       .max_cost = o->max_cost,
					       .set = set_option,
					       .ctx = &r };
	c->options.session.wants_slices = true; /* a page may be asked for at any time */
	c->remote = is_address(o) ? &remote : NULL;
	c->is_terminal = !o->execute.nr && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (o->outputs.nr)
		err = outputs_new(&c->outs, &c->options.output, stdout);
	if (err == -ENOMEM)
		status = STATUS_IMPOSSIBLE;
	if (!err && !recorder_check(&c->options.session.recorder))
		status = open_and_serve(&r);
	session_free(c->session);
	control_free(c->control);
	console_input_free(c->input);
	outputs_free(c->outs);
	free(c->baseline);
	free(c->record);
	free(c->sysroot);
	return status;
}
