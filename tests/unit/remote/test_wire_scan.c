/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks and verdicts as bytes: written and read, their size, lists with wrong values; the command for ssh. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/heap/heap.h"
#include "user/remote/remote_ssh.h"
#include "user/remote/wire_scan.h"

enum { NR = 1000 };

static u64 state_of_random = 88172645463325252ULL;

static u64 next_random(void)
{
	state_of_random ^= state_of_random << 13;
	state_of_random ^= state_of_random >> 7;
	return state_of_random ^= state_of_random << 17;
}

/* Blocks like those of a program: close together, small, young. */
static void blocks(void **state)
{
	static struct heap_block list[NR];
	static u8 data[NR * WIRE_BLOCK_MAX];
	struct wire_body b = { data, 0, sizeof(data), false };
	struct wire_scan_at out = { 0 }, in = { 0 };
	struct wire_view v;
	u64 addr = 0x55550000;

	(void)state;
	for (int i = 0; i < NR; i++) {
		addr += 16 + next_random() % 512;
		list[i] = (struct heap_block){ .addr = addr,
					       .size = next_random() % 256,
					       .order = next_random() % (1ULL << 36),
					       .is_unsure = next_random() % 2,
					       .is_pending = next_random() % 2,
					       .is_ignored = next_random() % 2 };
		wire_put_block(&b, &out, &list[i]);
	}
	assert_false(b.is_bad);
	/* Orders are random here, which takes the most bytes. */
	assert_true(b.len < NR * 11);
	v = (struct wire_view){ data, b.len, false };
	for (int i = 0; i < NR; i++) {
		struct heap_block block;

		assert_int_equal(wire_get_block(&v, &in, &block), 0);
		assert_memory_equal(&block, &list[i], sizeof(block));
	}
	assert_int_equal(v.len, 0);
}

static void verdicts(void **state)
{
	static struct scan_block_info list[NR];
	static u8 data[NR * WIRE_VERDICT_MAX];
	struct wire_body b = { data, 0, sizeof(data), false };
	struct wire_scan_at out = { 0 }, in = { 0 };
	struct wire_view v;
	u64 addr = 0x7f0000000000;

	(void)state;
	for (int i = 0; i < NR; i++) {
		struct scan_block_info *info = &list[i];

		addr += 16 + next_random() % 512;
		*info = (struct scan_block_info){ .addr = addr, .verdict = 1 + next_random() % 5 };
		if (info->verdict == SCAN_DEFINITE)
			info->leader = addr;
		if (info->verdict == SCAN_INDIRECT)
			info->leader = list[next_random() % (i + 1)].addr;
		wire_put_verdict(&b, &out, info);
	}
	assert_false(b.is_bad);
	assert_true(b.len < NR * 3);
	v = (struct wire_view){ data, b.len, false };
	for (int i = 0; i < NR; i++) {
		struct scan_block_info info;

		assert_int_equal(wire_get_verdict(&v, &in, &info), 0);
		assert_memory_equal(&info, &list[i], sizeof(info));
	}
}

/* Addresses that wrap around, impossible sizes and verdicts, half a number. */
static void lies(void **state)
{
	static const u8 huge[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0, 0 };
	static const u8 big[] = { 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0 };
	static const u8 odd[] = { 7 }, half[] = { 0x80 };
	struct wire_scan_at at = { 0 };
	struct scan_block_info info;
	struct heap_block block;
	struct wire_view v = { huge, sizeof(huge), false };

	(void)state;
	assert_int_equal(wire_get_block(&v, &at, &block), -EPROTO);
	at = (struct wire_scan_at){ .addr = UINT64_MAX - 1 };
	v = (struct wire_view){ huge, sizeof(huge), false };
	assert_int_equal(wire_get_block(&v, &at, &block), -EPROTO);
	at = (struct wire_scan_at){ 0 };
	v = (struct wire_view){ big, sizeof(big), false };
	assert_int_equal(wire_get_block(&v, &at, &block), -EPROTO);
	v = (struct wire_view){ odd, sizeof(odd), false };
	assert_int_equal(wire_get_verdict(&v, &at, &info), -EPROTO);
	v = (struct wire_view){ half, sizeof(half), false };
	assert_int_equal(wire_get_verdict(&v, &at, &info), -EPROTO);
}

/* The wishes of the host, and wishes that are refused. */
static void wish(void **state)
{
	const struct wire_scan_wish in = { .nr_blocks = UINT64_MAX,
					   .max_pause_ns = 7,
					   .pointer_mask = 0xfffffffffff8,
					   .is_partial = true,
					   .wants_whys = true,
					   .want_unaligned = true,
					   .has_all = true };
	u8 data[WIRE_WISH_LEN + 1] = { 0 };
	struct wire_body b = { data, 0, sizeof(data), false };
	struct wire_scan_wish out;
	struct wire_view v;

	(void)state;
	wire_put_wish(&b, &in);
	assert_int_equal(b.len, WIRE_WISH_LEN);
	for (size_t len = 0; len <= sizeof(data); len++) {
		v = (struct wire_view){ data, len, false };
		assert_int_equal(wire_get_wish(&v, &out), len == b.len ? 0 : -EPROTO);
	}
	v = (struct wire_view){ data, b.len, false };
	assert_int_equal(wire_get_wish(&v, &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	data[b.len - 1] = 32;
	v = (struct wire_view){ data, b.len, false };
	assert_int_equal(wire_get_wish(&v, &out), -EPROTO);
}

/* A shell takes each quoted word as one word. */
static void words_for_a_shell(void **state)
{
	char *program[] = { "it's", "$HOME `id` \\ \"x\"", "", "-x;y|z&", "new\nline", NULL };
	struct net_addr a = { .kind = NET_SSH, .path = "a b';touch x'" };
	char *command = remote_ssh_command(&a, program), script[1024], seen[256] = "";
	FILE *f;

	(void)state;
	assert_non_null(command);
	assert_memory_equal(command, "exec heaptap serve --stdio --", 29);
	snprintf(script, sizeof(script), "printf '<%%s>' %s", command + 29);
	f = popen(script, "re");
	assert_non_null(f);
	assert_true(fread(seen, 1, sizeof(seen) - 1, f) > 0);
	pclose(f);
	assert_string_equal(seen, "<it's><$HOME `id` \\ \"x\"><><-x;y|z&><new\nline>");
	free(command);
	command = remote_ssh_command(&a, NULL);
	assert_string_equal(command, "exec heaptap serve --stdio 'a b'\\'';touch x'\\'''");
	free(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks), cmocka_unit_test(verdicts),	       cmocka_unit_test(lies),
		cmocka_unit_test(wish),	  cmocka_unit_test(words_for_a_shell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
