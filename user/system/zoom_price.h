/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of the zoom: the price of tracing is kept below --max-cost. */
#pragma once

#include "user/system/zoom.h"

/* After a look: what each traced process pays; and a cheaper way for those that pay too much. */
void zooms_price(struct zooms *z, struct watch *w);

/*
 * In each round: a process that has paid in the last five seconds what it may is left until that is five seconds old.
 * And for one of them: its calls since the last round have cost @cost_ns. True: it was left.
 */
void zooms_limit(struct zooms *z, struct watch *w, u64 now_ns);
bool zoom_limit_look(struct zooms *z, struct watch *w, u32 i, u64 cost_ns, u64 now_ns);

/* The first step: stacks of @s have no more frames from now on. */
enum { PRICE_FEW_FRAMES = 16 };
void price_cut_stacks(struct session *s);

/* The process of @a is traced again: with what was saved before. */
void zoom_save_again(struct zoom_answer *a, struct session *s);

/* Parts of zoom.c. @why: "it has ended"; NULL: nobody wants to know. */
struct zoom_answer *zoom_answer_of(struct zooms *z, const struct zoom *zoom);
void zoom_leave(struct zooms *z, struct watch *w, u32 i, const char *why);

/* The answer on @p, or room for one: of those that are over the oldest makes room. NULL = all are of now. */
struct zoom_answer *zoom_new_answer(struct zooms *z, const struct watched *p);
/* Begin @f anew, or, if it is on @p already, another window of it. */
void zoom_begin_answer(struct zoom_answer *f, const struct watched *p, u64 now_ns);
/* Why @p is traced from now on, as a line. */
void zoom_say_begin(const struct watched *p);
/* When the next verdict on the process of @a is due. */
u64 zoom_next_verdict_ns(const struct zoom_answer *a);
/* Find it, and say what is new. @is_one: @s has other processes, too. */
void zoom_judge(struct zooms *z, struct zoom_answer *a, struct session *s, bool is_one);
