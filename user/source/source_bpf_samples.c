/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples by the BPF programs: their distance, and the table of live blocks that were sampled. */
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/source/source_bpf_private.h"

enum { LEAST_ROOM = 1 << 16, MOST_ROOM = 1 << 21, SWEPT_AT_ONCE = 1024 };
static const u64 large_heap = 16ULL << 30;
static const u64 sweep_pause_ns = 1000000000;

/* Room in the table for the samples of a large heap. */
static u32 samples_room(const struct source_options *o)
{
	u32 room = LEAST_ROOM;

	if (!o->sample_bytes || o->probes.only_sampler)
		return 0;
	/* A taker declines few processes. Of distances that change sample_pace_next() bounds the blocks. */
	while (room < MOST_ROOM && !o->taker && !o->adapts_samples && room * o->sample_bytes < large_heap)
		room *= 2;
	return room;
}

int source_bpf_samples_load(struct bpf_source *s, u64 ring_bytes)
{
	int err;

	s->config.max_sampled = samples_room(&s->options);
	/* All processes have one distance. Beside a taker no event tells its own, so that one stays. */
	s->samples.pace = (struct sample_pace){ .is_on = s->config.max_sampled && s->options.adapts_samples &&
							 !s->options.taker,
						.log = SAMPLE_FIRST_LOG,
						.crowd = 1 };
	err = programs_load(&s->programs, &s->config, ring_bytes, s->is_multi);
	if (err)
		return err;
	s->programs.state->sample_bytes = s->options.sample_bytes;
	/* The kernel lists the entries of a table to a program since Linux 5.13, before bpf_loop(). */
	if (!s->config.max_sampled || !s->config.max_followed || s->programs.has_loop)
		return 0;
	error("bpf: --sample: not with --follow on this kernel: leave one of them out");
	programs_unload(&s->programs);
	return -EOPNOTSUPP;
}

void source_bpf_samples_see(struct bpf_source *s, const struct event_header *rec)
{
	const struct process_event *ev = (const void *)rec;
	struct bpf_process *known;

	if (!s->config.max_sampled)
		return;
	if (rec->kind <= EVENT_REALLOC_END) {
		sample_pace_count(&s->samples.pace, (const void *)rec);
		s->samples.nr++;
	} else if (rec->kind == EVENT_EXEC) {
		known = source_bpf_find(s, (pid_t)rec->pid);
		if (known)
			known->exec_ns = ev->time_ns;
		s->samples.has_gone = true;
	}
}

/* Has the program gone that had the block @key, of the time @time_ns? */
static bool samples_have_gone(const struct bpf_source *s, const struct sampled_key *key, u64 time_ns)
{
	u32 pid = (u32)key->pid;
	const struct bpf_process *known = source_bpf_find(s, (pid_t)pid);
	struct process_state process;

	if (known)
		return time_ns < known->exec_ns;
	return bpf_map_lookup_elem(s->programs.processes_fd, &pid, &process) != 0;
}

/* Drop the blocks of programs that have gone. */
static void samples_sweep(const struct bpf_source *s)
{
	struct sampled_key keys[SWEPT_AT_ONCE];
	u64 times[SWEPT_AT_ONCE];
	u32 at = 0, nr;
	bool is_first = true;
	int err = 0;

	while (!err) {
		nr = SWEPT_AT_ONCE;
		err = bpf_map_lookup_batch(s->programs.sampled_fd, is_first ? NULL : &at, &at, keys, times,
					   &nr, NULL);
		if (err && err != -ENOENT)
			return;
		is_first = false;
		for (u32 i = 0; i < nr; i++)
			if (samples_have_gone(s, &keys[i], times[i]))
				bpf_map_delete_elem(s->programs.sampled_fd, &keys[i]);
	}
}

void source_bpf_samples_poll(struct bpf_source *s)
{
	struct bpf_samples *b = &s->samples;
	u64 now_ns;

	if (!s->config.max_sampled)
		return;
	now_ns = clock_now_ns();
	if (b->pace.is_on) {
		__atomic_store_n(&s->programs.state->sample_bytes, sample_pace_next(&b->pace, b->nr, now_ns),
				 __ATOMIC_RELAXED);
		b->nr = 0;
	}
	if (b->has_gone && now_ns - b->swept_ns > sweep_pause_ns) {
		b->has_gone = false;
		b->swept_ns = now_ns;
		samples_sweep(s);
	}
}
