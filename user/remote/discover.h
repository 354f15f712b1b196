/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Find the other side on the same network without its address. Used only with --announce and --discover. */
#pragma once

#include "user/remote/net_addr.h"

/*
 * Datagrams of 64 bytes go to 224.0.0.251:3002, which no router passes on. "heaptap?" is a question. "heaptap!" is an
 * answer, which a server also sends every two seconds: u16 version of the protocol, u16 port, u32 0, a name of 32
 * bytes, zeros. An answer is only a hint: the token proves who the server is. A host that waits for servers sends
 * "heaptap<", and the rest as an answer, to all of its networks (broadcast), each half second until one has come.
 */
enum { DISCOVER_PORT = 3002, DISCOVER_LEN = 64, DISCOVER_NAME_LEN = 32, DISCOVER_MS = 1500 };
enum { DISCOVER_AT_VERSION = 8, DISCOVER_AT_PORT = 10 };
#define DISCOVER_HOST "heaptap<"

struct discover;

/*
 * Announce the server at @addr (tcp and an IPv4 address; 0.0.0.0: on all networks) as @name; NULL: a host that waits
 * there. 0 or -errno, logged.
 */
int discover_announce(struct discover **out, const struct net_addr *addr, const char *name) __must_check;

/* Call often: announces again when it is time, answers questions, at most ten a second. @d may be NULL. */
void discover_poll(struct discover *d);
void discover_free(struct discover *d);

/*
 * Ask, and wait DISCOVER_MS for answers. 0 and *@addr if one server answered; -ENOENT without an answer, -ENOTUNIQ
 * after several, or -errno. Logs the error, and a line for each server.
 */
int discover_find(struct net_addr *addr) __must_check;
