/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides which processes are never traced. */
#include "user/system/spare.h"

#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ANCESTORS = 64 };

/* Logins, keys, and daemons that others wait for. comm has 15 bytes. */
static const char *const spare_names[] = { "sshd",	   "sshd-session",
					   "sshd-auth",	   "ssh-agent",
					   "gpg-agent",	   "gnome-keyring-d",
					   "kwalletd*",	   "pcscd",
					   "scdaemon",	   "login",
					   "agetty",	   "sudo",
					   "su",	   "polkitd",
					   "systemd",	   "systemd-*",
					   "(sd-pam)",	   "dbus-daemon",
					   "dbus-broker*", "containerd-shim*",
					   "conmon",	   "runc",
					   "crun",	   "auditd",
					   "heaptap*",	   NULL };

static bool spare_fits(const char *const *names, const char *comm)
{
	for (; names && *names; names++)
		if (!fnmatch(*names, comm, 0))
			return true;
	return false;
}

static bool has_none(const char *const *names)
{
	for (; names && *names; names++)
		if (!strcmp(*names, "none"))
			return true;
	return false;
}

/* heaptap, and whoever started it. Its children are not watched. */
static bool spare_is_ours(pid_t pid)
{
	pid_t up = getpid();
	struct proc_stat stat;

	for (int i = 0; i < MAX_ANCESTORS && up > 0; i++) {
		if (up == pid)
			return true;
		up = proc_read_stat(&stat, up) ? 0 : stat.ppid;
	}
	return false;
}

const char *spare_reason(const char *const *names, const struct watched *p)
{
	if (spare_is_ours(p->pid))
		return "heaptap itself, or what it was started from";
	/* Whoever reads what heaptap prints: it would wait for heaptap, which waits for it. */
	if (getpgid(p->pid) == getpgrp())
		return "in the process group of heaptap, as what reads its output";
	if (spare_fits(names, p->comm))
		return "named by --spare";
	if (has_none(names))
		return NULL;
	if (p->pid == 1)
		return "the first process of the machine";
	return spare_fits(spare_names, p->comm) ? "other processes and users depend on it" : NULL;
}
