/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who holds a block, asked of the server that has just scanned. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/source_remote_private.h"

enum { SILENCE_MS = 60000, FIRST_STEPS = 64 };

static int add_step(struct source *s, const struct scan_step *step)
{
	struct scan_chain *chain;
	size_t max = s->max_steps ? 2 * s->max_steps : FIRST_STEPS;

	/* A chain has each block once. */
	if (s->nr_steps >= s->limit_steps)
		return -EPROTO;
	if (!s->chain || s->nr_steps == s->max_steps) {
		chain = realloc(s->chain, sizeof(*chain) + max * sizeof(chain->steps[0]));
		if (!chain)
			return -ENOMEM;
		if (!s->chain)
			memset(chain, 0, sizeof(*chain));
		s->chain = chain;
		s->max_steps = max;
	}
	s->chain->steps[s->nr_steps++] = *step;
	return 0;
}

void source_remote_on_chain(struct source *s, struct wire_view *v)
{
	struct scan_step step;

	while (s->is_kept && v->len && !s->chain_err) {
		s->chain_err = wire_get_step(v, &s->step_at, &step);
		if (!s->chain_err)
			s->chain_err = add_step(s, &step);
	}
}

/* Registers have names like rbx or xmm3+8; what else they are called goes to no terminal. */
static void check_name(struct source *s, const struct scan_root *root)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789_+";

	if (root->kind == ROOT_REGISTER && s->root_name[strspn(s->root_name, good)])
		strcpy(s->root_name, "register");
}

void source_remote_on_chain_end(struct source *s, struct wire_view *v)
{
	struct scan_chain end;
	int got;

	if (!s->is_kept || s->chain_err)
		return;
	memset(&end, 0, sizeof(end));
	got = wire_get_chain_end(v, &end, s->root_name, sizeof(s->root_name));
	if (got <= 0 || !s->chain || end.nr != s->nr_steps) {
		s->chain_err = got ? -EPROTO : -ENOENT;
		return;
	}
	check_name(s, &end.root);
	s->chain->root = end.root;
	s->chain->nr = end.nr;
	if (end.root.kind == ROOT_MEMORY || end.root.kind == ROOT_REGISTER)
		s->chain->root.name = s->root_name;
	s->chain_err = 1;
}

static bool is_answered(const struct source *s)
{
	return s->chain_err || !s->is_kept;
}

int source_remote_scan_why(struct source *s, struct source_scan *o, taddr_t addr, struct scan_chain **out)
{
	u8 data[8];
	struct wire_body b = { data, 0, sizeof(data), false };
	int err;

	if (!s->is_kept)
		return -ENOTCONN;
	free(s->chain);
	s->chain = NULL;
	s->nr_steps = s->max_steps = 0;
	s->step_at = 0;
	s->chain_err = 0;
	wire_put_number(&b, addr, 8);
	err = source_remote_put(s, WIRE_WHY, b.data, b.len);
	if (!err)
		err = source_remote_wait(s, o->aside, true, SILENCE_MS, is_answered);
	if (!err && !s->is_kept)
		err = -ENOTCONN;
	if (err || s->chain_err < 0)
		return err ? err : s->chain_err;
	*out = take_ptr(s->chain);
	return 0;
}

void source_remote_scan_over(struct source *s)
{
	if (!s->is_kept)
		return;
	s->is_kept = false;
	/* Else it finds out by itself. */
	(void)!source_remote_put(s, WIRE_SCAN_OVER, NULL, 0);
}
