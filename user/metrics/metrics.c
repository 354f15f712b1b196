/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heaptap's end of the channel to the helper that serves HTTP. */
#include "user/metrics/metrics.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/parse.h"
#include "user/metrics/exposition.h"
#include "user/metrics/helper.h"
#include "user/metrics/http_server.h"
#include "user/metrics/metrics_table.h"
#include "user/remote/net_socket.h"
#include "user/report/pprof.h"

enum { FAREWELL_MS = 200, MAX_QUESTIONS = 64, NOT_FOUND = 404, BROKEN = 500 };

static const u64 fresh_ns = SECOND_NS, idle_ns = 10 * SECOND_NS, scraped_for_ns = 60 * SECOND_NS;

enum { COST_TIMES = 19 }; /* making snapshots takes a twentieth of the time at most */

struct metrics {
	struct net_listener listener;
	int channel; /* owned; -1 = the helper has ended */
	pid_t pid;
	u64 made_ns, cost_ns; /* the last snapshot; how long it took */
	u64 scraped_ns;	      /* 0 = never */
	struct channel_message questions[MAX_QUESTIONS];
	u32 nr_questions;
};

#ifdef WITHOUT_METRICS
const bool metrics_is_built = false;
#else
const bool metrics_is_built = true;
#endif

/* ---- the address ---- */

static int parse_port(const char *text, u16 *port)
{
	u64 number;

	if (parse_u64(text, &number) || number > UINT16_MAX)
		return -EINVAL;
	*port = (u16)number;
	return 0;
}

/* "9101", "127.0.0.1:9101", "[::1]:9101", "unix:/path" */
static int parse_address(struct net_addr *a, const char *text)
{
	const char *colon = strrchr(text, ':'), *why;
	const char *host = text;
	size_t len;

	if (!strncmp(text, "unix:", 5))
		return net_addr_parse(a, text, &why);
	*a = (struct net_addr){ .kind = NET_TCP };
	if (!colon) {
		strcpy(a->host, "127.0.0.1");
		return parse_port(text, &a->port);
	}
	len = (size_t)(colon - host);
	if (len >= 2 && *host == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	if (!len || len >= sizeof(a->host))
		return -EINVAL;
	memcpy(a->host, host, len);
	return parse_port(colon + 1, &a->port);
}

/* Of port 0 the kernel has chosen another one. */
static void learn_port(struct metrics *m)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);

	if (m->listener.addr.kind != NET_TCP || getsockname(m->listener.fd, (struct sockaddr *)&sa, &len))
		return;
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): getsockname() has written the address. */
	m->listener.addr.port = ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
							       : ((struct sockaddr_in *)&sa)->sin_port);
}

static void say_address(const struct metrics *m)
{
	const struct net_addr *a = &m->listener.addr;
	bool is_v6 = strchr(a->host, ':');
	char text[NET_HOST_MAX + 64];

	if (a->kind == NET_UNIX)
		info("metrics: /metrics at the socket %s", a->path);
	if (a->kind != NET_TCP)
		return;
	snprintf(text, sizeof(text), "http://%s%s%s:%u/metrics", is_v6 ? "[" : "", a->host, is_v6 ? "]" : "",
		 (unsigned int)a->port);
	info("metrics: %s", text);
	if (!net_addr_is_local(a))
		warn("metrics: %s: everybody who reaches this address can read names, stacks and sizes",
		     text);
}

/* ---- the helper ---- */

static int metrics_start_helper(struct metrics *m)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	m->pid = fork();
	if (!m->pid)
		http_server_run(m->listener.fd, pair[1],
				m->listener.addr.kind == NET_TCP && net_addr_is_local(&m->listener.addr));
	m->channel = pair[0];
	close(pair[1]);
	if (m->pid < 0) {
		error("metrics: fork: %s", strerror(errno));
		return -errno;
	}
	return helper_wait_ready(m->channel, "metrics");
}

int metrics_open(struct metrics **out, const char *address)
{
	auto_free struct metrics *m = NULL;
	struct net_addr a;
	int err;

	if (!metrics_is_built) {
		error("metrics: not in this build: it was made without libmicrohttpd");
		return -ENOSYS;
	}
	if (parse_address(&a, address)) {
		error("--metrics: %s: needs PORT, ADDRESS:PORT or unix:/path", address);
		return -EINVAL;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->channel = -1;
	err = net_listen(&m->listener, &a);
	if (err)
		return err;
	learn_port(m);
	err = metrics_start_helper(m);
	if (err) {
		metrics_close(take_ptr(m));
		return err;
	}
	say_address(m);
	*out = take_ptr(m);
	return 0;
}

int metrics_fd(const struct metrics *m)
{
	return m ? m->channel : -1;
}

/* The helper has gone: tracing goes on without it. */
static void lose_helper(struct metrics *m)
{
	warn("metrics: the helper process has ended: there are no more metrics");
	close(m->channel);
	m->channel = -1;
}

void metrics_close(struct metrics *m)
{
	if (!m)
		return;
	if (m->channel >= 0)
		close(m->channel);
	helper_end(m->pid, FAREWELL_MS);
	net_listener_close(&m->listener);
	free(m);
}

/* ---- snapshots ---- */

static bool is_due(const struct metrics *m)
{
	u64 now_ns = clock_now_ns(), age_ns = now_ns - m->made_ns;
	bool is_read = m->scraped_ns && now_ns - m->scraped_ns < scraped_for_ns;

	if (!m->made_ns)
		return true;
	return age_ns >= (is_read ? fresh_ns : idle_ns) && age_ns >= m->cost_ns * COST_TIMES;
}

static int write_table(void *ctx, FILE *out)
{
	exposition_write(out, ctx);
	return ferror(out) ? -EIO : 0;
}

static void metrics_publish(struct metrics *m, const struct metrics_feed *feed)
{
	const struct channel_message message = { .kind = CHANNEL_SNAPSHOT };
	struct metrics_table t = { .time_s = (double)clock_ns(CLOCK_REALTIME) / 1e9 };
	u64 begin_ns = clock_now_ns();
	int fd = -1;
	int err = feed->table(feed->ctx, &t);

	if (!err)
		err = channel_make_file(&fd, "heaptap-metrics", write_table, &t);
	metrics_table_fini(&t);
	if (!err)
		err = channel_send(m->channel, &message, fd);
	if (fd >= 0)
		close(fd);
	m->made_ns = clock_now_ns();
	m->cost_ns = m->made_ns - begin_ns;
	/* The next one comes soon. A helper that has gone shows when messages are taken. */
	if (err)
		debug("metrics: snapshot: %s", strerror(-err));
}

/* ---- profiles ---- */

static void metrics_answer(struct metrics *m, const struct metrics_feed *feed,
			   const struct channel_message *question)
{
	struct channel_message message = { .kind = CHANNEL_ANSWER, .id = question->id, .key = question->key };
	const char *why = NULL;
	u64 begin_ns = clock_now_ns();
	int fd = -1;
	int err = metrics_make_profile(&fd, feed, &question->key, &why);

	message.make_ms = (u32)((clock_now_ns() - begin_ns) / 1000000);
	if (err) {
		message.status = why ? NOT_FOUND : BROKEN;
		snprintf(message.text, sizeof(message.text), "%s\n", why ? why : strerror(-err));
	}
	err = channel_send(m->channel, &message, fd);
	if (err)
		debug("metrics: profile: %s", strerror(-err));
	if (fd >= 0)
		close(fd);
}

/* ---- rounds ---- */

static void metrics_take_messages(struct metrics *m)
{
	struct channel_message message;
	int fd, err = 0;

	while (m->nr_questions < MAX_QUESTIONS && !(err = channel_take(m->channel, &message, &fd))) {
		if (fd >= 0)
			close(fd);
		if (message.kind == CHANNEL_SCRAPED)
			m->scraped_ns = clock_now_ns();
		else if (message.kind == CHANNEL_QUESTION &&
			 (message.key.kind < NR_PPROF_KINDS || message.key.kind == CHANNEL_PAGE ||
			  message.key.kind == CHANNEL_PAGE_DATA))
			m->questions[m->nr_questions++] = message;
	}
	if (err == -EPIPE)
		lose_helper(m);
}

void metrics_round(struct metrics *m, const struct metrics_feed *feed)
{
	if (!m || m->channel < 0)
		return;
	metrics_take_messages(m);
	if (m->channel >= 0 && is_due(m))
		metrics_publish(m, feed);
	if (m->channel >= 0 && m->nr_questions) {
		metrics_answer(m, feed, &m->questions[0]);
		memmove(m->questions, m->questions + 1, --m->nr_questions * sizeof(m->questions[0]));
	}
}
