/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a program was built: from its section headers and its dynamic section. */
#include "user/target/program_build.h"

#include <limits.h>

#include "user/lib/elf.h"

int program_build_read(struct program_build *out, int fd)
{
	char interp[PATH_MAX];
	struct elf *elf;
	int err = elf_open(&elf, fd);

	if (err)
		return err;
	/* strip keeps both sections: they are part of what is loaded. */
	out->is_go = elf_section(elf, ".note.go.buildid") || elf_section(elf, ".go.buildinfo");
	out->is_static = elf_interp(elf, interp, sizeof(interp)) && !elf_needed(elf, 0);
	out->is_stripped = !elf_section(elf, ".symtab");
	elf_close(elf);
	return 0;
}
