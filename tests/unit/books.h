/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of one process entered in books, for the tests of heap.c; what must be true of these then is in sums.h. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/sums.h"
#include "user/heap/heap.h"

#define MS 1000000ULL

enum { PAGE = 4096, S = 100, BASE = 0x100000 }; /* S: a stack id */

static u16 fn_malloc, fn_realloc, fn_free, fn_mmap, fn_munmap, fn_mremap;

static inline int find_functions(void **state)
{
	(void)state;
	fn_malloc = alloc_fn_find(NULL, "malloc");
	fn_realloc = alloc_fn_find(NULL, "realloc");
	fn_free = alloc_fn_find(NULL, "free");
	fn_mmap = alloc_fn_find(NULL, "mmap");
	fn_munmap = alloc_fn_find(NULL, "munmap");
	fn_mremap = alloc_fn_find(NULL, "mremap");
	return !fn_malloc || !fn_realloc || !fn_free || !fn_mmap || !fn_munmap || !fn_mremap;
}

static inline struct heap *new_heap(void)
{
	struct heap *h;

	assert_int_equal(heap_new(&h, NULL), 0);
	return h;
}

/* An event with a time that grows by 1 ms. */
static inline struct heap_event event(enum event_kind kind, u16 fn)
{
	static u64 time_ns;

	time_ns += MS;
	return (struct heap_event){ .h = { .kind = kind, .fn = fn, .tid = 1 },
				    .time_ns = time_ns,
				    .stack = S };
}

static inline void do_alloc(struct heap *h, u16 fn, taddr_t addr, u64 size)
{
	struct heap_event ev = event(EVENT_ALLOC, fn);

	ev.addr = addr;
	ev.size = size;
	assert_int_equal(heap_event(h, &ev), 0);
}

static inline void do_free(struct heap *h, taddr_t addr)
{
	struct heap_event ev = event(EVENT_FREE, fn_free);

	ev.addr = addr;
	assert_int_equal(heap_event(h, &ev), 0);
}

static inline void do_unmap(struct heap *h, taddr_t addr, u64 size)
{
	struct heap_event ev = event(EVENT_FREE, fn_munmap);

	ev.h.flags = EVENT_UNMAP;
	ev.addr = addr;
	ev.size = size;
	assert_int_equal(heap_event(h, &ev), 0);
}

static inline void do_begin(struct heap *h, u16 fn, u32 tid, taddr_t old)
{
	struct heap_event ev = event(EVENT_REALLOC_BEGIN, fn);

	ev.h.tid = tid;
	ev.old_addr = old;
	ev.size = 1;
	assert_int_equal(heap_event(h, &ev), 0);
}

static inline void do_end(struct heap *h, u16 fn, u32 tid, taddr_t old, taddr_t addr, u64 size)
{
	struct heap_event ev = event(EVENT_REALLOC_END, fn);

	ev.h.tid = tid;
	ev.old_addr = old;
	ev.addr = addr;
	ev.size = size;
	assert_int_equal(heap_event(h, &ev), 0);
}
