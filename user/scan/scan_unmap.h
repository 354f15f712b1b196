/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings that are unmapped between the copy of the books and the stop. For user/scan/scan*.c only. */
#pragma once

struct scan;

/* Take from the blocks what was unmapped, and drop these events. All are still in order of time. */
void scan_unmap_drained(struct scan *s);
