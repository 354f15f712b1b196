/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ways to read and write the code of a process, for its breakpoints. */
#pragma once

#include "arch/cpu.h"

/* Through @mem_fd, which is /proc/PID/mem and is borrowed. The process may run. */
struct cpu_memory code_by_file(int mem_fd);

/* Through the caller's ptrace. @tid must be in a ptrace stop at each read and write. */
struct cpu_memory code_by_ptrace(pid_t tid);
