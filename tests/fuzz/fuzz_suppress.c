/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a file of suppressions: no crash, and matching comes to an end (S1). */
#include "tests/fuzz/replay.h"
#include "user/lib/log.h"
#include "user/scan/suppress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct suppress_frame frames[] = {
		{ .function = "malloc" },
		{ .function = "make_node(int)", .linkage = "_Z9make_nodei", .file = "/src/list.cc" },
		{ .object = "/usr/lib/libold.so" },
		{ .function = "main", .file = "/src/main.c", .object = "/usr/bin/x" },
	};
	struct suppress_list *list;
	int rule;

	log_set_level((enum log_level) - 1);
	if (suppress_new(&list) != 0)
		return 0;
	if (suppress_add_text(list, "fuzz", (const char *)data, size) == 0 && suppress_count(list) > size)
		abort();
	rule = suppress_match(list, SCAN_DEFINITE, frames, ARRAY_SIZE(frames));
	if (rule >= 0 && (size_t)rule >= suppress_count(list))
		abort();
	suppress_free(list);
	return 0;
}
