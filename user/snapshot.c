/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every snapshot shares: mappings, and words that the kernel keeps for the process. */
#include "user/lib/clock.h"
#include "user/snapshot_make.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "user/lib/cleanup.h"

int snapshot_read(struct snapshot *s, const struct snapshot_visitor *visitor)
{
	return s->ops->read(s, visitor);
}

int snapshot_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	return s->ops->peek(s, addr, buf, len);
}

void snapshot_resume(struct snapshot *s)
{
	s->ops->resume(s);
}

const char *snapshot_skip_name(enum snapshot_skip skip)
{
	static const char *const names[] = {
		[SKIP_DEVICE] = "device",
		[SKIP_UNREADABLE] = "unreadable",
		[SKIP_FAULT] = "fault",
	};

	_Static_assert(ARRAY_SIZE(names) == NR_SNAPSHOT_SKIPS, "one name each");
	return skip < NR_SNAPSHOT_SKIPS ? names[skip] : "unknown";
}

const struct snapshot_map *snapshot_map_find(const struct snapshot *s, taddr_t addr)
{
	size_t lo = 0, hi = s->nr_maps;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->maps[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->nr_maps && s->maps[lo].start <= addr ? &s->maps[lo] : NULL;
}

/* One line of /proc/PID/maps, without its newline. */
static int parse_map(const char *line, struct snapshot_map *map)
{
	char r, w, x, p;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c%c%c %" SCNx64 " %*x:%*x %" SCNu64 " %n", &map->start,
		   &map->end, &r, &w, &x, &p, &map->file_offset, &map->ino, &path) != 8)
		return -EINVAL;
	if (map->end <= map->start)
		return -EINVAL;
	map->is_readable = r == 'r';
	map->is_writable = w == 'w';
	map->is_executable = x == 'x';
	map->is_shared = p == 's';
	map->path = strdup(path ? line + path : "");
	return map->path ? 0 : -ENOMEM;
}

static int add_map(struct snapshot *s, size_t *capacity, const struct snapshot_map *map)
{
	if (s->nr_maps == *capacity) {
		size_t larger = *capacity ? *capacity * 2 : 64;
		struct snapshot_map *maps = realloc(s->maps, larger * sizeof(*maps));

		if (!maps)
			return -ENOMEM;
		s->maps = maps;
		*capacity = larger;
	}
	s->maps[s->nr_maps++] = *map;
	return 0;
}

/* Field 47 of /proc/PID/stat. The name in field 2 may hold anything, but no field after it a parenthesis. */
static taddr_t read_heap_start(pid_t tid)
{
	auto_fclose FILE *f = NULL;
	char path[32], text[2048];
	const char *at;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "re");
	len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[len] = '\0';
	at = strrchr(text, ')');
	for (int field = 2; at && field < 47; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

int snapshot_read_maps(struct snapshot *s)
{
	auto_fclose FILE *f = NULL;
	auto_free char *line = NULL;
	size_t capacity = 0, size = 0;
	taddr_t last = 0;
	char path[32];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/maps", s->mem_tid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((len = getline(&line, &size, f)) > 0) {
		struct snapshot_map map = { 0 };
		int err;

		line[len - 1] = '\0';
		err = parse_map(line, &map);
		if (err == -ENOMEM)
			return err;
		if (err)
			continue;
		err = map.start < last ? -EINVAL : add_map(s, &capacity, &map);
		if (err) {
			free(map.path);
			return err;
		}
		last = map.end;
	}
	/* A list that ends early would make memory, and the roots in it, disappear. */
	if (!feof(f))
		return errno == ENOMEM ? -ENOMEM : -EIO;
	s->heap_start = read_heap_start(s->mem_tid);
	return s->nr_maps ? 0 : -ESRCH;
}

int snapshot_add_word(struct snapshot *s, const struct snapshot_word *word)
{
	/* Room grows at powers of two. */
	if ((s->nr_words & (s->nr_words - 1)) == 0) {
		size_t larger = s->nr_words ? s->nr_words * 2 : 1;
		struct snapshot_word *words = realloc(s->words, larger * sizeof(*words));

		if (!words)
			return -ENOMEM;
		s->words = words;
	}
	s->words[s->nr_words++] = *word;
	return 0;
}

/* Of memory or descriptors: what could not be read for that may be there. */
static bool is_own_lack(int err)
{
	return err == ENOMEM || err == EMFILE || err == ENFILE;
}

/* Words in the lines of the file @dir/@name that begin with @key, hexadecimal after @mark. */
static int add_words_of(struct snapshot *s, const char *file, const char *key, const char *mark, u32 where)
{
	auto_fclose FILE *f = fopen(file, "re");
	char line[512];

	if (!f)
		return is_own_lack(errno) ? -errno : 0;
	while (fgets(line, sizeof(line), f)) {
		struct snapshot_word word = { .owner = SNAPSHOT_KERNEL, .where = where };
		const char *at = strncmp(line, key, strlen(key)) == 0 ? strstr(line, mark) : NULL;
		int err;

		if (!at)
			continue;
		word.value = strtoull(at + strlen(mark), NULL, 16);
		err = word.value ? snapshot_add_word(s, &word) : 0;
		if (err)
			return err;
	}
	return 0;
}

static bool is_epoll(int dir, const char *fd)
{
	char link[64];
	ssize_t len = readlinkat(dir, fd, link, sizeof(link) - 1);

	if (len <= 0)
		return false;
	link[len] = '\0';
	return strcmp(link, "anon_inode:[eventpoll]") == 0;
}

int snapshot_read_kernel_words(struct snapshot *s, u64 deadline_ns)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *entry;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/timers", s->mem_tid);
	err = add_words_of(s, path, "signal:", "/", UINT32_MAX);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/fd", s->mem_tid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !is_epoll(dirfd(dir), entry->d_name))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", s->mem_tid, entry->d_name);
		err = add_words_of(s, path, "tfd:", "data:", (u32)strtoul(entry->d_name, NULL, 10));
		if (err)
			return err;
		if (clock_now_ns() > deadline_ns)
			return -ETIME;
	}
	return 0;
}

void snapshot_fini(struct snapshot *s)
{
	for (size_t i = 0; i < s->nr_maps; i++)
		free(s->maps[i].path);
	free(s->maps);
	free(s->threads);
	free(s->words);
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	snapshot_resume(s);
	s->ops->free(s);
}
