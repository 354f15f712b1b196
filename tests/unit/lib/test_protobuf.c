/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages have the bytes that the description of the wire format gives. */
#include "user/lib/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct protobuf message;

static int end(void **state)
{
	(void)state;
	protobuf_fini(&message);
	return 0;
}

static void is(const char *bytes, size_t len)
{
	assert_int_equal(message.err, 0);
	assert_int_equal(message.len, len);
	assert_memory_equal(message.data, bytes, len);
	protobuf_clear(&message);
}

#define is(bytes) is(bytes, sizeof(bytes) - 1)

static void numbers(void **state)
{
	(void)state;
	protobuf_u64(&message, 1, 150);
	is("\x08\x96\x01");
	protobuf_u64(&message, 16, 1);
	is("\x80\x01\x01");
	protobuf_u64(&message, 1, UINT64_MAX);
	is("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	protobuf_u64(&message, 1, 0);
	is("");
}

static void strings(void **state)
{
	(void)state;
	protobuf_bytes(&message, 2, "testing", 7);
	is("\x12\x07testing");
	protobuf_bytes(&message, 2, NULL, 0);
	is("\x12\x00");
	protobuf_bytes(&message, 2, "a\0b", 3);
	is("\x12\x03"
	   "a\0b");
}

static void lists(void **state)
{
	const u64 values[] = { 3, 270, 86942, 0 };

	(void)state;
	protobuf_packed(&message, 6, values, 4);
	is("\x32\x07\x03\x8e\x02\x9e\xa7\x05\x00");
	protobuf_packed(&message, 6, values, 0);
	is("");
}

static void messages_within_messages(void **state)
{
	size_t outer, inner;

	(void)state;
	outer = protobuf_begin(&message, 3);
	protobuf_u64(&message, 1, 150);
	inner = protobuf_begin(&message, 4);
	protobuf_end(&message, inner);
	protobuf_end(&message, outer);
	is("\x1a\x05\x08\x96\x01\x22\x00");
}

/* The length of a message takes as many bytes as it needs, which is known only at its end. */
static void long_messages(void **state)
{
	for (size_t len = 120; len < 40000; len = len * 3 / 2) {
		char *text = calloc(1, len + 1);
		size_t outer, at, head;

		(void)state;
		assert_non_null(text);
		memset(text, 'x', len);
		protobuf_u64(&message, 1, 1);
		outer = protobuf_begin(&message, 3);
		protobuf_bytes(&message, 2, text, len);
		protobuf_end(&message, outer);
		head = len < 128 ? 1 : len < 16384 ? 2 : 3;
		at = 2 + 1 + (len + 1 + head < 128 ? 1 : len + 1 + head < 16384 ? 2 : 3);
		assert_int_equal(message.len, at + 1 + head + len);
		assert_memory_equal(message.data, "\x08\x01\x1a", 3);
		assert_int_equal(message.data[at], 2 << 3 | 2);
		assert_memory_equal(message.data + at + 1 + head, text, len);
		protobuf_clear(&message);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers, NULL, end),
		cmocka_unit_test_setup_teardown(strings, NULL, end),
		cmocka_unit_test_setup_teardown(lists, NULL, end),
		cmocka_unit_test_setup_teardown(messages_within_messages, NULL, end),
		cmocka_unit_test_setup_teardown(long_messages, NULL, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
