/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends commands to a server while its events flow, and waits for the answers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/remote/source_remote_private.h"
#include "user/remote/wire_command.h"

enum { ANSWER_MS = 10000, MAX_PROCESSES = 16384 };

void source_remote_on_tuned(struct remote_source *s, struct wire_view *v)
{
	struct remote_tuning *t = &s->tuning;

	t->is_refused = !wire_get_number(v, 1);
	wire_get_text(v, t->why, sizeof(t->why));
	if (t->nr_unanswered)
		t->nr_unanswered--;
}

/* Is there nothing to wait for any more? The server does not answer without a connection. */
static bool is_tuned(const struct remote_source *s)
{
	return !s->tuning.nr_unanswered || s->trace.start != START_DONE;
}

static int source_remote_command_fail(int err, const char *text, char *why, size_t size)
{
	snprintf(why, size, "%s", text);
	return err;
}

static int source_remote_command_send(struct remote_source *s, enum wire_kind kind, const struct wire_body *b)
{
	int err;

	s->tuning.is_refused = false;
	err = source_remote_put(s, kind, b->data, b->len);
	s->tuning.nr_unanswered += !err;
	return err;
}

int source_remote_command_put(struct remote_source *s, const struct tuning *t)
{
	u8 data[WIRE_TUNE_LEN];
	struct wire_body b = { data, 0, sizeof(data), false };

	wire_put_tune(&b, t);
	return source_remote_command_send(s, WIRE_TUNE, &b);
}

static int put_pause(struct remote_source *s, pid_t pid, bool is_paused)
{
	u8 data[5];
	struct wire_body b = { data, 0, sizeof(data), false };

	wire_put_number(&b, pid, 4);
	wire_put_number(&b, is_paused, 1);
	return source_remote_command_send(s, WIRE_PAUSE, &b);
}

/* The session does not hear of it: its report has no pause, because nothing comes behind this one. */
bool source_remote_pause(struct source *source)
{
	struct remote_source *s = remote_self(source);
	struct tuning t = s->tuning.now;

	t.is_paused = true;
	return s->trace.start == START_DONE && !source_remote_command_put(s, &t);
}

bool source_remote_has_paused(const struct source *source)
{
	return is_tuned(remote_self(source));
}

/* Wait for the answer of a command that was sent with the result @err. */
static int source_remote_command_wait(struct remote_source *s, int err, const struct sink *sink, char *why,
				      size_t size)
{
	if (!err)
		err = source_remote_wait(s, sink, false, ANSWER_MS, is_tuned);
	if (!err && (s->trace.start != START_DONE || s->tuning.nr_unanswered))
		err = -ENOTCONN;
	if (err == -ENOTCONN || err == -ENODATA)
		return source_remote_command_fail(
			-ENOTCONN, "the connection was lost: not known whether it was done", why, size);
	if (err == -ETIMEDOUT || err == -EINTR)
		return source_remote_command_fail(err, "the other side does not answer", why, size);
	if (err)
		return source_remote_command_fail(err, strerror(-err), why, size);
	if (s->tuning.is_refused)
		return source_remote_command_fail(
			-EOPNOTSUPP, s->tuning.why[0] ? s->tuning.why : "refused over there", why, size);
	return 0;
}

static bool takes_commands(const struct remote_source *s)
{
	return !source_remote_is_over(s) && s->trace.start == START_DONE;
}

int source_remote_tune(struct source *source, const struct tuning *t, const struct sink *sink, char *why,
		       size_t size)
{
	struct remote_source *s = remote_self(source);
	int err;

	if (!takes_commands(s))
		return source_remote_command_fail(-ENOTCONN, "there is no connection now", why, size);
	err = source_remote_command_wait(s, source_remote_command_put(s, t), sink, why, size);
	if (!err)
		s->tuning.now = *t;
	return err;
}

int source_remote_pause_one(struct source *source, pid_t pid, bool is_paused, const struct sink *sink,
			    char *why, size_t size)
{
	struct remote_source *s = remote_self(source);

	if (!takes_commands(s))
		return source_remote_command_fail(-ENOTCONN, "there is no connection now", why, size);
	return source_remote_command_wait(s, put_pause(s, pid, is_paused), sink, why, size);
}
