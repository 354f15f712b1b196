/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By what a process goes on to do: fewer capabilities, and a filter of system calls. */
#include "user/lib/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/lib/call_filter.h"
#include "user/lib/log.h"

/* Newer than some headers; the numbers are those of all CPUs. */
enum { PERFMON = 38, BPF = 39, CHECKPOINT_RESTORE = 40 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

/* Sets of enum privileges_for. */
enum {
	TRACING = 1 << PRIVILEGES_TRACING,
	LINKS = 1 << PRIVILEGES_LINKS,
	GUARDING = 1 << PRIVILEGES_GUARDING,
	KEEPING = 1 << PRIVILEGES_KEEPING,
	SCANNING = 1 << PRIVILEGES_SCANNING,
	SUSPENDING = 1 << PRIVILEGES_SUSPENDING,
	SCANS = SCANNING | SUSPENDING,
	FILES = 1 << PRIVILEGES_FILES,
	PEER = 1 << PRIVILEGES_PEER,
	HOLDING = 1 << PRIVILEGES_HOLDING,
	SENDING = 1 << PRIVILEGES_SENDING,
	ALL = TRACING | LINKS | GUARDING | KEEPING | SCANS | FILES | PEER | HOLDING | SENDING,
};

/* A capability or a system call, and who needs it or must not make it. */
struct privilege_row {
	u16 nr;
	u16 of;
};

static const struct privilege_row kept[] = {
	/* Files for the user who typed sudo. */
	{ CAP_CHOWN, TRACING | SCANS },
	{ CAP_FOWNER, TRACING | SCANS },
	/* A browser of that user. */
	{ CAP_SETGID, TRACING },
	{ CAP_SETUID, TRACING },
	/* Reports in directories of others, and /proc/PID/mem of others. */
	{ CAP_DAC_OVERRIDE, TRACING | SCANS | GUARDING | KEEPING },
	/* Files of targets. */
	{ CAP_DAC_READ_SEARCH, TRACING | SCANS | GUARDING | KEEPING | FILES | PEER },
	{ CAP_KILL, TRACING | SCANS | GUARDING | KEEPING | LINKS | HOLDING },
	/* Threads of targets that a probe has stopped; masks of CPUs of traced threads; the CPU during a stop. */
	{ CAP_SYS_NICE, TRACING | SCANS | GUARDING | KEEPING },
	{ CAP_IPC_LOCK, TRACING | GUARDING | KEEPING },
	/* Limits of memory and descriptors. */
	{ CAP_SYS_RESOURCE, TRACING },
	/* Mappings and memory of targets, and their states where /proc hides processes. */
	{ CAP_SYS_PTRACE, TRACING | SCANS | GUARDING | KEEPING | LINKS },
	{ CHECKPOINT_RESTORE, TRACING | SCANS | GUARDING | KEEPING },
	/* Suspending the filter of a target, and probes of kernels before Linux 6.6. */
	{ CAP_SYS_ADMIN, TRACING | SUSPENDING | LINKS | KEEPING },
	/* Probes in libraries that are loaded later. */
	{ PERFMON, TRACING | LINKS | KEEPING },
	{ BPF, TRACING | LINKS | KEEPING },
};

static void clear_capabilities(struct __user_cap_data_struct data[2], u64 left)
{
	for (size_t i = 0; i < 2; i++) {
		u32 mask = (u32)(left >> 32 * i);

		data[i].effective &= mask;
		data[i].permitted &= mask;
		data[i].inheritable &= mask;
	}
}

/* The capabilities that the jobs @of need, as a mask. */
static u64 capabilities_of(u32 of)
{
	u64 left = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (kept[i].of & of)
			left |= 1ULL << kept[i].nr;
	/* Before Linux 5.9 there is no smaller capability for the files of mappings. */
	if (of & (SCANS | GUARDING) && prctl(PR_CAPBSET_READ, CHECKPOINT_RESTORE, 0, 0, 0) < 0)
		left |= 1ULL << CAP_SYS_ADMIN;
	return left;
}

static void privileges_drop_capabilities(u32 of, u64 more)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	u64 left = capabilities_of(of);

	if (syscall(SYS_capget, &head, data)) {
		debug("privileges: %s", strerror(errno));
		return;
	}
	/*
	 * Without CAP_SYS_PTRACE the kernel lets a process trace and read only processes whose permitted
	 * capabilities it has too (security/commoncap.c). In a container, programs of root have those of the
	 * container.
	 */
	if (left & ~data[0].effective & 1ULL << CAP_SYS_PTRACE)
		return;
	clear_capabilities(data, left | more);
	if (syscall(SYS_capset, &head, data))
		debug("privileges: capabilities stay: %s", strerror(errno));
}

#ifdef HAS_CALL_FILTER
/* Newer than some headers; the numbers are those of all CPUs. */
enum { MOVE_MOUNT = 429, FSOPEN = 430, FSMOUNT = 432, MOUNT_SETATTR = 442 };

static const struct privilege_row denied[] = {
	/* Calls that change the machine, or the memory of other processes. */
	{ SYS_mount, ALL },
	{ SYS_umount2, ALL },
	{ SYS_pivot_root, ALL },
	{ SYS_chroot, ALL },
	{ SYS_swapon, ALL },
	{ SYS_swapoff, ALL },
	{ SYS_reboot, ALL },
	{ SYS_init_module, ALL },
	{ SYS_finit_module, ALL },
	{ SYS_delete_module, ALL },
	{ SYS_kexec_load, ALL },
	{ SYS_settimeofday, ALL },
	{ SYS_clock_settime, ALL },
	{ SYS_clock_adjtime, ALL },
	{ SYS_adjtimex, ALL },
	{ SYS_sethostname, ALL },
	{ SYS_setdomainname, ALL },
	{ SYS_acct, ALL },
	{ SYS_quotactl, ALL },
	{ SYS_process_vm_writev, ALL },
	{ SYS_add_key, ALL },
	{ SYS_request_key, ALL },
	{ SYS_keyctl, ALL },
	{ SYS_setns, ALL },
	{ SYS_mknodat, ALL },
	{ SYS_personality, ALL },
	{ SYS_unshare, ALL },
	{ SYS_kexec_file_load, ALL },
	{ SYS_open_by_handle_at, ALL },
	{ MOVE_MOUNT, ALL },
	{ FSOPEN, ALL },
	{ FSMOUNT, ALL },
	{ MOUNT_SETATTR, ALL },
	/* Other processes, and the kernel's programs. */
	{ SYS_ptrace, LINKS | FILES | PEER | HOLDING | SENDING },
	{ SYS_process_vm_readv, LINKS | FILES | PEER | HOLDING | SENDING },
	{ SYS_bpf, GUARDING | SCANNING | FILES | PEER | HOLDING | SENDING },
	{ SYS_perf_event_open, GUARDING | SCANNING | FILES | PEER | HOLDING | SENDING },
	/* The network. */
	{ SYS_socket, LINKS | GUARDING | KEEPING | FILES | HOLDING },
	{ SYS_execve, LINKS | GUARDING | KEEPING | HOLDING | SENDING },
	{ SYS_execveat, LINKS | GUARDING | KEEPING | FILES | HOLDING | SENDING },
};

static void privileges_filter_calls(u32 of)
{
	u16 calls[ARRAY_SIZE(denied)];
	size_t nr = 0;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
		if (denied[i].of & of)
			calls[nr++] = denied[i].nr;
	err = call_filter_set(CALL_FILTER_DENY, calls, nr);
	if (err)
		debug("privileges: no filter of system calls: %s", strerror(-err));
}
#else
static void privileges_filter_calls(u32 of)
{
	(void)of;
}
#endif

void privileges_drop(enum privileges_for what, u64 more)
{
	/* A sanitizer looks for leaks by ptrace, when the program ends. */
	if (IS_SANITIZED &&
	    (what == PRIVILEGES_FILES || what == PRIVILEGES_PEER || what == PRIVILEGES_SENDING))
		what = PRIVILEGES_SCANNING;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		debug("privileges: %s", strerror(errno));
	privileges_drop_capabilities(1U << what, more);
	if (what != PRIVILEGES_SUSPENDING)
		privileges_filter_calls(1U << what);
}

u64 privileges_to_write(const int *dirs, size_t nr, bool gives_away)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct had[2], none[2];
	u64 all = 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER | 1ULL << CAP_CHOWN;
	u64 needed = gives_away && nr ? 1ULL << CAP_CHOWN | 1ULL << CAP_FOWNER : 0;
	struct stat st;

	if (!dirs || syscall(SYS_capget, &head, had))
		return all;
	for (size_t i = 0; i < 2; i++)
		none[i] = (struct __user_cap_data_struct){ .permitted = had[i].permitted,
							   .inheritable = had[i].inheritable };
	if (syscall(SYS_capset, &head, none))
		return all;
	for (size_t i = 0; i < nr; i++) {
		if (faccessat(dirs[i], ".", W_OK | X_OK, AT_EACCESS))
			needed |= 1ULL << CAP_DAC_OVERRIDE;
		/* Replacing a file of another user there. */
		if (fstat(dirs[i], &st) || (st.st_mode & S_ISVTX && st.st_uid != geteuid()))
			needed |= 1ULL << CAP_FOWNER;
	}
	return syscall(SYS_capset, &head, had) ? 0 : needed;
}
