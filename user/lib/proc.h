/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the files of /proc about a process. Only this file reads stat, status, exe, cmdline, auxv and task. */
#pragma once

#include "user/lib/types.h"

/*
 * All functions read once, never block and do not stop the target. Unless said otherwise they return 0, -ESRCH if the
 * process is gone (or hidden by the mount option hidepid), -EACCES or -EPERM without permission, -EPROTO for text of
 * another format, or -errno. None of them logs.
 */

enum { PROC_COMM_SIZE = 64 }; /* kernel threads may have longer names than the 15 bytes of a process */

/* /proc/PID/stat, readable by everybody. */
struct proc_stat {
	char comm[PROC_COMM_SIZE];
	char state; /* 'R' 'S' 'D' 'T' 't' 'Z' 'X' */
	pid_t ppid;
	bool is_kernel_thread;
	bool is_kernel_worker; /* a thread of a program that runs the kernel's code only, as those of io_uring do */
	u32 nr_threads;	       /* alive; the main thread counts even if it is a zombie */
	bool has_waited;       /* for children that have ended */
	u64 user_ns,
		system_ns; /* CPU time in the program and in the kernel, of all threads; in clock ticks' steps */
	u64 start_time;	   /* clock ticks since boot */
	int exit_status;  /* of a zombie, as wait(2) returns it; 0 without permission */
	taddr_t start_sp; /* stack pointer at the program's first instruction; 0 without permission */
};

/* @pid is a process or any thread. */
int proc_read_stat(struct proc_stat *out, pid_t pid) __must_check;

/* /proc/PID/status. Fields that the kernel does not show are 0. */
struct proc_status {
	pid_t tgid, ppid, tracer_pid;
	pid_t ns_tgid;	 /* its PID in its own PID namespace */
	u32 ns_depth;	 /* PID namespaces between ours and its own */
	uid_t uid, euid; /* real, effective; in our user namespace */
	gid_t gid, egid;
	u32 seccomp;	    /* 0 none, 1 strict, 2 filter */
	bool has_memory;    /* has an address space: is no kernel thread, and is not exiting */
	u64 resident_bytes; /* RSS; 0 if it has no memory */
	u64 swapped_bytes;
	u64 anonymous_bytes; /* of resident_bytes, without memory of files */
	u64 shared_bytes;    /* of resident_bytes, shared memory without a file on a disk */
	u64 pinned_bytes;    /* that devices may write to */
	u64 mapped_bytes;    /* as RLIMIT_AS counts them */
	u64 data_bytes;	     /* as RLIMIT_DATA counts them */
	u64 caps_effective;
	u64 signals_blocked, signals_caught,
		signals_ignored; /* bit n - 1 is signal n; blocked: by this thread */
	u32 nr_threads;
};

int proc_read_status(struct proc_status *out, pid_t pid) __must_check;

/* Does heaptap trace thread @tid by ptrace, also as a zombie that was not waited for? */
bool proc_is_our_tracee(pid_t tid);

/*
 * Threads of process @pid in the kernel's order, main thread first. *@tids is owned by the caller.
 * Threads that start or end meanwhile may or may not be in it.
 */
int proc_threads(pid_t pid, pid_t **tids, size_t *nr) __must_check;

/*
 * The thread whose folder of /proc shows the memory and files of process @pid: @pid itself, or another thread if the
 * main thread has ended. Each thread has a folder /proc/TID, though /proc does not list it.
 */
pid_t proc_reader(pid_t pid);

/*
 * Is it sure that thread @tid of @pid has ended? Reads /proc/PID/task/TID/stat: for /proc/TID/stat the kernel adds up
 * the times of all threads.
 */
bool proc_thread_has_ended(pid_t pid, pid_t tid);

/* Does @pid have a child, of one of its first 64 threads? False where the kernel lacks CONFIG_PROC_CHILDREN. */
bool proc_has_child(pid_t pid);

/* The CPU that thread @tid of @pid runs on, or ran on last; -1 if unknown. */
int proc_thread_cpu(pid_t pid, pid_t tid);

/* All processes that /proc shows. *@pids is owned by the caller. */
int proc_all(pid_t **pids, size_t *nr) __must_check;

/*
 * Path of the program as the kernel knows it, relative to the target's root, without the kernel's
 * mark " (deleted)". *@out is owned by the caller. -ENOENT for a kernel thread.
 */
int proc_exe(char **out, pid_t pid) __must_check;

/* True in *@out if the program file of @pid is 32-bit ELF. -ENOEXEC if it is no ELF at all. */
int proc_is_32bit(bool *out, pid_t pid) __must_check;

/* The first word of the command line, cut to fit @buf of @size bytes; "" for an empty command line. */
int proc_argv0(char *buf, size_t size, pid_t pid) __must_check;

/* The value of entry @type (AT_...) in the auxiliary vector of a process. -ENOENT if it has no such entry. */
int proc_auxv(u64 *out, pid_t pid, bool is_32bit, u64 type) __must_check;

/*
 * Content of the file @path into @buf of @size bytes, terminated, cut where it does not fit, final
 * newlines removed. Returns its length or -errno.
 */
ssize_t proc_read_text(const char *path, char *buf, size_t size) __must_check;

/* The number behind @key in the file @dir/@name; NULL: the only number of the file. False: it has none. */
bool proc_read_number(const char *dir, const char *name, const char *key, u64 *out);
