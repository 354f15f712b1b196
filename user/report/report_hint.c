/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words for pointers behind headers, and for pointers with marks: for reports and for the census. */
#include "user/report/report_hint.h"

#include <stdio.h>
#include <string.h>

#include "user/lib/human.h"

void report_hint_behind(char *out, const struct scan_result *r)
{
	u32 nr = 0;

	*out = '\0';
	if (!r->behind.blocks)
		return;
	while (nr < SCAN_NR_HEADERS && r->headers[nr])
		nr++;
	if (!nr) {
		snprintf(out, REPORT_HINT_TEXT, "reached behind headers of many lengths");
		return;
	}
	if (nr == 1) {
		snprintf(out, REPORT_HINT_TEXT, "reached behind a %u-byte header", r->headers[0]);
		return;
	}
	snprintf(out, REPORT_HINT_TEXT, "reached behind headers of %u", r->headers[0]);
	for (u32 i = 1; i < nr; i++)
		snprintf(out + strlen(out), REPORT_HINT_TEXT - strlen(out), "%s%u",
			 i + 1 < nr ? ", " : " and ", r->headers[i]);
	snprintf(out + strlen(out), REPORT_HINT_TEXT - strlen(out), " bytes");
}

void report_hint_tagged(char *out, const struct scan_result *r)
{
	const struct scan_sum *of = r->sums.of;

	*out = '\0';
	if (r->tagged.blocks)
		snprintf(
			out, REPORT_HINT_TEXT,
			"pointers with marks in other bits lead to %s of the %s lost blocks: --pointer-mask 0x%llx "
			"follows them",
			human_count(r->tagged.blocks).text,
			human_count(of[SCAN_DEFINITE].blocks + of[SCAN_INDIRECT].blocks).text,
			(unsigned long long)r->tag_mask);
}

bool report_hint_links(char *out, const struct scan_result *r)
{
	if (r->nr_links)
		snprintf(out, REPORT_HINT_TEXT, "%s %s from lists of free blocks, no pointers",
			 human_count(r->nr_links).text, r->nr_links == 1 ? "word is left" : "words are left");
	return r->nr_links;
}

void report_hint_json(struct json *j, const struct scan_result *r)
{
	if (r->behind.blocks) {
		json_object_begin(j, "behind_header");
		json_u64(j, "blocks", r->behind.blocks);
		json_u64(j, "bytes", r->behind.bytes);
		json_array_begin(j, "header_bytes");
		for (u32 i = 0; i < SCAN_NR_HEADERS && r->headers[i]; i++)
			json_u64(j, NULL, r->headers[i]);
		json_array_end(j);
		json_object_end(j);
	}
	if (r->nr_links)
		json_u64(j, "free_list_words", r->nr_links);
	if (!r->tagged.blocks)
		return;
	json_object_begin(j, "tagged");
	json_u64(j, "blocks", r->tagged.blocks);
	json_u64(j, "bytes", r->tagged.bytes);
	json_hex(j, "pointer_mask", r->tag_mask);
	json_object_end(j);
}
