/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a table of stacks. For user/heap/stacks*.c only. */
#pragma once

#include "user/heap/budget.h"
#include "user/heap/stacks.h"
#include "user/lib/hash_index.h"

/* One id. Of the ids of stacks with the same frames, the slot of the first one has the frames. */
struct stack_slot {
	u64 id;	   /* from the source; 0 = the slot is not in use */
	u64 check; /* a second hash of the stack, to find two stacks with one id */
	union {
		struct stack *stack; /* owned; if has_frames */
		u64 recorded; /* else: the id that a recording has for it, which had the frames first */
	};
	u32 canonical; /* number of the slot with the stack that reports show; if not in use, the next one + 1 */
	u32 pid : 29; /* of the process that has this id; 0 = none has */
	u32 has_frames : 1;
	u32 is_false : 1; /* two stacks have this id, or it is not the hash of the frames */
	u32 is_used : 1; /* without frames: an event has named it since the last search for names to forget */
};

struct stack_table {
	struct budget budget;
	struct stack_slot *slots; /* owned */
	u32 nr, max;		  /* slots that are or were in use */
	u32 first_free;		  /* number + 1 of a slot that is not in use */
	u32 nr_names;		  /* slots in use that have no frames */
	u32 *young; /* owned; slots of stacks that came since the last stack_table_fold() or stack_table_age() */
	u32 nr_young, max_young;
	u32 hand;  /* the slot where the next search for names to forget begins */
	u32 crowd; /* so many slots in use are many; 0 = the least number */
	struct hash_index by_id;
	struct hash_index by_place; /* stacks by their frames */
	bool checks_ids;
	u64 nr_false;
};

/* The number of the slot of @id, or HASH_NO_ITEM. */
u32 stack_slot_find(const struct stack_table *t, u64 id);
/* The number of the slot whose stack has the frames and the end of @s, or HASH_NO_ITEM. */
u32 stack_slot_find_place(const struct stack_table *t, const struct stack *s, u64 hash);
/* A hash of the frames and the end of @s. */
u64 stack_hash(const struct stack *s);

/* Have room for one more slot. *@out is a stack of @nr_frames for it, owned by the caller. 0 or -ENOMEM. */
int stack_slot_reserve(struct stack_table *t, u16 nr_frames, struct stack **out) __must_check;
/* Enter @slot. Needs stack_slot_reserve(). Returns its number. */
u32 stack_slot_add(struct stack_table *t, const struct stack_slot *slot);
/* Remove the slot of number @nr. It has no frames. */
void stack_slot_del(struct stack_table *t, u32 nr);
/* Free @s, which is in no slot. */
void stack_drop(struct stack_table *t, struct stack *s);
