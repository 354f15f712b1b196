/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of frames. Handlers: user/remote/wire_auth.c for the handshake, user/remote/serve.c for frames of the host,
 * user/remote/source_remote.c for frames of the target.
 */
#include "user/remote/wire_kind.h"

#include "user/remote/wire_auth.h"
#include "user/remote/wire_chain.h"
#include "user/remote/wire_command.h"
#include "user/remote/wire_scan.h"

struct wire_rule {
	u8 kind;	   /* enum wire_kind */
	u8 senders;	   /* bits of enum wire_side */
	bool is_handshake; /* before the proof, and only then */
	u8 min_len;
	u32 max_len;
};

enum { BOTH = WIRE_HOST | WIRE_TARGET };

static const struct wire_rule rules[] = {
	{ WIRE_HELLO, WIRE_HOST, true, WIRE_HELLO_LEN, WIRE_HELLO_LEN },
	{ WIRE_CHALLENGE, WIRE_TARGET, true, WIRE_HELLO_LEN, WIRE_HELLO_LEN },
	{ WIRE_PROOF, WIRE_HOST, true, SHA256_LEN, SHA256_LEN },
	{ WIRE_WELCOME, WIRE_TARGET, true, SHA256_LEN, SHA256_LEN },
	{ WIRE_REFUSED, BOTH, true, 0, WIRE_MAX_BODY_STRANGER },

	{ WIRE_START, WIRE_HOST, false, WIRE_START_MIN, WIRE_START_MAX },
	{ WIRE_TUNE, WIRE_HOST, false, WIRE_TUNE_LEN, WIRE_TUNE_LEN },
	{ WIRE_WHY, WIRE_HOST, false, 8, 8 },
	{ WIRE_DETACH, WIRE_HOST, false, 0, 0 },
	{ WIRE_KILL, WIRE_HOST, false, 0, 0 },
	{ WIRE_PING, BOTH, false, 0, 0 },
	{ WIRE_SCAN, WIRE_HOST, false, 4, 4 },
	{ WIRE_BLOCKS, WIRE_HOST, false, 0, WIRE_SCAN_BODY },
	{ WIRE_BLOCKS_END, WIRE_HOST, false, WIRE_WISH_LEN, WIRE_WISH_LEN },
	{ WIRE_SCAN_OVER, WIRE_HOST, false, 0, 0 },
	{ WIRE_LET_EXIT, WIRE_HOST, false, 4, 4 },
	{ WIRE_PAUSE, WIRE_HOST, false, 5, 5 },

	{ WIRE_STREAM, WIRE_TARGET, false, 0, WIRE_MAX_BODY },
	{ WIRE_STARTED, WIRE_TARGET, false, 10, 10 },
	{ WIRE_STOPPED, WIRE_TARGET, false, 1, WIRE_MAX_TEXT },
	{ WIRE_MARK, WIRE_TARGET, false, 5, 5 },
	{ WIRE_VERDICTS, WIRE_TARGET, false, 0, WIRE_SCAN_BODY },
	{ WIRE_SCANNED, WIRE_TARGET, false, 1, WIRE_MAX_TEXT },
	{ WIRE_NOTE, WIRE_TARGET, false, 0, WIRE_MAX_TEXT },
	{ WIRE_TUNED, WIRE_TARGET, false, 1, WIRE_MAX_TEXT },
	{ WIRE_CHAIN, WIRE_TARGET, false, 0, WIRE_CHAIN_BODY },
	{ WIRE_CHAIN_END, WIRE_TARGET, false, 1, WIRE_CHAIN_END_MAX },
	{ WIRE_BOOKS, WIRE_TARGET, false, WIRE_BOOKS_MIN, WIRE_MAX_TEXT },
};

bool wire_may_send(enum wire_side side, bool is_open, u8 kind, u32 len)
{
	for (const struct wire_rule *r = rules; r < rules + ARRAY_SIZE(rules); r++)
		if (r->kind == kind)
			return r->senders & side && r->is_handshake == !is_open && len >= r->min_len &&
			       len <= r->max_len;
	return false;
}
