/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets: directories of other users, names in use, stale sockets, and no peer (G6). */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/log.h"
#include "user/remote/net_socket.h"

static char folder[64];

static struct net_addr at(const char *name)
{
	struct net_addr a = { .kind = NET_UNIX };

	snprintf(a.path, sizeof(a.path), "%s/%s", folder, name);
	return a;
}

static int make_folder(void **state)
{
	(void)state;
	log_set_level(-1);
	strcpy(folder, "/tmp/heaptap-net-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static void there_and_back(void **state)
{
	struct net_addr a = at("s");
	struct net_listener l;
	struct stat st;
	int peer = -1, fd = -1;

	(void)state;
	assert_int_equal(net_listen(&l, &a), 0);
	assert_int_equal(stat(a.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(net_accept(&l, &peer), -EAGAIN);
	assert_int_equal(net_connect(&a, 1000, &fd), 0);
	assert_int_equal(net_accept(&l, &peer), 0);
	assert_true(fcntl(peer, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(peer, F_GETFD) & FD_CLOEXEC);
	close(peer);
	close(fd);
	net_listener_close(&l);
	assert_int_equal(stat(a.path, &st), -1);
}

static void folders(void **state)
{
	struct net_addr a = at("s"), b = at("made/s");
	struct net_listener l;
	char path[128], link[128];

	(void)state;
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(net_listen(&l, &a), -EPERM);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(net_listen(&l, &b), 0);
	net_listener_close(&l);
	snprintf(path, sizeof(path), "%s/made", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(path, link), 0);
	b = at("link/s");
	assert_int_not_equal(net_listen(&l, &b), 0);
	unlink(link);
	rmdir(path);
	b = at("no/such/s");
	assert_int_equal(net_listen(&l, &b), -ENOENT);
	b = at("x123456789012345678901234567890123456789012345678901234567890123456789");
	assert_int_equal(net_listen(&l, &b), -ENAMETOOLONG);
}

static void taken_names(void **state)
{
	struct net_addr a = at("s");
	struct net_listener l, m;
	struct stat st;
	int fd;

	(void)state;
	/* A file, a link, and a socket with a listener are left alone. */
	fd = open(a.path, O_CREAT | O_RDWR, 0600);
	assert_int_equal(net_listen(&l, &a), -EEXIST);
	close(fd);
	unlink(a.path);
	assert_int_equal(symlink("/etc/passwd", a.path), 0);
	assert_int_equal(net_listen(&l, &a), -EEXIST);
	unlink(a.path);
	assert_int_equal(net_listen(&l, &a), 0);
	assert_int_equal(net_listen(&m, &a), -EADDRINUSE);
	assert_int_equal(stat(a.path, &st), 0);
	/* A stale socket: its process has ended. */
	close(l.fd);
	l.fd = -1;
	assert_int_equal(net_listen(&m, &a), 0);
	/* Closing the first listener does not remove the socket of the second. */
	net_listener_close(&l);
	assert_int_equal(stat(a.path, &st), 0);
	net_listener_close(&m);
	assert_int_equal(stat(a.path, &st), -1);
}

static void nobody_there(void **state)
{
	struct net_addr a = at("s"), b = { .kind = NET_TCP, .host = "127.0.0.1", .port = 1 };
	int fd = -1;

	(void)state;
	assert_int_equal(net_connect(&a, 1000, &fd), -ENOENT);
	assert_int_equal(net_connect(&b, 1000, &fd), -ECONNREFUSED);
	assert_int_equal(fd, -1);
}

static void tcp(void **state)
{
	struct net_addr a = { .kind = NET_TCP, .host = "127.0.0.1", .port = 0 };
	struct net_addr named = { .kind = NET_TCP, .host = "board", .port = 1 };
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);
	struct net_listener l;
	int fd = -1, peer = -1;

	(void)state;
	assert_int_equal(net_listen(&l, &named), -EADDRNOTAVAIL);
	assert_int_equal(net_listen(&l, &a), 0);
	assert_int_equal(getsockname(l.fd, (struct sockaddr *)&sa, &len), 0);
	a.port = ((u8 *)&sa)[2] << 8 | ((u8 *)&sa)[3];
	assert_int_equal(net_connect(&a, 1000, &fd), 0);
	assert_int_equal(net_accept(&l, &peer), 0);
	close(fd);
	close(peer);
	net_listener_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back), cmocka_unit_test(folders), cmocka_unit_test(taken_names),
		cmocka_unit_test(nobody_there),	  cmocka_unit_test(tcp),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
