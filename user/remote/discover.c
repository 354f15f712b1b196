/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Send and receive announcements and questions by multicast, and announcements of a host by broadcast. */
#include "user/remote/discover.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/remote/wire.h"

static const char group_text[] = "224.0.0.251";
static const char question[] = "heaptap?", answer[] = "heaptap!";

enum {
	MAX_NETS = 32,
	MAX_ADDRESSES = 128,
	MAX_FOUND = 16,
	AGAIN_MS = 2000,
	HOST_AGAIN_MS = 500,
	MAX_PER_SECOND = 10,
	AT_NAME = 16
};

struct discover {
	int fd;			       /* owned */
	struct in_addr nets[MAX_NETS]; /* our address on each network */
	struct in_addr all[MAX_NETS];  /* the address of all on it */
	size_t nr_nets;
	bool is_host;
	u8 text[DISCOVER_LEN]; /* the announcement */
	u64 said_ms, second_ms;
	u32 nr_said; /* since second_ms */
};

/* Has the network of @request multicast, and is it up? */
static bool has_multicast(const struct discover *d, struct ifreq *request)
{
	return !ioctl(d->fd, SIOCGIFFLAGS, request) && (request->ifr_flags & IFF_UP) &&
	       (request->ifr_flags & (IFF_MULTICAST | IFF_LOOPBACK));
}

static struct in_addr address_in(const struct ifreq *request)
{
	return ((const struct sockaddr_in *)&request->ifr_addr)->sin_addr;
}

/* Find our addresses on networks with multicast. If @only is not 0, keep no other address. */
static int find_nets(struct discover *d, const struct in_addr *only)
{
	struct ifreq list[MAX_ADDRESSES];
	struct ifconf conf = { .ifc_len = sizeof(list), .ifc_req = list };

	if (ioctl(d->fd, SIOCGIFCONF, &conf))
		return -errno;
	for (size_t i = 0; i < conf.ifc_len / sizeof(list[0]) && d->nr_nets < MAX_NETS; i++) {
		struct in_addr addr = address_in(&list[i]);

		if ((only->s_addr && only->s_addr != addr.s_addr) || !has_multicast(d, &list[i]))
			continue;
		if (ioctl(d->fd, SIOCGIFNETMASK, &list[i]))
			return -errno;
		d->all[d->nr_nets].s_addr = addr.s_addr | ~address_in(&list[i]).s_addr;
		d->nets[d->nr_nets++] = addr;
	}
	return d->nr_nets ? 0 : -ENETUNREACH;
}

static int discover_join(struct discover *d)
{
	struct ip_mreq member = { .imr_multiaddr.s_addr = inet_addr(group_text) };
	int err = -ENETUNREACH;

	for (size_t i = 0; i < d->nr_nets; i++) {
		member.imr_interface = d->nets[i];
		/* Two of our addresses may be on one network, and the group is joined already. */
		if (!setsockopt(d->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof(member)) ||
		    errno == EADDRINUSE)
			err = 0;
	}
	return err;
}

/* Open a socket that receives the group on the network of @only, or on all networks. */
static int open_group(struct discover *d, const struct in_addr *only)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(DISCOVER_PORT),
				  .sin_addr.s_addr = inet_addr(group_text) };
	u8 hops = 1;
	int yes = 1, err;

	d->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return -errno;
	if (setsockopt(d->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    setsockopt(d->fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes)) ||
	    setsockopt(d->fd, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof(hops)) ||
	    bind(d->fd, (struct sockaddr *)&sa, sizeof(sa)))
		return -errno;
	err = find_nets(d, only);
	return err ? err : discover_join(d);
}

static void discover_say(const struct discover *d, const u8 *text)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(DISCOVER_PORT),
				  .sin_addr.s_addr = inet_addr(group_text) };

	for (size_t i = 0; i < d->nr_nets; i++) {
		if (d->is_host)
			sa.sin_addr = d->all[i];
		if (setsockopt(d->fd, IPPROTO_IP, IP_MULTICAST_IF, &d->nets[i], sizeof(d->nets[i])) ||
		    sendto(d->fd, text, DISCOVER_LEN, 0, (struct sockaddr *)&sa, sizeof(sa)) < 0)
			debug("discover: %s: %s", inet_ntoa(d->nets[i]), strerror(errno));
	}
}

static int discover_new(struct discover **out, const struct in_addr *only)
{
	struct discover *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->fd = -1;
	err = open_group(d, only);
	if (err) {
		error("discover: %s:%d: %s", group_text, DISCOVER_PORT, strerror(-err));
		discover_free(d);
		return err;
	}
	*out = d;
	return 0;
}

int discover_announce(struct discover **out, const struct net_addr *addr, const char *name)
{
	struct wire_body b = { .size = DISCOVER_LEN };
	struct in_addr only;
	int err;

	if (addr->kind != NET_TCP || inet_pton(AF_INET, addr->host, &only) != 1) {
		error("--announce: needs --listen tcp:// and an IPv4 address");
		return -EINVAL;
	}
	err = discover_new(out, &only);
	if (err)
		return err;
	b.data = (*out)->text;
	(*out)->is_host = !name;
	memcpy(b.data, name ? answer : DISCOVER_HOST, 8);
	b.len = DISCOVER_AT_VERSION;
	wire_put_number(&b, WIRE_VERSION, 2);
	wire_put_number(&b, addr->port, 2);
	if (name)
		memcpy(b.data + AT_NAME, name, strnlen(name, DISCOVER_NAME_LEN - 1));
	return 0;
}

/* Receive the next datagram of the right size. 1, or 0 = none. */
static int discover_hear(const struct discover *d, u8 *text, struct sockaddr_in *from)
{
	for (int i = 0; i < 64; i++) {
		socklen_t len = sizeof(*from);
		ssize_t n = recvfrom(d->fd, text, DISCOVER_LEN, MSG_TRUNC, (struct sockaddr *)from, &len);

		if (n < 0)
			return 0;
		if (n == DISCOVER_LEN)
			return 1;
	}
	return 0;
}

void discover_poll(struct discover *d)
{
	bool is_asked = false;
	struct sockaddr_in from;
	u8 text[DISCOVER_LEN];
	u64 now;

	if (!d)
		return;
	now = clock_now_ms();
	if (now - d->second_ms >= 1000) {
		d->second_ms = now;
		d->nr_said = 0;
	}
	for (int i = 0; i < 64 && discover_hear(d, text, &from); i++)
		is_asked |= !d->is_host && !memcmp(text, question, 8);
	if ((!is_asked && now - d->said_ms < (d->is_host ? HOST_AGAIN_MS : AGAIN_MS)) ||
	    d->nr_said >= MAX_PER_SECOND)
		return;
	d->said_ms = now;
	d->nr_said++;
	discover_say(d, d->text);
}

void discover_free(struct discover *d)
{
	if (!d)
		return;
	cleanup_close(&d->fd);
	free(d);
}

/* A server that has answered. */
struct found_server {
	struct in_addr addr;
	u16 port;
	char name[DISCOVER_NAME_LEN];
};

/* Note the server of @text, unless the list has its address and port. */
static void discover_note(struct found_server *list, size_t *nr, const u8 *text,
			  const struct sockaddr_in *from)
{
	struct wire_view v = { text + DISCOVER_AT_VERSION, DISCOVER_LEN - DISCOVER_AT_VERSION, false };
	struct found_server new = { .addr = from->sin_addr };

	if (memcmp(text, answer, 8) || wire_get_number(&v, 2) != WIRE_VERSION)
		return;
	new.port = wire_get_number(&v, 2);
	memcpy(new.name, text + AT_NAME, sizeof(new.name) - 1);
	for (size_t i = 0; i < *nr; i++)
		if (list[i].port == new.port && list[i].addr.s_addr == new.addr.s_addr)
			return;
	if (new.port &&*nr < MAX_FOUND)
		list[(*nr)++] = new;
}

static void listen_for(const struct discover *d, struct found_server *list, size_t *nr)
{
	u64 end_ms = clock_now_ms() + DISCOVER_MS;
	struct sockaddr_in from;
	u8 text[DISCOVER_LEN];

	for (u64 now = clock_now_ms(); now < end_ms; now = clock_now_ms()) {
		struct pollfd p = { .fd = d->fd, .events = POLLIN };

		if (poll(&p, 1, end_ms - now) > 0 && discover_hear(d, text, &from))
			discover_note(list, nr, text, &from);
	}
}

int discover_find(struct net_addr *addr)
{
	const struct in_addr any = { .s_addr = INADDR_ANY };
	u8 text[DISCOVER_LEN] = { 0 };
	struct found_server list[MAX_FOUND];
	struct discover *d;
	size_t nr = 0;
	int err = discover_new(&d, &any);

	if (err)
		return err;
	memcpy(text, question, 8);
	discover_say(d, text);
	listen_for(d, list, &nr);
	discover_free(d);
	for (size_t i = 0; i < nr; i++)
		info("discover: tcp://%s:%u  %s", inet_ntoa(list[i].addr), list[i].port, list[i].name);
	if (nr != 1) {
		error("connect: --discover: %s",
		      nr ? "more than one server: choose one by its address" : "no server answered");
		return nr ? -ENOTUNIQ : -ENOENT;
	}
	*addr = (struct net_addr){ .kind = NET_TCP, .port = list[0].port };
	snprintf(addr->host, sizeof(addr->host), "%s", inet_ntoa(list[0].addr));
	return 0;
}
