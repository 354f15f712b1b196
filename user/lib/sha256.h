/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-256 and HMAC, for proving that a peer knows a token without sending it. */
#pragma once

#include "user/lib/types.h"

enum { SHA256_LEN = 32, SHA256_BLOCK = 64 };

struct sha256 {
	u32 state[8];
	u64 nr_bytes;
	u8 block[SHA256_BLOCK]; /* not full yet */
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t len);
/* Write the SHA256_LEN bytes to @out. @h cannot be used again. */
void sha256_end(struct sha256 *h, u8 *out);

/* HMAC-SHA-256 (RFC 2104) of @data with @key, into the SHA256_LEN bytes of @out. */
void sha256_hmac(u8 *out, const void *key, size_t key_len, const void *data, size_t len);

/* True if the @len bytes are equal. The time does not depend on where they differ. */
bool sha256_equal(const void *a, const void *b, size_t len);
