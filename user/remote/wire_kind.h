/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which frames each side may send, when, and how long their bodies are. */
#pragma once

#include "user/lib/types.h"

/* The host runs heaptap connect, the target heaptap serve. */
enum wire_side { WIRE_HOST = 1, WIRE_TARGET = 2 };

/*
 * May @side send a frame of @kind (enum wire_kind) with @len bytes of body? @is_open: the handshake is done. The
 * handlers of frames rely on this check: they do not look at lengths that it has fixed.
 */
bool wire_may_send(enum wire_side side, bool is_open, u8 kind, u32 len);
