/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists the code that a process has mapped, as text and as JSON. */
#include "user/report/report_libraries.h"

#include <inttypes.h>

#include "user/lib/digits.h"
#include "user/lib/escape.h"
#include "user/report/report_json.h"
#include "user/target/target.h"

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
