/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The blocks of a census, one a line. */
#include "user/census/census_report.h"

#include <inttypes.h>

static void print_blocks(FILE *out, const struct census *c, const struct census_segment *s)
{
	static const char *const states[] = {
		[CENSUS_LIVE] = "live",
		[CENSUS_CACHED] = "cached",
		[CENSUS_FAST] = "fast",
		[CENSUS_OWN] = "own",
	};

	for (size_t i = s->first; i < s->first + s->nr; i++) {
		const struct census_block *b = &c->blocks.blocks[i];
		struct scan_block_info info = { .verdict = SCAN_NONE };
		bool is_judged = c->scan && b->state == CENSUS_LIVE && scan_find(c->scan, b->addr, &info);

		fprintf(out, "0x%" PRIx64 ",%" PRIu64 ",%s,", (u64)b->addr, (u64)b->size, states[b->state]);
		if (s->is_mapped)
			fputs("mapped", out);
		else
			fprintf(out, "%u", s->arena);
		fprintf(out, ",%s\n", is_judged ? scan_verdict_name(info.verdict) : "");
	}
}

int census_csv(FILE *out, const struct census *c, const struct census_report_options *o)
{
	(void)o;
	fputs("address,size,state,arena,verdict\n", out);
	for (size_t i = 0; i < c->blocks.nr_segments; i++)
		print_blocks(out, c, &c->blocks.segments[i]);
	return 0;
}
