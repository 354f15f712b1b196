/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gives up what tracing does not need. */
#pragma once

/*
 * Call it before there are other threads: capabilities belong to each thread by itself. From now on, this thread and
 * those that it makes have only the capabilities that attaching and reports need, no program that they execute gains
 * privileges, system calls that change the machine fail with EPERM, and the memory of heaptap is in no core file.
 * There is no way back. A kernel without one of these keeps that one as it was.
 */
void privileges_drop(void);
