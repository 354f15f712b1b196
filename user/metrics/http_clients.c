/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table of connections with the time since when each request takes. */
#include "user/metrics/http_clients.h"

#include <sys/socket.h>

/* The library notices, and closes the descriptor. */
static void http_clients_shut(struct http_client *client)
{
	shutdown(client->fd - 1, SHUT_RDWR);
	client->waits = true;
}

static void shut_oldest(struct http_clients *c)
{
	struct http_client *oldest = NULL;

	for (u32 i = 0; i < HTTP_CLIENT_ROOM; i++)
		if (c->list[i].fd && !c->list[i].waits && (!oldest || c->list[i].since_ms < oldest->since_ms))
			oldest = &c->list[i];
	if (oldest)
		http_clients_shut(oldest);
}

struct http_client *http_clients_add(struct http_clients *c, int fd, u64 now_ms)
{
	if (c->nr >= HTTP_MAX_CLIENTS)
		shut_oldest(c);
	for (u32 i = 0; i < HTTP_CLIENT_ROOM; i++) {
		if (c->list[i].fd)
			continue;
		c->list[i] = (struct http_client){ .fd = fd + 1, .since_ms = now_ms };
		c->nr++;
		return &c->list[i];
	}
	return NULL;
}

void http_clients_del(struct http_clients *c, struct http_client *client)
{
	if (!client)
		return;
	*client = (struct http_client){ 0 };
	c->nr--;
}

void http_clients_sweep(struct http_clients *c, u64 now_ms)
{
	for (u32 i = 0; i < HTTP_CLIENT_ROOM && c->nr; i++)
		if (c->list[i].fd && !c->list[i].waits && now_ms - c->list[i].since_ms > HTTP_REQUEST_MS)
			http_clients_shut(&c->list[i]);
}
