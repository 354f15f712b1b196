/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user of a program that run or serve starts. */
#include "user/cli/run_as.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>

#include "user/cli/options.h"
#include "user/lib/log.h"
#include "user/stream/out_name.h"

int run_as(const struct options *o, char **user)
{
	uid_t uid;
	gid_t gid;
	const struct passwd *caller = out_find_caller(&uid, &gid) && uid ? getpwuid(uid) : NULL;
	const char *name = caller && !o->user && !o->as_root ? caller->pw_name : o->user;
	const char *command = o->command->name;

	if (o->as_root && o->user) {
		error("%s: --as-root: goes without --user", command);
		return -EINVAL;
	}
	if (name && !o->user && !o->quiet)
		info("%s: the program runs as %s, not as root (--as-root)", command, name);
	*user = name ? strdup(name) : NULL;
	if (!name || *user)
		return 0;
	error("%s: %s", command, strerror(ENOMEM));
	return -ENOMEM;
}
