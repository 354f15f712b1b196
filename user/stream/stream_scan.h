/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records with leak verdicts, made from struct leaks. Part of user/stream/stream_record.h. */
#pragma once

#include "user/scan/scan_result.h"

enum stream_scan_flag {
	STREAM_SCAN_VERDICT = 1,
	STREAM_SCAN_COMPLETE = 2,
	STREAM_SCAN_PARTIAL = 4,
	STREAM_SCAN_EXITING = 8, /* the process was at its end: the verdict holds for all later reports */
	STREAM_SCAN_BEFORE = 16, /* there was a scan before */
};

struct stream_scan {
	u32 pid;
	u8 flags;     /* enum stream_scan_flag */
	u8 word_size; /* of the process */
	u64 pause_ns, max_pause_ns, scanned_bytes, skipped_bytes, nr_unstopped, nr_overlaps;
	struct scan_sums sums;
	struct scan_sum left_out, fresh, again;
	struct scan_sum behind, tagged;
	u64 headers; /* 16 bits each, the first one in the low bits */
	u64 tag_mask;
	const char *why; /* why there is no verdict */
	/* Of a sampled process: all its blocks, by the books of this allocator; "" = there are none. */
	const char *books_of;
	struct scan_sums books;
	u64 nr_links;
};

struct stream_scan_row {
	u64 stack; /* as heap events name it */
	u32 fn;
	struct scan_sums sums;
	struct scan_sum through; /* struct leak_row */
};

struct stream_scan_link {
	u64 stack, leader_stack;
	u32 fn, leader_fn;
	struct scan_sum sum;
};

enum stream_why_flag { STREAM_WHY_ASKED = 1, STREAM_WHY_HAS_ROW = 2, STREAM_WHY_HAS_PATH = 4 };

struct stream_scan_why { /* struct leak_why */
	u64 stack;
	u32 fn;
	u8 flags, verdict, word_size, root; /* enum stream_why_flag, scan_verdict, bytes, scan_root_kind */
	u64 addr, root_addr, root_tp;
	u32 root_tid, root_where;
	u32 nr_steps;
	u64 nr_left_out;
	const char *root_path;
};

struct stream_scan_step {
	u64 addr, size, offset, nr;
	u64 stack;
	u32 fn;
	u8 flags; /* STREAM_WHY_HAS_ROW */
};

struct stream_pid { /* STREAM_SCAN_END */
	u32 pid;
};
