/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums of callers by the file that their code is in: the program, or a library. */
#pragma once

#include "user/lib/json.h"
#include "user/report/report.h"
#include "user/report/report_rows.h"

/* One file. A caller counts for the file of its first frame, which called the allocator. */
struct report_module {
	const struct module *module; /* borrowed; NULL = no stack, or code in no file */
	size_t nr_callers;
	struct scan_sum allocated, live;
	struct scan_sum leaked; /* definite and indirect; zero when not scanned */
	u64 peak_bytes;		/* held when the process held most */
};

/*
 * The files of @rows, those with most live bytes first, then those that allocated most. Their sums are those of the
 * rows. The caller owns *@list. 0 or -ENOMEM.
 */
int report_modules(const struct report *r, const struct report_process *p, const struct report_row *rows,
		   size_t nr_rows, struct report_module **list, size_t *nr) __must_check;

/* Write the code of @p by address, with build IDs, as a part of the text. */
void report_libraries_text(FILE *out, const struct report_process *p);
/* The key "libraries". */
void report_libraries_json(struct json *j, const struct report_process *p);
