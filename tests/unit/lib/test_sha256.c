/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-256 and HMAC against coreutils' sha256sum and published vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/sha256.h"

static void hex(const u8 *sum, char *out)
{
	for (int i = 0; i < SHA256_LEN; i++)
		sprintf(out + 2 * i, "%02x", sum[i]);
}

static void digest(const void *data, size_t len, size_t piece, char *out)
{
	struct sha256 h;
	u8 sum[SHA256_LEN];

	sha256_init(&h);
	for (size_t at = 0; at < len; at += piece)
		sha256_add(&h, (const u8 *)data + at, len - at < piece ? len - at : piece);
	sha256_end(&h, sum);
	hex(sum, out);
}

static void known_digests(void **state)
{
	char out[65];

	(void)state;
	digest("", 0, 1, out);
	assert_string_equal(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	digest("abc", 3, 3, out);
	assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* Every length around the borders of blocks, in pieces of every size. */
static void as_sha256sum(void **state)
{
	u8 data[200];
	char out[65], wanted[65], command[64], path[] = "/tmp/heaptap-sha256-XXXXXX";
	int fd = mkstemp(path);

	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	snprintf(command, sizeof(command), "sha256sum <%s", path);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i * 7 + 1;
	for (size_t len = 50; len < 132; len += 9) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, data, len, 0), len);
		f = popen(command, "re");
		assert_int_equal(fread(wanted, 1, 64, f), 64);
		wanted[64] = 0;
		pclose(f);
		for (size_t piece = 1; piece <= len; piece += 13) {
			digest(data, len, piece, out);
			assert_string_equal(out, wanted);
		}
	}
	close(fd);
	remove(path);
}

/* RFC 4231, cases 1, 2 and 6. */
static void known_macs(void **state)
{
	u8 key[131], mac[SHA256_LEN];
	char out[65];

	(void)state;
	memset(key, 0x0b, 20);
	sha256_hmac(mac, key, 20, "Hi There", 8);
	hex(mac, out);
	assert_string_equal(out, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	sha256_hmac(mac, "Jefe", 4, "what do ya want for nothing?", 28);
	hex(mac, out);
	assert_string_equal(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	sha256_hmac(mac, key, sizeof(key), "Test Using Larger Than Block-Size Key - Hash Key First", 54);
	hex(mac, out);
	assert_string_equal(out, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void equal(void **state)
{
	u8 a[32] = { 1, 2, 3 }, b[32] = { 1, 2, 3 };

	(void)state;
	assert_true(sha256_equal(a, b, 32));
	for (int i = 0; i < 32; i++) {
		b[i] ^= 0x80;
		assert_false(sha256_equal(a, b, 32));
		b[i] ^= 0x80;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_digests),
		cmocka_unit_test(as_sha256sum),
		cmocka_unit_test(known_macs),
		cmocka_unit_test(equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
