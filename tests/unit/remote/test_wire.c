/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames, buffers and the handshake: whole, in pieces, damaged, and with a wrong peer. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/log.h"
#include "user/remote/wire_auth.h"

static void frames_in_pieces(void **state)
{
	struct wire_out out;
	struct wire_in in;
	struct wire_frame f;
	u8 body[1000];

	(void)state;
	memset(body, 7, sizeof(body));
	for (size_t piece = 1; piece < 1100; piece += 61) {
		size_t nr = 0;

		wire_out_init(&out, 1 << 16);
		wire_in_init(&in, WIRE_TARGET);
		in.is_open = true;
		assert_int_equal(wire_put(&out, WIRE_STREAM, body, sizeof(body)), 0);
		assert_int_equal(wire_put(&out, WIRE_PING, NULL, 0), 0);
		assert_int_equal(wire_put_text(&out, WIRE_NOTE, "hello"), 0);
		for (size_t at = out.start; at < out.end; at += piece) {
			size_t n = out.end - at < piece ? out.end - at : piece;

			assert_int_equal(wire_in_feed(&in, out.buf + at, n), 0);
			while (wire_in_next(&in, &f) == 1) {
				static const u8 kinds[] = { WIRE_STREAM, WIRE_PING, WIRE_NOTE };
				static const u32 lens[] = { 1000, 0, 5 };

				assert_int_equal(f.kind, kinds[nr]);
				assert_int_equal(f.len, lens[nr]);
				nr++;
			}
		}
		assert_int_equal(nr, 3);
		wire_out_fini(&out);
		wire_in_fini(&in);
	}
}

static void no_frames(void **state)
{
	static const char *const texts[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
					     "\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
					     "\x01\x00\x00\x00\x01\x01\x00\x00",
					     "\xff\xff\xff\xff\x01\0\0\0" };
	struct wire_frame f;
	struct wire_in in;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		wire_in_init(&in, WIRE_HOST);
		assert_int_equal(wire_in_feed(&in, texts[i], 8), 0);
		assert_int_equal(wire_in_next(&in, &f), -EPROTO);
		wire_in_fini(&in);
	}
}

static void only_frames_of_the_peer(void **state)
{
	static const struct {
		enum wire_side side;
		bool is_open;
		u8 kind;
		u32 len;
		bool is_allowed;
	} rows[] = {
		{ WIRE_HOST, false, WIRE_HELLO, 64, true },
		{ WIRE_HOST, false, WIRE_HELLO, 63, false },
		{ WIRE_HOST, false, WIRE_HELLO, 65, false },
		{ WIRE_TARGET, false, WIRE_HELLO, 64, false },
		{ WIRE_HOST, true, WIRE_HELLO, 64, false },
		{ WIRE_TARGET, false, WIRE_REFUSED, 20, true },
		{ WIRE_TARGET, false, WIRE_REFUSED, 257, false },
		{ WIRE_HOST, false, WIRE_DETACH, 0, false },
		{ WIRE_HOST, true, WIRE_DETACH, 0, true },
		{ WIRE_HOST, true, WIRE_DETACH, 1, false },
		{ WIRE_HOST, true, WIRE_PING, 0, true },
		{ WIRE_TARGET, true, WIRE_PING, 0, true },
		{ WIRE_TARGET, true, WIRE_STREAM, WIRE_MAX_BODY, true },
		{ WIRE_TARGET, true, WIRE_STREAM, WIRE_MAX_BODY + 1, false },
		{ WIRE_HOST, true, WIRE_STREAM, 10, false },
		{ WIRE_TARGET, true, WIRE_MARK, 4, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(wire_may_send(rows[i].side, rows[i].is_open, rows[i].kind, rows[i].len),
				 rows[i].is_allowed);
	for (int kind = 0; kind < 256; kind++) {
		bool is_hole = !kind || (kind > WIRE_REFUSED && kind < WIRE_START) ||
			       (kind > WIRE_PAUSE && kind < WIRE_STREAM) || kind >= NR_WIRE_KINDS;
		int nr = 0;

		for (u32 len = 0; len < 600; len++)
			for (int side = WIRE_HOST; side <= WIRE_TARGET; side++)
				nr += wire_may_send(side, false, kind, len) ||
				      wire_may_send(side, true, kind, len);
		assert_int_equal(!nr, is_hole);
	}
}

/* A stranger gets little memory. */
static void strangers_are_small(void **state)
{
	static const u8 flood[65536];
	struct wire_in in;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	assert_true(write(fds[1], flood, sizeof(flood)) > 4096);
	wire_in_init(&in, WIRE_HOST);
	for (int i = 0; i < 100; i++)
		assert_true(wire_in_read(&in, fds[0]) >= 0);
	assert_true(in.size <= 512);
	wire_in_fini(&in);
	close(fds[0]);
	close(fds[1]);
}

static void queue_is_bounded(void **state)
{
	struct wire_out out;
	u8 body[100] = { 0 };
	int nr = 0;

	(void)state;
	wire_out_init(&out, 4096);
	while (!wire_put(&out, WIRE_STREAM, body, sizeof(body)))
		nr++;
	assert_int_equal(nr, 4096 / 108);
	assert_int_equal(wire_out_pending(&out), nr * 108);
	assert_false(wire_out_has_room(&out, 100, 0));
	wire_out_fini(&out);
}

static void numbers(void **state)
{
	static const u64 values[] = { 0, 1, 127, 128, 300, UINT32_MAX, INT64_MAX, UINT64_MAX };
	u8 data[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct wire_body b = { data, 0, sizeof(data), false };
		struct wire_view v;

		wire_put_varint(&b, values[i]);
		wire_put_signed(&b, (s64)values[i]);
		wire_put_signed(&b, -(s64)(values[i] / 2));
		wire_put_number(&b, values[i], 8);
		assert_false(b.is_bad);
		for (size_t len = 0; len <= b.len; len++) {
			v = (struct wire_view){ data, len, false };
			if (wire_get_varint(&v) == values[i] && wire_get_signed(&v) == (s64)values[i] &&
			    wire_get_signed(&v) == -(s64)(values[i] / 2) &&
			    wire_get_number(&v, 8) == values[i] && !v.is_bad)
				assert_int_equal(len, b.len);
			else
				assert_true(v.is_bad);
		}
	}
	memset(data, 0xff, sizeof(data));
	struct wire_view endless = { data, sizeof(data), false };

	assert_int_equal(wire_get_varint(&endless), 0);
	assert_true(endless.is_bad);
}

/* Both sides of a handshake, until one side is done or refuses. */
struct talk {
	struct wire_auth a[2]; /* host, target */
	struct wire_out out[2];
	int result[2];
};

static void shake_hands(struct talk *t, const u8 *host_token, const u8 *target_token, int flip)
{
	struct wire_in in[2];

	memset(t, 0, sizeof(*t));
	for (int i = 0; i < 2; i++) {
		wire_in_init(&in[i], i ? WIRE_HOST : WIRE_TARGET);
		wire_out_init(&t->out[i], 4096);
		assert_int_equal(wire_auth_begin(&t->a[i], i, i ? target_token : host_token, &t->out[i]), 0);
	}
	for (int round = 0; round < 6; round++) {
		int me = round % 2, peer = !me;
		struct wire_out *out = &t->out[me];
		struct wire_frame f;

		if (flip >= 0 && round == flip / 64 && out->end > out->start)
			out->buf[out->start + 8 + flip % 64 % (out->end - out->start - 8)] ^= 1;
		if (out->end > out->start)
			assert_int_equal(
				wire_in_feed(&in[peer], out->buf + out->start, out->end - out->start), 0);
		out->start = out->end = 0;
		if (!t->result[peer] && wire_in_next(&in[peer], &f) == 1)
			t->result[peer] = wire_auth_take(&t->a[peer], &f, &t->out[peer]);
	}
	for (int i = 0; i < 2; i++) {
		wire_in_fini(&in[i]);
		wire_out_fini(&t->out[i]);
	}
}

static void handshakes(void **state)
{
	const u8 right[32] = { 1, 2, 3 }, wrong[32] = { 1, 2, 4 };
	struct talk t;

	(void)state;
	shake_hands(&t, NULL, NULL, -1);
	assert_int_equal(t.result[0], 1);
	assert_int_equal(t.result[1], 1);
	shake_hands(&t, right, right, -1);
	assert_int_equal(t.result[0], 1);
	assert_int_equal(t.result[1], 1);
	shake_hands(&t, wrong, right, -1);
	assert_int_equal(t.result[0], -ECONNREFUSED);
	assert_string_equal(t.a[0].why, "wrong token");
	assert_int_equal(t.result[1], -EACCES);
	shake_hands(&t, NULL, right, -1);
	assert_int_equal(t.result[0], -EACCES);
	assert_int_not_equal(t.result[1], 1);
	/* A peer that asks for no token cannot make the host go on without one. */
	shake_hands(&t, right, NULL, -1);
	assert_int_equal(t.result[0], -EACCES);
	assert_int_not_equal(t.result[1], 1);
}

/* The handshake fails after a change of any byte of any frame. */
static void nothing_can_be_changed(void **state)
{
	const u8 token[32] = { 9 };
	struct talk t;

	(void)state;
	for (int i = 0; i < 3 * 64; i++) {
		shake_hands(&t, token, token, i);
		assert_int_not_equal(t.result[1], 1);
		assert_int_not_equal(t.result[0], 1);
	}
	for (int i = 3 * 64; i < 3 * 64 + 32; i++) {
		shake_hands(&t, token, token, i);
		assert_int_not_equal(t.result[0], 1);
	}
}

static void other_version(void **state)
{
	struct wire_auth a;
	struct wire_out out;
	struct wire_frame f = { .kind = WIRE_HELLO, .len = WIRE_HELLO_LEN };
	u8 hello[WIRE_HELLO_LEN];

	(void)state;
	wire_out_init(&out, 4096);
	assert_int_equal(wire_auth_begin(&a, false, NULL, &out), 0);
	memcpy(hello, a.hello, sizeof(hello));
	hello[8] = WIRE_VERSION + 1;
	f.data = hello;
	assert_int_equal(wire_auth_begin(&a, true, NULL, &out), 0);
	assert_int_equal(wire_auth_take(&a, &f, &out), -EPROTONOSUPPORT);
	assert_non_null(strstr(a.why, "one side speaks version "));
	wire_out_fini(&out);
}

static void before_the_proof(void **state)
{
	(void)state;
	for (int kind = 0; kind < 256; kind++) {
		struct wire_frame f = { .kind = kind, .len = 0, .data = (const u8 *)"" };
		struct wire_auth a;
		struct wire_out out;

		wire_out_init(&out, 4096);
		assert_int_equal(wire_auth_begin(&a, true, NULL, &out), 0);
		assert_int_equal(wire_auth_take(&a, &f, &out), -EPROTO);
		wire_out_fini(&out);
	}
}

static void tokens(void **state)
{
	char path[] = "/tmp/heaptap-token-XXXXXX";
	static const char good[] = "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100\n";
	int fd = mkstemp(path);
	u8 token[32];

	(void)state;
	log_set_level(-1);
	assert_int_equal(write(fd, good, strlen(good)), strlen(good));
	assert_int_equal(wire_token_read(token, path), 0);
	assert_int_equal(token[1], 0x11);
	assert_int_equal(token[16], 0xff);
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_int_equal(wire_token_read(token, path), -EPERM);
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(ftruncate(fd, 63), 0);
	assert_int_equal(wire_token_read(token, path), -EINVAL);
	assert_int_equal(pwrite(fd, "x", 1, 63), 1);
	assert_int_equal(wire_token_read(token, path), -EINVAL);
	close(fd);
	unlink(path);
	assert_int_equal(wire_token_read(token, path), -ENOENT);
	assert_int_equal(wire_token_read(token, "/tmp"), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_in_pieces),
		cmocka_unit_test(no_frames),
		cmocka_unit_test(only_frames_of_the_peer),
		cmocka_unit_test(strangers_are_small),
		cmocka_unit_test(queue_is_bounded),
		cmocka_unit_test(numbers),
		cmocka_unit_test(handshakes),
		cmocka_unit_test(nothing_can_be_changed),
		cmocka_unit_test(other_version),
		cmocka_unit_test(before_the_proof),
		cmocka_unit_test(tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
