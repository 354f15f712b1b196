/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses processes by name, program, user, control group and container. */
#include "user/system/watch_choice.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/parse.h"
#include "user/lib/path.h"
#include "user/lib/proc.h"

bool watch_choice_any(const struct watch_choice *c)
{
	return c->comms || c->exes || c->cgroups || c->containers || c->pids || c->uids;
}

static int find_user(const char *name, u32 *uid)
{
	const struct passwd *user;
	u64 number;

	if (!parse_u64(name, &number) && number < UINT32_MAX) {
		*uid = (u32)number;
		return 0;
	}
	user = getpwnam(name);
	if (!user) {
		error("--uid: %s: no such user", name);
		return -EINVAL;
	}
	*uid = user->pw_uid;
	return 0;
}

int watch_choice_uids(const struct watch_choice *c, u32 **out, size_t *nr)
{
	auto_free u32 *list = NULL;
	size_t used = 0;

	for (size_t i = 0; c->uids && c->uids[i]; i++) {
		int err = array_extend(list, used);

		if (!err)
			err = find_user(c->uids[i], &list[used]);
		if (err)
			return err;
		used++;
	}
	*out = take_ptr(list);
	*nr = used;
	return 0;
}

static bool fits_comm(const struct watched *p, const char *pattern)
{
	return !fnmatch(pattern, p->comm, 0);
}

/* By path if the pattern has a slash, else by the last part of the path. */
static bool fits_exe(const struct watched *p, const char *pattern)
{
	auto_free char *exe = NULL;

	if (proc_exe(&exe, p->pid))
		return false;
	return !fnmatch(pattern, strchr(pattern, '/') ? exe : path_name(exe), 0);
}

static bool fits_cgroup(const struct watched *p, const char *part)
{
	return strstr(p->container.cgroup, part);
}

static bool fits_container(const struct watched *p, const char *name)
{
	const struct container *c = &p->container;

	if (c->name[0] && !fnmatch(name, c->name, 0))
		return true;
	if (c->id[0] && strlen(name) >= 4 && !strncmp(c->id, name, strlen(name) < 12 ? strlen(name) : 12))
		return true;
	return c->pod[0] && !strcmp(c->pod, name);
}

static bool fits_pid(const struct watched *p, const char *name)
{
	u64 pid;

	if (!parse_u64(name, &pid))
		return (pid_t)pid == p->pid;
	return !strcmp(name, p->comm) || fits_exe(p, name);
}

static bool fits_any(const struct watched *p, const char *const *list,
		     bool (*fits)(const struct watched *p, const char *text))
{
	for (size_t i = 0; list && list[i]; i++)
		if (fits(p, list[i]))
			return true;
	return !list;
}

static bool fits_uid(const u32 *uids, size_t nr_uids, struct watched *p)
{
	struct proc_status status;

	if (!nr_uids)
		return true;
	if (proc_read_status(&status, p->pid))
		return false;
	p->uid = status.uid;
	for (size_t i = 0; i < nr_uids; i++)
		if (uids[i] == p->uid)
			return true;
	return false;
}

bool watch_choice_fits(const struct watch_choice *c, const u32 *uids, size_t nr_uids, struct watched *p)
{
	if (!fits_any(p, c->pids, fits_pid) || !fits_any(p, c->comms, fits_comm) ||
	    !fits_any(p, c->exes, fits_exe) || !fits_uid(uids, nr_uids, p))
		return false;
	if ((c->cgroups || c->containers) && container_read(&p->container, p->pid))
		return false;
	return fits_any(p, c->cgroups, fits_cgroup) && fits_any(p, c->containers, fits_container);
}
