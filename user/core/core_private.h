/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a core, for user/core/ only. */
#pragma once

#include <elf.h>

#include "arch/regs.h"
#include "user/core/core.h"
#include "user/scan/snapshot_threads.h"

/* A thread, with the registers that it had at the stop. */
struct core_thread {
	pid_t tid;
	struct arch_regs *regs; /* owned */
};

/* Which memory of a mapping goes into the file. */
enum core_part {
	PART_NONE,
	PART_HEAD,	/* the first page, with the headers of an ELF file: gdb reads the build ID there */
	PART_POPULATED, /* all; pages that nobody has touched are zeros, and stay holes */
	PART_ALL,
};

/* A mapping, or a part of one. */
struct core_map {
	const struct snapshot_map *map; /* borrowed */
	taddr_t start, end;
	u8 part;	/* enum core_part */
	u8 rank;	/* maps of a lower one are written first, while there is room */
	u64 offset;	/* in the file */
	u64 file_bytes; /* from start on in the file, with its holes */
};

struct core {
	struct core_options options;
	struct stopped_threads held;
	struct snapshot snapshot;    /* the mappings alone */
	struct core_thread *threads; /* owned; in the order of the file */
	size_t nr_threads;
	struct core_map *maps; /* owned; by address */
	size_t nr_maps;
	struct core_sums sums;
	u64 stopped_ns;
	bool is_stopped;
};

/* The ELF machine of cores of this program, 0 = none. */
u16 core_machine(void);

/* Make the notes: *@notes is owned by the caller. 0, -ENOMEM or -errno. */
int core_notes(const struct core *c, char **notes, size_t *len) __must_check;

/* Choose the part of each mapping. 0 or -ENOMEM. */
int core_choose_memory(struct core *c) __must_check;

/* Write the memory to @fd from @offset on; fills the places of all maps. 0 or -errno. */
int core_write_memory(struct core *c, int fd, u64 offset) __must_check;
