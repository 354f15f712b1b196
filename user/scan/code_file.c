/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the file behind a mapping with code. For user/scan/scan_exit.c and user/scan/scan_leaf.c. */
#include "user/scan/code_file.h"

#include <unistd.h>

#include "user/lib/elf.h"
#include "user/lib/maps.h"
#include "user/scan/snapshot.h"
#include "user/target/mapped_file.h"
#include "user/unwind/cfi_frame.h"

static int code_file_open_file(struct code_file *c, const struct snapshot *snap,
			       const struct snapshot_map *map)
{
	const struct map_line line = { .start = map->start, .end = map->end, .path = map->path };
	struct file_source source;
	struct file_identity id;
	struct image image;
	int path_fd, err;

	file_source_init(&source, snap->mem_tid);
	err = mapped_file_find(&source, &line, &path_fd, &id);
	file_source_fini(&source);
	if (err)
		return err;
	err = mapped_file_open(path_fd, &c->fd, &image);
	close(path_fd);
	return err;
}

int code_file_open(struct code_file *out, const struct snapshot *snap, const struct snapshot_map *map)
{
	int err;

	*out = (struct code_file){ .fd = -1 };
	err = code_file_open_file(out, snap, map);
	if (!err)
		err = elf_open(&out->elf, out->fd);
	if (!err)
		err = elf_bias(out->elf, map->start, map->end, map->file_offset, &out->bias);
	if (!err)
		err = cfi_frames_new(&out->frames, out->elf);
	if (err)
		code_file_fini(out);
	return err;
}

void code_file_fini(struct code_file *c)
{
	cfi_frames_free(c->frames);
	elf_close(c->elf);
	if (c->fd >= 0)
		close(c->fd);
	*c = (struct code_file){ .fd = -1 };
}
