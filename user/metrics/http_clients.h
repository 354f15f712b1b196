/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections of the helper that serves HTTP: a client that sends or reads too slowly has to go. */
#pragma once

#include "user/lib/types.h"

enum {
	HTTP_MAX_CLIENTS = 1000, /* the oldest one that has no answer makes room for one more */
	HTTP_CLIENT_ROOM = 1024, /* those that are shut down need a moment to go */
	HTTP_REQUEST_MS = 30000, /* from the first byte of a request to the last one of its answer */
};

/* All zero: free. */
struct http_client {
	int fd; /* borrowed; + 1 */
	u64 since_ms;
	bool waits; /* for heaptap, not for the client */
};

struct http_clients {
	struct http_client list[HTTP_CLIENT_ROOM];
	u32 nr;
};

/* A connection on @fd has begun. NULL: there is no room. */
struct http_client *http_clients_add(struct http_clients *c, int fd, u64 now_ms);
void http_clients_del(struct http_clients *c, struct http_client *client);

/* Shut down those that took too long. */
void http_clients_sweep(struct http_clients *c, u64 now_ms);
