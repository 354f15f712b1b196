/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The handshake: do both sides speak the same version and know the token? The token itself is never sent. */
#pragma once

#include "user/lib/sha256.h"
#include "user/remote/wire.h"

/*
 *	host	 WIRE_HELLO	 magic[8], u16 version, u16 0, u32 0, nonce[32], 16 bytes of 0
 *	target	 WIRE_CHALLENGE	 magic[8], u16 version, u16 1 = a token is needed, u32 0, nonce[32], 16 bytes of 0
 *	host	 WIRE_PROOF	 HMAC-SHA-256(token, "host" and both bodies)
 *	target	 WIRE_WELCOME	 HMAC-SHA-256(token, "target" and both bodies)
 *
 * Without a token both HMACs are 32 bytes of 0. The host sends first, no matter which side connected. Later frames
 * are neither signed nor encrypted.
 */
enum { WIRE_TOKEN_LEN = 32, WIRE_HELLO_LEN = 64, WIRE_HANDSHAKE_MS = 5000 };

struct wire_auth {
	bool is_target;
	const u8 *token; /* borrowed, WIRE_TOKEN_LEN bytes; NULL = none is needed */
	u8 next;	 /* the kind of frame that must come next */
	u8 hello[WIRE_HELLO_LEN], challenge[WIRE_HELLO_LEN];
	char why[128]; /* after an error */
};

/* Begin. Puts the first frame into @out if we are the host. 0 or -errno. */
int wire_auth_begin(struct wire_auth *a, bool is_target, const u8 *token, struct wire_out *out) __must_check;

/*
 * Handle a frame of the peer, and put the answer into @out. 1 = the handshake is done; 0 = it continues. After an error
 * write @out and close: -EPROTO (not heaptap), -EPROTONOSUPPORT (another version), -EACCES (wrong or no token),
 * -ECONNREFUSED (refused by the peer), or -errno. @a->why has the reason in words.
 */
int wire_auth_take(struct wire_auth *a, const struct wire_frame *f, struct wire_out *out) __must_check;

/*
 * Read a token: 64 hexadecimal digits in the file @path, a regular file of ours or of root that others cannot read.
 * 0 or -errno, logged.
 */
int wire_token_read(u8 *token, const char *path) __must_check;
