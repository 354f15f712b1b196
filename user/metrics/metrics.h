/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics and profiles for programs that collect them, over HTTP. A helper process talks to them; it has no rights, and
 * gets snapshots and profiles from here. Nothing here waits for it.
 */
#pragma once

#include "user/lib/types.h"
#include "user/metrics/channel.h"

struct metrics;
struct metrics_table;
struct pprof;

/* Where the numbers come from. */
struct metrics_feed {
	void *ctx;
	/* Fill in @t, whose time is set. 0 or -errno. */
	int (*table)(void *ctx, struct metrics_table *t);
	/* Add the reports on the processes that @key names. 0, -ESRCH or -ENODATA with *@why; or -errno. */
	int (*profile)(void *ctx, const struct profile_key *key, struct pprof *out, const char **why);
	/* Write the page, or its data, as @key says. NULL: nobody asks for pages. As above. */
	int (*page)(void *ctx, const struct profile_key *key, FILE *out, const char **why);
};

/*
 * Write the profile or page that @key names into a file in memory; the caller owns *@fd. 0; -errno, and if *@why is
 * not NULL, that is the reason in words.
 */
int metrics_make_profile(int *fd, const struct metrics_feed *feed, const struct profile_key *key,
			 const char **why) __must_check;

/* Is there such a thing in this build? */
extern const bool metrics_is_built;

/*
 * Serve at @address: PORT or ADDR:PORT of TCP, where without ADDR it is 127.0.0.1 and port 0 is any free one; or
 * unix:/path. Forks: before there are threads. Logs where it serves. 0; or, logged, -EINVAL for an address that cannot
 * be one, or -errno.
 */
int metrics_open(struct metrics **out, const char *address) __must_check;

/* Readable when somebody asks; -1 without metrics. */
int metrics_fd(const struct metrics *m);

/* Make a snapshot if one is due, and answer one question at most. For each round of a loop. NULL is fine. */
void metrics_round(struct metrics *m, const struct metrics_feed *feed);

/* Tell waiting clients that heaptap ends, and free @m. NULL is fine. */
void metrics_close(struct metrics *m);
