/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Linked into the heaptap of make coverage: counts what runs before main(), as all of its reader of names does. */

void __llvm_profile_initialize(void);

/* Before the constructor of user/names/reader.c. */
__attribute__((constructor(101))) static void begin_early(void)
{
	__llvm_profile_initialize();
}
