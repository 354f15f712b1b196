/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes all rights from a helper process that talks to strangers. */
#pragma once

/*
 * From now on this process is user nobody if it may choose, has no capabilities, starts no process and no thread, opens
 * no file and no connection: it uses the descriptors that it has, and accepts on those that listen. A kernel
 * that lacks one of these keeps that one as it was. @max_files: descriptors that it may have.
 */
void sandbox_enter(unsigned int max_files);

/* Less: no capabilities, and no way to get any. The process keeps its user, and may open files and connections. */
void sandbox_drop_capabilities(void);
