/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A core file of a traced process. */
#pragma once

#include "user/core/core.h"

struct session;

/*
 * Stop process @pid, write its core to the empty regular file @fd, resume it. @o->holder is set here. The process is
 * stopped for as long as that takes; its events are read meanwhile. 0 and *@sums; -ESRCH: it is not traced, or has
 * ended; -EOPNOTSUPP: it does not run here; -ETIME: the tracer let it run before all was written; or as core_stop() and
 * core_write(). After an error @fd is no core.
 */
int session_core(struct session *s, pid_t pid, int fd, const struct core_options *o,
		 struct core_sums *sums) __must_check;
