/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gives rings to a forked child, which has a copy of its parent's code and of its calls under way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/inject/left.h"
#include "user/inject/process_private.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"

enum { NESTED_KEYS = 2 * (PIECE_MAX_NESTED + 1) };

/* Threads of the parent, as the child has them in its memory. */
struct inherited {
	u64 keys[PIECE_MAX_THREADS];
	u32 used[PIECE_MAX_THREADS]; /* as in struct piece_shared */
	u32 nr;
	struct piece_thread *threads; /* owned; of each key in used */
};

static taddr_t thread_at(const struct injection *in, u32 at)
{
	return in->region + PIECE_PRIVATE_OFFSET + offsetof(struct piece_private, threads) +
	       at * sizeof(struct piece_thread);
}

/* The only thread of the child has @pointer. The others exist no more: they are in no hook, and in no call. */
static void forget_others(struct piece_thread *t, u64 key, u64 pointer)
{
	bool is_own = key - (pointer | 1) < NESTED_KEYS;

	if (!is_own) {
		t->nr_active = 0;
		t->nr_pending = 0;
	}
	/* Calls that the parent has begun are the parent's. */
	memset(&t->calls, 0, sizeof(t->calls));
}

static int read_inherited(struct inherited *h, const struct injection *in, int mem, u64 pointer)
{
	int err = inject_read(mem, in->region + PIECE_PRIVATE_OFFSET, h->keys, sizeof(h->keys));

	if (err)
		return err;
	for (u32 i = 0; i < PIECE_MAX_THREADS; i++)
		if (h->keys[i])
			h->used[h->nr++] = i + 1;
	h->threads = calloc(h->nr + 1, sizeof(*h->threads));
	if (!h->threads)
		return -ENOMEM;
	for (u32 i = 0; i < h->nr && !err; i++) {
		u32 at = h->used[i] - 1;

		err = inject_read(mem, thread_at(in, at), &h->threads[i], sizeof(h->threads[i]));
		forget_others(&h->threads[i], h->keys[at], pointer);
	}
	return err;
}

static int write_inherited(const struct inherited *h, const struct injection *in, int mem)
{
	const taddr_t shared = in->region + PIECE_SHARED_OFFSET;
	int err = 0;

	for (u32 i = 0; i < h->nr && !err; i++) {
		u32 at = h->used[i] - 1;

		err = inject_write(mem, thread_at(in, at), &h->threads[i], sizeof(h->threads[i]));
		if (!err)
			err = inject_write(mem, in->region + PIECE_PRIVATE_OFFSET + at * sizeof(*h->keys),
					   &h->keys[at], sizeof(*h->keys));
	}
	if (!err)
		err = inject_write(mem, shared + offsetof(struct piece_shared, used), h->used,
				   h->nr * sizeof(*h->used));
	return err ? err
		   : inject_write(mem, shared + offsetof(struct piece_shared, nr_used), &h->nr,
				  sizeof(h->nr));
}

static int renew(struct injection *in, struct stopped *s, int mem)
{
	auto_free struct inherited *h = calloc(1, sizeof(*h));
	u64 pointer = 0;
	int err = h ? inject_check_region(in) : -ENOMEM;

	if (!err)
		err = inject_thread_pointer(&pointer, s->threads[0].tid);
	if (!err)
		err = read_inherited(h, in, mem, pointer);
	if (!err)
		err = inject_map_file(s, mem, in->region);
	if (!err)
		err = write_inherited(h, in, mem);
	if (!err)
		err = inject_save(in, NULL, mem);
	if (h)
		free(h->threads);
	return err;
}

int inject_renew(struct injection *in)
{
	u64 begin = clock_now_ns();
	auto_close int mem = inject_open_memory(in->pid);
	struct stopped s;
	int err = mem < 0 ? mem : threads_stop(&s, in->pid, begin + INJECT_STOP_NS);

	*in->why = '\0';
	if (err)
		return inject_fail(in, err, "its threads cannot be stopped: %s", strerror(-err));
	err = renew(in, &s, mem);
	threads_resume(&s);
	in->put_in_ns = clock_now_ns() - begin;
	return err && !*in->why ? inject_fail(in, err, "memory cannot be mapped in it: %s", strerror(-err))
				: err;
}
