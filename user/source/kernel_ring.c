/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ring through which BPF programs send records to heaptap. libbpf reads it, but would read for ever. */
#include "user/source/kernel_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

enum { HEAD_BYTES = 8 };

struct kernel_ring {
	struct ring_buffer *records; /* owned */
	const u8 *
		pages; /* owned; the first one begins with the reader's position, the second one with the writer's */
	size_t page_size;
	int (*take)(void *ctx, void *rec, size_t len);
	void *ctx;
	unsigned long end; /* position in bytes, of the records that this poll takes */
	int nr, err;	   /* of this poll */
};

static unsigned long position(const struct kernel_ring *r, int page)
{
	return __atomic_load_n((const unsigned long *)(const void *)(r->pages + (size_t)page * r->page_size),
			       __ATOMIC_ACQUIRE);
}

/* An error ends the walk of libbpf after this record. */
static int on_record(void *ctx, void *rec, size_t len)
{
	struct kernel_ring *r = ctx;
	/* libbpf publishes how far it has read after each record. */
	unsigned long after = position(r, 0) + HEAD_BYTES + (len + 7) / 8 * 8;

	r->nr++;
	r->err = r->take(r->ctx, rec, len);
	return r->err || (long)(r->end - after) <= 0 ? -ECANCELED : 0;
}

int kernel_ring_new(struct kernel_ring **out, int map_fd, int (*take)(void *ctx, void *rec, size_t len),
		    void *ctx)
{
	struct kernel_ring *r = calloc(1, sizeof(*r));
	void *pages;
	int err;

	if (!r)
		return -ENOMEM;
	r->page_size = (size_t)sysconf(_SC_PAGESIZE);
	r->take = take;
	r->ctx = ctx;
	pages = mmap(NULL, 2 * r->page_size, PROT_READ, MAP_SHARED, map_fd, 0);
	r->pages = pages == MAP_FAILED ? NULL : pages;
	if (r->pages)
		r->records = ring_buffer__new(map_fd, on_record, r, NULL);
	if (!r->records) {
		err = -errno;
		kernel_ring_free(r);
		return err;
	}
	*out = r;
	return 0;
}

void kernel_ring_free(struct kernel_ring *r)
{
	if (!r)
		return;
	ring_buffer__free(r->records);
	if (r->pages)
		munmap((void *)(uintptr_t)r->pages, 2 * r->page_size);
	free(r);
}

int kernel_ring_fd(const struct kernel_ring *r)
{
	return ring_buffer__epoll_fd(r->records);
}

int kernel_ring_poll(struct kernel_ring *r)
{
	int err;

	r->nr = r->err = 0;
	r->end = position(r, 1);
	err = ring_buffer__consume(r->records);
	if (r->err || (err < 0 && err != -ECANCELED))
		return r->err ? r->err : err;
	return r->nr;
}
