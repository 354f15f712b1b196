/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes all rights from a helper process that talks to strangers. */
#pragma once

/*
 * From now on this process is user nobody if it may choose, has no capabilities, starts no process and no thread, opens
 * no file and no connection: it uses the descriptors that it has, and accepts on those that listen. A kernel
 * that lacks one of these keeps that one as it was. @max_files: descriptors that it may have.
 */
void sandbox_enter(unsigned int max_files);

/*
 * For a process that sends to a server: it is user nobody if it may choose, has no capabilities, starts no program,
 * traces nothing, and opens no file for writing. It may open connections, and read files that everyone may read, for
 * certificates and names of hosts. A kernel that lacks one of these keeps that one as it was.
 */
void sandbox_enter_sender(void);
