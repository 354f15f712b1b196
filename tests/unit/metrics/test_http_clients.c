/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slow clients of the HTTP server go, those that wait for heaptap stay, and the oldest one makes room. */
#include "user/metrics/http_clients.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { NO_SOCKET = 1 << 20 }; /* shutdown() of it fails, which is no matter here */

static bool is_shut(int peer)
{
	char c;

	return recv(peer, &c, 1, MSG_DONTWAIT) == 0;
}

static void slow_clients_go(void **state)
{
	static struct http_clients c;
	struct http_client *slow, *late, *waiting;
	int a[2], b[2], w[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, a), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, b), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, w), 0);
	slow = http_clients_add(&c, a[0], 1000);
	late = http_clients_add(&c, b[0], 1001);
	waiting = http_clients_add(&c, w[0], 0);
	assert_true(slow && late && waiting);
	waiting->waits = true;
	http_clients_sweep(&c, 1000 + HTTP_REQUEST_MS);
	assert_false(is_shut(a[1]));
	http_clients_sweep(&c, 1001 + HTTP_REQUEST_MS);
	assert_true(is_shut(a[1]));
	assert_false(is_shut(b[1]));
	assert_false(is_shut(w[1]));
	/* A client that was shut down keeps its place until the library has closed it. */
	assert_int_equal(c.nr, 3);
	http_clients_del(&c, slow);
	http_clients_del(&c, NULL);
	assert_int_equal(c.nr, 2);
	assert_ptr_equal(http_clients_add(&c, a[0], 5), slow);
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
		close(w[i]);
	}
}

static void the_oldest_makes_room(void **state)
{
	static struct http_clients c;
	int old[2], waits[2];
	struct http_client *waiting;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, old), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, waits), 0);
	waiting = http_clients_add(&c, waits[0], 1);
	assert_non_null(waiting);
	waiting->waits = true;
	assert_non_null(http_clients_add(&c, old[0], 2));
	for (u64 i = 2; i < HTTP_MAX_CLIENTS; i++)
		assert_non_null(http_clients_add(&c, NO_SOCKET, 3 + i));
	assert_false(is_shut(old[1]));
	assert_non_null(http_clients_add(&c, NO_SOCKET, 5000));
	assert_true(is_shut(old[1]));
	assert_false(is_shut(waits[1]));
	/* Clients that were shut down still have a place each, so that there is an end. */
	for (u32 i = HTTP_MAX_CLIENTS + 1; i < HTTP_CLIENT_ROOM; i++)
		assert_non_null(http_clients_add(&c, NO_SOCKET, 6000));
	assert_null(http_clients_add(&c, NO_SOCKET, 6000));
	for (int i = 0; i < 2; i++) {
		close(old[i]);
		close(waits[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_clients_go),
		cmocka_unit_test(the_oldest_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
