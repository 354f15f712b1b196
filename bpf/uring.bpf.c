/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists the user_data of a process's io_uring requests: often a pointer that nobody else has until a request is done.
 * Requests that wait for a file or a time are found (io_uring/poll.c, timeout.c), and those linked to them; not those
 * that a thread of the kernel works on. An object of its own: it needs the kernel's description of its types, and only
 * processes with an io_uring need it.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/uring.h"

#define OF_THE_KERNEL __attribute__((preserve_access_index))

struct list_head {
	struct list_head *next;
} OF_THE_KERNEL;
struct hlist_node {
	struct hlist_node *next;
} OF_THE_KERNEL;
struct hlist_head {
	struct hlist_node *first;
} OF_THE_KERNEL;
struct io_hash_bucket {
	struct hlist_head list;
} OF_THE_KERNEL;
struct io_hash_table {
	struct io_hash_bucket *hbs;
	unsigned int hash_bits;
} OF_THE_KERNEL;
struct io_ring_ctx {
	struct io_hash_table cancel_table;
	struct io_hash_table cancel_table_locked; /* Linux 6.0 to 6.9 */
	struct list_head timeout_list;
} OF_THE_KERNEL;
struct io_cqe {
	__u64 user_data;
} OF_THE_KERNEL;
struct io_kiocb {
	struct io_cqe cqe;
	struct hlist_node hash_node;
	struct io_kiocb *link;
} OF_THE_KERNEL;
struct io_timeout { /* at the beginning of an io_kiocb */
	struct list_head list;
} OF_THE_KERNEL;
struct file {
	void *private_data;
} OF_THE_KERNEL;
struct bpf_iter_meta;
struct task_struct;
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
} OF_THE_KERNEL;

enum { MOST_BITS = 16, MOST_IN_A_LIST = 1 << 17, MOST_LINKS = 8 };

char LICENSE[] SEC("license") = "GPL";

struct uring_state uring = {};

/* The room of this map is set before it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} words SEC(".maps");

/* The place in a list, or in a hash table. */
struct uring_place {
	void *at; /* a node, or the head of a list of nodes; NULL = none */
	void *end;
};

static void take_request(const struct io_kiocb *first)
{
	const struct io_kiocb *request = first;

	for (int i = 0; i < MOST_LINKS && request; i++) {
		__u32 nr = uring.nr++;
		__u64 *word = bpf_map_lookup_elem(&words, &nr);

		if (word)
			*word = BPF_CORE_READ(request, cqe.user_data);
		request = BPF_CORE_READ(request, link);
	}
}

static long take_hashed(__u32 i, void *arg)
{
	struct uring_place *p = arg;
	const struct hlist_node *node = p->at;

	(void)i;
	if (!node)
		return 1;
	take_request((const void *)((const char *)node - bpf_core_field_offset(struct io_kiocb, hash_node)));
	p->at = BPF_CORE_READ(node, next);
	return 0;
}

static long take_bucket(__u32 i, void *arg)
{
	const struct uring_place *p = arg;
	const struct io_hash_bucket *bucket =
		(const void *)((const char *)p->at + (__u64)i * bpf_core_type_size(struct io_hash_bucket));
	struct uring_place list = { .at = BPF_CORE_READ(bucket, list.first) };

	bpf_loop(MOST_IN_A_LIST, take_hashed, &list, 0);
	return 0;
}

static void take_table(void *buckets, __u32 bits)
{
	struct uring_place p = { .at = buckets };

	if (buckets && bits <= MOST_BITS)
		bpf_loop(1U << bits, take_bucket, &p, 0);
}

static long take_timeout(__u32 i, void *arg)
{
	struct uring_place *p = arg;
	const struct list_head *node = p->at;

	(void)i;
	if (!node || node == p->end)
		return 1;
	take_request((const void *)((const char *)node - bpf_core_field_offset(struct io_timeout, list)));
	p->at = BPF_CORE_READ(node, next);
	return 0;
}

static void take_ring(struct io_ring_ctx *ring)
{
	struct uring_place p = { .at = BPF_CORE_READ(ring, timeout_list.next),
				 .end = (char *)ring +
					bpf_core_field_offset(struct io_ring_ctx, timeout_list) };

	take_table(BPF_CORE_READ(ring, cancel_table.hbs), BPF_CORE_READ(ring, cancel_table.hash_bits));
	if (bpf_core_field_exists(ring->cancel_table_locked))
		take_table(BPF_CORE_READ(ring, cancel_table_locked.hbs),
			   BPF_CORE_READ(ring, cancel_table_locked.hash_bits));
	bpf_loop(MOST_IN_A_LIST, take_timeout, &p, 0);
}

SEC("iter/task_file")
int list_requests(struct bpf_iter__task_file *it)
{
	struct file *file = it->file;
	__u32 fd = it->fd;

	for (int i = 0; file && i < URING_MAX_RINGS; i++)
		if (i < (int)uring.nr_rings && uring.rings[i] == fd)
			take_ring(file->private_data);
	return 0;
}
