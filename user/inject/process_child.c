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
	struct piece_key keys[PIECE_MAX_THREADS];
	u32 nr_used;		      /* places, as in struct piece_shared */
	struct piece_thread *threads; /* owned; of each place */
};

static taddr_t process_child_thread_at(const struct injection *in, u32 place)
{
	return in->region + PIECE_PLACES_OFFSET + place * sizeof(struct piece_place) +
	       offsetof(struct piece_place, thread);
}

/* The only thread of the child has @pointer. The others exist no more: they are in no hook, and in no call. */
static void forget_others(struct piece_thread *t, u64 pointer)
{
	bool is_own = t->key - (pointer | 1) < NESTED_KEYS;

	if (!is_own) {
		t->hook = 0;
		t->nr_pending = 0;
	}
	/* Calls that the parent has begun are the parent's. */
	memset(&t->calls, 0, sizeof(t->calls));
}

static int read_inherited(struct inherited *h, const struct injection *in, int mem, u64 pointer)
{
	int err = inject_read(mem, in->region + PIECE_KEYS_OFFSET, h->keys, sizeof(h->keys));

	if (err)
		return err;
	for (u32 i = 0; i < PIECE_MAX_THREADS; i++) {
		if (inject_is_key(&h->keys[i], in) && h->keys[i].nr >= h->nr_used)
			h->nr_used = (u32)h->keys[i].nr + 1;
		/* Children of a parent, and it, shall not sample in step. */
		h->keys[i].random ^= (u64)in->pid << 32;
	}
	h->threads = calloc(h->nr_used + 1, sizeof(*h->threads));
	if (!h->threads)
		return -ENOMEM;
	for (u32 i = 0; i < h->nr_used && !err; i++) {
		err = inject_read(mem, process_child_thread_at(in, i), &h->threads[i], sizeof(h->threads[i]));
		forget_others(&h->threads[i], pointer);
	}
	return err;
}

static int write_inherited(const struct inherited *h, const struct injection *in, int mem)
{
	const taddr_t used = in->region + PIECE_SHARED_OFFSET + offsetof(struct piece_shared, nr_used);
	const taddr_t keys = in->region + PIECE_KEYS_OFFSET;
	int err = 0;

	/* Not the free ones: all pages of the table would be in memory in each child. */
	for (u32 i = 0; i < PIECE_MAX_THREADS && !err; i++)
		if (inject_is_key(&h->keys[i], in))
			err = inject_write(mem, keys + i * sizeof(*h->keys), &h->keys[i], sizeof(*h->keys));
	for (u32 i = 0; i < h->nr_used && !err; i++)
		err = inject_write(mem, process_child_thread_at(in, i), &h->threads[i],
				   sizeof(h->threads[i]));
	return err ? err : inject_write(mem, used, &h->nr_used, sizeof(h->nr_used));
}

static int process_child_renew(struct injection *in, struct stopped *s, int mem)
{
	auto_free struct inherited *h = calloc(1, sizeof(*h));
	u64 pointer = 0;
	int err = h ? inject_check_region(in) : -ENOMEM;

	if (!err)
		err = inject_thread_pointer(&pointer, s->all.threads[0].tid);
	if (!err)
		err = read_inherited(h, in, mem, pointer);
	if (!err)
		err = inject_map_file(s, mem, in, in->region, true);
	if (!err)
		err = write_inherited(h, in, mem);
	if (!err)
		err = inject_save(in, mem);
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
		return inject_fail(in, err, "its threads cannot be stopped: %s", inject_reason(in, err));
	err = process_child_renew(in, &s, mem);
	threads_resume(&s);
	in->put_in_ns = clock_now_ns() - begin;
	return err && !*in->why
		       ? inject_fail(in, err, "memory cannot be mapped in it: %s", inject_reason(in, err))
		       : err;
}
