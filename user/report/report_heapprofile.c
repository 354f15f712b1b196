/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report for google-pprof of gperftools: its heap profile as text, with the names in front. A name has a number,
 * which stands for an address, so that no program or library needs to be there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/flush.h"
#include "user/report/format.h"
#include "user/report/frames.h"
#include "user/report/intern.h"
#include "user/report/report_rows.h"
#include "user/source/source.h"
#include "user/target/target.h"

/* Distance of addresses: the reader may take one off that of a caller. */
enum { STEP = 16, NAME_BYTES = 4096 };

struct heapprofile {
	const struct report *report;
	FILE *stacks; /* in memory: the names come before them */
	struct intern_strings names;
	struct report_frames frames;
	struct heap_row sums;
};

/* The reader takes "--" for the border of an inlined function. */
static void part_dashes(char *name)
{
	for (char *at = name; (at = strstr(at, "--"));)
		at[1] = '_';
}

static int report_heapprofile_put_name(struct heapprofile *h, const char *name)
{
	char text[NAME_BYTES];
	size_t number;
	int err;

	snprintf(text, sizeof(text), "%s", name);
	part_dashes(text);
	err = intern_string(&h->names, text, &number, NULL);
	if (!err)
		fprintf(h->stacks, " 0x%zx", (number + 1) * STEP);
	return err;
}

/* From the innermost function to the outermost one, and then why the stack is cut, and the process. */
static int report_heapprofile_put_stack(struct heapprofile *h, const struct report_process *p,
					const struct report_row *row)
{
	const struct report *r = h->report;
	struct report_frames *f = &h->frames;
	char text[NAME_BYTES];
	int err = report_frames(f, r, p, row);

	for (size_t i = 0; i < f->nr && !err; i++)
		err = report_heapprofile_put_name(h, report_frame_name(f, r, i));
	if (!err && *f->mark) {
		snprintf(text, sizeof(text), "[%s]", f->mark);
		err = report_heapprofile_put_name(h, text);
	}
	if (!err && r->nr_processes > 1) {
		snprintf(text, sizeof(text), "%s (pid %d)", p->target->comm, (int)p->target->pid);
		err = report_heapprofile_put_name(h, text);
	}
	return err;
}

static void report_heapprofile_put_numbers(FILE *out, const struct heap_row *row)
{
	fprintf(out, "%" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "] @", row->live_blocks,
		row->live_bytes, row->allocs, row->alloc_bytes);
}

static int report_heapprofile_put_process(struct heapprofile *h, const struct report_process *p)
{
	auto_free struct report_row *rows = NULL;
	size_t nr = 0;
	int err = report_rows(h->report, p, &rows, &nr, NULL);

	for (size_t i = 0; i < nr && !err; i++) {
		const struct heap_row *row = &rows[i].row;

		h->sums.live_blocks += row->live_blocks;
		h->sums.live_bytes += row->live_bytes;
		h->sums.allocs += row->allocs;
		h->sums.alloc_bytes += row->alloc_bytes;
		report_heapprofile_put_numbers(h->stacks, row);
		err = report_heapprofile_put_stack(h, p, &rows[i]);
		putc('\n', h->stacks);
	}
	return err;
}

static void report_heapprofile_put_names(FILE *out, const struct heapprofile *h)
{
	fputs("--- symbol\nbinary=heaptap\n", out);
	for (size_t i = 0; i < h->names.nr; i++)
		fprintf(out, "0x%zx %s\n", (i + 1) * STEP, h->names.list[i]);
	fputs("---\nheap profile: ", out);
	report_heapprofile_put_numbers(out, &h->sums);
	fputs(" heapprofile\n", out);
}

int report_heapprofile(FILE *out, const struct report *r)
{
	struct heapprofile h = { .report = r };
	auto_free char *text = NULL;
	size_t len = 0;
	int err;

	h.stacks = open_memstream(&text, &len);
	err = h.stacks ? 0 : -ENOMEM;
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = report_heapprofile_put_process(&h, &r->processes[i]);
	if (h.stacks && fclose(h.stacks) && !err)
		err = -ENOMEM;
	if (!err) {
		report_heapprofile_put_names(out, &h);
		fwrite(text, 1, len, out);
	}
	intern_strings_fini(&h.names);
	report_frames_fini(&h.frames);
	return err ? err : flush_stream(out);
}
