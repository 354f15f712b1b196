/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Run "heaptap serve --stdio" on another machine by ssh. */
#pragma once

#include "user/remote/net_addr.h"

struct remote_ssh {
	pid_t pid;  /* 0 = not started */
	int err_fd; /* owned; standard error of ssh and of the server; -1 = none */
	char line[512];
	size_t len;
};

void remote_ssh_init(struct remote_ssh *s);

/*
 * Start ssh to @a for the process a->path, or for @program (NULL-terminated) if that is not NULL. The caller owns *@fd:
 * standard input and output of ssh, non-blocking. 0 or -errno.
 */
int remote_ssh_start(struct remote_ssh *s, const struct net_addr *a, char *const *program,
		     int *fd) __must_check;

/* Log the new lines of standard error, escaped. */
void remote_ssh_poll(struct remote_ssh *s);

/* After *@fd was closed: wait until ssh ends; kill it after 3 s. */
void remote_ssh_end(struct remote_ssh *s);

/* The command for the shell over there. The caller owns it; NULL if there is no memory. */
char *remote_ssh_command(const struct net_addr *a, char *const *program);
