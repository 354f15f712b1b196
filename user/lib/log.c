/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages to stderr. */
#include "user/lib/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/escape.h"

enum { DEFAULT_COLUMNS = 80 };

/* Static: messages come from everywhere, and all of them have one standard error. */
static enum log_level shown = LOG_INFO;
static int status_columns; /* of the status line on the terminal, 0 = none; under the lock of stderr */
/* Lines that stderr does not take at once; under its lock. */
static struct {
	bool is_left_out;
	u64 nr; /* since the last line that it took */
} unread;

/* Takes messages; NULL = they are printed. */
static struct {
	void (*take)(void *ctx, enum log_level level, const char *line);
	void *ctx;
} taker;

void log_set_level(enum log_level level)
{
	shown = level;
}

enum log_level log_level(void)
{
	return shown;
}

/*
 * A pipe that takes something takes a page of it, which is more than a line. A signal that comes meanwhile says nothing
 * about it; where nothing can be found out (no descriptor is allowed), messages go out.
 */
static bool log_is_taken(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	int nr;

	do
		nr = poll(&p, 1, 0);
	while (nr < 0 && errno == EINTR);
	return nr != 0;
}

/* Say how many lines were left out. The lock of stderr is held. */
static void log_tell_left_out(void)
{
	u64 nr = unread.nr;

	unread.nr = 0;
	if (nr)
		fprintf(stderr, "heaptap: warning: %" PRIu64 " messages left out: standard error took none\n",
			nr);
}

void log_never_wait(bool is_on)
{
	if (IS_AGENT)
		return;
	unread.is_left_out = is_on;
	flockfile(stderr);
	if (log_is_taken())
		log_tell_left_out();
	funlockfile(stderr);
}

void log_divert(void (*take)(void *ctx, enum log_level level, const char *line), void *ctx)
{
	taker.take = take;
	taker.ctx = ctx;
}

bool log_status_is_possible(void)
{
	struct stat out;

	return isatty(STDERR_FILENO) && !(fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode));
}

u32 log_status_columns(void)
{
	struct winsize size;
	pid_t front;

	if (!isatty(STDERR_FILENO))
		return 0;
	/* -1: a terminal that controls nobody. */
	front = tcgetpgrp(STDERR_FILENO);
	if (front >= 0 && front != getpgrp())
		return 0;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return DEFAULT_COLUMNS - 1;
	/* Behind the last column the terminal would begin another line. */
	return size.ws_col - 1U;
}

/* Cut @text to @columns bytes, not inside a character. */
static int log_cut(char *text, int columns)
{
	int len = (int)strlen(text);

	if (len <= columns)
		return len;
	while (columns > 0 && ((unsigned char)text[columns] & 0xc0) == 0x80)
		columns--;
	text[columns] = '\0';
	return columns;
}

/* The lock of stderr is held. */
static void show_status(const char *text)
{
	int columns, len, rest;
	char safe[1024];

	if (!text && !status_columns)
		return;
	columns = (int)log_status_columns();
	len = text ? log_cut(escape_buf(safe, sizeof(safe), text), columns) : 0;
	/* The terminal may be narrower now than the line was. */
	rest = status_columns < columns ? status_columns - len : columns - len;
	if (columns)
		fprintf(stderr, "\r%s%*s%s", len ? safe : "", rest > 0 ? rest : 0, "", len ? "" : "\r");
	fflush(stderr);
	status_columns = len;
}

void log_status(const char *text)
{
	if (taker.take)
		return;
	flockfile(stderr);
	if (IS_AGENT || !unread.is_left_out || log_is_taken())
		show_status(text);
	funlockfile(stderr);
}

static void log_print(const char *prefix, const char *text)
{
	flockfile(stderr);
	if (!IS_AGENT && unread.is_left_out && !log_is_taken()) {
		unread.nr++;
	} else {
		show_status(NULL);
		if (!IS_AGENT)
			log_tell_left_out();
		fprintf(stderr, "heaptap: %s%s\n", prefix, text);
	}
	funlockfile(stderr);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	static const char *const prefix[] = {
		[LOG_ERROR] = "",
		[LOG_WARN] = "warning: ",
		[LOG_INFO] = "",
		[LOG_DEBUG] = "debug: ",
	};
	char text[1024];
	char safe[2048];
	va_list ap;
	int saved_errno = errno;

	if (level > shown)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	escape_buf(safe, sizeof(safe), text);
	if (taker.take) {
		taker.take(taker.ctx, level, safe);
	} else {
		log_print(prefix[level], safe);
	}
	errno = saved_errno;
}

void log_now(const char *fmt, ...)
{
	char text[512];
	char safe[1024];
	char line[sizeof(safe) + 16];
	va_list ap;
	int len;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	len = snprintf(line, sizeof(line), "heaptap: %s\n", escape_buf(safe, sizeof(safe), text));
	if (log_is_taken())
		(void)!write(STDERR_FILENO, line, (size_t)len);
}
