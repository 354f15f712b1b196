/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command `watch`: another command, again and again. */
#include "user/console/console.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/flush.h"
#include "user/lib/human.h"
#include "user/lib/parse.h"

#define INTERVAL_NS (2 * 1000000000ULL)

static const char CLEAR[] = "\033[H\033[2J";

/* Has somebody at the terminal typed Enter? */
static bool is_typed(const struct console *c, void *arg)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	(void)arg;
	return c->is_terminal && poll(&in, 1, 0) > 0;
}

/* Print the output of one run: on a terminal in the place of the last one. */
static int show_once(struct console *c, FILE *out, const char *text, size_t len, const char *title)
{
	if (c->is_terminal && !c->file) {
		fputs(CLEAR, out);
		fprintf(out, "Each %s until Ctrl-C or Enter\n", title);
	}
	fwrite(text, 1, len, out);
	return flush_stream(out);
}

static int run_once(struct console *c, const struct console_command *cmd, size_t nr, char **words,
		    const char *title)
{
	FILE *shown = c->out;
	auto_free char *text = NULL;
	size_t len = 0;
	int err;

	c->out = open_memstream(&text, &len);
	err = c->out ? cmd->run(c, nr, words) : -ENOMEM;
	if (c->out && fclose(c->out) && !err)
		err = -ENOMEM;
	c->out = shown;
	return err ? err : show_once(c, c->file ? shown : stdout, text, len, title);
}

static int console_watch_check(const struct console *c, const char *name, size_t nr,
			       const struct console_command **cmd)
{
	if (console_find(name, cmd) || !(*cmd)->repeats)
		return console_refuse(c, -EINVAL, "watch: %s: must be a command that shows something", name);
	if (nr < (*cmd)->min_args || nr > (*cmd)->max_args)
		return console_refuse(c, -EINVAL, "watch: %s takes %s", (*cmd)->name,
				      *(*cmd)->args ? (*cmd)->args : "no argument");
	return 0;
}

int console_watch(struct console *c, size_t nr, char **words)
{
	const struct console_command *cmd;
	u64 interval_ns = INTERVAL_NS, times = 0;
	char title[64];
	int err;

	if (nr > 1 && !parse_duration(words[0], &interval_ns)) {
		words++;
		nr--;
	}
	if (nr > 1 && !parse_u64(words[0], &times)) {
		words++;
		nr--;
	}
	if (interval_ns < 1000000)
		return console_refuse(c, -EINVAL, "watch: the time between must be 1 ms at least");
	err = console_watch_check(c, words[0], nr - 1, &cmd);
	snprintf(title, sizeof(title), "%s", human_duration(interval_ns).text);
	for (u64 i = 0; !err && (!times || i < times); i++) {
		err = run_once(c, cmd, nr - 1, words + 1, title);
		if (err || i + 1 == times ||
		    console_wait_for(c, interval_ns, is_typed, NULL) != WAIT_TIMED_OUT)
			break;
	}
	if (c->is_terminal)
		tcflush(STDIN_FILENO, TCIFLUSH);
	/* Ctrl-C ends the command as it should, and what a file gets stays. */
	c->is_interrupted = false;
	return err == -ECANCELED ? 0 : err;
}
