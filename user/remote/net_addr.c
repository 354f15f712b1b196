/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parse addresses by their kind. Refuse a text that ssh could take for an option. */
#include "user/remote/net_addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
static const char ipv6_chars[] = "0123456789abcdefABCDEF:.%abcdefghijklmnopqrstuvwxyz_-";

static int net_addr_wrong(const char **why, const char *what)
{
	*why = what;
	return -EINVAL;
}

/* [@text, @text + @len) into @out if it has only characters of @allowed and no option's look. */
static int net_addr_take_name(char *out, size_t size, const char *text, size_t len, const char *allowed)
{
	if (!len || len >= size || text[0] == '-' || strspn(text, allowed) < len)
		return -EINVAL;
	memcpy(out, text, len);
	out[len] = '\0';
	return 0;
}

static int take_port(struct net_addr *a, const char *text, size_t len)
{
	u32 port = 0;

	if (!len || len > 5)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		port = port * 10 + (text[i] - '0');
	}
	if (!port || port > UINT16_MAX)
		return -EINVAL;
	a->port = port;
	return 0;
}

/* host[:port] or [IPv6][:port], @len bytes. */
static int take_host(struct net_addr *a, const char *text, size_t len, const char **why)
{
	const char *end = text + len, *host_end, *colon;

	if (len && text[0] == '[') {
		host_end = memchr(text, ']', len);
		if (!host_end ||
		    net_addr_take_name(a->host, sizeof(a->host), text + 1, host_end - text - 1, ipv6_chars))
			return net_addr_wrong(why, "an IPv6 address stands in brackets, as [::1]");
		colon = host_end + 1;
	} else {
		colon = memchr(text, ':', len);
		host_end = colon ? colon : end;
		if (net_addr_take_name(a->host, sizeof(a->host), text, host_end - text, name_chars))
			return net_addr_wrong(why, "needs the name or number of a host");
		colon = host_end;
	}
	if (colon == end)
		return 0;
	if (*colon != ':' || take_port(a, colon + 1, end - colon - 1))
		return net_addr_wrong(why, "the port must be a number from 1 to 65535");
	return 0;
}

static int parse_unix(struct net_addr *a, const char *text, const char **why)
{
	if (!strncmp(text, "//", 2))
		text += 2;
	if (text[0] != '/' || strlen(text) >= sizeof(a->path))
		return net_addr_wrong(why, "needs the full path of a socket");
	strcpy(a->path, text);
	return 0;
}

static int parse_tcp(struct net_addr *a, const char *text, const char **why)
{
	size_t len = strlen(text);

	a->port = NET_PORT;
	if (len && text[len - 1] == '/')
		len--;
	return take_host(a, text, len, why);
}

static int parse_ssh(struct net_addr *a, const char *text, const char **why)
{
	const char *slash = strchr(text, '/');
	const char *end = slash ? slash : text + strlen(text);
	const char *at = memchr(text, '@', end - text);

	if (at && net_addr_take_name(a->user, sizeof(a->user), text, at - text, name_chars))
		return net_addr_wrong(why, "this is no name of a user");
	if (at)
		text = at + 1;
	if (slash && strlen(slash + 1) >= sizeof(a->path))
		return net_addr_wrong(why, "too long");
	if (slash)
		strcpy(a->path, slash + 1);
	if (a->path[0] == '-')
		return net_addr_wrong(why, "a target does not begin with '-'");
	return take_host(a, text, end - text, why);
}

static const struct {
	const char *prefix;
	enum net_kind kind;
	int (*parse)(struct net_addr *a, const char *text, const char **why);
} kinds[] = {
	{ "unix:", NET_UNIX, parse_unix },
	{ "tcp://", NET_TCP, parse_tcp },
	{ "ssh://", NET_SSH, IS_AGENT ? NULL : parse_ssh },
};

int net_addr_parse(struct net_addr *out, const char *text, const char **why)
{
	memset(out, 0, sizeof(*out));
	/* The agent only serves, and nobody serves by ssh. */
	for (size_t i = 0; i < ARRAY_SIZE(kinds) - IS_AGENT; i++) {
		size_t len = strlen(kinds[i].prefix);

		if (strncmp(text, kinds[i].prefix, len))
			continue;
		out->kind = kinds[i].kind;
		return kinds[i].parse(out, text + len, why);
	}
	return net_addr_wrong(why, IS_AGENT ? "must begin with unix: or tcp://"
					    : "must begin with ssh://, unix: or tcp://");
}

char *net_addr_text(const struct net_addr *a, char *buf, size_t size)
{
	bool is_ipv6 = strchr(a->host, ':');
	char port[8] = "";

	if (a->port)
		snprintf(port, sizeof(port), ":%u", a->port);
	if (a->kind == NET_UNIX)
		snprintf(buf, size, "unix:%s", a->path);
	else
		snprintf(buf, size, "%s%s%s%s%s%s%s%s%s", kinds[a->kind].prefix, a->user,
			 a->user[0] ? "@" : "", is_ipv6 ? "[" : "", a->host, is_ipv6 ? "]" : "", port,
			 a->path[0] ? "/" : "", a->path);
	return buf;
}

bool net_addr_is_local(const struct net_addr *a)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (a->kind == NET_UNIX)
		return true;
	if (!IS_AGENT && a->kind == NET_SSH)
		return false;
	if (inet_pton(AF_INET, a->host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, a->host, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return !strcmp(a->host, "localhost");
}

int net_addr_check_tcp(const struct net_addr *a, bool is_insecure_fine, const char **why)
{
	if (a->kind != NET_TCP || is_insecure_fine || net_addr_is_local(a))
		return 0;
	*why = "TCP does not encrypt: use ssh://, or add --insecure-tcp on both sides";
	return -EPERM;
}
