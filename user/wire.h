/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What serve and connect say to each other: frames, and the buffers they pass through. */
#pragma once

#include "user/lib/types.h"

/*
 * A frame: u32 length of its body, u8 kind, three bytes of 0, the body; numbers are little-endian. First the two
 * prove who they are (user/wire_auth.h), then frames of the other kinds go both ways. The records of the target
 * travel as a stream (user/stream_format.h) cut into WIRE_STREAM frames: a recording is the same bytes at rest.
 */
enum {
	WIRE_VERSION = 3,
	WIRE_HEADER_LEN = 8,
	WIRE_MAX_BODY = (1 << 20) + 4096,
	WIRE_MAX_BODY_STRANGER = 256, /* before the peer has proved who it is */
	WIRE_MAX_TEXT = 512,
};

/* Numbers are part of the protocol: append only. */
enum wire_kind {
	/* user/wire_auth.h */
	WIRE_HELLO = 1, /* host: struct of 64 bytes */
	WIRE_CHALLENGE, /* target: the same */
	WIRE_PROOF,	/* host: HMAC */
	WIRE_WELCOME,	/* target: HMAC */
	WIRE_REFUSED,	/* either: text; closes */

	/* From the host. */
	WIRE_START = 16, /* struct wire_start: trace from now on, send a stream from its preamble on */
	WIRE_TUNE,	 /* struct tuning: stop, start, depth, filter; answered by WIRE_TUNED */
	WIRE_WHY,    /* u64 address: who holds that block, after WIRE_SCANNED, answered by WIRE_CHAIN_END */
	WIRE_DETACH, /* take the probes out, send what is left, WIRE_STOPPED */
	WIRE_KILL,   /* end the program; only with the server's leave */
	WIRE_PING,   /* from both; nothing to answer */
	WIRE_SCAN,   /* u32 pid: a leak verdict; answered by WIRE_MARK */
	WIRE_BLOCKS, /* blocks as they were at the mark, user/wire_scan.h */
	WIRE_BLOCKS_END, /* struct wire_scan_wish: that was all of them, and how to look for them */
	WIRE_SCAN_OVER,	 /* the host wants no verdict any more, or has it */

	/* From the target. */
	WIRE_STREAM = 64, /* bytes of a stream */
	WIRE_STARTED,	  /* u64 session id; u8 1 = taken up again where a connection was lost */
	WIRE_STOPPED,	  /* the stream is at its end: u8 enum wire_end, text */
	WIRE_MARK,	  /* u32 pid, u8 enum wire_mark: what came before in the stream was before it */
	WIRE_VERDICTS,	  /* user/wire_scan.h */
	WIRE_SCANNED,	  /* the verdict is complete, or why there is none */
	WIRE_NOTE,	  /* text for the user */
	WIRE_TUNED,	  /* u8 1 = so it is from here on in the stream; 0 = it is as before, text why */
	WIRE_CHAIN,	  /* user/wire_chain.h */
	WIRE_CHAIN_END,
	WIRE_LEFT_OUT, /* u32 pid, u64 allocations that the filter kept back since tracing began */
};

enum wire_mark { WIRE_MARK_BLOCKS, WIRE_MARK_MOMENT, WIRE_MARK_EXITING };
enum wire_end { WIRE_END_DETACHED, WIRE_END_TARGET, WIRE_END_ERROR };

/* One frame that has come in. */
struct wire_frame {
	u8 kind;
	u32 len;
	const u8 *data; /* valid until the next call on its struct wire_in */
};

/* What comes in. Zero is empty. Memory grows with what has come, not with what was announced. */
struct wire_in {
	u8 *buf; /* owned */
	size_t start, end, size;
	u32 max_body; /* WIRE_MAX_BODY_STRANGER at first */
};

void wire_in_init(struct wire_in *in);
void wire_in_fini(struct wire_in *in);

/* Read what @fd has, without blocking: bytes, 0 = nothing now, -EPIPE = the peer has closed, or -errno. */
int wire_in_read(struct wire_in *in, int fd) __must_check;

/* The same from memory. 0 or -ENOMEM. */
int wire_in_feed(struct wire_in *in, const void *data, size_t len) __must_check;

/* The next whole frame: 1, 0 = not there yet, -EPROTO = this is no frame of ours. */
int wire_in_next(struct wire_in *in, struct wire_frame *frame) __must_check;

/* What goes out, in order; bounded: the caller never waits for the peer. Zero is empty, with limit 0. */
struct wire_out {
	u8 *buf; /* owned */
	size_t start, end, size;
	size_t limit;
};

void wire_out_init(struct wire_out *out, size_t limit);
void wire_out_fini(struct wire_out *out);
size_t wire_out_pending(const struct wire_out *out);

/* True if a frame with @len bytes fits and leaves @reserve bytes free. */
bool wire_out_has_room(const struct wire_out *out, size_t len, size_t reserve);

/* 0, -ENOBUFS if it does not fit, -ENOMEM: then nothing of it was put in. */
int wire_put(struct wire_out *out, u8 kind, const void *data, size_t len) __must_check;
int wire_put_text(struct wire_out *out, u8 kind, const char *text) __must_check;

/* Write what @fd takes, without blocking. 0 or -errno. */
int wire_out_write(struct wire_out *out, int fd) __must_check;

/* Bodies are put together and taken apart with these. A reader past its end gives 0 and stays bad. */
struct wire_body {
	u8 *data;
	size_t len, size;
	bool is_bad;
};

void wire_put_number(struct wire_body *b, u64 value, int bytes);
void wire_put_varint(struct wire_body *b, u64 value);
/* Zigzag. */
void wire_put_signed(struct wire_body *b, s64 value);

struct wire_view {
	const u8 *data;
	size_t len;
	bool is_bad;
};

u64 wire_get_number(struct wire_view *v, int bytes);
u64 wire_get_varint(struct wire_view *v);
s64 wire_get_signed(struct wire_view *v);

/* The rest of @v as text, terminated, cut where it does not fit. Returns @buf. */
char *wire_get_text(struct wire_view *v, char *buf, size_t size);
