/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of a snapshot that come from /proc: mappings, and words that the kernel keeps for the process. */
#include "user/scan/snapshot_make.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/maps.h"
#include "user/scan/kernel_words.h"

int snapshot_read(struct snapshot *s, const struct snapshot_visitor *visitor)
{
	return s->ops->read(s, visitor);
}

int snapshot_copy_stopped(struct snapshot *s)
{
	return s->ops->copy ? s->ops->copy(s) : -ENOTSUP;
}

void snapshot_let_go(struct snapshot *s)
{
	s->ops->let_go(s);
}

int snapshot_copy(struct snapshot *s)
{
	int err = snapshot_copy_stopped(s);

	if (!err)
		snapshot_let_go(s);
	return err;
}

int snapshot_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	return s->ops->peek(s, addr, buf, len);
}

int snapshot_fetch(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	return (s->ops->fetch ? s->ops->fetch : s->ops->peek)(s, addr, buf, len);
}

taddr_t snapshot_next(struct snapshot *s, taddr_t at, taddr_t end)
{
	taddr_t next = s->ops->next ? s->ops->next(s, at, end) : at;

	return next > at ? next : at;
}

void snapshot_resume(struct snapshot *s)
{
	s->ops->resume(s);
}

const struct snapshot_map *snapshot_map_find(const struct snapshot *s, taddr_t addr)
{
	size_t at = array_search(i, 0, s->nr_maps, s->maps[i].end <= addr);

	return at < s->nr_maps && s->maps[at].start <= addr ? &s->maps[at] : NULL;
}

/* The reading of /proc/PID/maps. */
struct map_joining {
	size_t max;
	taddr_t parked_end;
	bool ends_in_copy; /* the last one of maps */
};

/* Parse one line of /proc/PID/maps, of @len bytes without its newline. -EAGAIN: it is of no interest. */
static int snapshot_parse_map(struct map_joining *r, char *text, size_t len, struct snapshot_map *map)
{
	struct map_line line;

	if (maps_parse_line(text, len, &line))
		return -EINVAL;
	if (maps_is_parked(&r->parked_end, &line))
		return -EAGAIN;
	map->start = line.start;
	map->end = line.end;
	map->file_offset = line.offset;
	map->ino = line.inode;
	map->is_readable = line.is_readable;
	map->is_writable = line.is_writable;
	map->is_executable = line.is_executable;
	map->is_shared = line.is_shared;
	map->is_copy = line.is_copy;
	map->path = strdup(line.path);
	return map->path ? 0 : -ENOMEM;
}

static bool snapshot_continues(const struct snapshot_map *last, const struct snapshot_map *map)
{
	return last->end == map->start && last->is_executable && map->is_executable &&
	       last->file_offset + (last->end - last->start) == map->file_offset;
}

/* All of @last is a copy of code: @map behind it is another mapping of that file (user/inject/pages.c). */
static void snapshot_name_copy(struct snapshot_map *last, const struct snapshot_map *map)
{
	char *path = strdup(map->path);

	if (!path)
		return;
	free(last->path);
	last->path = path;
	last->ino = map->ino;
	last->is_copy = false;
}

/* Join @map with the mapping before it, if one of them is a copy of the other one's code. Takes its path over. */
static bool join_copy(struct snapshot *s, struct map_joining *r, const struct snapshot_map *map)
{
	struct snapshot_map *last = s->nr_maps ? &s->maps[s->nr_maps - 1] : NULL;
	bool ends_in_copy = r->ends_in_copy;

	r->ends_in_copy = map->is_copy;
	if (!last || !last->ino || !map->ino)
		return false;
	if (!IS_AGENT && last->is_copy && last->end == map->start && !map->is_executable)
		snapshot_name_copy(last, map);
	if (!snapshot_continues(last, map))
		return false;
	if (last->is_copy && !map->is_copy) {
		taddr_t start = last->start;
		u64 offset = last->file_offset;

		free(last->path);
		*last = *map;
		last->start = start;
		last->file_offset = offset;
		return true;
	}
	if (!map->is_copy && (!ends_in_copy || last->ino != map->ino))
		return false;
	last->end = map->end;
	free(map->path);
	return true;
}

static int snapshot_add_map(struct snapshot *s, struct map_joining *r, const struct snapshot_map *map)
{
	int err = array_reserve(s->maps, r->max, s->nr_maps + 1);

	if (!err && !join_copy(s, r, map))
		s->maps[s->nr_maps++] = *map;
	return err;
}

/* Field 47 of /proc/PID/stat. Field 2, the name, may contain anything, but no later field contains a parenthesis. */
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
	struct map_joining r = { 0 };
	size_t size = 0;
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

		err = snapshot_parse_map(&r, line, (size_t)len - 1, &map);
		if (err == -ENOMEM)
			return err;
		if (err)
			continue;
		err = map.start < last ? -EINVAL : snapshot_add_map(s, &r, &map);
		if (err) {
			free(map.path);
			return err;
		}
		last = s->maps[s->nr_maps - 1].end;
	}
	/* If the list ended early, memory and the roots in it would be missing. */
	if (!feof(f))
		return errno == ENOMEM ? -ENOMEM : -EIO;
	s->heap_start = read_heap_start(s->mem_tid);
	return s->nr_maps ? 0 : -ESRCH;
}

int snapshot_add_word(struct snapshot *s, const struct snapshot_word *word)
{
	int err = array_reserve(s->words, s->max_words, s->nr_words + 1);

	if (!err)
		s->words[s->nr_words++] = *word;
	return err;
}

/* True if heaptap lacks memory or descriptors: then words may exist although they cannot be read. */
static bool is_own_lack(int err)
{
	return err == ENOMEM || err == EMFILE || err == ENFILE;
}

/* Add the words in the lines of @file that begin with @key: hexadecimal numbers after @mark. */
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

/*
 * The directory whose entries are the descriptors of @tid. fd/ belongs to the user of the process. fdinfo/ asks for the
 * right to trace only, since Linux 5.14.
 */
static DIR *open_descriptors(pid_t tid)
{
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", tid);
	dir = opendir(path);
	if (dir || errno != EACCES)
		return dir;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo", tid);
	return opendir(path);
}

/* May the descriptor be an epoll? Entries of fdinfo/ are no links, and do not say. */
static bool is_epoll(int dir, const char *fd)
{
	char link[64];
	ssize_t len = readlinkat(dir, fd, link, sizeof(link) - 1);

	if (len <= 0)
		return errno == EINVAL;
	link[len] = '\0';
	return strcmp(link, "anon_inode:[eventpoll]") == 0;
}

static int add_kernel_word(void *ctx, taddr_t value, u32 where)
{
	const struct snapshot_word word = { value, SNAPSHOT_KERNEL, where };

	return snapshot_add_word(ctx, &word);
}

int snapshot_read_kernel_words(struct snapshot *s, const struct snapshot_options *o, u64 deadline_ns)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *entry;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/timers", s->mem_tid);
	err = add_words_of(s, path, "signal:", "/", KERNEL_TIMER);
	if (!err && o->kernel)
		err = o->kernel->read(o->kernel->ctx, add_kernel_word, s);
	if (err)
		return err;
	dir = open_descriptors(s->mem_tid);
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
