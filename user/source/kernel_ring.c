/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ring through which BPF programs send records to heaptap. libbpf would map all of it twice at the start, which
 * takes time and counts as memory of heaptap: here a part is mapped when the reader comes to it.
 */
#include "user/source/kernel_ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/event.h"

/* A part has this many bytes, and as many more as a record that begins in it may need. */
enum { HEAD_BYTES = 8, PART_BYTES = 256 << 10, MOST_RECORD_BYTES = 4096 };

_Static_assert(HEAD_BYTES + sizeof(struct stack_event) <= MOST_RECORD_BYTES, "the longest record");

struct kernel_ring {
	int map_fd, epoll_fd; /* borrowed; owned */
	u8 *reader, *writer;  /* owned; a page each, which begins with the position of that side */
	u8 **parts;	      /* owned, and the mappings in it; NULL = not mapped yet */
	size_t page_size, size, part_bytes, nr_parts;
	int (*take)(void *ctx, void *rec, size_t len);
	void *ctx;
};

static unsigned long ring_position(const u8 *page)
{
	return __atomic_load_n((const unsigned long *)(const void *)page, __ATOMIC_ACQUIRE);
}

static size_t mapped_bytes(const struct kernel_ring *r)
{
	return (r->part_bytes + MOST_RECORD_BYTES + r->page_size - 1) / r->page_size * r->page_size;
}

/* Map @len bytes of the ring's file. NULL: errno says why not. */
static u8 *map_ring(const struct kernel_ring *r, size_t offset, size_t len, int rights)
{
	void *at = mmap(NULL, len, rights, MAP_SHARED, r->map_fd, (off_t)offset);

	return at == MAP_FAILED ? NULL : at;
}

static void drop_parts(struct kernel_ring *r)
{
	for (size_t i = 0; r->parts && i < r->nr_parts; i++) {
		if (r->parts[i])
			munmap(r->parts[i], mapped_bytes(r));
		r->parts[i] = NULL;
	}
}

/* The record at @position. NULL: it cannot be mapped. The file has the records twice, so none of them is cut. */
static u8 *kernel_ring_record_at(struct kernel_ring *r, unsigned long position)
{
	size_t at = position & (r->size - 1), part = at / r->part_bytes, len = mapped_bytes(r);
	size_t offset = 2 * r->page_size + part * r->part_bytes;

	if (!r->parts[part])
		r->parts[part] = map_ring(r, offset, len, PROT_READ);
	/* At a limit of memory one part at a time must do. */
	if (!r->parts[part]) {
		drop_parts(r);
		r->parts[part] = map_ring(r, offset, len, PROT_READ);
	}
	return r->parts[part] ? r->parts[part] + at % r->part_bytes : NULL;
}

static int open_ring(struct kernel_ring *r)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct bpf_map_info info = { 0 };
	u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(r->map_fd, &info, &len))
		return -errno;
	r->size = info.max_entries;
	r->part_bytes = r->size < PART_BYTES ? r->size : PART_BYTES;
	r->nr_parts = r->size / r->part_bytes;
	r->parts = calloc(r->nr_parts, sizeof(*r->parts));
	r->reader = map_ring(r, 0, r->page_size, PROT_READ | PROT_WRITE);
	r->writer = map_ring(r, r->page_size, r->page_size, PROT_READ);
	if (!r->parts || !r->reader || !r->writer)
		return -errno;
	/* An epoll reports the ring only when a program wakes the reader, not whenever there is a record. */
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return r->epoll_fd < 0 || epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->map_fd, &ev) ? -errno : 0;
}

int kernel_ring_new(struct kernel_ring **out, int map_fd, int (*take)(void *ctx, void *rec, size_t len),
		    void *ctx)
{
	struct kernel_ring *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->page_size = (size_t)sysconf(_SC_PAGESIZE);
	r->map_fd = map_fd;
	r->epoll_fd = -1;
	r->take = take;
	r->ctx = ctx;
	err = open_ring(r);
	if (err) {
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
	drop_parts(r);
	if (r->reader)
		munmap(r->reader, r->page_size);
	if (r->writer)
		munmap(r->writer, r->page_size);
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
	free(r->parts);
	free(r);
}

int kernel_ring_fd(const struct kernel_ring *r)
{
	return r->epoll_fd;
}

int kernel_ring_poll(struct kernel_ring *r)
{
	unsigned long at = ring_position(r->reader), end = ring_position(r->writer);
	int nr = 0, err = 0;

	while (at != end && !err) {
		u8 *rec = kernel_ring_record_at(r, at);
		u32 head, len;

		if (!rec)
			return -errno;
		head = __atomic_load_n((const u32 *)(const void *)rec, __ATOMIC_ACQUIRE);
		/* A program writes it still: those behind it wait. */
		if (head & BPF_RINGBUF_BUSY_BIT)
			break;
		len = head & ~(u32)(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			nr++;
			err = r->take(r->ctx, rec + HEAD_BYTES, len);
		}
		at += HEAD_BYTES + (len + 7) / 8 * 8;
		__atomic_store_n((unsigned long *)(void *)r->reader, at, __ATOMIC_RELEASE);
	}
	return err ? err : nr;
}
