/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-256 as FIPS 180-4 defines it. */
#include "user/lib/sha256.h"

#include <string.h>

enum { NR_ROUNDS = 64 };

/* The first 32 bits behind the point of the cube roots of the first 64 primes. */
static const u32 round_words[NR_ROUNDS] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static u32 sha256_turn(u32 x, int n)
{
	return x >> n | x << (32 - n);
}

static u32 sha256_word_at(const u8 *p)
{
	return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

static void sha256_schedule(u32 *w, const u8 *block)
{
	for (int i = 0; i < 16; i++)
		w[i] = sha256_word_at(block + 4 * i);
	for (int i = 16; i < NR_ROUNDS; i++) {
		u32 a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (sha256_turn(a, 7) ^ sha256_turn(a, 18) ^ a >> 3) + w[i - 7] +
		       (sha256_turn(b, 17) ^ sha256_turn(b, 19) ^ b >> 10);
	}
}

static void sha256_mix(struct sha256 *h, const u8 *block)
{
	u32 w[NR_ROUNDS], v[8];

	sha256_schedule(w, block);
	memcpy(v, h->state, sizeof(v));
	for (int i = 0; i < NR_ROUNDS; i++) {
		u32 e = v[4], a = v[0];
		u32 one = v[7] + (sha256_turn(e, 6) ^ sha256_turn(e, 11) ^ sha256_turn(e, 25)) +
			  ((e & v[5]) ^ (~e & v[6])) + round_words[i] + w[i];
		u32 two = (sha256_turn(a, 2) ^ sha256_turn(a, 13) ^ sha256_turn(a, 22)) +
			  ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(&v[1], &v[0], 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		h->state[i] += v[i];
}

void sha256_init(struct sha256 *h)
{
	/* The first 32 bits behind the point of the square roots of the first 8 primes. */
	static const u32 start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
				      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(h->state, start, sizeof(start));
	h->nr_bytes = 0;
}

void sha256_add(struct sha256 *h, const void *data, size_t len)
{
	const u8 *p = data;

	while (len) {
		size_t at = h->nr_bytes % SHA256_BLOCK, n = SHA256_BLOCK - at;

		if (n > len)
			n = len;
		memcpy(h->block + at, p, n);
		h->nr_bytes += n;
		p += n;
		len -= n;
		if (at + n == SHA256_BLOCK)
			sha256_mix(h, h->block);
	}
}

void sha256_end(struct sha256 *h, u8 *out)
{
	static const u8 padding[SHA256_BLOCK] = { 0x80 };
	u64 nr_bits = h->nr_bytes * 8;
	size_t at = h->nr_bytes % SHA256_BLOCK;
	u8 length[8];

	for (int i = 0; i < 8; i++)
		length[i] = nr_bits >> (56 - 8 * i);
	sha256_add(h, padding, (at < 56 ? 56 : 120) - at);
	sha256_add(h, length, sizeof(length));
	for (int i = 0; i < SHA256_LEN; i++)
		out[i] = h->state[i / 4] >> (24 - 8 * (i % 4));
}

void sha256_hmac(u8 *out, const void *key, size_t key_len, const void *data, size_t len)
{
	u8 block[SHA256_BLOCK] = { 0 }, pad[SHA256_BLOCK], inner[SHA256_LEN];
	struct sha256 h;

	if (key_len > SHA256_BLOCK) {
		sha256_init(&h);
		sha256_add(&h, key, key_len);
		sha256_end(&h, block);
	} else if (key_len) {
		memcpy(block, key, key_len);
	}
	for (int i = 0; i < SHA256_BLOCK; i++)
		pad[i] = block[i] ^ 0x36;
	sha256_init(&h);
	sha256_add(&h, pad, sizeof(pad));
	sha256_add(&h, data, len);
	sha256_end(&h, inner);
	for (int i = 0; i < SHA256_BLOCK; i++)
		pad[i] = block[i] ^ 0x5c;
	sha256_init(&h);
	sha256_add(&h, pad, sizeof(pad));
	sha256_add(&h, inner, sizeof(inner));
	sha256_end(&h, out);
}

bool sha256_equal(const void *a, const void *b, size_t len)
{
	const volatile u8 *x = a, *y = b;
	u8 differs = 0;

	for (size_t i = 0; i < len; i++)
		differs |= x[i] ^ y[i];
	return !differs;
}
