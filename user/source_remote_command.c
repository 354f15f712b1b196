/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands to a server while its events flow, and what it says of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/source_remote_private.h"
#include "user/wire_command.h"

enum { ANSWER_MS = 10000, MAX_PROCESSES = 1024 };

void source_remote_on_tuned(struct source *s, struct wire_view *v)
{
	s->is_refused = !wire_get_number(v, 1);
	wire_get_text(v, s->tune_why, sizeof(s->tune_why));
	if (s->nr_unanswered)
		s->nr_unanswered--;
}

static struct source_left_out *find(const struct source *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_left_out; i++)
		if (s->left_out[i].pid == pid)
			return &s->left_out[i];
	return NULL;
}

void source_remote_on_left_out(struct source *s, struct wire_view *v)
{
	pid_t pid = (pid_t)wire_get_number(v, 4);
	u64 nr = wire_get_number(v, 8);
	struct source_left_out *l = find(s, pid), *list;

	if (v->is_bad)
		return;
	if (!l && s->nr_left_out < MAX_PROCESSES) {
		list = reallocarray(s->left_out, s->nr_left_out + 1, sizeof(*list));
		if (!list)
			return;
		s->left_out = list;
		l = &list[s->nr_left_out++];
		*l = (struct source_left_out){ .pid = pid };
	}
	if (l)
		l->nr = nr;
}

void source_remote_keep_left_out(struct source *s)
{
	for (size_t i = 0; i < s->nr_left_out; i++) {
		s->left_out[i].before += s->left_out[i].nr;
		s->left_out[i].nr = 0;
	}
}

u64 source_remote_left_out(struct source *s, pid_t pid)
{
	const struct source_left_out *l = find(s, pid);

	return l ? l->before + l->nr : 0;
}

/* A program at its end waits for its verdict; without a connection nobody answers. */
static bool is_tuned(const struct source *s)
{
	return !s->nr_unanswered || s->is_at_mark || !s->is_started;
}

static int fail(int err, const char *text, char *why, size_t size)
{
	snprintf(why, size, "%s", text);
	return err;
}

static int ask(struct source *s, const struct tuning *t, const struct sink *sink)
{
	u8 data[WIRE_TUNE_MAX];
	struct wire_body b = { data, 0, sizeof(data), false };
	int err;

	wire_put_tune(&b, t);
	s->is_refused = false;
	err = source_remote_put(s, WIRE_TUNE, b.data, b.len);
	if (err)
		return err;
	s->nr_unanswered++;
	err = source_remote_wait(s, sink, false, ANSWER_MS, is_tuned);
	if (err || (s->is_started && !s->nr_unanswered))
		return err;
	return s->is_at_mark ? -EBUSY : -ENOTCONN;
}

int source_remote_tune(struct source *s, const struct tuning *t, const struct sink *sink, char *why,
		       size_t size)
{
	int err;

	if (s->is_over || !s->is_started)
		return fail(-ENOTCONN, "there is no connection now", why, size);
	err = s->is_at_mark ? -EBUSY : ask(s, t, sink);
	if (err == -EBUSY)
		return fail(err, "the program is at its end", why, size);
	if (err == -ENOTCONN || err == -ENODATA)
		return fail(-ENOTCONN, "the connection was lost: not known whether it was done", why, size);
	if (err == -ETIMEDOUT || err == -EINTR)
		return fail(err, "the other side does not answer", why, size);
	if (err)
		return fail(err, strerror(-err), why, size);
	if (s->is_refused)
		return fail(-EOPNOTSUPP, s->tune_why[0] ? s->tune_why : "refused over there", why, size);
	s->tuning = *t;
	return 0;
}
