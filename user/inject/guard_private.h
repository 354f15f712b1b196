/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the guard: user/inject/guard*.c only. */
#pragma once

#include "user/inject/guard.h"

enum { ORDER_MAX_KEPT = 8192, ORDER_MAX_PATH = 4096 };

/* A change, as the tracer reads it. */
struct guard_order {
	u32 target; /* its number */
	u32 what;   /* enum change_kind */
	u32 nr, nr_kept, nr_places, nr_shards;
	bool has_file, closes_file; /* closes_file: and nothing else */
	taddr_t near;
	char path[ORDER_MAX_PATH];
	struct inject_site sites[INJECT_MAX_PATCHES];
	taddr_t kept[ORDER_MAX_KEPT];
};

/* Memory that heaptap, the guard, its helpers and the tracer share. */
struct guard_memory {
	s32 result;	 /* of the change that was made last */
	u32 nr_used;	 /* entries behind these were never used */
	u32 is_changing; /* a target, heaptap or the guard */
	bool is_over;	 /* heaptap ends by itself, and waits for the guard */
	pid_t heaptap;
	pid_t pid; /* of the guard; 0 = it has not begun yet, in the process that keeps links or traces */
	struct guard_order order;
	struct injection targets[GUARD_MAX_TARGETS];
};

struct guard {
	struct guard_memory *shared;
	int fds[2];			   /* of the pipe whose end tells the guard of ours */
	const struct guard_tracer *tracer; /* borrowed; NULL = changes are made by heaptap, or by helpers */
	struct tracer_changer changer;	   /* the guard */
	int file;			   /* owned; guard_take_file(); -1 = none */
};

enum change_kind { CHANGE_PUT_IN, CHANGE_GROW, CHANGE_TAKE_OUT, CHANGE_RENEW, NR_CHANGES };

/* A change of a target. */
struct change {
	enum change_kind kind;
	struct injection *in;
	const struct inject_site *sites; /* of put_in */
	size_t nr;
	const struct inject_file *file;
	u32 nr_places, nr_shards; /* of grow */
};

/* Have the tracer of the target make the change @c. Its result; *@is_ours: it traces the target. */
int guard_order(struct guard *g, const struct change *c, bool *is_ours) __must_check;

/* struct tracer_changer. */
int guard_obey(void *memory, pid_t pid, int fd) __must_check;
int guard_leave(void *memory, pid_t pid) __must_check;
