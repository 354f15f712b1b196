/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Suppressions for the leaks of a report, alone in a file, which --suppressions reads as it is. */
#include "user/report/report.h"

#include "user/lib/flush.h"
#include "user/report/format.h"
#include "user/report/report_verdict.h"
#include "user/scan/leaks_suppress.h"
#include "user/target/target.h"

int report_suppressions(FILE *out, const struct report *r)
{
	struct report_verdict v;
	int err = 0;

	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		const struct report_process *p = &r->processes[i];
		const struct leaks_names names = { p->heap, p->stacks, r->modules, r->symbolizer };

		err = report_verdict_of(&v, r, p);
		if (!err)
			fprintf(out, "# PID %d: %s\n", (int)p->target->pid, v.text);
		if (!err && p->leaks)
			err = leaks_write_suppressions(out, p->leaks, &names);
	}
	return err ? err : flush_stream(out);
}
