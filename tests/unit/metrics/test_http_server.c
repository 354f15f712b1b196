/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of the helper that serves HTTP, on a socket of this machine: pages, profiles, refusals, and its end. */
#include "user/metrics/http_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/metrics/channel.h"
#include "user/report/pprof.h"

enum { PATIENCE_MS = 20000 };

static struct {
	pid_t pid;
	int channel;
	struct sockaddr_in address;
	const char *host; /* that requests name */
	char answer[8192];
} helper;

static void take(struct channel_message *m, u32 kind)
{
	struct pollfd wait = { .fd = helper.channel, .events = POLLIN };
	int fd;

	do {
		assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
		assert_int_equal(channel_take(helper.channel, m, &fd), 0);
		assert_int_equal(fd, -1);
	} while (m->kind != kind);
}

static int begin(bool is_loopback)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), pair[2];
	struct channel_message ready;
	socklen_t len = sizeof(helper.address);

	helper.host = "localhost";
	helper.address = (struct sockaddr_in){ AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
	if (bind(listener, (struct sockaddr *)&helper.address, len) || listen(listener, 16) ||
	    getsockname(listener, (struct sockaddr *)&helper.address, &len) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	helper.pid = fork();
	if (!helper.pid)
		http_server_run(listener, pair[1], is_loopback);
	close(pair[1]);
	close(listener);
	helper.channel = pair[0];
	take(&ready, CHANNEL_READY);
	if (ready.status)
		print_message("%s\n", ready.text);
	return ready.status ? -1 : 0;
}

static int setup(void **state)
{
	(void)state;
	return begin(true);
}

/* As at an address that other machines reach. */
static int setup_open(void **state)
{
	(void)state;
	return begin(false);
}

static int teardown(void **state)
{
	int status;

	(void)state;
	if (helper.channel >= 0)
		close(helper.channel);
	return waitpid(helper.pid, &status, 0) == helper.pid && status == 0 ? 0 : -1;
}

static int send_request(const char *head)
{
	const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&helper.address, sizeof(helper.address)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	if (helper.host)
		assert_true(dprintf(fd, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", head,
				    helper.host) > 0);
	else
		assert_true(dprintf(fd, "%s HTTP/1.0\r\n\r\n", head) > 0);
	return fd;
}

/* The status of the answer at @fd, which is all in helper.answer. */
static int take_status(int fd)
{
	size_t len = 0;
	ssize_t n;
	int status = 0;

	while ((n = read(fd, helper.answer + len, sizeof(helper.answer) - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	helper.answer[len] = '\0';
	assert_int_equal(sscanf(helper.answer, "HTTP/1.1 %d ", &status), 1);
	return status;
}

static int get(const char *head)
{
	return take_status(send_request(head));
}

static void has(const char *text)
{
	if (!strstr(helper.answer, text))
		fail_msg("no \"%s\" in:\n%s", text, helper.answer);
}

static int write_text(void *ctx, FILE *out)
{
	return fputs(ctx, out) < 0 ? -1 : 0;
}

/* Send @m with a file of @text. */
static void give(const struct channel_message *m, char *text)
{
	int fd;

	assert_int_equal(channel_make_file(&fd, "test", write_text, text), 0);
	assert_int_equal(channel_send(helper.channel, m, fd), 0);
	close(fd);
}

static void pages(void **state)
{
	struct channel_message m = { .kind = CHANNEL_SNAPSHOT };

	(void)state;
	assert_int_equal(get("GET /debug/pprof/"), 200);
	has("/debug/pprof/leaks");
	assert_int_equal(get("GET /nothing"), 404);
	assert_int_equal(get("GET /metrics/../../etc/passwd"), 404);
	assert_int_equal(get("POST /metrics"), 405);
	assert_int_equal(get("GET /metrics"), 503);
	has("no snapshot yet");
	give(&m, "first 1\n");
	/* Whoever reads metrics is told of. */
	take(&m, CHANNEL_SCRAPED);
	while (get("GET /metrics") != 200)
		;
	has("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
	has("\r\nX-Content-Type-Options: nosniff\r\n");
	has("\r\n\r\nfirst 1\n");
	assert_int_equal(get("HEAD /metrics"), 200);
	has("\r\nContent-Length: 8\r\n");
	assert_null(strstr(helper.answer, "first"));
}

/* A page whose name leads to loopback reads nothing; people and programs of this machine do (S13). */
static void other_hosts_are_refused(void **state)
{
	static const char *const wrong[] = {
		"x.example",
		"x.example:9101",
		"127.0.0.1.x.example",
		"localhost.x.example",
		"x.localhost",
		"[::1].x.example",
		"10.0.0.1:9101",
		"0.0.0.0",
		"[::2]:9101",
		"[::1",
		"::1",
		"127.0.0.1x:9101",
		"127.0.0.1@x",
		":9101",
		"[]",
	};
	static const char *const ours[] = { "localhost", "LocalHost:9101", "127.0.0.1:1",
					    "127.8.9.1", "[::1]",	   "[::1]:80" };
	static const char *const paths[] = { "GET /metrics", "GET /debug/pprof/heap", "GET /", "GET /data",
					     "GET /nothing" };
	char name[400];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong) * ARRAY_SIZE(paths); i++) {
		helper.host = wrong[i / ARRAY_SIZE(paths)];
		if (get(paths[i % ARRAY_SIZE(paths)]) != 403)
			fail_msg("%s: %s", helper.host, helper.answer);
		has("\r\n\r\nHost: use localhost");
	}
	memset(name, '1', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	helper.host = name;
	assert_int_equal(get("GET /debug/pprof/"), 403);
	/* Not even heaptap hears of these questions. */
	assert_int_equal(recv(helper.channel, name, sizeof(name), MSG_DONTWAIT), -1);
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		helper.host = ours[i];
		if (get("GET /debug/pprof/") != 200)
			fail_msg("%s: %s", helper.host, helper.answer);
	}
	helper.host = NULL;
	assert_int_equal(get("GET /debug/pprof/"), 200);
}

static void an_open_address_has_any_name(void **state)
{
	(void)state;
	helper.host = "machine.example:9101";
	assert_int_equal(get("GET /debug/pprof/"), 200);
	helper.host = "192.0.2.7";
	assert_int_equal(get("GET /debug/pprof/"), 200);
}

static void wrong_questions_never_reach_heaptap(void **state)
{
	static const char *const wrong[] = {
		"pid=",	      "pid=0",	   "pid=-1", "pid=abc", "pid=99999999999", "pid=7&container=a",
		"container=", "seconds=5",
	};
	char head[400], name[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(head, sizeof(head), "GET /debug/pprof/heap?%s", wrong[i]);
		if (get(head) != 400)
			fail_msg("%s: %s", wrong[i], helper.answer);
	}
	memset(name, 'c', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(head, sizeof(head), "GET /debug/pprof/heap?container=%s", name);
	assert_int_equal(get(head), 400);
	assert_int_equal(recv(helper.channel, name, sizeof(name), MSG_DONTWAIT), -1);
}

static void one_profile_for_all_who_ask(void **state)
{
	struct channel_message m, other;
	int one = send_request("GET /debug/pprof/allocs?pid=7"), two, container;

	(void)state;
	take(&m, CHANNEL_QUESTION);
	assert_int_equal(m.key.kind, PPROF_ALLOCS);
	assert_int_equal(m.key.pid, 7);
	assert_string_equal(m.key.container, "");
	two = send_request("GET /debug/pprof/allocs?pid=7");
	container = send_request("GET /debug/pprof/leaks?container=web%2Fa");
	for (take(&other, CHANNEL_QUESTION); other.id == m.id;)
		take(&other, CHANNEL_QUESTION);
	assert_int_equal(other.key.kind, PPROF_LEAKS);
	assert_string_equal(other.key.container, "web/a");
	/* A refusal has the status and the words of heaptap. */
	other.kind = CHANNEL_ANSWER;
	other.status = 404;
	strcpy(other.text, "no such container\n");
	assert_int_equal(channel_send(helper.channel, &other, -1), 0);
	assert_int_equal(take_status(container), 404);
	has("\r\n\r\nno such container\n");
	m.kind = CHANNEL_ANSWER;
	m.make_ms = 60000; /* so that it is good for long */
	give(&m, "profile");
	assert_int_equal(take_status(one), 200);
	has("\r\nContent-Disposition: attachment; filename=\"heap.pb.gz\"\r\n");
	has("\r\n\r\nprofile");
	assert_int_equal(take_status(two), 200);
	has("\r\n\r\nprofile");
	assert_int_equal(get("GET /debug/pprof/allocs?pid=7"), 200);
	has("\r\n\r\nprofile");
}

/* A client that waits when heaptap ends is told so. */
static void end_of_heaptap(void **state)
{
	struct channel_message m;
	int fd = send_request("GET /debug/pprof/heap");

	(void)state;
	take(&m, CHANNEL_QUESTION);
	assert_int_equal(m.key.pid, 0);
	close(helper.channel);
	helper.channel = -1;
	assert_int_equal(take_status(fd), 503);
	has("heaptap is ending");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pages, setup, teardown),
		cmocka_unit_test_setup_teardown(other_hosts_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(an_open_address_has_any_name, setup_open, teardown),
		cmocka_unit_test_setup_teardown(wrong_questions_never_reach_heaptap, setup, teardown),
		cmocka_unit_test_setup_teardown(one_profile_for_all_who_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(end_of_heaptap, setup, teardown),
	};

#ifdef WITHOUT_METRICS
	print_message("built without libmicrohttpd: there is no server to test\n");
	return 0;
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
