/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the rule of an address in a compiled table. */
#include "fallback/cfi_table.h"

#include "user/lib/array.h"

u32 cfi_find(const struct cfi_table *table, u64 vaddr)
{
	size_t end;
	u64 pc = vaddr - table->text_base;

	if (vaddr < table->text_base || pc > UINT32_MAX)
		return CFI_NONE;
	end = array_search(i, 0, table->nr_rows, table->rows[i].pc <= pc);
	return end ? table->rows[end - 1].rule : CFI_NONE;
}
