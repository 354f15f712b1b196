/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that heaptap starts, between fork and exec. */
#include "user/source/launch_child.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "user/source/limits.h"
#include "user/source/source_tracer.h"

/* Keeps the settings of signals that heaptap changes for itself, for the programs that it starts. */

/* Static, because these settings belong to the process. */
static struct {
	bool is_known, ignores_children;
	sigset_t mask;
} inherited;

void inherited_begin(void)
{
	struct sigaction now;

	inherited.is_known = !sigprocmask(SIG_SETMASK, NULL, &inherited.mask);
	if (sigaction(SIGCHLD, NULL, &now) || now.sa_handler != SIG_IGN)
		return;
	/* Where SIGCHLD is ignored, the kernel keeps no exit status of a child. */
	inherited.ignores_children = true;
	signal(SIGCHLD, SIG_DFL);
}

/* In the child, before it executes the program. Async-signal-safe. */
static void inherited_restore(void)
{
	if (inherited.ignores_children)
		signal(SIGCHLD, SIG_IGN);
	if (!inherited.is_known)
		sigemptyset(&inherited.mask);
	sigprocmask(SIG_SETMASK, &inherited.mask, NULL);
}

/* Runs in the child: become @user. 0 or -errno. */
static int launch_child_become(const char *user)
{
	const struct passwd *pw = getpwnam(user);

	if (!pw)
		return -EINVAL;
	if (initgroups(pw->pw_name, pw->pw_gid) || setgid(pw->pw_gid) || setuid(pw->pw_uid))
		return -errno;
	/* Programs look for their files where these say, and must not write into those of root. */
	if (setenv("HOME", pw->pw_dir, 1) || setenv("USER", pw->pw_name, 1) ||
	    setenv("LOGNAME", pw->pw_name, 1) || setenv("SHELL", pw->pw_shell, 1))
		return -errno;
	return 0;
}

void launch_child(const struct launch_options *o, int go, int report)
{
	struct launch_failure f = { .step = LAUNCH_USER };
	char c;

	inherited_restore();
	/* Without this Yama permits only parents to trace the program. */
	if (o->tracer)
		prctl(PR_SET_PTRACER, (unsigned long)o->tracer->pid(o->source), 0, 0, 0);
	if (read(go, &c, 1) != 1)
		_exit(127);
	limits_restore_all();
	if (!IS_AGENT && o->leaves_stdout)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	if (o->env)
		environ = (char **)(uintptr_t)o->env;
	if (o->user)
		f.err = launch_child_become(o->user);
	if (!f.err && o->cwd && chdir(o->cwd))
		f = (struct launch_failure){ LAUNCH_CWD, -errno };
	if (!f.err) {
		execvp(o->argv[0], o->argv);
		f = (struct launch_failure){ LAUNCH_EXEC, -errno };
	}
	if (write(report, &f, sizeof(f)) < 0)
		_exit(126);
	_exit(127);
}
