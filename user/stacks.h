/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks as places in modules, each kept once. */
#pragma once

#include "bpf/event.h"
#include "user/module.h"

/* A call stack; innermost frame first. All frames are return addresses. */
struct stack {
	u64 id;	       /* as the source named it */
	u64 canonical; /* id of the first stack with the same places: another one after a dlopen, say */
	u64 check;     /* of all that the source said, another hash than the id */
	u16 nr_frames;
	u8 end;	       /* enum stack_end */
	bool is_false; /* the id is not to be trusted: collision, or not what the frames make */
	struct code_ref frames[];
};

struct stack_table;

int stack_table_new(struct stack_table **out) __must_check;
void stack_table_free(struct stack_table *t);

/* Most bytes that stacks may take (stack_table_memory()); 0 = no limit, as at the start. */
void stack_table_set_limit(struct stack_table *t, u64 bytes);

/*
 * From now on ids must be what stack_event_id() says. Else they may be any numbers, each for one stack.
 */
void stack_table_check_ids(struct stack_table *t);

/*
 * Keep the stack of @ev, its addresses looked up in @maps. Only nr_frames entries of its ips are read, at
 * most STACK_MAX_FRAMES. A known id is left as it is, one below STACK_FIRST_ID ignored. An id that is not what it must
 * be, or another stack's, is counted and false from now on. 0, or -ENOMEM (the limit too): then nothing is kept and
 * stack_get() gives NULL for the id.
 */
int stack_table_add(struct stack_table *t, const struct stack_event *ev,
		    const struct mapping_list *maps) __must_check;

/* NULL if @id was never added. Valid until stack_table_free(). Of equal ones always the first. */
const struct stack *stack_get(const struct stack_table *t, u64 id);

/*
 * The one id of all stacks that equal @id's; @id itself if it was never added. STACK_LOST for a false id: nobody
 * can say whose the events are that name it.
 */
u64 stack_canonical(const struct stack_table *t, u64 id);

/* Ids that were false. */
u64 stack_table_false(const struct stack_table *t);

/* Different stacks. */
size_t stack_count(const struct stack_table *t);

/* Bytes of memory that the table uses now. */
u64 stack_table_memory(const struct stack_table *t);

/* An enum stack_end in one word, as reports and lists of events have it. */
const char *stack_end_word(u8 end);
