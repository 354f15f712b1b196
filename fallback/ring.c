/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A ring of records in shared memory. */
#include "fallback/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIN_BYTES = 4096, WAKE_FRACTION = 8, HEAD_BYTES = 8, GIVE_BACK_BYTES = 128 << 10 };

/* What both processes see. Positions grow for ever, or wrap: 32-bit CPUs may not have 64-bit words to share. */
struct shared {
	size_t written; /* bytes */
	size_t taken;
	u32 is_woken;		  /* since the reader last looked */
	_Alignas(4096) u8 data[]; /* whole pages, which are given back when they have been read */
};

struct ring {
	struct shared *shared;
	size_t mapped; /* bytes */
	size_t size;   /* of data, a power of two */
	int fd;	       /* eventfd */
};

int ring_new(struct ring **out, u64 bytes)
{
	struct ring *r = calloc(1, sizeof(*r));
	void *mem;
	int err;

	if (!r)
		return -ENOMEM;
	r->size = MIN_BYTES;
	while (r->size < bytes)
		r->size *= 2;
	r->mapped = sizeof(*r->shared) + r->size;
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	mem = r->fd < 0 ? MAP_FAILED
			: mmap(NULL, r->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED) {
		err = -errno;
		ring_free(r);
		return err;
	}
	r->shared = mem;
	*out = r;
	return 0;
}

void ring_free(struct ring *r)
{
	if (!r)
		return;
	if (r->shared)
		munmap(r->shared, r->mapped);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

static void copy_in(struct ring *r, u64 at, const void *from, size_t len)
{
	u64 first = r->size - (at & (r->size - 1));

	if (first > len)
		first = len;
	memcpy(r->shared->data + (at & (r->size - 1)), from, first);
	memcpy(r->shared->data, (const u8 *)from + first, len - first);
}

static void copy_out(const struct ring *r, u64 at, void *to, size_t len)
{
	u64 first = r->size - (at & (r->size - 1));

	if (first > len)
		first = len;
	memcpy(to, r->shared->data + (at & (r->size - 1)), first);
	memcpy((u8 *)to + first, r->shared->data, len - first);
}

void ring_wake(struct ring *r)
{
	u64 one = 1;

	if (__atomic_exchange_n(&r->shared->is_woken, 1, __ATOMIC_SEQ_CST))
		return;
	/* Full means that it is awake. */
	if (write(r->fd, &one, sizeof(one)) < 0)
		return;
}

bool ring_put(struct ring *r, const void *rec, size_t len, bool is_urgent)
{
	size_t written = r->shared->written;
	size_t used = written - __atomic_load_n(&r->shared->taken, __ATOMIC_ACQUIRE);
	size_t room = (len + HEAD_BYTES + 7) & ~(size_t)7;
	u64 head = len;

	if (len > RING_MAX_RECORD || used > r->size || r->size - used < room) {
		ring_wake(r);
		return false;
	}
	copy_in(r, written, &head, sizeof(head));
	copy_in(r, written + HEAD_BYTES, rec, len);
	__atomic_store_n(&r->shared->written, written + room, __ATOMIC_SEQ_CST);
	if (is_urgent || used + room >= r->size / WAKE_FRACTION)
		ring_wake(r);
	return true;
}

int ring_fd(const struct ring *r)
{
	return r->fd;
}

void ring_quiet(struct ring *r)
{
	u64 nr;

	if (!__atomic_exchange_n(&r->shared->is_woken, 0, __ATOMIC_SEQ_CST))
		return;
	/* Empty means that the writer is between its two steps: the next look comes soon. */
	if (read(r->fd, &nr, sizeof(nr)) < 0)
		return;
}

/*
 * What lies before @end has been read, up to a chunk's beginning: its pages hold nothing. So what is resident is what
 * waits, not all that was ever passed. Where the kernel cannot, they stay.
 */
static void give_back(struct ring *r, size_t end)
{
	size_t start = (end - 1) / GIVE_BACK_BYTES * GIVE_BACK_BYTES;

	if (madvise(r->shared->data + (start & (r->size - 1)), GIVE_BACK_BYTES, MADV_REMOVE))
		return;
}

ssize_t ring_take(struct ring *r, void *buf)
{
	size_t taken = r->shared->taken, left, end;
	u64 len;

	left = __atomic_load_n(&r->shared->written, __ATOMIC_ACQUIRE) - taken;
	if (!left)
		return 0;
	if (left < HEAD_BYTES)
		return -EPROTO;
	copy_out(r, taken, &len, sizeof(len));
	if (len > RING_MAX_RECORD || len + HEAD_BYTES > left)
		return -EPROTO;
	copy_out(r, taken + HEAD_BYTES, buf, len);
	end = taken + (((size_t)len + HEAD_BYTES + 7) & ~(size_t)7);
	/* Before the writer may have it again. */
	if (r->size > GIVE_BACK_BYTES && end / GIVE_BACK_BYTES != taken / GIVE_BACK_BYTES)
		give_back(r, end / GIVE_BACK_BYTES * GIVE_BACK_BYTES);
	__atomic_store_n(&r->shared->taken, end, __ATOMIC_RELEASE);
	return (ssize_t)len;
}
