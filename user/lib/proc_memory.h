/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the memory of another process, with the rights that this process has. */
#pragma once

#include "user/lib/types.h"

/*
 * /proc/PID/mem belongs to the user of the target, so another user also needs CAP_DAC_READ_SEARCH to open it.
 * process_vm_readv(2) asks for CAP_SYS_PTRACE only, but does not read pages that the target itself may not read.
 *
 * The file holds the lock of the target's mappings while it waits for a page. If the page is in a file whose server
 * hangs, whoever puts a uprobe into the target waits for that lock, and meanwhile no process of the machine can fork
 * (dup_mmap_sem in kernel/events/uprobes.c). process_vm_readv() gives the lock back while it waits. So pages come into
 * memory by the call.
 */
struct proc_memory {
	pid_t pid; /* a process or any thread; 0 = not open */
	int fd;	   /* owned; -1 = read by process_vm_readv(2) */
};

/*
 * Open the memory of @pid for reading. Does not stop the target. The caller closes it: proc_memory_close(). Returns 0,
 * -ESRCH if the process is gone, -EACCES or -EPERM without the right, or -errno; then @m needs no closing.
 */
int proc_memory_open(struct proc_memory *m, pid_t pid) __must_check;
void proc_memory_close(struct proc_memory *m); /* again is fine */

/*
 * Read up to @len bytes at @addr, up to the first page that cannot be read. Returns how many bytes were read, 0 if the
 * address space is gone, or -errno if the first page cannot be read. May block on disk I/O.
 */
ssize_t proc_memory_read(const struct proc_memory *m, taddr_t addr, void *buf, size_t len);

/*
 * Like proc_memory_read(), for much memory: process_vm_readv(2) copies each page once and not twice. If the process has
 * ended or executed another program since proc_memory_open(), this may read that of another one: check afterwards that
 * proc_memory_read() does not return 0.
 */
ssize_t proc_memory_read_much(const struct proc_memory *m, taddr_t addr, void *buf, size_t len);
