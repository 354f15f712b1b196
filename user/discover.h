/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding a server without its address: by multicast on the networks at hand, and only when asked to. */
#pragma once

#include "user/net_addr.h"

/*
 * Datagrams of 64 bytes to 224.0.0.251:3002, which no router passes on: "heaptap?" asks; "heaptap!" answers, and is
 * said every two seconds: u16 version of the protocol, u16 port, u32 0, a name of 32 bytes, zeros. Who answers is
 * only a hint: the token proves who it is.
 */
enum { DISCOVER_PORT = 3002, DISCOVER_LEN = 64, DISCOVER_NAME_LEN = 32, DISCOVER_MS = 1500 };

struct discover;

/* Announce the server at @addr (tcp, an IPv4 number; 0.0.0.0: on all networks) as @name. 0 or -errno, logged. */
int discover_announce(struct discover **out, const struct net_addr *addr, const char *name) __must_check;

/* Often: announce again when it is time, answer questions, ten a second at most. NULL is nothing. */
void discover_poll(struct discover *d);
void discover_free(struct discover *d);

/*
 * Ask, and wait DISCOVER_MS for answers. 0 and *@addr if one server answered; else -ENOENT or -ENOTUNIQ, logged, with
 * a line for each, or -errno.
 */
int discover_find(struct net_addr *addr) __must_check;
