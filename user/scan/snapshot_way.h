/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long a process stands for a snapshot: while its memory is read, or only until there is a copy of it. */
#pragma once

enum snapshot_way {
	SNAPSHOT_STOP,
	SNAPSHOT_FORK, /* a warning says if that is not possible */
	/* Where the stop would be long: fork, or precopy where the fork would take long, too, or is not possible. */
	SNAPSHOT_AUTO,
	SNAPSHOT_PRECOPY, /* its memory is copied before, while it runs, and in the stop only what it wrote meanwhile */
};
