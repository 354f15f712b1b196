/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Facts that the writer and the reader of a stream both remember about the records before, so that a heap event in
 * short form (user/stream/stream_format.h) need not repeat them.
 */
#pragma once

#include "bpf/event.h"
#include "user/stream/stream_guess.h"
#include "user/stream/stream_record.h"

/* A thread, by its number in the stream. */
struct stream_context {
	u32 pid, tid;
	u32 last;	/* stack of its last short event that has one */
	bool is_known;	/* STREAM_CONTEXT has introduced the thread */
	bool has_begun; /* its last event is EVENT_REALLOC_BEGIN, which the fields below describe */
	u16 fn;
	u64 old_addr, size, stack;
};

/* A stack, by its number in the stream, and the last event with it. Index 0 of fn and next: frees; 1: other events. */
struct stream_stack {
	u64 id;	     /* as the source names the stack */
	u64 size;    /* of the last event that was no free */
	u16 fn[2];   /* of the last event */
	u32 next[2]; /* the stack that followed in a thread whose last stack was this one */
};

struct stream_state {
	u64 time_shift;
	u64 time;    /* of the last record, in units of 2^time_shift ns */
	u64 addr;    /* of the last short event */
	u32 context; /* of the last event */
	struct stream_context contexts[STREAM_MAX_THREADS];
	u64 nr_recent;		      /* addresses of short events so far */
	u64 recent[STREAM_NR_RECENT]; /* the last of them; in a ring */
	struct stream_stack *stacks;  /* owned */
	struct stream_guess *guess;   /* owned */
	bool has_guess;		      /* always true outside the agent, whose files have none */
	size_t nr_stacks, max_stacks; /* STACK_NONE and STACK_LOST included */
};

/* Begin a stream: no record has come. 0 or -ENOMEM. */
int stream_state_init(struct stream_state *s) __must_check;
void stream_state_fini(struct stream_state *s);

/* Begin another stream. */
void stream_state_reset(struct stream_state *s);

/* STREAM_HELLO. */
static inline void stream_state_begin(struct stream_state *s, const struct stream_hello *hello)
{
	s->time_shift = hello->time_shift & 63;
	s->time = hello->mono_ns >> s->time_shift;
	if (hello->role == STREAM_ROLE_TARGET) {
		stream_guess_begin(s->guess, GUESS_LINK_BITS);
		s->has_guess = true;
	}
}

/* A new stack gets the next number. 0, -E2BIG beyond STREAM_MAX_STACKS, or -ENOMEM. */
int stream_state_add_stack(struct stream_state *s, u64 id) __must_check;

/* The address of a short event. */
static inline void stream_state_add_addr(struct stream_state *s, u64 addr)
{
	s->recent[s->nr_recent++ % STREAM_NR_RECENT] = addr;
	s->addr = addr;
}

/* The address that is @distance short events back, from 1 on. False if the state does not remember it. */
static inline bool stream_state_recent(const struct stream_state *s, u64 distance, u64 *addr)
{
	if (!distance || distance > s->nr_recent || distance > STREAM_NR_RECENT)
		return false;
	*addr = s->recent[(s->nr_recent - distance) % STREAM_NR_RECENT];
	return true;
}

/* @ev is the last event of the present context; its stack has the number @stack. */
static inline void stream_state_end_event(struct stream_state *s, const struct heap_event *ev, u64 stack)
{
	struct stream_context *c = &s->contexts[s->context];

	if (s->has_guess)
		stream_guess_learn(s->guess, ev);
	c->has_begun = ev->h.kind == EVENT_REALLOC_BEGIN;
	if (!c->has_begun)
		return;
	c->fn = ev->h.fn;
	c->old_addr = ev->old_addr;
	c->size = ev->size;
	c->stack = stack;
}
