/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Knows files of other tools by their first bytes or by their names. */
#include "user/cli/foreign_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/path.h"
#include "user/lib/types.h"

enum { HEAD_BYTES = 64 };

#define HEAPTRACK "a file of heaptrack: heaptrack_print or heaptrack_gui reads it"

static const struct {
	const char *begins; /* with this the file begins; NULL = anything */
	const char *name;   /* with this its name begins, or ends if it begins with a dot; NULL = any name */
	const char *what;
} kinds[] = {
	{ "desc: ", NULL, "a file of massif: ms_print or massif-visualizer reads it" },
	{ "PERFILE2", NULL, "a file of perf: perf report reads it" },
	{ "heap profile:", NULL, "a heap profile of gperftools: google-pprof reads it" },
	{ "heap_v2/", NULL, "a heap profile of jemalloc: jeprof reads it" },
	{ "# callgrind format", NULL, "a file of callgrind: callgrind_annotate reads it" },
	{ "==", NULL, "output of valgrind, which is text for people" },
	{ NULL, "heaptrack.", HEAPTRACK },
	{ NULL, ".heaptrack.gz", HEAPTRACK },
	{ NULL, ".heaptrack.zst", HEAPTRACK },
	{ "v 1", NULL, HEAPTRACK }, /* not compressed: its version */
	{ "\x28\xb5\x2f\xfd", NULL,
	  "compressed by zstd, as files of heaptrack are: heaptrack_print reads those" },
	{ "<!doctype", NULL, "a page: a browser opens it" },
	{ "<?xml", NULL, "XML, as a report for JUnit is: a CI system reads it" },
	{ "\x1f\x8b", ".pb.gz", "a profile for pprof: go tool pprof reads it" },
	{ "\x1f\x8b", ".prof", "a profile for pprof: go tool pprof reads it" },
};

const char *foreign_file(const char *path)
{
	const char *name = path_name(path);
	auto_close int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	char head[HEAD_BYTES + 1] = "";
	ssize_t len = fd < 0 ? -1 : pread(fd, head, HEAD_BYTES, 0); /* takes nothing from a pipe */

	for (size_t i = 0; len > 0 && i < ARRAY_SIZE(kinds); i++) {
		const char *part = kinds[i].name;
		size_t part_len = part ? strlen(part) : 0;
		bool is_named = !part || (*part == '.' ? strlen(name) > part_len &&
								 !strcmp(name + strlen(name) - part_len, part)
						       : !strncmp(name, part, part_len));

		if (is_named &&
		    (!kinds[i].begins || !strncmp(head, kinds[i].begins, strlen(kinds[i].begins))))
			return kinds[i].what;
	}
	return NULL;
}
