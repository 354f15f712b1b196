/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap mark: a name for this moment, into the recording that another heaptap makes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/session/ask.h"
#include "user/cli/commands.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/cli/options.h"
#include "user/stream/span.h"
#include "user/target/target.h"

/* A text that --between reads as a time, start or end cannot be a marker. */
static bool cmd_mark_is_name(const char *text)
{
	char both[ASK_MARK_LEN + 8];
	struct span span;
	const char *why;

	if (strlen(text) >= ASK_MARK_LEN || strchr(text, ','))
		return false;
	snprintf(both, sizeof(both), "start,%s", text);
	return !span_parse(&span, both, &why) && span.marks[SPAN_TO].kind == SPAN_AT_NAME;
}

/* 0 if the process is recorded, and now has the marker. */
static int cli_cmd_mark(struct ask_request *request)
{
	struct ask_reply reply;
	bool other;
	int err = ask_send(request, &reply, &other);

	return err ? err : reply.error;
}

static const char *cmd_mark_why(int err)
{
	if (err == -ESRCH)
		return "no heaptap of yours traces it";
	if (err == -ENOTCONN)
		return "the heaptap that traces it records nothing (--record)";
	if (err == -ETIME)
		return "the heaptap that traces it is stopped";
	return strerror(-err);
}

int cmd_mark(const struct options *o)
{
	auto_free pid_t *pids = NULL;
	struct ask_request request = { 0 };
	size_t nr, nr_marked = 0;
	int err = -ESRCH;

	if (!cmd_mark_is_name(o->args[1])) {
		error("mark: %s: must be a name of at most %d bytes without comma, and no time, 'start' or 'end'",
		      o->args[1], ASK_MARK_LEN - 1);
		return STATUS_USAGE;
	}
	if (target_find(o->args[0], &pids, &nr))
		return STATUS_NO_TARGET;
	snprintf(request.marker, sizeof(request.marker), "%s", o->args[1]);
	/* A recording of several of them has one marker for all. */
	for (size_t i = 0; i < nr && !nr_marked; i++) {
		int one;

		request.pid = pids[i];
		one = cli_cmd_mark(&request);
		nr_marked += !one;
		err = !one || err == -ESRCH ? one : err;
	}
	if (nr_marked)
		return STATUS_DONE;
	error("mark: %s: %s", o->args[0], cmd_mark_why(err));
	return STATUS_IMPOSSIBLE;
}
