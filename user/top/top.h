/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap top: a session, a terminal, and the loop between them. */
#pragma once

#include "user/report/output.h"
#include "user/session/session_options.h"

/* All borrowed. */
struct top {
	struct session *session;
	struct session_options *options; /* of the session, which sees changes at once */
	struct output_options output;
	struct control *control;
	struct connection *remote; /* the machine of the processes, NULL = this one */
	u32 max_cost;		   /* code_choice_round() */
	bool has_source;	   /* events may still come; set it to true */
};

/*
 * Show the session on the terminal until a key or a signal ends it. The terminal is as before then, and warnings that
 * came meanwhile are printed. 0; or, logged, -ENOTTY: stdin or stdout is no terminal; -EOPNOTSUPP: this terminal cannot
 * show it; or -ENOMEM.
 */
int top_run(struct top *top) __must_check;

/* Can top_run() work here? Else -ENOTTY or -EOPNOTSUPP, logged. */
int top_check(void) __must_check;
