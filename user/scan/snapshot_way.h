/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long a process stands for a snapshot: while its memory is read, or only until there is a copy of it. */
#pragma once

enum snapshot_way {
	SNAPSHOT_STOP,
	SNAPSHOT_FORK, /* a warning says if that is not possible */
	SNAPSHOT_AUTO, /* where the stop would be long, the first of precopy and fork that is possible */
	SNAPSHOT_PRECOPY, /* its memory is copied before, while it runs, and in the stop only what it wrote meanwhile */
};
