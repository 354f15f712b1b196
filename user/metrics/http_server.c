/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop and the pages of the helper process that serves HTTP. */
#include "user/metrics/http_server.h"

#include <unistd.h>

#ifdef WITHOUT_METRICS
void http_server_run(int listener, int channel, bool is_loopback)
{
	(void)listener;
	(void)channel;
	(void)is_loopback;
	_exit(1);
}
#else
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "user/lib/clock.h"
#include "user/lib/parse.h"
#include "user/metrics/channel.h"
#include "user/metrics/exposition.h"
#include "user/metrics/helper.h"
#include "user/metrics/http_clients.h"
#include "user/metrics/http_library.h"
#include "user/metrics/sandbox.h"
#include "user/remote/net_addr.h"
#include "user/report/pprof.h"

enum {
	CONNECTION_BYTES = 8 << 10,
	IDLE_S = 15,
	MAX_WAITERS = 64,
	MAX_KEPT = 8,
	KEEP_MS = 1000,	 /* a profile, for all who ask meanwhile */
	KEEP_TIMES = 19, /* or so many times as long as making it took: a twentieth of the time at most */
	ANSWER_MS = 60000,
	FAREWELL_MS = 1000,
	MAX_FILES = HTTP_CLIENT_ROOM + 64,
	ROUND_MS = 1000,
};

/* A client that waits for a profile. */
struct waiter {
	struct MHD_Connection *connection; /* suspended; NULL = free */
	u32 id;				   /* of the question */
	struct profile_key key;
	u64 since_ms;
};

/* An answer that is still good. */
struct good_answer {
	struct MHD_Response *response; /* owned; NULL = free */
	unsigned int status;
	struct profile_key key;
	u64 until_ms;
};

struct server {
	struct http_library http;
	struct MHD_Daemon *daemon;
	int channel;
	bool is_over, is_loopback;
	u32 last_id;
	struct MHD_Response *snapshot; /* owned; NULL = none yet */
	struct waiter waiters[MAX_WAITERS];
	struct good_answer kept[MAX_KEPT];
	struct http_clients clients;
};

/* Paths of which heaptap makes the content when somebody asks, by the kind of their keys. */
static const char profile_type[] = "application/octet-stream";
static const struct {
	const char *path, *type;
} kinds[] = {
	[PPROF_HEAP] = { "/debug/pprof/heap", profile_type },
	[PPROF_ALLOCS] = { "/debug/pprof/allocs", profile_type },
	[PPROF_LEAKS] = { "/debug/pprof/leaks", profile_type },
	[CHANNEL_PAGE] = { "/", "text/html; charset=utf-8" },
	[CHANNEL_PAGE_DATA] = { "/data", "application/json" },
};
_Static_assert((int)NR_PPROF_KINDS <= (int)CHANNEL_PAGE, "kinds of profiles and pages differ");

static const char index_text[] = "heaptap " HEAPTAP_VERSION "\n\n"
				 "/                    a page that follows; ?pid=N chooses\n"
				 "/metrics             OpenMetrics\n"
				 "/debug/pprof/heap    live bytes; ?pid=N or ?container=NAME chooses\n"
				 "/debug/pprof/allocs  all bytes ever allocated\n"
				 "/debug/pprof/leaks   leaked bytes, from the last verdicts\n";

/* ---- answers ---- */

static struct MHD_Response *http_server_make_text(struct server *s, const char *text)
{
	struct MHD_Response *r =
		s->http.create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);

	if (r)
		s->http.add_response_header(r, "Content-Type", "text/plain; charset=utf-8");
	return r;
}

/* Of the descriptor @fd, which it takes. */
static struct MHD_Response *make_file(struct server *s, int fd, const char *type)
{
	off_t size = lseek(fd, 0, SEEK_END);
	struct MHD_Response *r = size < 0 ? NULL : s->http.create_response_from_fd((size_t)size, fd);

	if (!r) {
		close(fd);
		return NULL;
	}
	s->http.add_response_header(r, "Content-Type", type);
	s->http.add_response_header(r, "X-Content-Type-Options", "nosniff");
	s->http.add_response_header(r, "Cache-Control", "no-store");
	return r;
}

static enum MHD_Result http_server_say(struct server *s, struct MHD_Connection *c, unsigned int status,
				       const char *text)
{
	struct MHD_Response *r = http_server_make_text(s, text);
	enum MHD_Result result = r ? s->http.queue_response(c, status, r) : MHD_NO;

	if (r)
		s->http.destroy_response(r);
	return result;
}

/* ---- profiles ---- */

static bool http_server_is_same(const struct profile_key *a, const struct profile_key *b)
{
	return a->kind == b->kind && a->pid == b->pid && !strcmp(a->container, b->container);
}

static struct http_client *client_of(struct server *s, struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		s->http.get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static const struct good_answer *http_server_find_kept(const struct server *s, const struct profile_key *key)
{
	for (u32 i = 0; i < MAX_KEPT; i++)
		if (s->kept[i].response && http_server_is_same(&s->kept[i].key, key) &&
		    s->kept[i].until_ms > clock_now_ms())
			return &s->kept[i];
	return NULL;
}

/* Takes @response; NULL: no memory. */
static void keep_answer(struct server *s, const struct profile_key *key, unsigned int status,
			struct MHD_Response *response, u64 keep_ms)
{
	struct good_answer *oldest = &s->kept[0];

	for (u32 i = 0; i < MAX_KEPT; i++) {
		if (s->kept[i].response && http_server_is_same(&s->kept[i].key, key)) {
			oldest = &s->kept[i];
			break;
		}
		if (!s->kept[i].response || s->kept[i].until_ms < oldest->until_ms)
			oldest = &s->kept[i];
	}
	if (oldest->response)
		s->http.destroy_response(oldest->response);
	*oldest = (struct good_answer){ response, status, *key, clock_now_ms() + keep_ms };
}

/* Let the clients that wait for question @id ask again: they find the answer. */
static void http_server_wake(struct server *s, u32 id)
{
	for (u32 i = 0; i < MAX_WAITERS; i++) {
		struct waiter *w = &s->waiters[i];

		if (!w->connection || w->id != id)
			continue;
		if (client_of(s, w->connection)) {
			client_of(s, w->connection)->waits = false;
			client_of(s, w->connection)->since_ms = clock_now_ms();
		}
		s->http.resume_connection(w->connection);
		w->connection = NULL;
	}
}

static void refuse_waiter(struct server *s, const struct waiter *w, unsigned int status, const char *text)
{
	keep_answer(s, &w->key, status, http_server_make_text(s, text), KEEP_MS);
	http_server_wake(s, w->id);
}

/* The number of the question about @key; 0 = it could not be asked. */
static u32 http_server_ask(struct server *s, const struct profile_key *key)
{
	struct channel_message m = { .kind = CHANNEL_QUESTION, .key = *key };

	for (u32 i = 0; i < MAX_WAITERS; i++)
		if (s->waiters[i].connection && http_server_is_same(&s->waiters[i].key, key))
			return s->waiters[i].id;
	m.id = ++s->last_id ? s->last_id : ++s->last_id;
	return channel_send(s->channel, &m, -1) ? 0 : m.id;
}

static enum MHD_Result http_server_wait_for(struct server *s, struct MHD_Connection *c,
					    const struct profile_key *key)
{
	struct waiter *free_one = NULL;

	for (u32 i = 0; i < MAX_WAITERS && !free_one; i++)
		if (!s->waiters[i].connection)
			free_one = &s->waiters[i];
	if (s->is_over || !free_one)
		return http_server_say(s, c, MHD_HTTP_SERVICE_UNAVAILABLE,
				       s->is_over ? "heaptap is ending\n"
						  : "too many clients wait for profiles\n");
	*free_one = (struct waiter){ NULL, http_server_ask(s, key), *key, clock_now_ms() };
	if (!free_one->id)
		return http_server_say(s, c, MHD_HTTP_SERVICE_UNAVAILABLE, "heaptap is busy\n");
	free_one->connection = c;
	if (client_of(s, c))
		client_of(s, c)->waits = true;
	s->http.suspend_connection(c);
	return MHD_YES;
}

static enum MHD_Result serve_profile(struct server *s, struct MHD_Connection *c, u32 kind)
{
	const char *pid = s->http.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "pid");
	const char *container = s->http.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "container");
	struct profile_key key = { .kind = kind };
	const struct good_answer *kept;
	u64 number = 0;

	if (s->http.lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "seconds"))
		return http_server_say(s, c, MHD_HTTP_BAD_REQUEST, "seconds: profiles are of one moment\n");
	if (pid && (parse_u64(pid, &number) || !number || number > INT32_MAX || container))
		return http_server_say(s, c, MHD_HTTP_BAD_REQUEST,
				       "pid: needs a number, and no container beside it\n");
	if (container && (!*container || strlen(container) >= sizeof(key.container)))
		return http_server_say(s, c, MHD_HTTP_BAD_REQUEST, "container: not a name\n");
	key.pid = (pid_t)number;
	if (container)
		strcpy(key.container, container);
	kept = http_server_find_kept(s, &key);
	return kept ? s->http.queue_response(c, kept->status, kept->response)
		    : http_server_wait_for(s, c, &key);
}

/* ---- pages ---- */

static enum MHD_Result serve_metrics(struct server *s, struct MHD_Connection *c)
{
	const struct channel_message m = { .kind = CHANNEL_SCRAPED };

	/* If heaptap is busy, it has not read the last one of these yet. */
	if (channel_send(s->channel, &m, -1) == -EPIPE)
		s->is_over = true;
	if (!s->snapshot)
		return http_server_say(s, c, MHD_HTTP_SERVICE_UNAVAILABLE, "no snapshot yet\n");
	return s->http.queue_response(c, MHD_HTTP_OK, s->snapshot);
}

/* The port is no matter: a tunnel of ssh has another one. */
static bool is_loopback_host(const char *host)
{
	struct net_addr a = { .kind = NET_TCP };
	bool is_v6 = *host == '[';
	size_t len = strcspn(host, is_v6 ? "]" : ":") + is_v6, used = len - 2 * (size_t)is_v6;

	/* Of "[::1" there is no end. */
	if (len > strlen(host) || used >= sizeof(a.host) || (host[len] && host[len] != ':'))
		return false;
	memcpy(a.host, host + is_v6, used);
	return !strcasecmp(a.host, "localhost") || net_addr_is_local(&a);
}

/* Browsers always send a Host. */
static bool may_ask(struct server *s, struct MHD_Connection *c)
{
	const char *host = s->http.lookup_connection_value(c, MHD_HEADER_KIND, "Host");

	return !s->is_loopback || !host || is_loopback_host(host);
}

static enum MHD_Result http_server_serve(void *ctx, struct MHD_Connection *c, const char *url,
					 const char *method, const char *version, const char *upload,
					 size_t *upload_size, void **request)
{
	struct server *s = ctx;

	(void)version;
	(void)upload;
	(void)upload_size;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return http_server_say(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
	/* An answer before the head is read to its end would close the connection. */
	if (!*request) {
		*request = s;
		return MHD_YES;
	}
	if (!may_ask(s, c))
		return http_server_say(s, c, MHD_HTTP_FORBIDDEN,
				       "Host: use localhost or 127.0.0.1: heaptap serves there only\n");
	if (!strcmp(url, "/metrics"))
		return serve_metrics(s, c);
	for (u32 i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].path && !strcmp(url, kinds[i].path))
			return serve_profile(s, c, i);
	return http_server_say(s, c, strcmp(url, "/debug/pprof/") ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK,
			       index_text);
}

/* ---- connections ---- */

static void on_connection(void *ctx, struct MHD_Connection *c, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct server *s = ctx;
	const union MHD_ConnectionInfo *info;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		http_clients_del(&s->clients, *context);
		*context = NULL;
		return;
	}
	info = s->http.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	*context = info ? http_clients_add(&s->clients, info->connect_fd, clock_now_ms()) : NULL;
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **request,
			 enum MHD_RequestTerminationCode why)
{
	struct http_client *client = client_of(ctx, c);

	(void)request;
	(void)why;
	if (client)
		client->since_ms = clock_now_ms();
}

/* ---- heaptap ---- */

static void take_snapshot(struct server *s, int fd)
{
	struct MHD_Response *r = fd < 0 ? NULL : make_file(s, fd, EXPOSITION_TYPE);

	if (!r)
		return;
	if (s->snapshot)
		s->http.destroy_response(s->snapshot);
	s->snapshot = r;
}

static void http_server_take_answer(struct server *s, const struct channel_message *m, int fd)
{
	u64 keep_ms = (u64)m->make_ms * KEEP_TIMES;
	struct MHD_Response *r =
		fd < 0 ? http_server_make_text(s, m->text) : make_file(s, fd, kinds[m->key.kind].type);

	if (r && fd >= 0 && m->key.kind < NR_PPROF_KINDS)
		s->http.add_response_header(r, "Content-Disposition", "attachment; filename=\"heap.pb.gz\"");
	keep_answer(s, &m->key, fd < 0 ? m->status : MHD_HTTP_OK, r, keep_ms > KEEP_MS ? keep_ms : KEEP_MS);
	http_server_wake(s, m->id);
}

static void http_server_take_messages(struct server *s)
{
	struct channel_message m;
	int fd, err;

	while (!(err = channel_take(s->channel, &m, &fd))) {
		if (m.kind == CHANNEL_SNAPSHOT)
			take_snapshot(s, fd);
		else if (m.kind == CHANNEL_ANSWER)
			http_server_take_answer(s, &m, fd);
		else if (fd >= 0)
			close(fd);
	}
	if (err == -EPIPE)
		s->is_over = true;
}

static void give_up_waiting(struct server *s)
{
	u64 now_ms = clock_now_ms();

	for (u32 i = 0; i < MAX_WAITERS; i++) {
		const struct waiter w = s->waiters[i];

		if (w.connection && s->is_over)
			refuse_waiter(s, &w, MHD_HTTP_SERVICE_UNAVAILABLE, "heaptap is ending\n");
		else if (w.connection && now_ms - w.since_ms > ANSWER_MS)
			refuse_waiter(s, &w, MHD_HTTP_GATEWAY_TIMEOUT, "heaptap is busy\n");
	}
}

/* ---- the loop ---- */

/* All that can be done without waiting. */
static void http_server_work(struct server *s)
{
	if (!s->is_over)
		http_server_take_messages(s);
	give_up_waiting(s);
	s->http.run(s->daemon);
	http_clients_sweep(&s->clients, clock_now_ms());
}

static void http_server_go_round(struct server *s, int epoll)
{
	struct pollfd wait[] = { { .fd = epoll, .events = POLLIN },
				 { .fd = s->is_over ? -1 : s->channel, .events = POLLIN } };
	MHD_UNSIGNED_LONG_LONG left_ms = ROUND_MS;

	if (s->http.get_timeout(s->daemon, &left_ms) != MHD_YES || left_ms > ROUND_MS)
		left_ms = ROUND_MS;
	if (s->is_over && left_ms > 10)
		left_ms = 10;
	poll(wait, ARRAY_SIZE(wait), (int)left_ms);
	http_server_work(s);
}

/* NULL, or why not. */
static const char *http_server_start(struct server *s, int listener)
{
	if (http_library_load(&s->http))
		return "the library libmicrohttpd.so.12 is not there";
	s->daemon = s->http.start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, http_server_serve, s,
		MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)HTTP_CLIENT_ROOM, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_END);
	return s->daemon ? NULL : "libmicrohttpd cannot serve";
}

void http_server_run(int listener, int channel, bool is_loopback)
{
	struct channel_message ready = { .kind = CHANNEL_READY };
	struct server *s = calloc(1, sizeof(*s));
	const union MHD_DaemonInfo *info;
	const char *why = "no memory";
	int fds[] = { listener, channel };
	u64 end_ms;

	helper_leave_heaptap("heaptap-metrics", fds, ARRAY_SIZE(fds));
	listener = fds[0];
	channel = fds[1];
	if (s) {
		s->channel = channel;
		s->is_loopback = is_loopback;
		why = http_server_start(s, listener);
	}
	if (why) {
		ready.status = 1;
		snprintf(ready.text, sizeof(ready.text), "%s", why);
	}
	if (channel_send(channel, &ready, -1) || why)
		_exit(1);
	info = s->http.get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		_exit(1);
	sandbox_enter(MAX_FILES);
	while (!s->is_over)
		http_server_go_round(s, info->epoll_fd);
	for (end_ms = clock_now_ms() + FAREWELL_MS; s->clients.nr && clock_now_ms() < end_ms;)
		http_server_go_round(s, info->epoll_fd);
	_exit(0);
}
#endif
