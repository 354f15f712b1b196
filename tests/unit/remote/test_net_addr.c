/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses that are accepted or refused, for the same reasons as ssh and the kernel have. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/remote/net_addr.h"

static void taken(void **state)
{
	static const struct {
		const char *text, *again, *user, *host, *path;
		enum net_kind kind;
		u16 port;
		bool is_local;
	} rows[] = {
		{ "unix:/run/x/s", "unix:/run/x/s", "", "", "/run/x/s", NET_UNIX, 0, true },
		{ "unix:///run/x/s", "unix:/run/x/s", "", "", "/run/x/s", NET_UNIX, 0, true },
		{ "tcp://board", "tcp://board:4576", "", "board", "", NET_TCP, 4576, false },
		{ "tcp://127.0.0.1:80/", "tcp://127.0.0.1:80", "", "127.0.0.1", "", NET_TCP, 80, true },
		{ "tcp://[::1]:81", "tcp://[::1]:81", "", "::1", "", NET_TCP, 81, true },
		{ "tcp://[fe80::1%eth0]", "tcp://[fe80::1%eth0]:4576", "", "fe80::1%eth0", "", NET_TCP,
		  4576 },
		{ "tcp://127.evil.example", "tcp://127.evil.example:4576", "", "127.evil.example", "",
		  NET_TCP, 4576, false },
		{ "ssh://board/1234", "ssh://board/1234", "", "board", "1234", NET_SSH },
		{ "ssh://me@board:2222/redis server", "ssh://me@board:2222/redis server", "me", "board",
		  "redis server", NET_SSH, 2222 },
		{ "ssh://board", "ssh://board", "", "board", "", NET_SSH },
	};
	struct net_addr a;
	const char *why;
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(net_addr_parse(&a, rows[i].text, &why), 0);
		assert_int_equal(a.kind, rows[i].kind);
		assert_int_equal(a.port, rows[i].port);
		assert_string_equal(a.user, rows[i].user);
		assert_string_equal(a.host, rows[i].host);
		assert_string_equal(a.path, rows[i].path);
		assert_string_equal(net_addr_text(&a, text, sizeof(text)), rows[i].again);
		assert_int_equal(net_addr_is_local(&a), rows[i].is_local);
		/* Only TCP beyond this machine needs to be allowed. */
		assert_int_equal(net_addr_check_tcp(&a, true, &why), 0);
		assert_int_equal(net_addr_check_tcp(&a, false, &why),
				 a.kind == NET_TCP && !rows[i].is_local ? -EPERM : 0);
	}
}

static void refused(void **state)
{
	static const char *const texts[] = {
		"",
		"board",
		"http://board",
		"unix:",
		"unix:relative",
		"tcp://",
		"tcp://:4576",
		"tcp://board:",
		"tcp://board:0",
		"tcp://board:65536",
		"tcp://board:-1",
		"tcp://board:1x",
		"tcp://bo ard",
		"tcp://[::1",
		"tcp://[]",
		"tcp://[::1]x",
		"tcp://::1",
		"tcp://board/x",
		"ssh://-oProxyCommand=x/1",
		"ssh://-x@board/1",
		"ssh://@board/1",
		"ssh://a;b@board/1",
		"ssh://board$(x)/1",
		"ssh://board/-p",
		"ssh:///1",
	};
	char *text = malloc(NET_PATH_MAX + 64);
	struct net_addr a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *why = NULL;

		assert_int_equal(net_addr_parse(&a, texts[i], &why), -22);
		assert_non_null(why);
	}
	for (size_t len = 60; len < NET_PATH_MAX + 40; len += 97) {
		const char *why;

		memset(text, 'a', len);
		text[len] = '\0';
		memcpy(text, "tcp://", 6);
		assert_int_equal(net_addr_parse(&a, text, &why), len < 6 + NET_HOST_MAX ? 0 : -22);
		memcpy(text, "unix:/", 6);
		assert_int_equal(net_addr_parse(&a, text, &why), len < 5 + NET_PATH_MAX ? 0 : -22);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
