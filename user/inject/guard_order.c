/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes of targets that another process traces: heaptap writes an order to shared memory, the tracer obeys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/inject/guard_private.h"
#include "user/inject/process_private.h"
#include "user/lib/clock.h"

/* ---- in the tracer: it has stopped the process, and may not wait ---- */

static int obey_put_in(struct injection *in, const struct guard_order *o, int fd)
{
	const struct inject_file file = { .fd = o->has_file ? fd : -1,
					  .near = o->near,
					  .path = o->path,
					  .kept = o->kept,
					  .nr_kept = o->nr_kept };

	return inject_try_put_in(in, o->sites, o->nr, &file);
}

/* -EAGAIN: a thread is inside, and the functions are as before. */
static int obey_take_out(struct injection *in)
{
	int err = inject_take_out(in, 0);

	if (err != -EBUSY || *in->why)
		return err;
	in->state = INJECT_IN;
	return -EAGAIN;
}

int guard_obey(void *memory, pid_t pid, int fd)
{
	struct guard_memory *m = memory;
	const struct guard_order *o = &m->order;
	struct injection *in = &m->targets[o->target];

	if (o->target >= GUARD_MAX_TARGETS || in->pid != pid || o->nr > INJECT_MAX_PATCHES ||
	    o->nr_kept > ORDER_MAX_KEPT)
		return -EPROTO;
	if (o->closes_file)
		return inject_close_file(in);
	switch (o->what) {
	case CHANGE_PUT_IN:
		return obey_put_in(in, o, fd);
	case CHANGE_GROW:
		return inject_grow(in, o->nr_places, o->nr_shards);
	case CHANGE_TAKE_OUT:
		return obey_take_out(in);
	case CHANGE_RENEW:
		return inject_renew(in);
	default:
		return -EPROTO;
	}
}

int guard_leave(void *memory, pid_t pid)
{
	struct guard_memory *m = memory;

	for (u32 i = 0; i < m->nr_used; i++)
		if (m->targets[i].pid == pid && m->targets[i].state == INJECT_IN)
			return obey_take_out(&m->targets[i]);
	return 0;
}

/* ---- in heaptap ---- */

static int write_order(struct guard *g, const struct change *c)
{
	struct guard_order *o = &g->shared->order;
	const struct inject_file *f = c->file;

	o->target = (u32)(c->in - g->shared->targets);
	o->what = c->kind;
	o->closes_file = false;
	o->nr_places = c->nr_places;
	o->nr_shards = c->nr_shards;
	o->nr = o->nr_kept = 0;
	if (!f)
		return 0;
	if (c->nr > INJECT_MAX_PATCHES || f->nr_kept > ORDER_MAX_KEPT)
		return inject_fail(c->in, -ENOSPC, "it has too many allocator functions");
	o->nr = (u32)c->nr;
	o->nr_kept = (u32)f->nr_kept;
	o->near = f->near;
	o->has_file = f->fd >= 0;
	snprintf(o->path, sizeof(o->path), "%s", f->path);
	memcpy(o->sites, c->sites, c->nr * sizeof(*c->sites));
	memcpy(o->kept, f->kept, f->nr_kept * sizeof(*f->kept));
	return 0;
}

/* The target has left the file of its memory open for us. The kernel opens what it maps for few users only. */
static int take_file(struct guard *g, struct injection *in)
{
	int fd = inject_open_file(in->pid, (u64)in->file), err;

	g->shared->order.closes_file = true;
	err = g->tracer->change(g->tracer->ctx, in->pid, -1);
	if (g->file >= 0)
		close(g->file);
	g->file = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : err;
}

/* Try it once. *@is_ours: the tracer traces the target. One that was killed does not, and the code must leave. */
static int change_once(struct guard *g, const struct change *c, bool *is_ours)
{
	const struct guard_tracer *t = g->tracer;
	struct injection *in = c->in;
	int held = t->hold(t->ctx, in->pid, INJECT_STOP_NS), err, ret;

	*is_ours = held != -ESRCH && (held != -EPIPE || c->kind != CHANGE_TAKE_OUT);
	if (held && held != -EBUSY)
		return inject_fail(in, held, "its threads cannot be stopped: %s", inject_reason(in, held));
	g->shared->order.closes_file = false;
	err = t->change(t->ctx, in->pid, c->file ? c->file->fd : -1);
	if (in->file >= 0) {
		ret = take_file(g, in);
		err = err ? err : ret;
	}
	if (!held)
		t->release(t->ctx, in->pid);
	return err;
}

/* A change that must wait until a thread has gone on. */
static bool may_wait(const struct change *c, int err)
{
	return err == -EAGAIN && (c->kind == CHANGE_PUT_IN || c->kind == CHANGE_TAKE_OUT);
}

int guard_order(struct guard *g, const struct change *c, bool *is_ours)
{
	u64 end_ns = clock_now_ns() + INJECT_LEAVE_NS, pause_ns = INJECT_PAUSE_NS;
	int err = write_order(g, c);

	*is_ours = true;
	if (err)
		return err;
	do
		err = change_once(g, c, is_ours);
	while (may_wait(c, err) && inject_pause(&pause_ns, end_ns));
	if (!may_wait(c, err))
		return err;
	if (c->kind == CHANGE_PUT_IN)
		return inject_stays_inside(c->in);
	c->in->state = INJECT_LEFT;
	return -EBUSY;
}
