/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the rule of an address in a compiled table. */
#include "fallback/cfi_table.h"

u32 cfi_find(const struct cfi_table *table, u64 vaddr)
{
	size_t low = 0, high = table->nr_rows;
	u64 pc = vaddr - table->text_base;

	if (vaddr < table->text_base || pc > UINT32_MAX)
		return CFI_NONE;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->rows[middle].pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? table->rows[low - 1].rule : CFI_NONE;
}
