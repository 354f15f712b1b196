/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn commands into bytes and back. */
#include "user/remote/wire_command.h"

#include <errno.h>
#include <string.h>

enum { FLAG_PAUSED = 1, FLAG_THIN = 2 };
enum { FLAG_MMAP = 1, FLAG_NO_CPP = 2, FLAG_EXIT_SCAN = 4, FLAG_EXEC_SCAN = 8 };

static void put_tuning(struct wire_body *b, const struct tuning *t)
{
	wire_put_number(b, (t->is_paused ? FLAG_PAUSED : 0) | (t->is_thin ? FLAG_THIN : 0), 1);
	wire_put_number(b, t->depth, 1);
	wire_put_number(b, t->min_size, 8);
	wire_put_number(b, t->max_size, 8);
}

static int get_tuning(struct wire_view *v, struct tuning *t)
{
	u64 flags = wire_get_number(v, 1);

	t->is_paused = flags & FLAG_PAUSED;
	t->is_thin = flags & FLAG_THIN;
	t->depth = wire_get_number(v, 1);
	t->min_size = wire_get_number(v, 8);
	t->max_size = wire_get_number(v, 8);
	return v->is_bad || flags > (FLAG_PAUSED | FLAG_THIN) || !tuning_is_sane(t) ? -EPROTO : 0;
}

void wire_put_tune(struct wire_body *b, const struct tuning *t)
{
	put_tuning(b, t);
}

int wire_get_tune(struct wire_view *v, struct tuning *out)
{
	int err = get_tuning(v, out);

	return err || v->len ? -EPROTO : 0;
}

void wire_put_start(struct wire_body *b, const struct wire_start *start)
{
	const struct forward_received *r = &start->received;

	put_tuning(b, &start->tuning);
	wire_put_number(b,
			(start->want_mmap ? FLAG_MMAP : 0) | (start->no_cpp ? FLAG_NO_CPP : 0) |
				(start->wants_exit_scan ? FLAG_EXIT_SCAN | FLAG_EXEC_SCAN : 0),
			1);
	wire_put_number(b, start->max_followed, 4);
	wire_put_number(b, start->resume_id, 8);
	wire_put_number(b, r->nr_ends, 8);
	wire_put_number(b, r->nr_had, 2);
	for (u32 i = 0; i < r->nr_had; i++) {
		wire_put_number(b, r->had[i].pid, 4);
		wire_put_number(b, r->had[i].start_time, 8);
		wire_put_number(b, r->had[i].allocs, 8);
		wire_put_number(b, r->had[i].frees, 8);
	}
}

int wire_get_start(struct wire_view *v, struct wire_start *out)
{
	struct forward_received *r = &out->received;
	u32 flags;

	memset(out, 0, offsetof(struct wire_start, received.had));
	if (get_tuning(v, &out->tuning))
		return -EPROTO;
	flags = wire_get_number(v, 1);
	out->want_mmap = flags & FLAG_MMAP;
	out->no_cpp = flags & FLAG_NO_CPP;
	out->wants_exit_scan = flags & FLAG_EXIT_SCAN;
	out->wants_exec_scan = !IS_AGENT && flags & FLAG_EXEC_SCAN;
	out->max_followed = wire_get_number(v, 4);
	out->resume_id = wire_get_number(v, 8);
	r->nr_ends = wire_get_number(v, 8);
	r->nr_had = wire_get_number(v, 2);
	if (v->is_bad || r->nr_had > FORWARD_MAX_PROCESSES)
		return -EPROTO;
	for (u32 i = 0; i < r->nr_had; i++) {
		r->had[i].pid = wire_get_number(v, 4);
		r->had[i].start_time = wire_get_number(v, 8);
		r->had[i].allocs = wire_get_number(v, 8);
		r->had[i].frees = wire_get_number(v, 8);
	}
	return v->is_bad || v->len ? -EPROTO : 0;
}
