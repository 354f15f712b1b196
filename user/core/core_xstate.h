/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Vector registers of x86_64 in the layout that gdb reads. */
#pragma once

#include "user/lib/types.h"

enum { CORE_XSTATE_MAX = 2696 };

/*
 * CPUs differ in where the parts of the XSAVE area lie: those of AMD leave no gap for MPX. A core says nothing of that,
 * and gdb before 14 knows Intel's layout alone. Copy the area @state of @len bytes of a thread of this machine to @out,
 * in that layout. Returns its length; 0: it is no such area.
 */
size_t core_xstate(const u8 *state, size_t len, u8 out[CORE_XSTATE_MAX]);
