/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of serve and connect: ssh://[user@]host[:port]/TARGET, unix:/path, tcp://host[:port]. */
#pragma once

#include "user/lib/types.h"

enum { NET_PORT = 4576, NET_HOST_MAX = 256, NET_PATH_MAX = 4096 };

enum net_kind { NET_UNIX, NET_TCP, NET_SSH };

struct net_addr {
	enum net_kind kind;
	char user[64];		 /* ssh; "" = the default of ssh */
	char host[NET_HOST_MAX]; /* ssh, tcp: name or address, IPv6 without brackets; never begins with '-' */
	u16 port;		 /* ssh: 0 = the default of ssh */
	/* unix: path of the socket; ssh: PID or name of the target, "" = a program follows on the command line */
	char path[NET_PATH_MAX];
};

/* Parse @text. 0, or -EINVAL with the reason in *@why. Does not look names up. */
int net_addr_parse(struct net_addr *out, const char *text, const char **why) __must_check;

/* The text that net_addr_parse() reads; cut where it does not fit. Returns @buf. */
char *net_addr_text(const struct net_addr *a, char *buf, size_t size);

/* Do connections to @a stay on this machine? */
bool net_addr_is_local(const struct net_addr *a);

/*
 * May heaptap use @a? TCP encrypts nothing, so that it leaves this machine only if @is_insecure_fine. 0, or -EPERM with
 * the reason in *@why.
 */
int net_addr_check_tcp(const struct net_addr *a, bool is_insecure_fine, const char **why) __must_check;
