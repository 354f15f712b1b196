/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long a process stands for a snapshot: while its memory is read, or only until it has made a copy of itself. */
#pragma once

enum snapshot_way {
	SNAPSHOT_STOP,
	SNAPSHOT_FORK,
	SNAPSHOT_AUTO, /* fork where that is possible and the process is large */
};
