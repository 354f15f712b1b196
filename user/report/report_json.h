/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of the JSON report, which other formats contain too. Each call adds keys to the object that is open in @j. */
#pragma once

#include "user/lib/json.h"
#include "user/report/caller_id.h"
#include "user/report/report.h"

/* Keys of the whole report: where its numbers come from. */
void report_json_head(struct json *j, const struct report *r);
/* Keys that are final only after all names were looked up. */
void report_json_tail(struct json *j, const struct report *r);

/* Keys of one process, all but those of threads, modules and callers. 0 or -ENOMEM. */
int report_json_process(struct json *j, const struct report *r, const struct report_process *p,
			const struct caller_ids *ids) __must_check;

/* The key "threads" of a process. 0 or -ENOMEM. */
int report_json_threads(struct json *j, const struct report_process *p) __must_check;

/* The key @key with the id of the caller in row @row. */
void report_json_id(struct json *j, const char *key, const struct caller_ids *ids, u32 row);

/* The key @key with the blocks and bytes of @sum. */
void report_json_sum(struct json *j, const char *key, const struct scan_sum *sum);

/* The key "build_id" of @m, which may be NULL. */
void report_json_build_id(struct json *j, const struct module *m);
