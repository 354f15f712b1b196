/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the server that has just scanned which blocks and roots hold a block. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/remote/source_remote_private.h"
#include "user/remote/wire_chain.h"

enum { SILENCE_MS = 60000 };

static int source_remote_why_add_step(struct remote_answer *a, const struct scan_step *step)
{
	if (a->nr_steps >= a->limit_steps)
		return -EPROTO;
	if (array_reserve(a->steps, a->max_steps, a->nr_steps + 1))
		return -ENOMEM;
	a->steps[a->nr_steps++] = *step;
	return 0;
}

/* Is an answer expected, and not complete yet? */
static bool is_asked(const struct remote_source *s)
{
	return s->scan.state == REMOTE_SCAN_KEPT && !s->answer.chain && !s->answer.err;
}

void source_remote_on_chain(struct remote_source *s, struct wire_view *v)
{
	struct remote_answer *a = &s->answer;
	struct scan_step step;

	while (is_asked(s) && v->len) {
		a->err = wire_get_step(v, &a->at, &step);
		if (!a->err)
			a->err = source_remote_why_add_step(a, &step);
	}
}

/* Registers have names like rbx or xmm3+8. Other names may hold anything and must not reach a terminal. */
static void source_remote_why_check_name(struct remote_answer *a, const struct scan_root *root)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789_+";

	if (root->kind == ROOT_REGISTER && a->root_name[strspn(a->root_name, good)])
		strcpy(a->root_name, "register");
}

static int build_chain(struct remote_answer *a, const struct scan_root *root)
{
	a->chain = calloc(1, sizeof(*a->chain) + a->nr_steps * sizeof(a->steps[0]));
	if (!a->chain)
		return -ENOMEM;
	source_remote_why_check_name(a, root);
	a->chain->root = *root;
	if (root->kind == ROOT_MEMORY || root->kind == ROOT_REGISTER)
		a->chain->root.name = a->root_name;
	a->chain->nr = a->nr_steps;
	memcpy(a->chain->steps, a->steps, a->nr_steps * sizeof(a->steps[0]));
	return 0;
}

void source_remote_on_chain_end(struct remote_source *s, struct wire_view *v)
{
	struct remote_answer *a = &s->answer;
	struct scan_chain end;
	int got;

	if (!is_asked(s))
		return;
	memset(&end, 0, sizeof(end));
	got = wire_get_chain_end(v, &end, a->root_name, sizeof(a->root_name));
	if (!got)
		a->err = -ENOENT;
	else if (got < 0 || !a->nr_steps || end.nr != a->nr_steps)
		a->err = -EPROTO;
	else
		a->err = build_chain(a, &end.root);
}

static bool is_answered(const struct remote_source *s)
{
	return !is_asked(s);
}

int source_remote_scan_why(struct source *source, struct source_scan *o, taddr_t addr,
			   struct scan_chain **out)
{
	struct remote_source *s = remote_self(source);
	struct remote_answer *a = &s->answer;
	u8 data[8];
	struct wire_body b = { data, 0, sizeof(data), false };
	int err;

	if (s->scan.state != REMOTE_SCAN_KEPT)
		return -ENOTCONN;
	free(a->chain);
	a->chain = NULL;
	a->nr_steps = 0;
	a->at = 0;
	a->err = 0;
	wire_put_number(&b, addr, 8);
	err = source_remote_put(s, WIRE_WHY, b.data, b.len);
	if (!err)
		err = source_remote_wait(s, o->aside, true, SILENCE_MS, is_answered);
	if (!err && s->scan.state != REMOTE_SCAN_KEPT)
		err = -ENOTCONN;
	if (err || a->err)
		return err ? err : a->err;
	*out = take_ptr(a->chain);
	return 0;
}

void source_remote_scan_over(struct source *source)
{
	struct remote_source *s = remote_self(source);

	if (s->scan.state != REMOTE_SCAN_KEPT)
		return;
	s->scan.state = REMOTE_SCAN_NONE;
	if (source_remote_put(s, WIRE_SCAN_OVER, NULL, 0))
		debug("connect: the server ends the scan without being asked");
}
