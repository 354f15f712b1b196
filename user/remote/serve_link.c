/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Peers of serve, in one epoll set. A peer whose handshake is not done has a deadline and little memory. */
#include "user/remote/serve_link.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/remote/discover.h"
#include "user/remote/net_socket.h"
#include "user/remote/wire_auth.h"

enum { STRANGER_QUEUE = 1024, CONNECT_MS = 1000, CONNECT_AGAIN_MS = 2000, NR_EVENTS = 16 };

/* Subject of an epoll event: the index of a stranger, or one of these. */
enum { ABOUT_CLIENT = SERVE_MAX_STRANGERS, ABOUT_LISTENER, ABOUT_OTHER };

struct peer {
	int in_fd, out_fd; /* owned unless is_borrowed; -1 = not in use */
	bool is_borrowed;
	bool wants_write; /* the epoll set watches for room to write */
	struct wire_in in;
	struct wire_out out;
	struct wire_auth auth;
	u64 since_ms, heard_ms, sent_ms;
};

struct serve_link {
	struct serve_link_options options;
	struct net_listener listener;
	int host_fd;  /* owned; hears hosts that announce themselves; -1 = none */
	int epoll_fd; /* owned */
	struct peer strangers[SERVE_MAX_STRANGERS];
	size_t nr_strangers;
	bool is_full; /* too many strangers: the listener is not watched */
	struct peer client;
	u32 nr_clients;
	u64 connect_ms; /* when to try again */
	u64 nr_refused;
	bool is_over;
};

/* Watch @p; for room to write only if its queue is not empty. */
static int remote_serve_link_watch(const struct serve_link *l, struct peer *p, u32 about, int op)
{
	struct epoll_event in = { .events = EPOLLIN, .data.u32 = about };
	struct epoll_event out = { .events = EPOLLOUT, .data.u32 = about };

	p->wants_write = wire_out_pending(&p->out);
	if (p->in_fd == p->out_fd) {
		in.events |= p->wants_write ? EPOLLOUT : 0;
		return epoll_ctl(l->epoll_fd, op, p->in_fd, &in) ? -errno : 0;
	}
	out.events = p->wants_write ? EPOLLOUT : 0;
	if (epoll_ctl(l->epoll_fd, op, p->in_fd, &in) || epoll_ctl(l->epoll_fd, op, p->out_fd, &out))
		return -errno;
	return 0;
}

static void peer_close(const struct serve_link *l, struct peer *p)
{
	if (p->in_fd < 0)
		return;
	/* A descriptor that other processes hold too would stay in the set. */
	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, p->in_fd, NULL);
	if (p->out_fd != p->in_fd)
		epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, p->out_fd, NULL);
	if (!p->is_borrowed)
		close(p->in_fd);
	p->in_fd = p->out_fd = -1;
	wire_in_fini(&p->in);
	wire_out_fini(&p->out);
}

/* Log the 1st, 10th, 20th, ... 100th, 200th refusal, so that a flood of peers does not flood the log. */
static void log_refused(struct serve_link *l, const char *why)
{
	u64 nr = ++l->nr_refused;

	while (nr >= 10 && nr % 10 == 0)
		nr /= 10;
	if (nr == 1)
		warn("serve: %" PRIu64 " connection%s refused so far; the last one: %s", l->nr_refused,
		     l->nr_refused == 1 ? "" : "s", why);
}

static void look_at_listener(struct serve_link *l, bool yes)
{
	struct epoll_event ev = { .events = yes ? EPOLLIN : 0, .data.u32 = ABOUT_LISTENER };

	if (l->listener.fd >= 0 && epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, l->listener.fd, &ev))
		debug("serve: epoll: %s", strerror(errno));
	l->is_full = !yes;
}

static void stranger_close(struct serve_link *l, struct peer *p)
{
	peer_close(l, p);
	l->nr_strangers--;
	if (l->is_full)
		look_at_listener(l, true);
}

/* Add a peer. Owns @in_fd unless @is_borrowed. */
static void add_stranger(struct serve_link *l, int in_fd, int out_fd, bool is_borrowed)
{
	struct peer *p = l->strangers;
	int err;

	while (p->in_fd >= 0)
		p++;
	*p = (struct peer){ .in_fd = in_fd, .out_fd = out_fd, .is_borrowed = is_borrowed };
	p->since_ms = p->heard_ms = p->sent_ms = clock_now_ms();
	wire_in_init(&p->in, WIRE_HOST);
	wire_out_init(&p->out, STRANGER_QUEUE);
	l->nr_strangers++;
	err = wire_auth_begin(&p->auth, true, l->options.token, &p->out);
	if (!err)
		err = remote_serve_link_watch(l, p, p - l->strangers, EPOLL_CTL_ADD);
	if (!err)
		return;
	log_refused(l, strerror(-err));
	stranger_close(l, p);
	l->is_over |= is_borrowed;
}

static void accept_all(struct serve_link *l)
{
	int fd = -1, err;

	while (l->nr_strangers < SERVE_MAX_STRANGERS) {
		err = net_accept(&l->listener, &fd);
		if (err == -EAGAIN)
			return;
		if (err == -EPERM) {
			log_refused(l, "it belongs to another user");
			continue;
		}
		if (err) {
			/* Probably no free descriptor: some will be free later. */
			log_refused(l, strerror(-err));
			return;
		}
		add_stranger(l, fd, fd, false);
	}
	look_at_listener(l, false);
}

static int flush_peer(const struct serve_link *l, struct peer *p, u32 about)
{
	int err = wire_out_write(&p->out, p->out_fd);

	if (!err && p->wants_write != !!wire_out_pending(&p->out))
		err = remote_serve_link_watch(l, p, about, EPOLL_CTL_MOD);
	return err;
}

/* @p has proved that it knows the token: make it the client, unless there is one. */
static void serve_link_promote(struct serve_link *l, struct peer *p)
{
	struct peer *c = &l->client;
	u32 about = p - l->strangers;
	char name[64], why[128];

	if (c->in_fd >= 0 && clock_now_ms() - c->heard_ms < SERVE_REPLACE_MS) {
		wire_out_fini(&p->out);
		snprintf(why, sizeof(why), "another client is served, since %" PRIu64 " s: %s",
			 (clock_now_ms() - c->since_ms) / 1000, net_peer_name(c->in_fd, name, sizeof(name)));
		if (wire_put_text(&p->out, WIRE_REFUSED, why) || flush_peer(l, p, about))
			debug("serve: a second client has gone already");
		log_refused(l, "there is a client already");
		stranger_close(l, p);
		return;
	}
	serve_link_drop(l, "another one takes its place");
	*c = *p;
	c->out.limit = l->options.queue_bytes;
	c->in.is_open = true;
	p->in_fd = p->out_fd = -1;
	wire_in_init(&p->in, WIRE_HOST);
	wire_out_init(&p->out, 0);
	l->nr_strangers--;
	l->nr_clients++;
	if (l->is_full)
		look_at_listener(l, true);
	if (remote_serve_link_watch(l, c, ABOUT_CLIENT, EPOLL_CTL_MOD) || flush_peer(l, c, ABOUT_CLIENT))
		serve_link_drop(l, "cannot write to it");
}

static void refuse_stranger(struct serve_link *l, struct peer *p, const char *why)
{
	/* Send the reason that wire_auth_take() has queued. */
	if (wire_out_write(&p->out, p->out_fd))
		debug("serve: a stranger has gone already");
	l->is_over |= p->is_borrowed;
	log_refused(l, why);
	stranger_close(l, p);
}

static void read_stranger(struct serve_link *l, struct peer *p)
{
	struct wire_frame f;
	int got = wire_in_read(&p->in, p->in_fd), more = 0, err = 0;

	if (got < 0) {
		refuse_stranger(l, p, got == -EPIPE ? "it went away" : strerror(-got));
		return;
	}
	while (!err && (more = wire_in_next(&p->in, &f)) == 1)
		err = wire_auth_take(&p->auth, &f, &p->out);
	if (err == 1) {
		serve_link_promote(l, p);
		return;
	}
	if (more < 0)
		refuse_stranger(l, p, "it is no heaptap");
	else if (err < 0)
		refuse_stranger(l, p, p->auth.why[0] ? p->auth.why : strerror(-err));
	else if (flush_peer(l, p, p - l->strangers))
		refuse_stranger(l, p, "it went away");
}

static void end_late_ones(struct serve_link *l)
{
	u64 now = clock_now_ms();

	for (size_t i = 0; i < SERVE_MAX_STRANGERS; i++) {
		struct peer *p = &l->strangers[i];

		if (p->in_fd >= 0 && now - p->since_ms >= WIRE_HANDSHAKE_MS)
			refuse_stranger(l, p, "it did not say who it is within 5 s");
	}
}

/* An announcement is a hint, and decides where to knock only: the token proves who is there. */
static bool serve_link_finds(const struct serve_link *l)
{
	struct net_addr *to = l->options.to;
	u8 text[DISCOVER_LEN];
	struct sockaddr_in from;
	const u8 *a = (const u8 *)&from.sin_addr;
	socklen_t len = sizeof(from);

	if (recvfrom(l->host_fd, text, sizeof(text), 0, (struct sockaddr *)&from, &len) != sizeof(text) ||
	    memcmp(text, DISCOVER_HOST, DISCOVER_AT_VERSION) || text[DISCOVER_AT_VERSION] != WIRE_VERSION)
		return false;
	to->port = text[DISCOVER_AT_PORT] | text[DISCOVER_AT_PORT + 1] << 8;
	snprintf(to->host, sizeof(to->host), "%u.%u.%u.%u", a[0], a[1], a[2], a[3]);
	return true;
}

static int serve_link_hear(struct serve_link *l)
{
	const struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(DISCOVER_PORT) };
	int yes = 1;

	l->host_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->host_fd >= 0 && !setsockopt(l->host_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) &&
	    !bind(l->host_fd, (const struct sockaddr *)&sa, sizeof(sa)))
		return 0;
	error("serve: --discover: %s", strerror(errno));
	return -EIO;
}

static void connect_again(struct serve_link *l)
{
	u64 now = clock_now_ms();
	int fd = -1, err;

	if (!l->options.to || l->client.in_fd >= 0 || l->nr_strangers || now < l->connect_ms ||
	    (l->host_fd >= 0 && !serve_link_finds(l)))
		return;
	l->connect_ms = now + CONNECT_AGAIN_MS;
	err = net_connect(l->options.to, CONNECT_MS, &fd);
	if (err)
		debug("serve: connect: %s", strerror(-err));
	else
		add_stranger(l, fd, fd, false);
}

void serve_link_keep(struct serve_link *l)
{
	struct peer *c = &l->client;
	u64 now = clock_now_ms();

	if (c->in_fd < 0)
		return;
	if (now - c->sent_ms >= SERVE_PING_MS) {
		c->sent_ms = now;
		if (wire_put(&c->out, WIRE_PING, NULL, 0))
			debug("serve: no room for a ping");
	}
	if (now - c->heard_ms >= SERVE_SILENCE_MS)
		serve_link_drop(l, "nothing heard of it for 30 s");
	else if (flush_peer(l, c, ABOUT_CLIENT))
		serve_link_drop(l, "it went away");
}

static void handle_events(struct serve_link *l)
{
	struct epoll_event events[NR_EVENTS];
	int nr = epoll_wait(l->epoll_fd, events, NR_EVENTS, 0);

	for (int i = 0; i < nr; i++) {
		u32 about = events[i].data.u32;

		if (about == ABOUT_LISTENER)
			accept_all(l);
		else if (about < SERVE_MAX_STRANGERS && l->strangers[about].in_fd >= 0)
			read_stranger(l, &l->strangers[about]);
	}
}

static void read_client(struct serve_link *l)
{
	struct peer *c = &l->client;
	int got = wire_in_read(&c->in, c->in_fd);

	if (got > 0)
		c->heard_ms = clock_now_ms();
	else if (got < 0)
		serve_link_drop(l, got == -EPIPE ? "it went away" : strerror(-got));
}

/* The client's next frame. Reads at most once, after all frames before, because a client may send without end. */
static int next_frame(struct serve_link *l, struct wire_frame *frame)
{
	struct peer *c = &l->client;
	bool has_read = false;

	while (c->in_fd >= 0) {
		int more = wire_in_next(&c->in, frame);

		if (more > 0 && frame->kind != WIRE_PING)
			return 1;
		/* The answer to a ping: serve_link_keep(). */
		if (more > 0)
			c->sent_ms = 0;
		if (more < 0)
			serve_link_drop(l, "what it sends is no frame of a host");
		if (more)
			continue;
		if (has_read)
			break;
		has_read = true;
		read_client(l);
	}
	return 0;
}

int serve_link_poll(struct serve_link *l, struct wire_frame *frame)
{
	end_late_ones(l);
	connect_again(l);
	handle_events(l);
	if (next_frame(l, frame))
		return 1;
	serve_link_keep(l);
	return l->is_over ? -EPIPE : 0;
}

static int serve_link_listen_at(struct serve_link *l, const struct net_addr *a)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = ABOUT_LISTENER };
	int err = net_listen(&l->listener, a);

	if (!err && epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->listener.fd, &ev)) {
		err = -errno;
		error("serve: epoll: %s", strerror(-err));
	}
	return err;
}

int serve_link_new(struct serve_link **out, const struct serve_link_options *o)
{
	struct serve_link *l = calloc(1, sizeof(*l));
	int err = 0;

	if (!l) {
		error("serve: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	l->options = *o;
	l->listener.fd = l->listener.dir_fd = l->host_fd = -1;
	l->client.in_fd = l->client.out_fd = -1;
	for (size_t i = 0; i < SERVE_MAX_STRANGERS; i++)
		l->strangers[i].in_fd = l->strangers[i].out_fd = -1;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		err = -errno;
		error("serve: epoll: %s", strerror(-err));
	}
	if (!err && o->listen)
		err = serve_link_listen_at(l, o->listen);
	if (!err && o->finds_to)
		err = serve_link_hear(l);
	if (err) {
		serve_link_free(l);
		return err;
	}
	if (o->in_fd >= 0) {
		net_prepare(o->in_fd);
		net_prepare(o->out_fd);
		add_stranger(l, o->in_fd, o->out_fd, true);
	}
	*out = l;
	return 0;
}

void serve_link_free(struct serve_link *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < SERVE_MAX_STRANGERS; i++)
		peer_close(l, &l->strangers[i]);
	peer_close(l, &l->client);
	net_listener_close(&l->listener);
	cleanup_close(&l->epoll_fd);
	cleanup_close(&l->host_fd);
	free(l);
}

int serve_link_fd(const struct serve_link *l)
{
	return l->epoll_fd;
}

int serve_link_watch(struct serve_link *l, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = ABOUT_OTHER };

	return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

u32 serve_link_client(const struct serve_link *l)
{
	return l->client.in_fd >= 0 ? l->nr_clients : 0;
}

struct wire_out *serve_link_out(struct serve_link *l)
{
	return l->client.in_fd >= 0 ? &l->client.out : NULL;
}

void serve_link_drop(struct serve_link *l, const char *why)
{
	if (l->client.in_fd < 0)
		return;
	info("serve: the client is gone: %s", why);
	l->is_over |= l->client.is_borrowed;
	peer_close(l, &l->client);
}

bool serve_link_flush(struct serve_link *l, int timeout_ms)
{
	u64 end = clock_now_ms() + timeout_ms;
	struct peer *c = &l->client;

	while (c->in_fd >= 0 && wire_out_pending(&c->out)) {
		struct pollfd p = { .fd = c->out_fd, .events = POLLOUT };
		u64 now = clock_now_ms();

		if (now >= end || poll(&p, 1, end - now) <= 0 || wire_out_write(&c->out, c->out_fd))
			return false;
	}
	return true;
}

void serve_link_finish(struct serve_link *l, int timeout_ms)
{
	u64 end = clock_now_ms() + timeout_ms;
	struct peer *c = &l->client;
	char unread[4096];

	if (c->in_fd < 0 || shutdown(c->out_fd, SHUT_WR))
		return;
	for (;;) {
		struct pollfd p = { .fd = c->in_fd, .events = POLLIN };
		u64 now = clock_now_ms();

		if (now >= end || poll(&p, 1, (int)(end - now)) <= 0 ||
		    read(c->in_fd, unread, sizeof(unread)) <= 0)
			return;
	}
}

void serve_link_wait(const struct serve_link *l, int timeout_ms)
{
	struct pollfd p = { .fd = l->epoll_fd, .events = POLLIN };

	poll(&p, 1, timeout_ms);
}
