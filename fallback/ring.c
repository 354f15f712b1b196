/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A ring of records in shared memory. */
#include "fallback/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIN_BYTES = 4096, WAKE_FRACTION = 8, HEAD_BYTES = 8 };

/* Pages that were read go back to the kernel in chunks. Smaller rings than this number of chunks keep their pages. */
enum { CHUNK_BYTES = 32 << 10, MIN_CHUNKS = 32 };

/* The memory that both processes see. Positions only grow, and wrap: 32-bit CPUs cannot share 64-bit words. */
struct shared {
	size_t written;		  /* bytes, by the writer */
	size_t read;		  /* bytes, by the reader */
	size_t freed;		  /* bytes whose room the writer may use again: at most those read */
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
	/* If the eventfd is full, the reader is awake. */
	if (write(r->fd, &one, sizeof(one)) < 0)
		return;
}

bool ring_put(struct ring *r, const void *rec, size_t len, bool is_urgent)
{
	size_t written = r->shared->written;
	size_t used = written - __atomic_load_n(&r->shared->freed, __ATOMIC_ACQUIRE);
	size_t room = (len + HEAD_BYTES + 7) & ~(size_t)7;
	u64 head = len;

	if (len > RING_MAX_RECORD || used > r->size || r->size - used < room) {
		ring_wake(r);
		return false;
	}
	copy_in(r, written, &head, sizeof(head));
	copy_in(r, written + HEAD_BYTES, rec, len);
	__atomic_store_n(&r->shared->written, written + room, __ATOMIC_SEQ_CST);
	used = written + room - __atomic_load_n(&r->shared->read, __ATOMIC_RELAXED);
	if (is_urgent || used >= r->size / WAKE_FRACTION)
		ring_wake(r);
	return true;
}

int ring_fd(const struct ring *r)
{
	return r->fd;
}

void ring_set_fd(struct ring *r, int fd)
{
	r->fd = fd;
}

void ring_quiet(struct ring *r)
{
	u64 nr;

	if (!__atomic_exchange_n(&r->shared->is_woken, 0, __ATOMIC_SEQ_CST))
		return;
	/* If the eventfd is empty, the writer is between its two steps: the next look comes soon. */
	if (read(r->fd, &nr, sizeof(nr)) < 0)
		return;
}

/*
 * The reader has read all bytes before @end. Let the writer have their room. A large ring frees whole chunks only, and
 * gives the pages of a chunk back to the kernel before the writer may fill them again: so the ring takes as much memory
 * as there are bytes that wait. Where the kernel cannot take pages back, they stay.
 */
static void free_room(struct ring *r, size_t end)
{
	size_t freed = r->shared->freed;

	if (r->size < (size_t)MIN_CHUNKS * CHUNK_BYTES) {
		__atomic_store_n(&r->shared->freed, end, __ATOMIC_RELEASE);
		return;
	}
	for (; end - freed >= CHUNK_BYTES; freed += CHUNK_BYTES) {
		madvise(r->shared->data + (freed & (r->size - 1)), CHUNK_BYTES, MADV_REMOVE);
		__atomic_store_n(&r->shared->freed, freed + CHUNK_BYTES, __ATOMIC_RELEASE);
	}
}

size_t ring_end(const struct ring *r)
{
	return __atomic_load_n(&r->shared->written, __ATOMIC_ACQUIRE);
}

ssize_t ring_take(struct ring *r, size_t end, void *buf)
{
	size_t at = r->shared->read, left = end - at;
	u64 len;

	if (!left)
		return 0;
	if (left < HEAD_BYTES)
		return -EPROTO;
	copy_out(r, at, &len, sizeof(len));
	if (len > RING_MAX_RECORD || len + HEAD_BYTES > left)
		return -EPROTO;
	copy_out(r, at + HEAD_BYTES, buf, len);
	at += ((size_t)len + HEAD_BYTES + 7) & ~(size_t)7;
	__atomic_store_n(&r->shared->read, at, __ATOMIC_RELAXED);
	free_room(r, at);
	return (ssize_t)len;
}
