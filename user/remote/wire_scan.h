/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks and verdicts of a scan as bytes: about eight for a block, about three for a verdict. */
#pragma once

#include "user/scan/scan.h"
#include "user/remote/wire.h"

/*
 * WIRE_BLOCKS: blocks by address, each three varints: distance from the block before, which may be in the frame before;
 * size * 8 + flags; zigzag: difference in the order of allocations to the block before.
 * WIRE_BLOCKS_END: u64 number of blocks, max_pause_ns, pointer_mask; u8 bits of the flags of struct wire_scan_wish.
 * WIRE_VERDICTS: blocks by address, each a varint: distance * 8 + verdict; for SCAN_INDIRECT then a zigzag: address of
 * the leader minus its own.
 * WIRE_SCANNED: u8 0 and a text why there is no verdict; or u8 1, u8 is_complete, u8 is_copied, and u64: pause_ns,
 * max_pause_ns, scanned_bytes, skipped_bytes, nr_unstopped, nr_overlaps, blocks judged.
 * WIRE_BOOKS: all blocks of a process whose sampled ones were judged by them: u8 is_partial; u64 blocks and bytes of
 * each verdict; the allocator as text.
 */
enum { WIRE_BOOKS_MIN = 1 + NR_SCAN_VERDICTS * 16 };
enum { WIRE_SCAN_BODY = 65536, WIRE_BLOCK_MAX = 30, WIRE_WISH_LEN = 25, WIRE_VERDICT_MAX = 20 };

/* The last item of a list of blocks or verdicts; zeros at its start. */
struct wire_scan_at {
	u64 addr;
	u64 order;
};

void wire_put_block(struct wire_body *b, struct wire_scan_at *at, const struct heap_block *block);
/* 0 or -EPROTO. */
int wire_get_block(struct wire_view *v, struct wire_scan_at *at, struct heap_block *block) __must_check;

/* WIRE_BLOCKS_END: how the host wants its blocks judged. */
struct wire_scan_wish {
	u64 nr_blocks; /* sent before in WIRE_BLOCKS */
	u64 max_pause_ns;
	u64 pointer_mask; /* this and is_partial, want_unaligned as in struct scan_options */
	bool is_partial, want_unaligned;
	bool is_last;	 /* tracing ends at the moment of the scan */
	bool wants_whys; /* WIRE_WHY may come later */
	bool has_all;	 /* the host has all blocks since tracing began: user/heap/cover_map.h can be used */
};

void wire_put_wish(struct wire_body *b, const struct wire_scan_wish *wish);
/* 0 or -EPROTO. */
int wire_get_wish(struct wire_view *v, struct wire_scan_wish *out) __must_check;

void wire_put_verdict(struct wire_body *b, struct wire_scan_at *at, const struct scan_block_info *info);
/* Does not set the size of the block, nor the sums of a leader. 0 or -EPROTO. */
int wire_get_verdict(struct wire_view *v, struct wire_scan_at *at, struct scan_block_info *info) __must_check;
