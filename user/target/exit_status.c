/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The status of an ended process: of a zombie from /proc, later from its process descriptor. */
#include "user/target/exit_status.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "user/lib/proc.h"
#include "user/target/target.h"

/* struct pidfd_info of Linux 6.15, which not each linux/pidfd.h has. */
struct pidfd_status {
	u64 mask;
	u64 cgroup_id;
	u32 ids[11]; /* of the process, its parent, users and groups */
	s32 exit_status;
};
_Static_assert(sizeof(struct pidfd_status) == 64, "as the kernel has it");

enum { PIDFD_STATUS = 8 }; /* PIDFD_INFO_EXIT: a bit of the mask */
static const unsigned long get_info = _IOWR(0xff, 11, struct pidfd_status);

/*
 * The kernel shows a zombie's status as 0 to who may not trace it. Its user namespace is shown with the same right
 * (fs/proc/array.c and fs/proc/namespaces.c of Linux 6.1), and is there until somebody waits for it.
 */
static bool may_see_status(pid_t pid)
{
	char path[64], link[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return readlink(path, link, sizeof(link)) > 0;
}

int target_exit_status(const struct target *t)
{
	struct pidfd_status info = { .mask = PIDFD_STATUS };
	struct proc_stat stat;

	if (!proc_read_stat(&stat, t->pid) && stat.start_time == t->start_time && stat.state == 'Z')
		return stat.exit_status || may_see_status(t->pid) ? stat.exit_status : -1;
	/* The parent has taken the status. */
	if (t->pidfd < 0 || ioctl(t->pidfd, get_info, &info) || !(info.mask & PIDFD_STATUS))
		return -1;
	return info.exit_status;
}
