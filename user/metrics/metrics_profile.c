/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes profiles and pages for the helper processes. */
#include "user/metrics/metrics.h"

#include "user/report/pprof.h"

struct making {
	const struct metrics_feed *feed;
	const struct profile_key *key;
	const char **why;
};

static int write_profile(void *ctx, FILE *out)
{
	struct making *making = ctx;
	struct pprof *profile;
	int err = pprof_new(&profile, out, making->key->kind), end_err;

	if (err)
		return err;
	err = making->feed->profile(making->feed->ctx, making->key, profile, making->why);
	end_err = pprof_end(profile);
	return err ? err : end_err;
}

static int write_page(void *ctx, FILE *out)
{
	struct making *making = ctx;

	return making->feed->page(making->feed->ctx, making->key, out, making->why);
}

int metrics_make_profile(int *fd, const struct metrics_feed *feed, const struct profile_key *key,
			 const char **why)
{
	struct making making = { feed, key, why };

	if (key->kind < NR_PPROF_KINDS)
		return channel_make_file(fd, "heaptap-profile", write_profile, &making);
	return channel_make_file(fd, "heaptap-page", write_page, &making);
}
