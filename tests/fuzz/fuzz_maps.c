/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as /proc/PID/maps: the reader ends, paths are texts, and what was read can be read again (D4, S1). */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/replay.h"
#include "user/lib/maps.h"

enum { MAX_LINE = 1 << 18 };

/* Write the line as the kernel would, without escapes; false if its path needs them. */
static bool print_line(char *out, const struct map_line *l)
{
	if (strchr(l->path, '\n') || l->is_ambiguous || l->is_cut)
		return false;
	snprintf(out, MAX_LINE, "%llx-%llx %c%c%c%c %08llx %02x:%02x %llu%s%s", (unsigned long long)l->start,
		 (unsigned long long)l->end, l->is_readable ? 'r' : '-', l->is_writable ? 'w' : '-',
		 l->is_executable ? 'x' : '-', l->is_shared ? 's' : 'p', (unsigned long long)l->offset,
		 l->dev_major, l->dev_minor, (unsigned long long)l->inode, *l->path ? " " : "", l->path);
	return true;
}

static void check_again(const struct map_line *l)
{
	static char text[MAX_LINE];
	struct map_line again;

	/* Blanks before a path are not part of it. */
	if (*l->path == ' ' || !print_line(text, l))
		return;
	if (maps_parse_line(text, strlen(text), &again) || again.start != l->start || again.end != l->end ||
	    again.offset != l->offset || again.inode != l->inode || again.is_shared != l->is_shared ||
	    strcmp(again.path, l->path) != 0)
		abort();
}

static void whole_file(const uint8_t *data, size_t size)
{
	struct maps_reader *r;
	struct map_line line;
	int fd = memfd_create("maps", MFD_CLOEXEC), nr;
	size_t lines = 0;

	if (fd < 0)
		return;
	if (write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		close(fd);
	else if (!maps_open_fd(&r, fd)) {
		while ((nr = maps_next(r, &line)) == 1) {
			if (!line.path || strlen(line.path) > size || ++lines > size)
				abort();
			check_again(&line);
		}
		(void)!maps_is_complete(r);
		maps_close(r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct map_line line;
	/* Of this length only, so that a read behind it is seen; a NUL is written behind it. */
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	if (!maps_parse_line(text, size, &line)) {
		if (line.path < text || line.path + strlen(line.path) > text + size)
			abort();
		check_again(&line);
	}
	free(text);
	whole_file(data, size);
	return 0;
}
