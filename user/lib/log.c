/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages to stderr. */
#include "user/lib/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "user/lib/escape.h"

static enum log_level shown = LOG_INFO;

void log_set_level(enum log_level level)
{
	shown = level;
}

enum log_level log_level(void)
{
	return shown;
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
	fprintf(stderr, "heaptap: %s%s\n", prefix[level], escape_buf(safe, sizeof(safe), text));
	errno = saved_errno;
}
