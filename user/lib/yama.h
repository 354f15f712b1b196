/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Yama, a security module of the kernel: may this process trace others? For messages; trials decide. */
#pragma once

#include <stdbool.h>

enum { YAMA_NO_ATTACH = 3 }; /* kernel.yama.ptrace_scope: nobody may trace what is not traced yet */

/*
 * Why a process may not trace others where kernel.yama.ptrace_scope is @scope (-1 = there is no Yama), with or without
 * CAP_SYS_PTRACE; NULL: Yama does not forbid it.
 */
const char *yama_reason_for(int scope, bool has_ptrace);

/* As above, for this process on this machine. */
const char *yama_reason(void);
