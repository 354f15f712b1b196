/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heaptap's end of the channel to the helper that pushes profiles. */
#include "user/metrics/push.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/metrics/helper.h"
#include "user/metrics/metrics.h"
#include "user/metrics/push_helper.h"
#include "user/report/pprof.h"

enum { FAREWELL_MS = 200, LAST_MS = 10000 };

static const u64 every_ns = 60000000000ULL;

struct push {
	const char *url; /* borrowed; as it was typed */
	char *address;	 /* owned; for the helper */
	bool is_otlp;
	int channel; /* owned; -1 = the helper has ended */
	pid_t pid;
	u64 next_ns;
	u64 from_s;	 /* the end of the last profile, seconds since 1970 */
	bool is_sending; /* the last one has not arrived yet */
	bool has_failed; /* which was said */
	u64 nr_sent, nr_lost;
};

#ifdef WITHOUT_PUSH
const bool push_is_built = false;
#else
const bool push_is_built = true;
#endif

static u64 now_s(void)
{
	return clock_ns(CLOCK_REALTIME) / SECOND_NS;
}

/*
 * Set the address of @url and what it takes. OTLP over HTTP has a port and a path of its own, which the URL may leave
 * out. 0; -ENOMEM; or, logged, -EINVAL.
 */
static int take_url(struct push *p, const char *url)
{
	static const struct {
		const char *scheme, *http;
		bool is_otlp;
	} schemes[] = { { "http://", "http://", false },
			{ "https://", "https://", false },
			{ "otlp://", "http://", true },
			{ "otlps://", "https://", true } };

	p->url = url;
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		const char *host;
		bool has_port;
		int len;

		if (strncmp(url, schemes[i].scheme, strlen(schemes[i].scheme)))
			continue;
		host = url + strlen(schemes[i].scheme);
		len = (int)strcspn(host, "/");
		has_port = memchr(host, ':', (size_t)len) && host[len - 1] != ']';
		p->is_otlp = schemes[i].is_otlp;
		if (asprintf(&p->address, "%s%.*s%s%s", schemes[i].http, len, host,
			     p->is_otlp && !has_port ? ":4318" : "",
			     p->is_otlp && !host[len] ? "/v1development/profiles" : host + len) >= 0)
			return 0;
		p->address = NULL;
		return -ENOMEM;
	}
	error("--push: %s: needs http://, https://, otlp:// or otlps://", url);
	return -EINVAL;
}

static int push_start_helper(struct push *p, const char *name)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	p->pid = fork();
	if (!p->pid)
		push_helper_run(p->address, p->is_otlp ? NULL : name, pair[1]);
	p->channel = pair[0];
	close(pair[1]);
	if (p->pid < 0) {
		error("push: fork: %s", strerror(errno));
		return -errno;
	}
	return helper_wait_ready(p->channel, "push");
}

int push_open(struct push **out, const char *url, const char *name)
{
	auto_free struct push *p = NULL;
	int err;

	if (!push_is_built) {
		error("push: not in this build: it was made without libcurl");
		return -ENOSYS;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->channel = -1;
	err = take_url(p, url);
	if (err) {
		push_free(take_ptr(p));
		return err;
	}
	p->from_s = now_s();
	p->next_ns = clock_now_ns() + every_ns;
	err = push_start_helper(p, name);
	if (err)
		push_free(take_ptr(p));
	else
		*out = take_ptr(p);
	return err;
}

/* Each new trouble once. */
static void say_result(struct push *p, const struct channel_message *m)
{
	bool has_failed = m->text[0];

	p->nr_sent += !has_failed;
	p->nr_lost += has_failed;
	if (has_failed && !p->has_failed)
		warn("push: %s: %s", p->url, m->text);
	else if (!has_failed && p->has_failed)
		info("push: %s: takes profiles again; %llu were lost", p->url,
		     (unsigned long long)p->nr_lost);
	p->has_failed = has_failed;
}

static void push_take_messages(struct push *p)
{
	struct channel_message m;
	int fd, err;

	while (!(err = channel_take(p->channel, &m, &fd))) {
		if (fd >= 0)
			close(fd);
		p->is_sending = false;
		say_result(p, &m);
	}
	if (err != -EPIPE)
		return;
	warn("push: the helper process has ended: no more profiles are sent");
	close(p->channel);
	p->channel = -1;
	p->is_sending = false;
}

static void send_one(struct push *p, const struct metrics_feed *feed)
{
	struct channel_message m = { .kind = CHANNEL_SNAPSHOT,
				     .id = (u32)p->from_s,
				     .make_ms = (u32)now_s() };
	const struct profile_key key = { .kind = p->is_otlp ? PPROF_OTLP : PPROF_HEAP };
	const char *why = NULL;
	int fd = -1;
	int err = metrics_make_profile(&fd, feed, &key, &why);

	p->next_ns = clock_now_ns() + every_ns;
	/* Nothing is traced: nothing is sent. */
	if (!err)
		err = channel_send(p->channel, &m, fd);
	if (err)
		debug("push: %s", why ? why : strerror(-err));
	else
		p->from_s = m.make_ms;
	p->is_sending = !err;
	if (fd >= 0)
		close(fd);
}

void push_round(struct push *p, const struct metrics_feed *feed)
{
	if (!p || p->channel < 0)
		return;
	push_take_messages(p);
	if (p->channel >= 0 && !p->is_sending && clock_now_ns() >= p->next_ns)
		send_one(p, feed);
}

void push_end(struct push *p, const struct metrics_feed *feed)
{
	u64 end_ns = clock_now_ns() + LAST_MS * 1000000ULL;
	bool is_last = false;

	while (p && p->channel >= 0 && clock_now_ns() < end_ns) {
		struct pollfd wait = { .fd = p->channel, .events = POLLIN };

		if (p->is_sending && poll(&wait, 1, LAST_MS) <= 0)
			break;
		push_take_messages(p);
		if (p->is_sending || p->channel < 0)
			continue;
		if (is_last)
			return;
		is_last = true;
		send_one(p, feed);
	}
	if (p && p->is_sending)
		warn("push: %s: the last profile has not arrived", p->url);
}

void push_free(struct push *p)
{
	if (!p)
		return;
	if (p->channel >= 0)
		close(p->channel);
	if (p->pid > 0)
		helper_end(p->pid, FAREWELL_MS);
	free(p->address);
	free(p);
}
