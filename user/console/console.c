/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop of the console, which enters events while it waits for a command. */
#include "user/console/console.h"
#include "user/console/console_calls.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/remote/connection.h"
#include "user/console/console_input.h"
#include "user/console/console_log.h"
#include "user/console/console_output.h"
#include "user/session/control.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/session/session.h"
#include "user/session/session_live.h"

enum { POLL_MS = 20, IDLE_MS = 1000, ALIVE_ROUNDS = 5 };

static const char PROMPT[] = "heaptap> ", HOLDING_PROMPT[] = "heaptap (holding)> ";

/* Enter the events that came since the last round. */
static void console_take_events(struct console *c)
{
	size_t running;

	if (!c->has_source)
		return;
	if (session_poll(c->session)) {
		c->has_source = false;
		return;
	}
	if (c->remote)
		connection_round(c->remote, c->session, c->control);
	/* A call that `break` waits for is stopped at a breakpoint. */
	else if (!c->is_eager)
		code_choice_round(&c->choice, c->session, c->options.max_cost, c->options.quiet);
	if (++c->round % ALIVE_ROUNDS)
		return;
	session_bound_ended(c->session);
	running = session_running(c->session);
	if (running < c->nr_running) {
		if (c->is_terminal && c->input)
			console_input_hide(c->input);
		if (!c->options.quiet)
			info("%zu of %zu processes ended; what is known of them stays",
			     c->nr_running - running, c->nr_running);
	}
	c->nr_running = running;
}

static void write_outputs(struct console *c)
{
	if (!c->outs)
		return;
	if (c->has_source && c->options.session.scan == SCAN_ALWAYS)
		session_scan(c->session, NULL, false);
	if (session_report(c->session))
		c->nr_failed++;
}

static enum console_news on_stop(struct console *c, int sig)
{
	if (sig == SIGINT && c->is_terminal) {
		c->is_interrupted = c->has_ctrl_c = true;
		return NEWS_INTERRUPT;
	}
	c->is_over = true;
	return NEWS_END;
}

enum console_news console_round(struct console *c, enum console_wait wait)
{
	bool wants_input = wait == WAIT_INPUT && c->input;
	int fd = c->has_source ? session_wait_fd(c->session) : -1, sig;
	int input = wants_input ? console_input_fd(c->input) : -1;
	bool is_ready = wants_input && input < 0;
	int timeout_ms = is_ready || wait == WAIT_NOT ? 0 : c->has_source ? POLL_MS : IDLE_MS;
	enum control_event event;

	if (c->is_eager && timeout_ms)
		timeout_ms = 1;
	control_watch(c->control, input);
	event = control_wait(c->control, fd, timeout_ms, &sig);
	console_take_events(c);
	if (wait != WAIT_NOT)
		console_log_flush(c, false);
	switch (event) {
	case CONTROL_STOP:
		return on_stop(c, sig);
	case CONTROL_REPORT:
		write_outputs(c);
		return NEWS_NONE;
	case CONTROL_ASKED:
		session_answer(c->session, NULL, control_questions(c->control));
		return NEWS_NONE;
	case CONTROL_INPUT:
		return NEWS_INPUT;
	default:
		return is_ready ? NEWS_INPUT : NEWS_NONE;
	}
}

int console_refuse(const struct console *c, int err, const char *fmt, ...)
{
	char text[1024], where[32] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (c->line_nr)
		snprintf(where, sizeof(where), "line %u: ", c->line_nr);
	error("console: %s%s", where, text);
	return err;
}

/* The command @name, if it exists and can be used here; else NULL, logged. */
static const struct console_command *console_command_here(struct console *c, const char *name, size_t nr_args)
{
	const struct console_command *cmd;
	char names[256] = "";
	size_t used = 0;
	int err = console_find(name, &cmd);

	if (err == -EEXIST) {
		for (size_t i = 0; console_matches(name, i) && used < sizeof(names); i++)
			used += (size_t)snprintf(names + used, sizeof(names) - used, " %s",
						 console_matches(name, i)->name);
		console_refuse(c, 0, "%s: is one of%s", name, names);
		return NULL;
	}
	if (err) {
		console_refuse(c, 0,
			       cmd ? "%s: no such command; did you mean '%s'"
				   : "%s: no such command; see 'help'",
			       name, cmd ? cmd->name : "");
		return NULL;
	}
	if (nr_args < cmd->min_args || nr_args > cmd->max_args) {
		console_refuse(c, 0, "%s: %s; it takes %s", cmd->name,
			       nr_args < cmd->min_args ? "an argument is missing" : "too many arguments",
			       *cmd->args ? cmd->args : "none");
		return NULL;
	}
	if (cmd->where == CONSOLE_LIVE && c->path) {
		console_refuse(c, 0, "%s: only with running processes, and this is a recording", cmd->name);
		return NULL;
	}
	if (cmd->where == CONSOLE_RECORDING && !c->path) {
		console_refuse(c, 0, "%s: only in a recording, and this process runs", cmd->name);
		return NULL;
	}
	return cmd;
}

/* Give out what the command wrote, unless it was to go to a file and the command has failed. */
static void give_out(struct console *c, const char *text, size_t len, int err)
{
	/* The output of the last command is given out, too: printing stops when the console is over. */
	bool was_over = c->is_over;

	c->is_over = false;
	/* A Ctrl-C that came while the command ran drops its output. */
	if (c->is_terminal)
		console_round(c, WAIT_NOT);
	if (!c->file || !err)
		err = console_output_write(c, text, len);
	else
		err = 0;
	c->nr_bad += err == -EINVAL;
	c->nr_failed += err && err != -EINVAL;
	c->is_over |= was_over;
}

static void run_words(struct console *c, char **words, size_t nr)
{
	const struct console_command *cmd = console_command_here(c, words[0], nr - 1);
	auto_free char *text = NULL;
	size_t len = 0;
	int err;

	if (!cmd || (c->file && console_file_check(c, c->file, c->appends))) {
		c->nr_bad++;
		return;
	}
	console_log_flush(c, true);
	c->out = open_memstream(&text, &len);
	err = c->out ? cmd->run(c, nr - 1, words + 1) : console_refuse(c, -ENOMEM, "out of memory");
	if (err == -ECANCELED)
		c->is_interrupted = true;
	c->nr_bad += err == -EINVAL;
	c->nr_failed += err && err != -EINVAL;
	if (c->out && fclose(c->out)) {
		c->nr_failed++;
		err = -ENOMEM;
	}
	c->out = NULL;
	give_out(c, text, len, err);
}

void console_run(struct console *c, char *line)
{
	char *words[CONSOLE_MAX_WORDS] = { NULL }, *file;
	int nr = console_cut_file(line, &file, &c->appends);

	c->file = file;
	c->is_interrupted = c->has_ctrl_c = false;
	if (!nr)
		nr = console_split(line, words);
	if (nr > 0)
		run_words(c, words, (size_t)nr);
	c->file = NULL;
	/* The prompt begins a line. */
	if (c->has_ctrl_c && c->input)
		putchar('\n');
	if (nr >= 0)
		return;
	c->nr_bad++;
	console_refuse(c, 0, "%s",
		       nr == -E2BIG    ? "too many words"
		       : nr == -ENOENT ? "'>' needs the name of one file behind it"
				       : "a quote is not closed");
}

/* The next typed line or line of a script. The caller owns *@line. False at the end of the input. */
static bool console_next_line(struct console *c, const char *prompt, char **line)
{
	int got = 0;

	while (!c->is_over) {
		console_input_show(c->input, prompt);
		switch (console_round(c, WAIT_INPUT)) {
		case NEWS_INPUT:
			got = console_input_take(c->input, line);
			break;
		case NEWS_INTERRUPT:
			console_input_drop(c->input);
			*line = strdup("");
			return *line;
		default:
			break;
		}
		if (got > 0)
			return true;
		if (got < 0)
			break;
	}
	if (got < 0 && got != -ENODATA) {
		c->nr_failed++;
		console_refuse(c, 0, "commands: %s", strerror(-got));
	}
	return false;
}

bool console_ask(struct console *c, const char *question)
{
	auto_free char *line = NULL;

	return c->is_terminal && console_next_line(c, question, &line) && !strcmp(line, "yes");
}

static void run_list(struct console *c)
{
	for (size_t i = 0; i < c->options.nr_execute && !c->is_over; i++) {
		auto_free char *line = strdup(c->options.execute[i]);

		console_round(c, WAIT_NOT);
		if (!line) {
			c->nr_failed++;
			return;
		}
		console_run(c, line);
	}
}

void console_serve(struct console *c)
{
	run_list(c);
	while (c->input && !c->is_over) {
		auto_free char *line = NULL;

		if (!console_next_line(c, c->held ? HOLDING_PROMPT : PROMPT, &line))
			break;
		if (c->is_terminal && *line)
			console_input_remember(c->input, line);
		c->line_nr += !c->is_terminal;
		console_run(c, line);
	}
	if (c->input)
		console_input_hide(c->input);
	console_log_flush(c, true);
	console_log_free(c);
	console_calls_free(c);
	console_break_end(c);
}
