/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames that serve and connect send to each other, and the buffers for them. */
#pragma once

#include "user/lib/types.h"
#include "user/remote/wire_kind.h"

/*
 * A frame: u32 length of the body, u8 kind, three bytes of 0, the body; numbers are little-endian. First both sides
 * prove who they are (user/remote/wire_auth.h), then frames of the other kinds go both ways. Records of the target are
 * a stream (user/stream/stream_format.h) in pieces, the WIRE_STREAM frames. A recording has the same format.
 */
enum {
	WIRE_VERSION = 10,
	WIRE_HEADER_LEN = 8,
	WIRE_MAX_BODY = (1 << 20) + 4096,
	WIRE_MAX_BODY_STRANGER = 256, /* before the peer has proved who it is */
	WIRE_MAX_TEXT = 512,
};

/* Values are part of the protocol: append only. user/remote/wire_kind.c has a row for each. */
enum wire_kind {
	/* user/remote/wire_auth.h */
	WIRE_HELLO = 1, /* host: struct of 64 bytes */
	WIRE_CHALLENGE, /* target: struct of 64 bytes */
	WIRE_PROOF,	/* host: HMAC */
	WIRE_WELCOME,	/* target: HMAC */
	WIRE_REFUSED,	/* either: text; then the connection is closed */

	/* Sent by the host. */
	WIRE_START = 16, /* struct wire_start: trace from now on; send a new stream */
	WIRE_TUNE,	 /* struct tuning: pause, depth, filter; answered by WIRE_TUNED */
	WIRE_WHY, /* u64 address: which chain holds that block? After WIRE_SCANNED; answered by WIRE_CHAIN_END */
	WIRE_DETACH,	 /* remove the probes, send the last records and WIRE_STOPPED */
	WIRE_KILL,	 /* end the program by SIGTERM, if the server allows it */
	WIRE_PING,	 /* sent by both; the target answers each with one of its own */
	WIRE_SCAN,	 /* u32 pid: begin a leak scan; answered by WIRE_MARK */
	WIRE_BLOCKS,	 /* live blocks at the mark, user/remote/wire_scan.h */
	WIRE_BLOCKS_END, /* struct wire_scan_wish: no more blocks; how to judge them */
	WIRE_SCAN_OVER,	 /* the host needs nothing more of the scan */
	WIRE_LET_EXIT, /* u32 pid: after WIRE_MARK_EXITING or _EXECUTING, with or without a scan: it may go on */
	WIRE_PAUSE, /* u32 pid, 0 = all; u8 1 = see no more calls of it, 0 = see them; answered by WIRE_TUNED */

	/* Sent by the target. */
	WIRE_STREAM = 64, /* bytes of a stream */
	WIRE_STARTED, /* u64 id of the trace; u8 1 = that of the lost connection goes on; u8 1 = it may be killed */
	WIRE_STOPPED, /* the stream has ended: u8 enum wire_end, text */
	WIRE_MARK, /* u32 pid, u8 enum wire_mark: a moment in the stream; earlier records are from before it */
	WIRE_VERDICTS,	/* user/remote/wire_scan.h */
	WIRE_SCANNED,	/* the end of the verdicts, or why there is no verdict; user/remote/wire_scan.h */
	WIRE_NOTE,	/* text for the user */
	WIRE_TUNED,	/* u8 1 = in force from here on in the stream; 0 = refused, and a text why */
	WIRE_CHAIN,	/* user/remote/wire_chain.h */
	WIRE_CHAIN_END, /* user/remote/wire_chain.h */
	WIRE_BOOKS,	/* before WIRE_SCANNED, of a sampled process; user/remote/wire_scan.h */
	NR_WIRE_KINDS,
};

/* Of a scan: its first and its second moment. A process waits for WIRE_LET_EXIT, at its end or at execve(). */
enum wire_mark { WIRE_MARK_BLOCKS, WIRE_MARK_MOMENT, WIRE_MARK_EXITING, WIRE_MARK_EXECUTING };
enum wire_end { WIRE_END_DETACHED, WIRE_END_TARGET, WIRE_END_ERROR };

/* One frame that has come in. */
struct wire_frame {
	u8 kind;
	u32 len;
	const u8 *data; /* valid until the next call on its struct wire_in */
};

/* Bytes that were received. Memory grows with the bytes that came, not with the lengths that frames announce. */
struct wire_in {
	u8 *buf; /* owned */
	size_t start, end, size;
	enum wire_side from; /* the peer */
	bool is_open;	     /* the handshake is done; false at the start */
};

void wire_in_init(struct wire_in *in, enum wire_side from);
void wire_in_fini(struct wire_in *in);

/* Read what @fd has, without blocking: bytes, 0 = nothing now, -EPIPE = the peer has closed, or -errno. */
int wire_in_read(struct wire_in *in, int fd) __must_check;

/* Like wire_in_read(), from memory. 0 or -ENOMEM. */
int wire_in_feed(struct wire_in *in, const void *data, size_t len) __must_check;

/* The next whole frame: 1; 0 = not there yet; -EPROTO = the peer may not send this, see wire_may_send(). */
int wire_in_next(struct wire_in *in, struct wire_frame *frame) __must_check;

/* A queue of frames to send, of limited size. The caller never waits for the peer. */
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

/* Queue a frame. 0; -ENOBUFS if it does not fit or -ENOMEM: then nothing was queued. */
int wire_put(struct wire_out *out, u8 kind, const void *data, size_t len) __must_check;
int wire_put_text(struct wire_out *out, u8 kind, const char *text) __must_check;

/* Write to @fd without blocking. 0 or -errno. */
int wire_out_write(struct wire_out *out, int fd) __must_check;

/* The body of a frame being written. is_bad: something did not fit. */
struct wire_body {
	u8 *data;
	size_t len, size;
	bool is_bad;
};

void wire_put_number(struct wire_body *b, u64 value, int bytes);
void wire_put_varint(struct wire_body *b, u64 value);
void wire_put_signed(struct wire_body *b, s64 value);

/* The body of a frame being read. After a read past the end all values are 0, and is_bad stays true. */
struct wire_view {
	const u8 *data;
	size_t len;
	bool is_bad;
};

u64 wire_get_number(struct wire_view *v, int bytes);
u64 wire_get_varint(struct wire_view *v);
s64 wire_get_signed(struct wire_view *v);

/* The rest of @v as text with a final 0; cut where it does not fit. Returns @buf. */
char *wire_get_text(struct wire_view *v, char *buf, size_t size);
