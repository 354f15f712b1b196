/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work beside a program that shall not notice it: with the lowest priority, for as long as that is enough. */
#pragma once

/*
 * The calling thread, and threads that it starts from now on, work when nobody else wants the CPU. Without the right to
 * take that back (CAP_SYS_NICE or RLIMIT_NICE) all stays as it was.
 */
void courtesy_begin(void);

/*
 * This thread, or all threads of this process, work as usual again: as its main thread, which never begins. Call it
 * before taking locks that the program waits for: whoever holds one must not wait for a CPU.
 */
void courtesy_end(void);
void courtesy_end_all(void);
