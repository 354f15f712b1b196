/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to the helper that serves metrics and profiles: each is answered once, and nothing of it is kept (S1). */
#include "tests/fuzz/replay.h"

/* The functions of this file are its own: a fuzzer needs them without the process around them. */
#include "user/metrics/http_server.c"

#ifdef WITHOUT_METRICS
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)data;
	(void)size;
	return 0;
}
#else
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { MAX_REQUEST = 4096, MAX_ANSWER = 1 << 20, MAX_ROUNDS = 5000, QUIET_ROUNDS = 16, MAX_PIECES = 4 };

static const char a_page[] = "# TYPE heaptap_live_bytes gauge\nheaptap_live_bytes 1\n# EOF\n";

/* The first byte of an input chooses these. */
struct manner {
	u32 nr_pieces;	  /* the request arrives in so many pieces */
	bool is_refused;  /* profiles: by a status; else as a file */
	bool is_loopback; /* other hosts are refused */
	bool is_in_part;  /* the client goes away in the middle of its request */
};

static struct server server;
static struct sockaddr_un address;
static socklen_t address_len;
static int heaptap = -1; /* its end of the channel */

static int write_page(void *ctx, FILE *out)
{
	(void)ctx;
	return fputs(a_page, out) < 0 ? -EIO : 0;
}

static void must(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "fuzz_http: %s\n", what);
	abort();
}

static void send_page(const struct channel_message *m)
{
	int fd = -1;

	must(!channel_make_file(&fd, "page", write_page, NULL) && !channel_send(heaptap, m, fd), "no page");
	close(fd);
}

/* False: there is no library here. */
static bool begin(void)
{
	const struct channel_message snapshot = { .kind = CHANNEL_SNAPSHOT };
	int pair[2], listener;
	const char *why;

	if (heaptap >= 0)
		return true;
	signal(SIGPIPE, SIG_IGN);
	address.sun_family = AF_UNIX;
	address_len = sizeof(address);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The kernel chooses a name that is in no directory. */
	must(listener >= 0 && !bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)) &&
		     !listen(listener, 8) &&
		     !getsockname(listener, (struct sockaddr *)&address, &address_len) &&
		     !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair),
	     "no sockets");
	server.channel = pair[1];
	why = http_server_start(&server, listener);
	if (why) {
		fprintf(stderr, "fuzz_http: nothing is tried: %s\n", why);
		return false;
	}
	heaptap = pair[0];
	send_page(&snapshot);
	http_server_take_messages(&server);
	must(server.snapshot, "the snapshot was not taken");
	return true;
}

/* Answer what the helper asks, as heaptap does. */
static void answer_questions(const struct manner *how)
{
	struct channel_message m;
	int fd;

	while (!channel_take(heaptap, &m, &fd)) {
		must(fd < 0, "a descriptor came from the helper");
		must(m.kind == CHANNEL_SCRAPED || m.kind == CHANNEL_QUESTION, "not a message of the helper");
		if (m.kind == CHANNEL_SCRAPED)
			continue;
		must(m.id && m.key.pid >= 0 &&
			     (m.key.kind < NR_PPROF_KINDS || m.key.kind == CHANNEL_PAGE ||
			      m.key.kind == CHANNEL_PAGE_DATA),
		     "a question without sense");
		must(!m.key.pid || !m.key.container[0], "a question about a process and a container");
		m.kind = CHANNEL_ANSWER;
		m.status = MHD_HTTP_NOT_FOUND;
		snprintf(m.text, sizeof(m.text), "no such process\n");
		if (!how->is_refused)
			send_page(&m);
		else
			must(!channel_send(heaptap, &m, -1), "the helper does not read");
	}
}

/* One more turn of both ends, and of the client, who reads into @text. */
static void go_on(int client, const struct manner *how, char *text, size_t *len)
{
	ssize_t n;

	answer_questions(how);
	http_server_work(&server);
	while (client >= 0 && *len < MAX_ANSWER &&
	       (n = recv(client, text + *len, MAX_ANSWER - *len, MSG_DONTWAIT)) > 0)
		*len += (size_t)n;
}

/* Texts of answers are those of heaptap, of the library, or the page; never of a client. */
static void check_answers(const char *text, size_t len)
{
	static const char begin_of_one[] = "HTTP/1.";

	must(!len || (len > sizeof(begin_of_one) && !memcmp(text, begin_of_one, sizeof(begin_of_one) - 1)),
	     "the answer does not begin as one");
	must(!memmem(text, len, "Zm9yZ2Vk", 8), "bytes of the request are in the answer");
}

/* The tables are empty when the last client is gone. */
static void check_end(void)
{
	must(!server.clients.nr, "a client is left in the table");
	for (u32 i = 0; i < HTTP_CLIENT_ROOM; i++)
		must(!server.clients.list[i].fd, "a client is left that is not counted");
	for (u32 i = 0; i < MAX_WAITERS; i++)
		must(!server.waiters[i].connection, "somebody waits who is gone");
	must(!server.is_over, "the helper has taken its end for heaptap's");
}

/* No answer is good any more: each input begins with the same. */
static void forget_answers(void)
{
	for (u32 i = 0; i < MAX_KEPT; i++) {
		if (server.kept[i].response)
			server.http.destroy_response(server.kept[i].response);
		server.kept[i] = (struct good_answer){ 0 };
	}
}

static void request(const uint8_t *data, size_t size, const struct manner *how)
{
	static char text[MAX_ANSWER];
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t sent = 0, len = 0, piece = size / how->nr_pieces + 1;

	server.is_loopback = how->is_loopback;
	must(client >= 0 && !connect(client, (struct sockaddr *)&address, address_len), "nobody listens");
	go_on(client, how, text, &len);
	while (sent < size) {
		ssize_t n = send(client, data + sent, size - sent < piece ? size - sent : piece,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n <= 0)
			break;
		sent += (size_t)n;
		go_on(client, how, text, &len);
	}
	if (how->is_in_part) {
		close(client);
		client = -1;
	} else {
		shutdown(client, SHUT_WR);
	}
	for (u32 i = 0; i < QUIET_ROUNDS && server.clients.nr; i++) {
		size_t before = len;

		go_on(client, how, text, &len);
		i = len > before ? 0 : i;
	}
	/* The library keeps some connections of which it has read the end: until they are idle for some seconds. */
	if (client >= 0)
		close(client);
	for (u32 i = 0; i < MAX_ROUNDS && server.clients.nr; i++)
		go_on(-1, how, text, &len);
	check_answers(text, len);
	check_end();
	forget_answers();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manner how;

	if (size < 1 || size > MAX_REQUEST || !begin())
		return 0;
	how.nr_pieces = 1 + data[0] % MAX_PIECES;
	how.is_refused = data[0] & 4;
	how.is_in_part = data[0] & 8;
	how.is_loopback = data[0] & 16;
	request(data + 1, size - 1, &how);
	return 0;
}
#endif
