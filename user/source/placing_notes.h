/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the notes of a file to the markers that get probes; a part of placing.c. */
#pragma once

#include "user/source/placing.h"

/*
 * Find the markers of @elf, whose name for messages is @path, number them, and describe them to the source. Notes that
 * cannot have a probe are left out, with one message. 0, -ENOMEM, or the error of the source.
 */
int placing_find_notes(struct placing *p, struct probed_file *f, struct elf *elf,
		       const char *path) __must_check;
