/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of a table of unwind rules that must hold for any file. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include "user/unwind/cfi.h"
#include "user/lib/elf.h"

/* Ends with a row of no rule; in order of addresses; each row is found again. */
static inline void cfi_try_table(const struct cfi_table *t)
{
	if (!t->nr_rows || cfi_kind(t->rows[t->nr_rows - 1].rule) != CFI_NONE)
		abort();
	for (size_t i = 0; i < t->nr_rows; i++)
		if (cfi_kind(t->rows[i].rule) >= NR_CFI_KINDS || (i && t->rows[i].pc <= t->rows[i - 1].pc) ||
		    cfi_find(t, t->text_base + t->rows[i].pc) != t->rows[i].rule)
			abort();
}

/* @fd, closed: a table of its rows, if it can be made. Negative: nothing. */
static inline void cfi_try(int fd)
{
	struct cfi_table *t;
	struct elf *elf;

	if (fd < 0)
		return;
	if (!elf_open(&elf, fd)) {
		if (!cfi_build(&t, elf)) {
			cfi_try_table(t);
			cfi_free(t);
		}
		elf_close(elf);
	}
	close(fd);
}
