/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Make the name of a file from the name that the user typed. */
#include "user/stream/out_name.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/parse.h"

void out_values_set_time(struct out_values *v)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	/* No strftime(): the agent would be 4 KiB larger. */
	snprintf(v->time, sizeof(v->time), "%04u%02u%02u-%02u%02u%02u-%03u", (tm.tm_year + 1900U) % 10000,
		 (tm.tm_mon + 1U) % 100, tm.tm_mday % 100U, tm.tm_hour % 100U, tm.tm_min % 100U,
		 tm.tm_sec % 100U, (unsigned)(now.tv_nsec / 1000000) % 1000U);
}

static int out_name_placeholder(char letter, const struct out_values *v, char text[32])
{
	switch (letter) {
	case 'p':
		snprintf(text, 32, "%d", (int)v->pid);
		return 0;
	case 'n':
		snprintf(text, 32, "%" PRIu64, v->number);
		return 0;
	case 't':
		memcpy(text, v->time, 32);
		return 0;
	case '%':
		strcpy(text, "%");
		return 0;
	default:
		return -EINVAL;
	}
}

int out_expand(const char *pattern, const struct out_values *v, char out[NAME_MAX + 1])
{
	size_t used = 0;

	*out = '\0';
	for (const char *p = pattern; *p; p++) {
		char text[32] = { *p };

		if (*p == '%' && out_name_placeholder(*++p, v, text))
			return -EINVAL;
		used += snprintf(out + used, NAME_MAX + 1 - used, "%s", text);
		if (used > NAME_MAX)
			return -ENAMETOOLONG;
	}
	return 0;
}

bool out_find_caller(uid_t *uid, gid_t *gid)
{
	const char *uid_text = getenv("SUDO_UID");
	const char *gid_text = getenv("SUDO_GID");
	u64 u, g;

	if (geteuid() || !uid_text || !gid_text)
		return false;
	if (parse_u64(uid_text, &u) || parse_u64(gid_text, &g) || u >= UINT32_MAX || g >= UINT32_MAX)
		return false;
	*uid = (uid_t)u;
	*gid = (gid_t)g;
	return true;
}

int out_give_to_caller(int fd)
{
	uid_t uid;
	gid_t gid;

	if (!out_find_caller(&uid, &gid))
		return 0;
	return fchown(fd, uid, gid) ? -errno : 0;
}

int out_become_caller(void)
{
	uid_t uid;
	gid_t gid;

	if (!out_find_caller(&uid, &gid))
		return 0;
	return setgroups(0, NULL) || setgid(gid) || setuid(uid) ? -errno : 0;
}

bool out_is_trusted_owner(uid_t owner)
{
	uid_t uid;
	gid_t gid;

	return owner == 0 || owner == geteuid() || (out_find_caller(&uid, &gid) && owner == uid);
}
