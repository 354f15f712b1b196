/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bounds of files and network for this process, by Landlock. They stay for ever. A kernel without it sets none. */
#pragma once

#include "user/lib/types.h"

/* From now on this thread, and those that it makes, open no file, and use no TCP port. Needs no_new_privs. */
void landlock_forbid_all(void);

/*
 * From now on, this thread and those that it makes change no file but those beneath the @nr directories @dirs, and open
 * none for writing. They may write to files that are open, and to /dev/null, and read all. No TCP ports. Needs
 * no_new_privs. @dirs may be of O_PATH; negative ones are left out.
 */
void landlock_forbid_writes(const int *dirs, size_t nr);

/* As landlock_forbid_writes() without a directory, but this thread may connect to TCP ports. */
void landlock_forbid_all_but_sending(void);
