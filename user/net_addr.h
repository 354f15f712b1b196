/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of serve and connect: ssh://[user@]host[:port]/TARGET, unix:/path, tcp://host[:port]. */
#pragma once

#include "user/lib/types.h"

enum { NET_PORT = 4576, NET_HOST_MAX = 256, NET_PATH_MAX = 4096 };

enum net_kind { NET_UNIX, NET_TCP, NET_SSH };

struct net_addr {
	enum net_kind kind;
	char user[64];		 /* ssh; "" = as ssh likes */
	char host[NET_HOST_MAX]; /* ssh, tcp: name or number, IPv6 without brackets; never begins with '-' */
	u16 port;		 /* ssh: 0 = as ssh likes */
	char path
		[NET_PATH_MAX]; /* unix: of the socket; ssh: PID or name of the target, "" = a program follows */
};

/* 0, or -EINVAL with what is wrong in *@why. Nothing is looked up. */
int net_addr_parse(struct net_addr *out, const char *text, const char **why) __must_check;

/* As net_addr_parse() reads it; cut where it does not fit. Returns @buf. */
char *net_addr_text(const struct net_addr *a, char *buf, size_t size);

/* True for what cannot leave this machine. */
bool net_addr_is_local(const struct net_addr *a);
