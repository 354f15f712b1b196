/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap console: a recording, or running processes, and commands on what is known of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/attach.h"
#include "user/commands.h"
#include "user/connection.h"
#include "user/console.h"
#include "user/console_input.h"
#include "user/control.h"
#include "user/lib/log.h"
#include "user/output.h"
#include "user/recorder.h"
#include "user/session.h"

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/* Somewhere else? */
static bool is_address(const struct options *o)
{
	return o->nr_args && connection_is_address(o->args[0]);
}

/* The recording that is meant, NULL if it is processes: numbers always, names where no file has them. */
static const char *find_file(const struct options *o)
{
	const char *name = o->nr_args == 1 && o->targets.nr == 1 ? o->args[0] : NULL;
	struct stat st;

	if (!name || is_number(name) || is_address(o))
		return NULL;
	if (!strcmp(name, "-") || strchr(name, '/'))
		return name;
	return stat(name, &st) || S_ISDIR(st.st_mode) ? NULL : name;
}

static int open_recording(struct console *c)
{
	int err;

	if (!strcmp(c->path, "-") && !c->options.execute.nr) {
		error("console: -: the commands come from there: use --execute");
		return STATUS_USAGE;
	}
	err = session_new_replay(&c->session, &c->options, c->outs, c->path);
	return err ? session_replay_status(err) : STATUS_DONE;
}

static int open_processes(struct console *c)
{
	int status;

	if (session_new(&c->session, &c->options, c->outs, false))
		return STATUS_IMPOSSIBLE;
	status = attach_targets(c->session, &c->options);
	if (status != STATUS_DONE)
		return status;
	c->has_source = true;
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

/* The last report, for --output; --fail-on judges it, if it is written or not. */
static int report(struct console *c)
{
	if (c->outs)
		return session_report(c->session);
	return options_have_rule(&c->options) ? session_show(c->session, 0, look_only, NULL) : 0;
}

/* Until tracing has begun over there, what can be asked is nothing. */
static int open_address(struct console *c)
{
	if (connection_init(c->remote, &c->options))
		return STATUS_USAGE;
	if (connection_open(c->remote, &c->session, c->outs))
		return STATUS_NO_TARGET;
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
	if (c->has_source && c->options.scan != SCAN_NEVER)
		session_scan(c->session, NULL, true);
	session_stop(c->session);
}

static int end_there(struct console *c)
{
	if (c->has_source)
		connection_stop(c->remote, c->session);
	session_stop(c->session);
	return connection_status(c->remote);
}

/* Tracing ends; reports are written where they were asked for. */
static int finish(struct console *c)
{
	const struct options *o = &c->options;
	bool wants_report = c->outs || options_have_rule(o);
	int end = STATUS_DONE, status;

	control_finish(c->control);
	/* No verdict that nobody sees. */
	if (!wants_report)
		c->options.scan = SCAN_NEVER;
	if (c->remote)
		end = end_there(c);
	else if (!c->path)
		end_here(c);
	if (c->remote && !source_remote_is_started(c->remote->source))
		return end;
	if (report(c))
		return STATUS_UNTRUSTED;
	/* Somebody who sits there has read what was wrong. */
	if (!c->is_terminal && c->nr_bad)
		return STATUS_USAGE;
	if (!c->is_terminal && c->nr_failed)
		return STATUS_UNTRUSTED;
	status = wants_report ? attach_status(o, c->session) : session_status(c->session);
	return status == STATUS_DONE ? end : status;
}

static int serve(struct console *c)
{
	bool has_list = c->options.execute.nr;
	int err = 0;

	if (!has_list)
		err = console_input_new(&c->input, c->is_terminal, console_words);
	if (err) {
		error("console: %s", strerror(-err));
		return STATUS_IMPOSSIBLE;
	}
	console_serve(c);
	return finish(c);
}

static int open_and_serve(struct console *c)
{
	int status = STATUS_DONE, err;

	/* Ctrl-C ends the reading of a file; in a trace it is a command's from the start. */
	if (c->path) {
		status = open_recording(c);
		if (status != STATUS_DONE)
			return status;
	}
	err = control_new(&c->control, &c->options, false);
	if (err) {
		error("console: signals: %s", strerror(-err));
		return STATUS_IMPOSSIBLE;
	}
	if (!c->path)
		status = c->remote ? open_address(c) : open_processes(c);
	return status == STATUS_DONE ? serve(c) : status;
}

int cmd_console(const struct options *o)
{
	struct console c = { .options = *o, .path = find_file(o) };
	struct connection remote = { .options = o };
	int status = STATUS_USAGE, err = 0;

	c.remote = is_address(o) ? &remote : NULL;
	c.is_terminal = !o->execute.nr && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (o->outputs.nr)
		err = outputs_new(&c.outs, &c.options, stdout);
	if (err == -ENOMEM)
		status = STATUS_IMPOSSIBLE;
	if (!err && !recorder_check(o))
		status = open_and_serve(&c);
	session_free(c.session);
	control_free(c.control);
	console_input_free(c.input);
	outputs_free(c.outs);
	free(c.baseline);
	free(c.record);
	return status;
}
