/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tracer of this process, as strace -f: children have the same one, and no other can be theirs. For messages. */
#pragma once

#include <stddef.h>

/* "strace (PID 12) traces heaptap ...", in @buf of @size bytes; NULL: nobody does, or it is not known. */
const char *own_tracer_reason(char *buf, size_t size);
