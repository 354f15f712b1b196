/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for flame graphs: a line for each caller, with the functions from the outermost one to the allocator. */
#include <inttypes.h>
#include <stdlib.h>

#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/report/format.h"
#include "user/report/frames.h"
#include "user/report/measure.h"
#include "user/report/report_rows.h"
#include "user/target/target.h"

/* Between two frames. In a name it becomes \x3b. */
enum { SEPARATOR = ';' };

static void report_folded_put_name(FILE *out, const char *name)
{
	escape_text_and(out, name, SEPARATOR);
}

/* Stacks of several processes differ in their first frame. */
static void report_folded_put_process(FILE *out, const struct target *t)
{
	report_folded_put_name(out, t->comm);
	fprintf(out, " (pid %d)%c", (int)t->pid, SEPARATOR);
}

static int report_folded_put_row(FILE *out, const struct report *r, const struct report_process *p,
				 const struct report_row *row, struct report_frames *f)
{
	int err = report_frames(f, r, p, row);

	if (err)
		return err;
	if (r->nr_processes > 1)
		report_folded_put_process(out, p->target);
	if (*f->mark)
		fprintf(out, "[%s]%c", f->mark, SEPARATOR);
	for (size_t i = f->nr; i-- > 0;) {
		report_folded_put_name(out, report_frame_name(f, r, i));
		putc(SEPARATOR, out);
	}
	report_folded_put_name(out, report_alloc_fn(p, row)->name);
	return 0;
}

int report_folded(FILE *out, const struct report *r)
{
	const struct report_measure *m = report_measure_for(r);
	struct report_frames f = { 0 };
	int err = 0;

	for (size_t i = 0; i < r->nr_processes && !err; i++) {
		auto_free struct report_row *rows = NULL;
		size_t nr = 0;

		err = report_rows(r, &r->processes[i], &rows, &nr, NULL);
		for (size_t k = 0; k < nr && !err; k++) {
			if (!report_number(&rows[k], m->number))
				continue;
			err = report_folded_put_row(out, r, &r->processes[i], &rows[k], &f);
			fprintf(out, " %" PRIu64 "\n", report_number(&rows[k], m->number));
		}
	}
	report_frames_fini(&f);
	return err ? err : flush_stream(out);
}
