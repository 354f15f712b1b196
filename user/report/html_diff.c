/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The comparison of two reports as an HTML page: the page of a report, with numbers of before and after. */
#include "user/report/diff.h"

#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/report/html_page.h"
#include "user/report/html_tables.h"

struct page {
	struct diff *diff;
	const char *const *names; /* of the two files */
};

static void write_column(struct json *j, const char *side, const char *name, size_t at,
			 const struct diff_row *const *rows, size_t nr, u32 which)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_%s", side, name);
	json_array_begin(j, key);
	for (size_t i = 0; i < nr; i++)
		json_u64(j, NULL, *(const u64 *)((const char *)&rows[i]->of[which] + at));
	json_array_end(j);
}

static void write_columns(struct json *j, const struct diff_row *const *rows, size_t nr)
{
	static const struct {
		const char *name;
		size_t at;
	} all[] = {
		{ "live_bytes", offsetof(struct saved_numbers, live_bytes) },
		{ "live_blocks", offsetof(struct saved_numbers, live_blocks) },
		{ "alloc_bytes", offsetof(struct saved_numbers, alloc_bytes) },
		{ "allocs", offsetof(struct saved_numbers, allocs) },
		{ "leaked_bytes", offsetof(struct saved_numbers, leaked_bytes) },
		{ "peak_bytes", offsetof(struct saved_numbers, peak_bytes) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		write_column(j, "a", all[i].name, all[i].at, rows, nr, 0);
		write_column(j, "b", all[i].name, all[i].at, rows, nr, 1);
	}
}

static int html_diff_write_callers(struct json *j, struct html_tables *t, const struct diff_row *const *rows,
				   size_t nr)
{
	int err = 0;

	json_object_begin(j, "callers");
	json_u64(j, "nr", nr);
	json_array_begin(j, "node");
	for (size_t i = 0; i < nr && !err; i++) {
		u32 node;

		err = html_lines(t, rows[i]->frames, &node);
		json_s64(j, NULL, node == HTML_NONE ? -1 : (s64)node);
	}
	json_array_end(j);
	json_array_begin(j, "function");
	for (size_t i = 0; i < nr && !err; i++) {
		u32 text;

		err = html_text(t, rows[i]->function, &text);
		json_u64(j, NULL, text);
	}
	json_array_end(j);
	write_columns(j, rows, nr);
	json_object_end(j);
	return err;
}

static int html_diff_write_data(FILE *out, const void *ctx)
{
	const struct page *page = ctx;
	auto_free const struct diff_row **rows = NULL;
	struct html_tables tables;
	struct json j;
	size_t nr;
	int err = diff_all(page->diff, &rows, &nr);

	html_tables_init(&tables);
	json_init(&j, out, 0);
	j.in_page = true;
	json_object_begin(&j, NULL);
	json_string(&j, "version", HEAPTAP_VERSION);
	json_object_begin(&j, "diff");
	diff_json_sides(&j, page->diff, page->names);
	json_object_end(&j);
	if (!err)
		err = html_diff_write_callers(&j, &tables, rows, nr);
	html_tables_write(&j, &tables);
	json_object_end(&j);
	html_tables_fini(&tables);
	return err;
}

int diff_write_html(FILE *out, struct diff *d, const char *const names[2])
{
	const struct page page = { d, names };

	return html_page(out, html_diff_write_data, &page);
}
