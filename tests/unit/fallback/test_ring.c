/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records through the shared ring: order, what does not fit, two processes at once. */
#include "fallback/ring.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 4096, MANY = 200000 };

static bool is_woken(const struct ring *r)
{
	struct pollfd p = { .fd = ring_fd(r), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static struct ring *new_ring(void)
{
	struct ring *r;

	assert_int_equal(ring_new(&r, SIZE), 0);
	return r;
}

/* Lengths of all sorts, many times around. */
static void test_order(void **state)
{
	struct ring *r = new_ring();
	_Alignas(8) u8 in[RING_MAX_RECORD], out[RING_MAX_RECORD];

	(void)state;
	for (size_t i = 0; i < 5000; i++) {
		size_t len = i * 7 % 1000 + 1;

		memset(in, (int)i, len);
		assert_true(ring_put(r, in, len, false));
		assert_int_equal(ring_take(r, ring_end(r), out), len);
		assert_memory_equal(in, out, len);
	}
	assert_int_equal(ring_take(r, ring_end(r), out), 0);
	ring_free(r);
}

/* Shared memory that is resident here, KiB. */
static long resident_kib(void)
{
	FILE *in = fopen("/proc/self/status", "re");
	char line[128];
	long kib = -1;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in) && sscanf(line, "RssShmem: %ld", &kib) != 1)
		;
	fclose(in);
	return kib;
}

/* Of a large one only what waits takes memory; and nothing that waits is lost with the pages that are given back. */
static void test_gives_back(void **state)
{
	enum { BACKLOG = 1000, ROUNDS = 64000 };
	_Alignas(8) u8 rec[RING_MAX_RECORD], out[RING_MAX_RECORD];
	long before = resident_kib();
	struct ring *r;

	(void)state;
	assert_int_equal(ring_new(&r, 1 << 20), 0);
	for (size_t i = 0; i < ROUNDS; i++) {
		memset(rec, (int)(i % 251), 100);
		assert_true(ring_put(r, rec, 100, false));
		if (i < BACKLOG)
			continue;
		assert_int_equal(ring_take(r, ring_end(r), out), 100);
		memset(rec, (int)((i - BACKLOG) % 251), 100);
		assert_memory_equal(rec, out, 100);
	}
	/* 112 bytes each, and a chunk at either end. */
	assert_true(before >= 0 && resident_kib() - before <= 112 * BACKLOG / 1024 + 2 * 32 + 8);
	ring_free(r);
}

/* A ring that is always nearly full: the writer refills room while the reader is in the middle of a chunk. */
static void nearly_full(u64 bytes)
{
	enum { ROUNDS = 100000 };
	_Alignas(8) u8 rec[RING_MAX_RECORD], out[RING_MAX_RECORD];
	size_t put = 0, taken = 0;
	struct ring *r;

	assert_int_equal(ring_new(&r, bytes), 0);
	while (taken < ROUNDS) {
		memset(rec, (int)(put % 251), 100);
		if (ring_put(r, rec, 100, false)) {
			put++;
			continue;
		}
		assert_int_equal(ring_take(r, ring_end(r), out), 100);
		memset(rec, (int)(taken++ % 251), 100);
		assert_memory_equal(rec, out, 100);
	}
	ring_free(r);
}

static void test_nearly_full(void **state)
{
	(void)state;
	for (u64 bytes = SIZE; bytes <= 8 << 20; bytes *= 2)
		nearly_full(bytes);
}

static void test_full(void **state)
{
	struct ring *r = new_ring();
	_Alignas(8) u8 rec[RING_MAX_RECORD] = { 0 };
	size_t nr = 0;

	(void)state;
	assert_false(is_woken(r));
	while (ring_put(r, rec, 56, false))
		nr++;
	assert_int_equal(nr, SIZE / 64);
	assert_true(is_woken(r));
	ring_quiet(r);
	assert_false(is_woken(r));
	assert_int_equal(ring_take(r, ring_end(r), rec), 56);
	assert_true(ring_put(r, rec, 56, false));
	assert_false(ring_put(r, rec, 56, false));
	assert_false(ring_put(r, rec, sizeof(rec) + 1, false));
	ring_free(r);
}

static void test_urgent(void **state)
{
	struct ring *r = new_ring();
	u64 rec = 1;

	(void)state;
	assert_true(ring_put(r, &rec, sizeof(rec), false));
	assert_false(is_woken(r));
	assert_true(ring_put(r, &rec, sizeof(rec), true));
	assert_true(is_woken(r));
	ring_free(r);
}

/* Records that come while others are taken wait for the next poll. */
static void test_end(void **state)
{
	struct ring *r = new_ring();
	u64 rec = 1, nr = 0;
	_Alignas(8) u8 out[RING_MAX_RECORD];
	size_t end;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_true(ring_put(r, &rec, sizeof(rec), false));
	end = ring_end(r);
	while (ring_take(r, end, out) > 0) {
		assert_true(ring_put(r, &rec, sizeof(rec), false));
		assert_true(++nr <= 3);
	}
	assert_int_equal(nr, 3);
	assert_int_equal(ring_take(r, ring_end(r), out), sizeof(rec));
	ring_free(r);
}

/* The writer drops what does not fit; what comes is in order and whole. */
static void test_two_processes(void **state)
{
	struct ring *r = new_ring();
	_Alignas(8) u8 buf[RING_MAX_RECORD];
	u64 last = 0, nr = 0;
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		u64 rec[7];

		for (u64 i = 1; i <= MANY; i++) {
			for (size_t k = 0; k < 7; k++)
				rec[k] = i;
			while (!ring_put(r, rec, sizeof(rec), i == MANY) && i == MANY)
				;
		}
		_exit(0);
	}
	while (last < MANY) {
		const u64 *rec = (const u64 *)(const void *)buf;

		if (!ring_take(r, ring_end(r), buf))
			continue;
		assert_true(rec[0] > last && rec[6] == rec[0]);
		last = rec[0];
		nr++;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(nr > 0);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	    cmocka_unit_test(test_gives_back),
		cmocka_unit_test(test_nearly_full), cmocka_unit_test(test_full),
		cmocka_unit_test(test_urgent),	    cmocka_unit_test(test_two_processes),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
