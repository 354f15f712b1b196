/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of suppressions: one rule. For user/scan/suppress*.c only. */
#pragma once

#include <regex.h>

#include "user/scan/suppress.h"

enum rule_kind { RULE_ANYWHERE, RULE_IGNORE, RULE_STACK };
enum frame_kind { FRAME_FUNCTION, FRAME_OBJECT, FRAME_SOURCE, FRAME_ANY };

struct suppress_pattern {
	enum frame_kind kind;
	char *pattern; /* owned; glob; NULL for FRAME_ANY */
};

struct suppress_rule {
	enum rule_kind kind;
	u32 kinds;			 /* SUPPRESS_KIND() */
	struct suppress_pattern *frames; /* owned; RULE_STACK: in order of the stack; RULE_ANYWHERE: one */
	size_t nr_frames;
	bool has_regex;
	regex_t regex; /* RULE_IGNORE */
};

struct suppress_list {
	struct suppress_rule *rules; /* owned */
	size_t nr, max;
};

void suppress_rule_fini(struct suppress_rule *rule);
