/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps compiled call frame information between runs, and trusts none of it when it is read back. */
#include "user/unwind/cfi_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/lib/cleanup.h"
#include "user/lib/digits.h"
#include "user/lib/hash.h"
#include "user/unwind/pages.h"

enum { CACHE_VERSION = 6, NAME_SIZE = 2 * BUILD_ID_MAX + 32 };

/* A number, so that a file of the other byte order has another value. */
static const u64 cache_magic = 0x0a69666370616568ULL;

struct cache_header {
	u64 magic;
	u32 version;
	u32 header_size;
	struct cfi_cache_key key;
	struct cfi_stats stats;
	u64 text_base;
	u64 nr_rows;
	u64 checksum; /* hash_bytes() of the header before it, then of the rows */
};

static u64 cfi_cache_checksum(const struct cache_header *h, const struct cfi_row *rows)
{
	u64 seed = hash_bytes(h, offsetof(struct cache_header, checksum), 0);

	return hash_bytes(rows, h->nr_rows * sizeof(*rows), seed);
}

static void file_name(char *name, size_t size, const struct cfi_cache_key *key)
{
	char hex[2 * BUILD_ID_MAX + 1];

	digits_bytes(hex, key->build_id, key->build_id_len < BUILD_ID_MAX ? key->build_id_len : BUILD_ID_MAX);
	snprintf(name, size, "%s.cfi", hex);
}

/* True if this user made the file, and nobody else can have changed it. */
static bool cfi_cache_is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static int open_in(const char *base)
{
	auto_close int parent = -1, dir = -1;
	struct stat st;

	if (base[0] != '/')
		return -EINVAL;
	if (mkdir(base, 0700) && errno != EEXIST)
		return -errno;
	parent = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0 || fstat(parent, &st))
		return -errno;
	if (!cfi_cache_is_ours(&st))
		return -EPERM;
	if (mkdirat(parent, "heaptap", 0700) && errno != EEXIST)
		return -errno;
	dir = openat(parent, "heaptap", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st))
		return -errno;
	if (!cfi_cache_is_ours(&st))
		return -EPERM;
	return take_fd(dir);
}

int cfi_cache_open(void)
{
	const char *cache_home = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char path[4096];
	int dir = -ENOENT;

	if (cache_home && *cache_home)
		dir = open_in(cache_home);
	if (dir < 0 && home && *home && snprintf(path, sizeof(path), "%s/.cache", home) < (int)sizeof(path))
		dir = open_in(path);
	if (dir < 0 && geteuid() == 0)
		dir = open_in("/var/cache");
	return dir;
}

static int cfi_cache_read_all(int fd, void *buf, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = read(fd, (char *)buf + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EINVAL;
		done += (size_t)n;
	}
	return 0;
}

static int cfi_cache_write_all(int fd, const void *buf, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const char *)buf + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static bool rows_are_valid(const struct cfi_row *rows, size_t nr)
{
	if (cfi_kind(rows[nr - 1].rule) != CFI_NONE)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (cfi_kind(rows[i].rule) >= NR_CFI_KINDS || (i && rows[i].pc <= rows[i - 1].pc))
			return false;
	return true;
}

static bool header_is_valid(const struct cache_header *h, const struct cfi_cache_key *key,
			    const struct stat *st)
{
	return S_ISREG(st->st_mode) && cfi_cache_is_ours(st) && h->magic == cache_magic &&
	       h->version == CACHE_VERSION && h->header_size == sizeof(*h) &&
	       !memcmp(&h->key, key, sizeof(*key)) && h->nr_rows > 0 && h->nr_rows <= CFI_MAX_ROWS &&
	       (u64)st->st_size == sizeof(*h) + h->nr_rows * sizeof(struct cfi_row);
}

static int table_from(const struct cache_header *h, struct cfi_row *rows, struct cfi_table **out)
{
	struct cfi_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->text_base = h->text_base;
	t->rows = rows;
	t->nr_rows = h->nr_rows;
	t->machine = h->key.machine;
	t->word_size = h->key.word_size;
	t->is_cached = true;
	t->stats = h->stats;
	*out = t;
	return 0;
}

int cfi_cache_read(int dir, const struct cfi_cache_key *key, struct cfi_table **out)
{
	auto_free struct cfi_row *rows = NULL;
	auto_close int fd = -1;
	struct cache_header h;
	char name[NAME_SIZE];
	struct stat st;
	int err;

	file_name(name, sizeof(name), key);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : -EINVAL;
	if (fstat(fd, &st) || cfi_cache_read_all(fd, &h, sizeof(h)) || !header_is_valid(&h, key, &st))
		return -EINVAL;
	rows = malloc(h.nr_rows * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	pages_make(rows, h.nr_rows * sizeof(*rows));
	if (cfi_cache_read_all(fd, rows, h.nr_rows * sizeof(*rows)) ||
	    cfi_cache_checksum(&h, rows) != h.checksum || !rows_are_valid(rows, h.nr_rows))
		return -EINVAL;
	err = table_from(&h, rows, out);
	if (err)
		return err;
	take_ptr(rows);
	futimens(fd, NULL); /* used now: cfi_cache_trim() removes the oldest */
	return 0;
}

int cfi_cache_write(int dir, const struct cfi_cache_key *key, const struct cfi_table *table)
{
	struct cache_header h;
	char name[NAME_SIZE], temporary[NAME_SIZE + 32];
	auto_close int fd = -1;
	int err;

	memset(&h, 0, sizeof(h)); /* padding is part of the checksum */
	h.magic = cache_magic;
	h.version = CACHE_VERSION;
	h.header_size = sizeof(h);
	memcpy(&h.key, key, sizeof(h.key));
	h.stats = table->stats;
	h.text_base = table->text_base;
	h.nr_rows = table->nr_rows;
	h.checksum = cfi_cache_checksum(&h, table->rows);
	file_name(name, sizeof(name), key);
	snprintf(temporary, sizeof(temporary), "%s.%d.tmp", name, gettid());
	unlinkat(dir, temporary, 0); /* left by an earlier thread with this TID */
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = cfi_cache_write_all(fd, &h, sizeof(h));
	if (!err)
		err = cfi_cache_write_all(fd, table->rows, table->nr_rows * sizeof(*table->rows));
	if (!err && renameat(dir, temporary, dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, temporary, 0);
	return err;
}

struct cached_file {
	char name[NAME_SIZE + 32];
	s64 used_ns;
	u64 size;
};

static int compare_age(const void *left, const void *right)
{
	const struct cached_file *l = left, *r = right;

	return l->used_ns < r->used_ns ? -1 : l->used_ns > r->used_ns;
}

static bool has_ending(const char *name, const char *ending)
{
	size_t len = strlen(name), ending_len = strlen(ending);

	return len > ending_len && !strcmp(name + len - ending_len, ending);
}

/* The files of the cache in @d, at most CFI_CACHE_MAX_FILES. */
static size_t cfi_cache_list_files(DIR *d, struct cached_file *files, u64 *total)
{
	struct dirent *entry;
	struct stat st;
	size_t nr = 0;

	while (nr < CFI_CACHE_MAX_FILES && (entry = readdir(d))) {
		struct cached_file *f = &files[nr];

		if (strlen(entry->d_name) >= sizeof(f->name) ||
		    !(has_ending(entry->d_name, ".cfi") || has_ending(entry->d_name, ".tmp")) ||
		    fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		strcpy(f->name, entry->d_name);
		f->used_ns = (s64)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		f->size =
			(u64)st.st_blocks * 512 > (u64)st.st_size ? (u64)st.st_blocks * 512 : (u64)st.st_size;
		*total += f->size;
		nr++;
	}
	return nr;
}

void cfi_cache_trim(int dir, u64 max_bytes)
{
	auto_free struct cached_file *files = calloc(CFI_CACHE_MAX_FILES, sizeof(*files));
	auto_closedir DIR *d = NULL;
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	u64 total = 0;
	size_t nr;

	if (copy >= 0)
		d = fdopendir(copy);
	if (!d && copy >= 0)
		close(copy);
	if (!d || !files)
		return;
	nr = cfi_cache_list_files(d, files, &total);
	qsort(files, nr, sizeof(*files), compare_age);
	for (size_t i = 0; i < nr && (total > max_bytes || nr - i > CFI_CACHE_MAX_FILES / 2); i++) {
		unlinkat(dir, files[i].name, 0);
		total -= files[i].size;
	}
}
