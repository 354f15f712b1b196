/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bodies of WIRE_START and WIRE_TUNE. */
#pragma once

#include "user/session/session_forward.h"
#include "user/source/tuning.h"
#include "user/remote/wire.h"

/* WIRE_START. */
struct wire_start {
	struct tuning tuning;
	bool want_mmap, no_cpp;
	bool wants_exit_scan; /* scan a program when it exits; it waits for the verdict */
	bool wants_exec_scan; /* as read: and before execve(); hosts of before do not know WIRE_MARK_EXECUTING */
	u32 max_followed; /* most children that are traced too; 0 = none, unless the server follows them */
	u64 resume_id;	  /* from WIRE_STARTED: continue that trace; 0 = begin a new one */
	struct forward_received received;
};

enum {
	WIRE_TUNE_LEN = 18,
	WIRE_START_MIN = WIRE_TUNE_LEN + 23,
	WIRE_START_MAX = WIRE_START_MIN + FORWARD_MAX_PROCESSES * 28
};

void wire_put_start(struct wire_body *b, const struct wire_start *start);
/* 0 or -EPROTO. */
int wire_get_start(struct wire_view *v, struct wire_start *out) __must_check;

/* WIRE_TUNE. */
void wire_put_tune(struct wire_body *b, const struct tuning *t);
/* 0, or -EPROTO: also for values that make no sense together. */
int wire_get_tune(struct wire_view *v, struct tuning *out) __must_check;
