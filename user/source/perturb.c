/* SPDX-License-Identifier: GPL-2.0-or-later */
/* glibc fills freed memory with a byte and fresh memory with its complement: neither makes an address. */
#include "user/source/perturb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME	"GLIBC_TUNABLES="
#define TUNABLE "glibc.malloc.perturb="
#define OLD	"MALLOC_PERTURB_="	       /* before there were tunables */
#define VALUE	"165"			       /* 0xa5, and 0x5a */
#define CACHE	":glibc.malloc.tcache_count=0" /* what threads keep for themselves is not overwritten */

static bool begins_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

int perturb_env(char ***out, char *const *env)
{
	const char *tunables = NULL;
	bool has_own = false;
	size_t nr = 0, bytes = 0;
	char **list, *at;

	for (; env[nr]; nr++) {
		bytes += strlen(env[nr]) + 1;
		if (begins_with(env[nr], NAME))
			tunables = env[nr] + strlen(NAME);
		has_own |= begins_with(env[nr], OLD);
	}
	has_own |= tunables && strstr(tunables, TUNABLE);
	bytes += sizeof(NAME TUNABLE VALUE CACHE ":") + sizeof(OLD VALUE) + (tunables ? strlen(tunables) : 0);
	list = malloc((nr + 3) * sizeof(*list) + bytes);
	if (!list)
		return -ENOMEM;
	at = (char *)(list + nr + 3);
	*out = list;
	for (size_t i = 0; i < nr; i++) {
		if (begins_with(env[i], NAME) && !has_own)
			continue;
		*list++ = strcpy(at, env[i]);
		at += strlen(at) + 1;
	}
	if (!has_own) {
		*list++ = at;
		at += sprintf(at, NAME TUNABLE VALUE CACHE "%s%s", tunables && *tunables ? ":" : "",
			      tunables ? tunables : "") +
		      1;
		*list++ = strcpy(at, OLD VALUE);
	}
	*list = NULL;
	return 0;
}
