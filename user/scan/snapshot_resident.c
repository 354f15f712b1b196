/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads /proc/PID/smaps: the sizes in memory of each mapping. */
#include "user/scan/snapshot_resident.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/maps.h"

/* Lines that count. Pages of hugetlbfs are not part of Rss. */
static const struct {
	const char *key;
	bool is_part;	 /* of the mapping's bytes */
	bool is_private; /* may be private copies */
} keys[] = {
	{ "Rss:", true, false },	   { "Anonymous:", false, true },
	{ "Swap:", true, true },	   { "Private_Hugetlb:", true, true },
	{ "Shared_Hugetlb:", true, true },
};

static void snapshot_resident_add_line(struct resident_map *map, const char *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		u64 bytes;

		if (strncmp(line, keys[i].key, strlen(keys[i].key)) != 0)
			continue;
		bytes = strtoull(line + strlen(keys[i].key), NULL, 10) << 10;
		map->bytes += keys[i].is_part ? bytes : 0;
		map->private_bytes += keys[i].is_private ? bytes : 0;
	}
}

int resident_read(struct resident_map **out, size_t *nr, pid_t tid)
{
	auto_free struct resident_map *maps = NULL;
	auto_fclose FILE *f = NULL;
	auto_free char *line = NULL;
	size_t max = 0, size = 0;
	char path[32];
	ssize_t len;

	*nr = 0;
	snprintf(path, sizeof(path), "/proc/%d/smaps", tid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while ((len = getline(&line, &size, f)) > 0) {
		struct map_line map;

		if (maps_parse_line(line, (size_t)len - 1, &map)) {
			if (*nr)
				snapshot_resident_add_line(&maps[*nr - 1], line);
			continue;
		}
		if (array_reserve(maps, max, *nr + 1))
			return -ENOMEM;
		maps[(*nr)++] = (struct resident_map){ .start = map.start };
	}
	if (!feof(f))
		return -EIO;
	*out = take_ptr(maps);
	return 0;
}

const struct resident_map *resident_find(const struct resident_map *maps, size_t nr, taddr_t start)
{
	size_t at = array_search(i, 0, nr, maps[i].start < start);

	return at < nr && maps[at].start == start ? &maps[at] : NULL;
}
