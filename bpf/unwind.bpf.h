/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The adaptor of bpf/walk.h: walks of stacks in a copy of the target's memory, by rows in maps. */
#pragma once

#include "bpf/compat.bpf.h"
#include "bpf/walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_SHARDS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(map_flags, BPF_F_MMAPABLE);
			__uint(key_size, sizeof(u32));
			__uint(value_size, sizeof(struct shard));
		});
} shards SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_SLABS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, SLAB_PROCESSES);
			__uint(map_flags, BPF_F_MMAPABLE);
			__uint(key_size, sizeof(u32));
			__uint(value_size, sizeof(struct unwind_maps));
		});
} slabs SEC(".maps");

/* From a PID to the number of its struct unwind_maps in all slabs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u32);
} slots SEC(".maps");

static const struct walk empty_walk;

/*
 * Copy the stack from @addr on: as far as the last stack reached, because most walks read no further. Else COPY_WORDS
 * words, or the rest of the page.
 */
static __noinline bool copy_load(struct walk *w, u64 addr)
{
	u64 bytes, left;

	if (!w)
		return false;
	w->copy_start = addr & ~7ULL;
	bytes = w->last[0].sp - w->copy_start;
	if (bytes < sizeof(w->copy)) {
		bytes = (bytes + 7) & (sizeof(w->copy) - 8);
		w->copy_bytes = bytes;
		if (bytes && !bpf_probe_read_user(w->copy, bytes, (void *)w->copy_start))
			return true;
	}
	w->copy_bytes = sizeof(w->copy);
	if (!bpf_probe_read_user(w->copy, sizeof(w->copy), (void *)w->copy_start))
		return true;
	left = 4096 - (w->copy_start & 4095);
	w->copy_bytes = 0;
	if (left >= sizeof(w->copy) ||
	    bpf_probe_read_user(w->copy, left & (sizeof(w->copy) - 1), (void *)w->copy_start))
		return false;
	w->copy_bytes = left;
	return true;
}

/* The word of the target at @addr. */
static __always_inline bool word_at(struct walk *w, u64 addr, u64 *word)
{
	u64 at = addr - w->copy_start;
	u64 i;

	if (addr & (w->word - 1))
		return false;
	if (at >= w->copy_bytes) {
		if (!copy_load(w, addr))
			return false;
		at = addr - w->copy_start;
	}
	i = at >> 3;
	asm volatile("%0 &= %1" : "+r"(i) : "i"(COPY_WORDS - 1));
	*word = w->copy[i];
	if (w->word == 4)
		*word = (u32)(*word >> (at & 4) * 8);
	return true;
}

static __always_inline u32 find_rule(const struct unwind_map *m, u64 pc)
{
	u64 first = m->first, nr = m->nr, offset = pc - m->base;
	const struct shard *shard;
	u32 key = m->shard, zero = 0;
	void *inner;

	inner = bpf_map_lookup_elem(&shards, &key);
	if (!inner)
		return CFI_NONE;
	shard = bpf_map_lookup_elem(inner, &zero);
	if (!shard || !nr)
		return CFI_NONE;
#pragma unroll
	for (int i = 0; i < 19; i++) {
		u64 half = nr >> 1;
		u64 next = first + half;

		asm volatile("%0 &= %1" : "+r"(next) : "i"(SHARD_ROWS - 1));
		/* With one row left half is 0, and nothing changes any more. */
		first += half & ~walk_below(offset, shard->rows[next].pc);
		nr -= half;
	}
	asm volatile("%0 &= %1" : "+r"(first) : "i"(SHARD_ROWS - 1));
	return shard->rows[first].rule;
}

static __always_inline bool code_before(struct walk *w, u64 pc, u64 *code)
{
	u64 in_page = pc & 4095;

	(void)w;
	if (!bpf_probe_read_user(code, sizeof(*code), (void *)(pc - sizeof(*code))))
		return true;
	/* The page before may not be mapped. */
	if (in_page >= sizeof(*code) || bpf_probe_read_user(code, sizeof(*code), (void *)(pc - in_page)))
		return false;
	*code = in_page ? *code << 8 * (sizeof(*code) - in_page) : 0;
	return true;
}

static __always_inline u64 code_at(struct walk *w, u64 pc)
{
	u64 code;

	(void)w;
	return bpf_probe_read_user(&code, sizeof(code), (void *)pc) ? 0 : code;
}
