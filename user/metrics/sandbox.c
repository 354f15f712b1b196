/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other user, no capabilities, few system calls. */
#include "user/metrics/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/lib/call_filter.h"
#include "user/lib/landlock.h"
#include "user/lib/log.h"
#include "user/lib/privileges.h"
#include "user/lib/types.h"

enum { NOBODY = 65534 };

static void sandbox_say(const char *what)
{
	debug("metrics: %s: %s", what, strerror(errno));
}

static void be_nobody(void)
{
	/* Not permitted to most users, who have no more rights than nobody has. */
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		sandbox_say("the user stays");
}

static void sandbox_drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (syscall(SYS_capset, &head, none))
		sandbox_say("capabilities stay");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		sandbox_say("privileges");
}

static void set_limits(unsigned int max_files)
{
	const struct rlimit none = { 0, 0 }, files = { max_files, max_files };

	if (setrlimit(RLIMIT_NPROC, &none) || setrlimit(RLIMIT_CORE, &none) ||
	    setrlimit(RLIMIT_NOFILE, &files))
		sandbox_say("limits");
}

#ifdef HAS_CALL_FILTER
/* The calls of a server. Others fail with EPERM. */
static const u16 allowed[] = {
	SYS_read,	  SYS_write,	     SYS_readv,
	SYS_writev,	  SYS_pread64,	     SYS_recvfrom,
	SYS_recvmsg,	  SYS_sendto,	     SYS_sendmsg,
	SYS_sendfile,	  SYS_accept,	     SYS_accept4,
	SYS_close,	  SYS_shutdown,	     SYS_epoll_ctl,
	SYS_epoll_pwait,  SYS_ppoll,	     SYS_fcntl,
	SYS_getsockopt,	  SYS_setsockopt,    SYS_getsockname,
	SYS_getpeername,  SYS_lseek,	     SYS_fstat,
	SYS_mmap,	  SYS_munmap,	     SYS_mremap,
	SYS_mprotect,	  SYS_madvise,	     SYS_brk,
	SYS_futex,	  SYS_clock_gettime, SYS_clock_nanosleep,
	SYS_gettimeofday, SYS_getrandom,     SYS_getpid,
	SYS_gettid,	  SYS_rt_sigreturn,  SYS_rt_sigprocmask,
	SYS_rt_sigaction, SYS_sigaltstack,   SYS_restart_syscall,
	SYS_exit,	  SYS_exit_group,
#ifdef __x86_64__
	SYS_epoll_wait,	  SYS_poll,	     SYS_time,
#endif
};

static void sandbox_filter_calls(void)
{
	int err = call_filter_set(CALL_FILTER_ALLOW, allowed, ARRAY_SIZE(allowed));

	if (err)
		debug("metrics: no filter of system calls: %s", strerror(-err));
}
#else
static void sandbox_filter_calls(void)
{
}
#endif

void sandbox_enter(unsigned int max_files)
{
	set_limits(max_files);
	be_nobody();
	sandbox_drop_capabilities();
	/* A change of the user forgets it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sandbox_filter_calls();
}

void sandbox_enter_sender(void)
{
	const struct rlimit none = { 0, 0 };

	/* A library that asks for the address of a host may make threads. */
	if (setrlimit(RLIMIT_CORE, &none) || setrlimit(RLIMIT_FSIZE, &none))
		sandbox_say("limits");
	be_nobody();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	privileges_drop(PRIVILEGES_SENDING, 0);
	landlock_forbid_all_but_sending();
}
