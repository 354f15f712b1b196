/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Before attaching: fewer capabilities, and a filter of system calls. */
#include "user/source/privileges.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/lib/log.h"
#include "user/lib/types.h"

/* Newer than some headers; the numbers are those of all CPUs. */
enum { PERFMON = 38, BPF = 39, CHECKPOINT_RESTORE = 40 };

static const u8 kept[] = {
	CAP_CHOWN,
	CAP_FOWNER, /* files for the user who typed sudo */
	CAP_SETGID,
	CAP_SETUID,	     /* a browser of that user */
	CAP_DAC_OVERRIDE,    /* reports in directories of others */
	CAP_DAC_READ_SEARCH, /* files of targets */
	CAP_KILL,
	CAP_SYS_NICE, /* threads of targets that a probe has stopped */
	CAP_IPC_LOCK,
	CAP_SYS_RESOURCE, /* limits of memory and descriptors */
	CAP_SYS_PTRACE,
	CHECKPOINT_RESTORE, /* mappings and memory of targets */
	CAP_SYS_ADMIN,
	PERFMON,
	BPF, /* probes in libraries that are loaded later */
};

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	u32 mask[2] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		mask[kept[i] / 32] |= 1U << kept[i] % 32;
	if (syscall(SYS_capget, &head, data)) {
		debug("privileges: %s", strerror(errno));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(mask); i++) {
		data[i].effective &= mask[i];
		data[i].permitted &= mask[i];
		data[i].inheritable &= mask[i];
	}
	if (syscall(SYS_capset, &head, data))
		debug("privileges: capabilities stay: %s", strerror(errno));
}

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE AUDIT_ARCH_RISCV64
#endif

#ifdef NATIVE
/* Newer than some headers; the numbers are those of all CPUs. */
enum { MOVE_MOUNT = 429, FSOPEN = 430, FSMOUNT = 432, MOUNT_SETATTR = 442 };

/* Numbers from here on are those of x32, a second set on x86_64. No CPU has others. */
enum { X32_CALLS = 0x40000000 };

/* Calls that change the machine, or the memory of other processes. */
static const u16 denied[] = {
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_swapon,
	SYS_swapoff,
	SYS_reboot,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_clock_adjtime,
	SYS_adjtimex,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_acct,
	SYS_quotactl,
	SYS_process_vm_writev,
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_setns,
	SYS_mknodat,
	SYS_personality,
	SYS_unshare,
	SYS_kexec_file_load,
	SYS_open_by_handle_at,
	MOVE_MOUNT,
	FSOPEN,
	FSMOUNT,
	MOUNT_SETATTR,
};

static void filter_calls(void)
{
	enum { HEAD = 5, TAIL = 2, NR = ARRAY_SIZE(denied), ALL = HEAD + NR + TAIL };
	struct sock_filter code[ALL] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, NR + 1, 0),
	};
	const struct sock_fprog program = { .len = ALL, .filter = code };

	for (u32 i = 0; i < NR; i++)
		code[HEAD + i] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied[i], NR - i, 0);
	code[ALL - 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[ALL - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	/* For all threads. A positive result is one that has another filter. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		debug("privileges: no filter of system calls: %s", strerror(errno));
}
#else
static void filter_calls(void)
{
}
#endif

void privileges_drop(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		debug("privileges: %s", strerror(errno));
	drop_capabilities();
	filter_calls();
}
