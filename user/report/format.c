/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of report formats, and its look-ups by name and by the ending of a file's name. */
#include "user/report/format.h"

#include <limits.h>
#include <string.h>

#include "user/report/report.h"

/* One row, one look. */
/* clang-format off */
const struct report_format report_formats[] = {
	{ "text", ".txt", "for people", report_text },
	{ "json", ".json", "for scripts: all numbers, \"heaptap-report/2\"", report_json },
	OF_HOST({ "pprof", ".pb.gz", "profile for pprof: go tool pprof FILE", report_pprof, .is_binary = true })
	OF_HOST({ "csv", ".csv", "table of all callers", report_csv })
	OF_HOST({ "blocks", ".blocks.json", "list of all live blocks, \"heaptap-blocks/1\"",
	  report_all_blocks_json })
	OF_HOST({ "blocks-csv", ".blocks.csv", "the same as a table, each block with its whole stack",
	  report_all_blocks_csv })
	OF_HOST({ "folded", ".folded", "flame graph: flamegraph.pl, inferno, speedscope", report_folded })
	OF_HOST({ "speedscope", ".speedscope.json", "profiles for https://www.speedscope.app",
	  report_speedscope })
	OF_HOST({ "massif", ".massif", "heap over time: ms_print, massif-visualizer", report_massif })
	OF_HOST({ "dot", ".dot", "graph of callers: dot -Tsvg", report_dot })
	OF_HOST({ "html", ".html", "one page for a browser: verdict, graphs, callers; needs no network",
	  report_html, .wants_slices = true })
	OF_HOST({ "heaptrack", ".heaptrack", "all events, for heaptrack_gui and heaptrack_print",
	  report_heaptrack, .wants_tape = true })
	OF_HOST({ "junit", ".junit.xml", "test results for CI systems", report_junit })
	OF_HOST({ "sarif", ".sarif", "SARIF 2.1.0 for code scanning", report_sarif })
	OF_HOST({ "github", ".github", "annotations for GitHub's workflows", report_github })
	OF_HOST({ "suppressions", ".supp", "for --suppressions and valgrind: a rule for each leak",
	  report_suppressions })
	{ NULL },
};
/* clang-format on */

const struct report_format *report_format_find(const char *path)
{
	const struct report_format *found = NULL;
	size_t len = strlen(path);

	for (const struct report_format *f = report_formats; f->name; f++) {
		size_t ending = strlen(f->ending);

		if (len <= ending || strcmp(path + len - ending, f->ending))
			continue;
		if (!found || ending > strlen(found->ending))
			found = f;
	}
	return found;
}

/* Only heaptrack reads files that zstd compressed. The agent cannot compress. */
static const struct report_format *find_packed(const char *path, enum packing *packing)
{
	static const char *const endings[] = { [PACK_GZIP] = ".gz", [PACK_ZSTD] = ".zst" };
	size_t len = strlen(path);

	for (enum packing p = PACK_GZIP; !IS_AGENT && p <= PACK_ZSTD; p++) {
		size_t ending = strlen(endings[p]);
		const struct report_format *f;
		char stem[PATH_MAX];

		if (len <= ending || len >= sizeof(stem) || strcmp(path + len - ending, endings[p]) != 0)
			continue;
		snprintf(stem, sizeof(stem), "%.*s", (int)(len - ending), path);
		f = report_format_find(stem);
		*packing = p;
		return p == PACK_ZSTD && f && !f->wants_tape ? NULL : f;
	}
	return NULL;
}

const struct report_format *report_format_of(const char *path, enum packing *packing)
{
	const struct report_format *f = report_format_find(path);

	if (!f)
		f = find_packed(path, packing);
	else
		*packing = PACK_NOT;
	return f;
}

const struct report_format *report_format_named(const char *name)
{
	for (const struct report_format *f = report_formats; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

void report_formats_list(FILE *out)
{
	for (const struct report_format *f = report_formats; f->name; f++)
		fprintf(out, "%-12s %-18s %s\n", f->name, f->ending, f->help);
}
