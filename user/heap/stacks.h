/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call stacks as places in modules. Stacks with the same frames are kept once. */
#pragma once

#include "bpf/event.h"
#include "user/target/module.h"

/* A call stack, innermost frame first. All frames are return addresses. */
struct stack {
	u64 id; /* from the source; of the first stack with these frames: after dlopen their id changes */
	u16 nr_frames;
	u8 end; /* enum stack_end */
	struct code_ref frames[];
};

/* Of stack_table_fold(): stands for the functions that are left out at the inner end of a stack. */
#define STACK_FOLDED_OFFSET (~0ULL)

static inline bool code_ref_is_folded(struct code_ref ref)
{
	return !ref.module && ref.offset == STACK_FOLDED_OFFSET;
}

/* The bytes that a stack of @nr_frames counts as: malloc() takes up to 16 for itself. */
static inline u64 stack_bytes(u16 nr_frames)
{
	return sizeof(struct stack) + nr_frames * sizeof(struct code_ref) + 16;
}

struct stack_table;

/* An empty table. *@out is owned by the caller: stack_table_free(). 0 or -ENOMEM. */
int stack_table_new(struct stack_table **out) __must_check;
void stack_table_free(struct stack_table *t);

/* Limit stack_table_memory() to @bytes; 0 = no limit, the default. */
void stack_table_set_limit(struct stack_table *t, u64 bytes);

/* From now on an id must equal stack_event_id(). Without this call it may be any number, one for each stack. */
void stack_table_check_ids(struct stack_table *t);

/*
 * Keep the stack of @ev, whose addresses are looked up in @maps. Reads nr_frames of its ips, at most STACK_MAX_FRAMES.
 * A known id is not kept again, and one below STACK_FIRST_ID is ignored. An id that belongs to another stack, or is not
 * the hash of the frames, is false from now on. 0 or -ENOMEM, also for the limit: then stack_get() returns NULL for it.
 */
int stack_table_add(struct stack_table *t, const struct stack_event *ev,
		    const struct mapping_list *maps) __must_check;

/*
 * The stack of @id, or NULL if it was never added. For stacks with the same frames this is always the first one. Valid
 * until stack_table_fold() or stack_table_free().
 */
const struct stack *stack_get(const struct stack_table *t, u64 id);

/* For stack_canonical() only: @id is that of a stack. */
u64 stack_table_canonical(const struct stack_table *t, u64 id);

/*
 * The one id of all stacks with the frames of @id; @id itself if it was never added. STACK_LOST for a false id, because
 * nobody knows which stack its events had.
 */
static inline u64 stack_canonical(const struct stack_table *t, u64 id)
{
	return id < STACK_FIRST_ID ? id : stack_table_canonical(t, id);
}

/* The id that a recording has for the stack @id: the canonical one, as it was before the stack was folded. */
u64 stack_recorded(const struct stack_table *t, u64 id);

/* Have so many stacks come that it is time to forget those that nothing names any more? */
bool stack_table_is_crowded(const struct stack_table *t);
/*
 * Forget all stacks but those of the slots for which @is_used is true (stack_table_slots() of them, changed), of the
 * processes @pids, which are sorted, and those that they lead to. Pointers to other stacks are invalid then.
 */
void stack_table_keep(struct stack_table *t, bool *is_used, const u32 *pids, size_t nr_pids);
/* For each module that a frame names, set @is_named, by id. */
void stack_table_name_modules(const struct stack_table *t, bool *is_named);

/* How many ids are false. */
u64 stack_table_false(const struct stack_table *t);

/* Bytes of memory that the table uses now. */
u64 stack_table_memory(const struct stack_table *t);

/* An enum stack_end as one word, for reports and lists of events. */
const char *stack_end_word(u8 end);
