/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader's own program. */
#pragma once

#include "user/lib/types.h"

/* Give up all rights, and answer requests on the socket @fd until it ends. At most @cpu_s seconds of CPU time. */
void reader_main(int fd, u64 cpu_s) __attribute__((noreturn));
