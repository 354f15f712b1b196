/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks to which only io_uring requests lead that the kernel works on: requests [wait]. Reads of an empty pipe, each
 * with a linked timeout, and timeouts. The ring is small: newer requests overwrite the words of the older ones. One
 * block is lost. With "wait" it begins after a line of input, and ends after another line.
 */
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/targets/truth.h"

enum {
	ENTRIES = 8,
	NR_READS = 100,
	NR_TIMEOUTS = 50,
	READ_BYTES = 200,
	LIMIT_BYTES = 48,
	TIMEOUT_BYTES = 72
};

static struct io_uring_sqe *entries;
static uint32_t *tail, *list;
static int ring;
static const struct __kernel_timespec day = { .tv_sec = 86400 };

FN static struct io_uring_sqe *next_entry(void)
{
	uint32_t slot = *tail % ENTRIES;

	memset(&entries[slot], 0, sizeof(entries[slot]));
	list[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return &entries[slot];
}

FN static void submit(unsigned int nr)
{
	if (syscall(SYS_io_uring_enter, ring, nr, 0, 0, NULL, 0) != (long)nr)
		_exit(97);
}

FN static uint64_t held_read(size_t size)
{
	return (uintptr_t)malloc(size);
}

FN static uint64_t held_limit(size_t size)
{
	return (uintptr_t)malloc(size);
}

FN static uint64_t held_timeout(size_t size)
{
	return (uintptr_t)malloc(size);
}

FN static void lost_read(void)
{
	void *p = malloc(READ_BYTES);

	keep(p);
}

FN static void begin_read(int fd)
{
	struct io_uring_sqe *e = next_entry();

	e->opcode = IORING_OP_READ;
	e->flags = IOSQE_IO_LINK;
	e->fd = fd;
	e->user_data = held_read(READ_BYTES);
	e->addr = e->user_data;
	e->len = 8;
	e = next_entry();
	e->opcode = IORING_OP_LINK_TIMEOUT;
	e->fd = -1;
	e->addr = (uintptr_t)&day;
	e->len = 1;
	e->user_data = held_limit(LIMIT_BYTES);
	submit(2);
}

FN static void begin_timeout(void)
{
	struct io_uring_sqe *e = next_entry();

	e->opcode = IORING_OP_TIMEOUT;
	e->fd = -1;
	e->addr = (uintptr_t)&day;
	e->len = 1;
	e->user_data = held_timeout(TIMEOUT_BYTES);
	submit(1);
}

/* No io_uring here: the test is told. */
static void set_up(void)
{
	struct io_uring_params p = { .flags = 0 };
	char *queue;

	ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (ring < 0)
		_exit(99);
	queue = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(*list), PROT_READ | PROT_WRITE, MAP_SHARED,
		     ring, IORING_OFF_SQ_RING);
	entries = mmap(NULL, p.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		       IORING_OFF_SQES);
	if (queue == MAP_FAILED || entries == MAP_FAILED)
		_exit(98);
	tail = (uint32_t *)(void *)(queue + p.sq_off.tail);
	list = (uint32_t *)(void *)(queue + p.sq_off.array);
}

int main(int argc, char **argv)
{
	int fds[2];

	truth_begin();
	expect("reachable %d %d held_read", NR_READS, NR_READS * READ_BYTES);
	expect("reachable %d %d held_limit", NR_READS, NR_READS * LIMIT_BYTES);
	expect("reachable %d %d held_timeout", NR_TIMEOUTS, NR_TIMEOUTS * TIMEOUT_BYTES);
	expect("definite 1 %d lost_read", READ_BYTES);
	set_up();
	if (pipe(fds))
		_exit(98);
	reached("ready", argc > 1);
	lost_read();
	for (int i = 0; i < NR_READS; i++)
		begin_read(fds[0]);
	for (int i = 0; i < NR_TIMEOUTS; i++)
		begin_timeout();
	scrub();
	/* The words of the last requests. */
	memset(entries, 0, ENTRIES * sizeof(*entries));
	reached("built", argc > 1);
	(void)argv;
	_exit(0);
}
