/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a program was built, as far as its file says it and an absent allocator is explained by it. */
#pragma once

#include "user/lib/types.h"

struct program_build {
	bool is_go;	  /* built by Go, whose runtime has an allocator of its own */
	bool is_static;	  /* without a dynamic linker and without libraries */
	bool is_stripped; /* without a symbol table */
};

/* Read the headers of the ELF file behind @fd, which stays the caller's. 0, or -errno as elf_open() gives it. */
int program_build_read(struct program_build *out, int fd) __must_check;
