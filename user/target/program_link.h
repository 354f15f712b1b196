/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The link by which a program was started. */
#pragma once

#include "user/lib/types.h"

/*
 * Many programs are one file with several links, which does what the link's name says. *@out, owned by the caller,
 * becomes the path of the link by which the process @pid was started, as argv[0] or @comm names it, if it leads to the
 * file that the process executes, @exe. NULL if there is no such link, if it has the file's own name, or if the
 * process cannot be read. 0 or -ENOMEM.
 */
int program_link(char **out, pid_t pid, const char *exe, const char *comm) __must_check;
