/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds up the callers of a process file by file. */
#include "user/report/modules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/stacks.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/digits.h"
#include "user/lib/escape.h"
#include "user/report/report_json.h"
#include "user/target/target.h"

/* Lists the code that a process has mapped, as text and as JSON. */

void report_libraries_text(FILE *out, const struct report_process *p)
{
	const struct mapping_list *list = &p->target->maps;
	char id[2 * BUILD_ID_MAX + 1];

	fputs("\nLibraries\n", out);
	for (const struct mapping *m = list->maps; m < list->maps + list->nr; m++) {
		if (!m->module)
			continue;
		fprintf(out, "  0x%" PRIx64 "-0x%" PRIx64 "  ", m->start, m->end);
		escape_text(out, m->module->path);
		digits_bytes(id, m->module->build_id, m->module->build_id_len);
		fprintf(out, m->module->build_id_len ? ", build ID %s\n" : "\n", id);
	}
}

void report_libraries_json(struct json *j, const struct report_process *p)
{
	const struct mapping_list *list = &p->target->maps;

	json_array_begin(j, "libraries");
	for (const struct mapping *m = list->maps; m < list->maps + list->nr; m++) {
		if (!m->module)
			continue;
		json_object_begin(j, NULL);
		json_string(j, "path", m->module->path);
		report_json_build_id(j, m->module);
		json_hex(j, "start", m->start);
		json_hex(j, "end", m->end);
		json_hex(j, "bias", m->bias);
		json_object_end(j);
	}
	json_array_end(j);
}

static const struct module *modules_module_of(const struct report *r, const struct report_process *p,
					      const struct report_row *row)
{
	const char *truncated;
	const struct stack *s = report_stack(p, row, &truncated);

	return s && s->nr_frames ? module_get(r->modules, s->frames[0].module) : NULL;
}

static void modules_add_sum(struct scan_sum *sum, u64 blocks, u64 bytes)
{
	sum->blocks += blocks;
	sum->bytes += bytes;
}

static void modules_add_row(struct report_module *m, const struct report_row *row)
{
	const struct scan_sum *lost = row->leaks.sums.of;

	m->nr_callers++;
	modules_add_sum(&m->allocated, row->row.allocs, row->row.alloc_bytes);
	modules_add_sum(&m->live, row->row.live_blocks, row->row.live_bytes);
	modules_add_sum(&m->leaked, lost[SCAN_DEFINITE].blocks, lost[SCAN_DEFINITE].bytes);
	modules_add_sum(&m->leaked, lost[SCAN_INDIRECT].blocks, lost[SCAN_INDIRECT].bytes);
	m->peak_bytes += row->row.peak_bytes;
}

/* Equal files in the order of their names, so that reports of one recording are equal. */
static int compare_modules(const void *pa, const void *pb)
{
	const struct report_module *a = pa, *b = pb;

	if (a->live.bytes != b->live.bytes)
		return a->live.bytes < b->live.bytes ? 1 : -1;
	if (a->allocated.bytes != b->allocated.bytes)
		return a->allocated.bytes < b->allocated.bytes ? 1 : -1;
	return strcmp(a->module ? a->module->path : "", b->module ? b->module->path : "");
}

/* A process has tens of files, and their rows come in long runs: a search from the last one is short. */
static struct report_module *modules_find(struct report_module *list, size_t nr, const struct module *module)
{
	for (size_t i = nr; i-- > 0;)
		if (list[i].module == module)
			return &list[i];
	return NULL;
}

int report_modules(const struct report *r, const struct report_process *p, const struct report_row *rows,
		   size_t nr_rows, struct report_module **out, size_t *nr)
{
	auto_free struct report_module *list = NULL;
	size_t count = 0, max = 0;

	for (size_t i = 0; i < nr_rows; i++) {
		const struct module *module = modules_module_of(r, p, &rows[i]);
		struct report_module *m = modules_find(list, count, module);

		if (!m) {
			if (array_reserve(list, max, count + 1))
				return -ENOMEM;
			m = &list[count++];
			*m = (struct report_module){ .module = module };
		}
		modules_add_row(m, &rows[i]);
	}
	if (count)
		qsort(list, count, sizeof(*list), compare_modules);
	*out = take_ptr(list);
	*nr = count;
	return 0;
}
