/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How signals were set when heaptap began, for the programs that it starts: they get the same as without heaptap. */
#pragma once

/* At the start of heaptap. Ends of children are noticed from now on, even if whoever started heaptap ignores theirs. */
void inherited_begin(void);

/* In the child, before it executes the program. Async-signal-safe. */
void inherited_restore(void);
