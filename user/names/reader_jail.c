/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes all rights from the reader before it sees the first byte of a file. */
#include "user/names/reader_jail.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/lib/call_filter.h"
#include "user/lib/landlock.h"
#include "user/names/reader_wire.h"

/* Of an overflow; "nobody" on every distribution. */
enum { NOBODY = 65534, OOM_FIRST = 1000 };

/* Besides the files, which are mapped. */
#define WORK_MIN (1ULL << 30)
#define WORK_MAX (8ULL << 30)

#ifdef HAS_CALL_FILTER
/* For reading with libdw, allocating and dying. */
static const u16 allowed[] = {
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_pread64,
	SYS_recvmsg,
	SYS_sendmsg,
	SYS_lseek,
	SYS_close,
	SYS_fcntl,
	SYS_fstat,
	SYS_newfstatat,
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_brk,
	SYS_futex,
	SYS_getrandom,
	SYS_sysinfo,
	SYS_prlimit64,
	SYS_clock_gettime,
	SYS_gettid,
	SYS_getpid,
	SYS_tgkill,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_exit,
	SYS_exit_group,
	SYS_restart_syscall,
#ifdef SYS_riscv_flush_icache
	SYS_riscv_flush_icache,
#endif
};

static void reader_jail_filter_calls(void)
{
	(void)!call_filter_set(CALL_FILTER_ALLOW, allowed, ARRAY_SIZE(allowed));
}
#else
static void reader_jail_filter_calls(void)
{
}
#endif

static void become_nobody(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { { 0 } };

	/* Fails where user 65534 does not exist in the user namespace: the other bounds are there. */
	if (!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY))
		(void)!setresuid(NOBODY, NOBODY, NOBODY);
	(void)!syscall(SYS_capset, &head, none);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static void set_limit(int resource, u64 value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return;
	if (value < limit.rlim_max)
		limit.rlim_max = value;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(resource, &limit);
}

/* Bytes of this process's address space in use; 0 if unknown. */
static u64 used_address_space(const struct reader_jail *j)
{
	char text[32];
	ssize_t len = j->usage_fd < 0 ? -1 : pread(j->usage_fd, text, sizeof(text) - 1, 0);

	if (len <= 0)
		return 0;
	text[len] = '\0';
	return strtoull(text, NULL, 10) * (u64)sysconf(_SC_PAGESIZE);
}

static void set_address_space(u64 bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit))
		return;
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	setrlimit(RLIMIT_AS, &limit);
}

static void limit_memory(struct reader_jail *j)
{
	u64 machine = (u64)sysconf(_SC_PHYS_PAGES) * (u64)sysconf(_SC_PAGESIZE);
	u64 work = machine / 2 < WORK_MIN ? WORK_MIN : machine / 2 > WORK_MAX ? WORK_MAX : machine / 2;
	u64 used = used_address_space(j);

	if (!used || READER_IS_SANITIZED)
		return;
	/* The soft limit grows with the files. The hard one is what a reader that was taken over can reach. */
	set_limit(RLIMIT_AS, used + WORK_MAX + 2 * machine);
	j->limit = used + work;
	set_address_space(j->limit);
}

static void reader_jail_die_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!dprintf(fd, "%d", OOM_FIRST);
	close(fd);
}

void reader_jail_enter(struct reader_jail *j, u64 cpu_s)
{
	reader_jail_die_first();
	*j = (struct reader_jail){ .usage_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC) };
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_FSIZE, 0);
	set_limit(RLIMIT_CPU, cpu_s);
	limit_memory(j);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!READER_IS_SANITIZED)
		landlock_forbid_all();
	become_nobody();
	if (!READER_IS_SANITIZED)
		reader_jail_filter_calls();
}

void reader_jail_expect(struct reader_jail *j, u64 size)
{
	if (!j->limit)
		return;
	j->limit += size;
	set_address_space(j->limit);
}

void reader_jail_tighten(struct reader_jail *j, u64 bytes)
{
	u64 used = used_address_space(j);

	if (j->limit && used && used + bytes < j->limit)
		set_address_space(used + bytes);
}

void reader_jail_relax(struct reader_jail *j)
{
	if (j->limit)
		set_address_space(j->limit);
}
