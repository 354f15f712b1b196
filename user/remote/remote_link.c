/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One connection to a server, over a socket or ssh. */
#include "user/remote/remote_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/remote/discover.h"
#include "user/remote/net_socket.h"
#include "user/remote/remote_ssh.h"
#include "user/remote/wire_auth.h"

struct remote_link {
	struct remote_link_options options;
	struct net_listener listener;
	struct discover *discover; /* owned; NULL = not announced */
	struct remote_ssh ssh;
	int fd; /* owned; -1 = none */
	enum remote_state state;
	u32 nr_begun;
	struct wire_in in;
	struct wire_out out;
	struct wire_auth auth;
	u64 heard_ms, sent_ms, again_ms;
	u64 nr_bytes; /* that have come */
	char why[160];
};

void remote_wait(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	poll(&p, 1, timeout_ms);
}

static void remote_link_give_up(struct remote_link *l, const char *why)
{
	snprintf(l->why, sizeof(l->why), "%s", why);
	cleanup_close(&l->fd);
	l->fd = -1;
	wire_in_fini(&l->in);
	wire_out_fini(&l->out);
	l->again_ms = clock_now_ms() + REMOTE_AGAIN_MS;
	l->state = l->options.addr.kind == NET_SSH ? REMOTE_OVER : REMOTE_AWAY;
}

/* The socket @fd is connected: begin the handshake. */
static void remote_link_begin(struct remote_link *l, int fd)
{
	l->fd = fd;
	l->nr_begun++;
	l->state = REMOTE_SHAKING;
	l->heard_ms = l->sent_ms = clock_now_ms();
	wire_in_init(&l->in, WIRE_TARGET);
	wire_out_init(&l->out, l->options.queue_bytes);
	if (wire_auth_begin(&l->auth, false, l->options.token, &l->out))
		remote_link_give_up(l, "out of memory");
}

static int connect_now(struct remote_link *l)
{
	int fd = -1, err;

	err = l->options.addr.kind == NET_SSH
		      ? remote_ssh_start(&l->ssh, &l->options.addr, l->options.program, &fd)
		      : net_connect(&l->options.addr, REMOTE_CONNECT_MS, &fd);
	if (!err)
		remote_link_begin(l, fd);
	return err;
}

int remote_link_new(struct remote_link **out, const struct remote_link_options *o)
{
	struct remote_link *l = calloc(1, sizeof(*l));
	char text[NET_PATH_MAX];
	int err;

	if (!l)
		return -ENOMEM;
	l->options = *o;
	l->fd = -1;
	l->listener.fd = l->listener.dir_fd = -1;
	remote_ssh_init(&l->ssh);
	err = o->is_listening ? net_listen(&l->listener, &o->addr) : connect_now(l);
	if (!err && o->is_announced)
		err = discover_announce(&l->discover, &o->addr, NULL);
	if (err) {
		if (!o->is_listening)
			error("connect: %s: %s", net_addr_text(&o->addr, text, sizeof(text)),
			      err == -EPERM ? "the socket belongs to another user" : strerror(-err));
		remote_link_free(l);
		return err;
	}
	*out = l;
	return 0;
}

void remote_link_free(struct remote_link *l)
{
	if (!l)
		return;
	cleanup_close(&l->fd);
	net_listener_close(&l->listener);
	discover_free(l->discover);
	remote_ssh_end(&l->ssh);
	wire_in_fini(&l->in);
	wire_out_fini(&l->out);
	free(l);
}

static void try_again(struct remote_link *l)
{
	u64 now = clock_now_ms();
	int fd = -1, err;

	if (l->options.is_listening) {
		discover_poll(l->discover);
		if (!net_accept(&l->listener, &fd))
			remote_link_begin(l, fd);
		return;
	}
	if (now < l->again_ms)
		return;
	err = connect_now(l);
	l->again_ms = clock_now_ms() + REMOTE_AGAIN_MS;
	if (err)
		snprintf(l->why, sizeof(l->why), "%s", strerror(-err));
}

/* A refusal is final. Only a server that still holds our broken connection may accept us a little later. */
static void on_refusal(struct remote_link *l, int err)
{
	char why[sizeof(l->auth.why)];
	bool is_final = err != -ECONNREFUSED && !l->options.is_listening;

	snprintf(why, sizeof(why), "%s", l->auth.why[0] ? l->auth.why : strerror(-err));
	remote_link_give_up(l, why);
	if (is_final || !strcmp(why, "wrong token"))
		l->state = l->options.is_listening ? REMOTE_AWAY : REMOTE_OVER;
}

static void shake_hands(struct remote_link *l)
{
	struct wire_frame f;
	int more = 0, err = 0;

	while (!err && (more = wire_in_next(&l->in, &f)) == 1)
		err = wire_auth_take(&l->auth, &f, &l->out);
	if (more < 0)
		snprintf(l->auth.why, sizeof(l->auth.why), "the other side is no heaptap");
	if (more < 0 || err < 0) {
		on_refusal(l, more < 0 ? more : err);
	} else if (err == 1) {
		l->state = REMOTE_UP;
		l->in.is_open = true;
	}
}

/* ssh may wait for a password first. */
static bool remote_link_is_silent(const struct remote_link *l, u64 now)
{
	return now - l->heard_ms >= REMOTE_SILENCE_MS &&
	       (l->state == REMOTE_UP || l->options.addr.kind != NET_SSH);
}

static void move_bytes(struct remote_link *l)
{
	u64 now = clock_now_ms();
	bool is_deaf;
	int got;

	if (l->state == REMOTE_UP && now - l->sent_ms >= REMOTE_PING_MS) {
		l->sent_ms = now;
		if (wire_put(&l->out, WIRE_PING, NULL, 0))
			debug("connect: no room for a ping");
	}
	is_deaf = wire_out_write(&l->out, l->fd) != 0;
	got = wire_in_read(&l->in, l->fd);
	/* A peer that has gone may have sent something before: handle what was read first. */
	if (got > 0) {
		l->heard_ms = now;
		l->nr_bytes += (u64)got;
	}
	if (got < 0 || (!got && is_deaf))
		remote_link_give_up(l, !got || got == -EPIPE ? "the other side went away" : strerror(-got));
	else if (!got && remote_link_is_silent(l, now))
		remote_link_give_up(l, "nothing heard of the other side for 30 s");
}

enum remote_state remote_link_poll(struct remote_link *l)
{
	remote_ssh_poll(&l->ssh);
	if (l->state == REMOTE_AWAY)
		try_again(l);
	if (l->fd >= 0)
		move_bytes(l);
	if (l->state == REMOTE_SHAKING)
		shake_hands(l);
	return l->state;
}

const char *remote_link_why(const struct remote_link *l)
{
	return l->why;
}

int remote_link_next(struct remote_link *l, struct wire_frame *f)
{
	int more = l->state == REMOTE_UP ? wire_in_next(&l->in, f) : 0;

	if (more >= 0)
		return more;
	remote_link_give_up(l, "what the other side sends is no frame");
	return 0;
}

struct wire_out *remote_link_out(struct remote_link *l)
{
	return l->state == REMOTE_UP ? &l->out : NULL;
}

void remote_link_drop(struct remote_link *l, const char *why)
{
	remote_link_give_up(l, why);
}

u32 remote_link_number(const struct remote_link *l)
{
	return l->state == REMOTE_UP ? l->nr_begun : 0;
}

u64 remote_link_silent_ms(const struct remote_link *l)
{
	return clock_now_ms() - l->heard_ms;
}

u64 remote_link_bytes(const struct remote_link *l)
{
	return l->nr_bytes;
}

void remote_link_renew(struct remote_link *l)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	/*
	 * A copy of it, as of source_remote_farewell(), keeps it open: then the server refuses a second client. The end
	 * by TCP's reset, unlike that by shutdown(), does not wait behind what was put in.
	 */
	if (l->fd >= 0 && connect(l->fd, &none, sizeof(none)) && shutdown(l->fd, SHUT_RDWR))
		debug("connect: shutdown: %s", strerror(errno));
	remote_link_give_up(l, "");
	l->again_ms = 0;
}

int remote_link_fd(const struct remote_link *l)
{
	return l->fd >= 0 ? l->fd : l->listener.fd;
}
