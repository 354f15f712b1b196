/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bodies of commands that have more than a number or two. */
#pragma once

#include "user/serve_trace.h"
#include "user/tuning.h"
#include "user/wire.h"

enum { WIRE_MAX_HAD = 256 };

/* WIRE_START. */
struct wire_start {
	struct tuning tuning;
	bool want_mmap, no_cpp;
	bool wants_exit_scan; /* a verdict when the program ends, which waits for that */
	u64 resume_id;	      /* of WIRE_STARTED; 0 = anew */
	u32 nr_had;
	struct serve_had had[WIRE_MAX_HAD];
};

enum { WIRE_TUNE_MAX = 18, WIRE_START_MAX = WIRE_TUNE_MAX + 11 + WIRE_MAX_HAD * 20 };

void wire_put_start(struct wire_body *b, const struct wire_start *start);
/* 0 or -EPROTO. */
int wire_get_start(struct wire_view *v, struct wire_start *out) __must_check;

/* WIRE_TUNE. */
void wire_put_tune(struct wire_body *b, const struct tuning *t);
/* 0 or -EPROTO: also for one that cannot be. */
int wire_get_tune(struct wire_view *v, struct tuning *out) __must_check;
