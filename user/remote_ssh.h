/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ssh as the way to a server: it runs "heaptap serve --stdio" over there. */
#pragma once

#include <sys/types.h>

#include "user/net_addr.h"

struct remote_ssh {
	pid_t pid;  /* 0 = not started */
	int err_fd; /* owned; what it and the server say; -1 = none */
	char line[512];
	size_t len;
};

void remote_ssh_init(struct remote_ssh *s);

/*
 * Start ssh to @a for the process a->path, or for @program (NULL-terminated) if that is not NULL. *@fd, the caller's,
 * is its standard input and output, does not block. 0 or -errno.
 */
int remote_ssh_start(struct remote_ssh *s, const struct net_addr *a, char *const *program,
		     int *fd) __must_check;

/* Show what it and the server have said since, line by line, escaped. */
void remote_ssh_poll(struct remote_ssh *s);

/* Its descriptor has been closed: let it end, by force after 3 s. */
void remote_ssh_end(struct remote_ssh *s);

/* The command for the shell over there; owned by the caller, NULL without memory. */
char *remote_ssh_command(const struct net_addr *a, char *const *program);
