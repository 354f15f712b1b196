/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory that the writer and the reader of a stream have in common. */
#include "user/stream/stream_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

int stream_state_init(struct stream_state *s)
{
	s->stacks = NULL;
	s->max_stacks = 0;
	s->guess = calloc(1, sizeof(*s->guess));
	if (!s->guess || array_reserve(s->stacks, s->max_stacks, STACK_FIRST_ID))
		return -ENOMEM;
	stream_state_reset(s);
	return 0;
}

void stream_state_reset(struct stream_state *s)
{
	struct stream_stack *stacks = s->stacks;
	struct stream_guess *guess = s->guess;
	size_t max_stacks = s->max_stacks;

	array_clear(s, sizeof(*s));
	s->guess = guess;
	s->has_guess = !IS_AGENT;
	if (!IS_AGENT)
		stream_guess_begin(guess, GUESS_BITS);
	s->stacks = stacks;
	s->max_stacks = max_stacks;
	s->nr_stacks = STACK_FIRST_ID;
	s->stacks[STACK_NONE] = (struct stream_stack){ .id = STACK_NONE };
	s->stacks[STACK_LOST] = (struct stream_stack){ .id = STACK_LOST };
}

void stream_state_fini(struct stream_state *s)
{
	free(s->stacks);
	s->stacks = NULL;
	free(s->guess);
	s->guess = NULL;
}

int stream_state_add_stack(struct stream_state *s, u64 id)
{
	if (s->nr_stacks - STACK_FIRST_ID >= STREAM_MAX_STACKS)
		return -E2BIG;
	if (array_reserve(s->stacks, s->max_stacks, s->nr_stacks + 1))
		return -ENOMEM;
	s->stacks[s->nr_stacks++] = (struct stream_stack){ .id = id };
	return 0;
}
