/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the files with the names of a module, and lets the reader check each before it is used. */
#include "user/names/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <linux/magic.h>
#include <linux/openat2.h>
#include <zlib.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/unnamed_file.h"
#include "user/lib/zero.h"
#include "user/target/mapped_file.h"
#include "user/names/reader.h"
#include "user/names/symbol_server.h"

#define CHECKSUM_MAX (1ULL << 30) /* bytes of a file that a checksum is worth */
#define TABLES_MAX                                                                                           \
	(256ULL << 20) /* bytes of compressed sections of a file, unpacked, but those of debug information */

enum { BLOCK = 1 << 16 };

/* Debug sections of compilers shrink to a tenth at most. zlib can make a thousandth of zeros. */
enum { DENSITY_MAX = 100, ALWAYS_UNPACKED = 1 << 20 };

/* How a file proves to be the right one. */
struct proof {
	struct debug_search *search;
	const struct module *module;
	bool by_crc;
	u32 crc;
};

/* True if only root can change the file, so that mapping it cannot lead to SIGBUS. */
static bool is_stable(int fd, const struct stat *st)
{
	struct statfs fs;

	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH)) && fstatfs(fd, &fs) == 0 &&
	       fs.f_type != FUSE_SUPER_MAGIC;
}

/* Replace *@fd by a copy of the file in memory. Holes stay holes. */
static int copy_to_memory(int *fd, u64 size)
{
	auto_close int copy = unnamed_file_in_memory("symbols");
	auto_free char *block = malloc(BLOCK);
	u64 pos = 0;

	if (copy < 0)
		return copy;
	if (!block)
		return -ENOMEM;
	if (ftruncate(copy, size) < 0)
		return -errno;
	while (pos < size) {
		ssize_t n = pread(*fd, block, BLOCK, pos);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		if (!is_zero(block, n) && pwrite(copy, block, n, pos) != n)
			return -ENOSPC;
		pos += n;
	}
	close(*fd);
	*fd = take_fd(copy);
	return 0;
}

/* Let the reader look at the values that libelf and libdw trust, and at the sizes of compressed sections. */
static int check_file(struct debug_search *s, int fd, u64 sizes[NR_READER_SIZES])
{
	const struct reader_request request = { .kind = READER_CHECK };
	struct reader_answer a;
	int err = reader_ask(s->reader, &request, NULL, fd, &a);

	if (err)
		return err;
	memcpy(sizes, a.head.values, sizeof(a.head.values));
	if (a.head.err)
		return -ENOEXEC;
	return sizes[READER_SIZE_TABLES] > TABLES_MAX ? -ENOEXEC : 0;
}

static bool has_crc(int fd, u32 crc)
{
	auto_free u8 *block = malloc(BLOCK);
	uLong sum = crc32(0, NULL, 0);
	u64 pos = 0;
	ssize_t n;

	if (!block)
		return false;
	while ((n = pread(fd, block, BLOCK, pos)) > 0 && pos < CHECKSUM_MAX) {
		sum = crc32(sum, block, n);
		pos += n;
	}
	return n == 0 && sum == crc;
}

/* Without a build ID and a checksum, only the mapped file itself is the right one. */
static bool debug_file_is_proved(int fd, const struct image *image, const struct proof *proof)
{
	const struct module *m = proof->module;
	struct stat st;

	if (m->build_id_len > 0)
		return image->build_id_len == m->build_id_len &&
		       memcmp(image->build_id, m->build_id, m->build_id_len) == 0;
	if (proof->by_crc)
		return has_crc(fd, proof->crc);
	return m->ino != 0 && fstat(fd, &st) == 0 && st.st_dev == m->dev && st.st_ino == m->ino;
}

/* Take what the debug sections need from the budget of all files, or leave them out. */
static void debug_file_charge(struct debug_search *s, const u64 sizes[NR_READER_SIZES])
{
	u64 unpacked = sizes[READER_SIZE_DEBUG], packed = sizes[READER_SIZE_PACKED];

	s->is_too_big = unpacked > s->unpack_budget ||
			(unpacked > ALWAYS_UNPACKED && unpacked / DENSITY_MAX > packed);
	if (!s->is_too_big)
		s->unpack_budget -= unpacked;
	else
		debug("symbol: debug sections of %llu bytes unpack to %llu, and %llu are left for all files",
		      (unsigned long long)packed, (unsigned long long)unpacked,
		      (unsigned long long)s->unpack_budget);
}

/* Make the open file *@fd safe for libdw, or close it. */
static int debug_file_admit(struct debug_search *s, int *fd)
{
	u64 sizes[NR_READER_SIZES];
	struct stat st;
	int err = 0;

	if (fstat(*fd, &st) < 0) {
		err = -errno;
	} else if (!is_stable(*fd, &st)) {
		err = (u64)st.st_size > s->copy_budget ? -EFBIG : copy_to_memory(fd, st.st_size);
		if (!err)
			s->copy_budget -= st.st_size;
	}
	if (!err)
		err = check_file(s, *fd, sizes);
	if (!err)
		debug_file_charge(s, sizes);
	if (err) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

/* Open @path under @directory. @is_jail: links cannot lead out of it. *@fd is valid if 0 is returned. */
static int try_file(const char *directory, bool is_jail, const char *path, const struct proof *proof, int *fd)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = is_jail ? RESOLVE_IN_ROOT : 0 };
	auto_close int dir_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), path_fd = -1, file_fd = -1;
	struct image image;
	int err;

	if (dir_fd < 0)
		return -ENOENT;
	path += strspn(path, "/");
	path_fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	if (path_fd < 0 && errno == ENOSYS && !strstr(path, "..")) /* before 5.6 */
		path_fd = openat(dir_fd, path, how.flags | (is_jail ? O_NOFOLLOW : 0));
	if (path_fd < 0)
		return -ENOENT;
	err = mapped_file_open(path_fd, &file_fd, &image);
	if (err)
		return err;
	if (!debug_file_is_proved(file_fd, &image, proof))
		return -ESTALE;
	err = debug_file_admit(proof->search, &file_fd);
	if (!err)
		*fd = take_fd(file_fd);
	return err;
}

/* The result of two attempts: the success, or the failure that says more. */
static int debug_file_both(int before, int now)
{
	return now == 0 || before == -ENOENT ? now : before;
}

/* Try the path, then the path without its first directory, and so on. */
static int try_sysroot(struct debug_search *s, const struct proof *proof, int *fd)
{
	const char *path = proof->module->path;
	int err = -ENOENT;

	for (; path && err; path = strchr(path + 1, '/'))
		err = debug_file_both(err, try_file(s->sysroot, true, path, proof, fd));
	return err;
}

/* The file that was opened when it was mapped. */
static int try_kept(const struct proof *proof, int *fd)
{
	const struct module *m = proof->module;
	struct image image;
	int err;

	if (m->fd < 0)
		return -ENOENT;
	err = image_read_file(&image, m->fd);
	if (err)
		return err;
	if (m->build_id_len > 0 && !debug_file_is_proved(m->fd, &image, proof))
		return -ESTALE; /* written over since */
	*fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? -errno : debug_file_admit(proof->search, fd);
}

/* The result @before, or that of a server. Only a build ID proves that the file of a server is right. */
static int try_server(struct debug_search *s, const struct proof *proof, enum symbol_server_file kind,
		      int before, int *fd)
{
	const struct module *m = proof->module;
	auto_close int file_fd = -1;
	struct image image;
	int err;

	if (!s->server || !m->build_id_len || !before)
		return before;
	err = symbol_server_fetch(s->server, kind, m->build_id, m->build_id_len, m->path, &file_fd);
	if (!err)
		err = image_read_file(&image, file_fd);
	if (!err && !debug_file_is_proved(file_fd, &image, proof))
		err = -ESTALE;
	if (!err) {
		*fd = take_fd(file_fd);
		err = debug_file_admit(s, fd);
	}
	return debug_file_both(before, err);
}

int debug_file_open_main(struct debug_search *s, const struct module *m, int *fd)
{
	struct proof proof = { .search = s, .module = m };
	int err = -ENOENT;

	if (s->sysroot)
		err = try_sysroot(s, &proof, fd);
	if (err)
		err = debug_file_both(err, try_kept(&proof, fd));
	if ((err == -ENOENT || err == -ESTALE) && !s->is_remote && !m->is_deleted && m->path[0] == '/')
		err = debug_file_both(
			err, try_file(m->root[0] ? m->root : "/", m->root[0] != '\0', m->path, &proof, fd));
	return try_server(s, &proof, SYMBOL_SERVER_BINARY, err, fd);
}

/* A place of separate files: a format with the directory of the module and the name of the link. */
struct debug_directory {
	const char *directory;
	bool is_jail;
	const char *prefix,
		*suffix; /* before and after the module's directory; NULL prefix = without that directory */
};

static int try_build_id(struct debug_search *s, const struct proof *proof, int *fd)
{
	const struct module *m = proof->module;
	const char *root = m->root[0] ? m->root : "/";
	const struct debug_directory places[] = {
		{ s->debug_path, false, "" },
		{ s->sysroot, true, "usr/lib/debug/" },
		{ s->is_remote ? NULL : root, m->root[0] != '\0', "usr/lib/debug/" },
		{ m->root[0] || s->is_remote ? "/" : NULL, false, "usr/lib/debug/" },
	};
	char path[64 + 2 * BUILD_ID_MAX];
	int err = -ENOENT;

	if (m->build_id_len < 2)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(places) && err; i++) {
		int n;

		if (!places[i].directory)
			continue;
		n = snprintf(path, sizeof(path), "%s.build-id/%02x/", places[i].prefix, m->build_id[0]);
		for (size_t k = 1; k < m->build_id_len; k++)
			n += snprintf(path + n, sizeof(path) - n, "%02x", m->build_id[k]);
		snprintf(path + n, sizeof(path) - n, ".debug");
		err = try_file(places[i].directory, places[i].is_jail, path, proof, fd);
	}
	return err;
}

static int try_link(struct debug_search *s, const struct proof *proof, const char *link, int *fd)
{
	const struct module *m = proof->module;
	const char *root = m->root[0] ? m->root : "/";
	const char *local = s->is_remote ? NULL : root;
	const struct debug_directory places[] = {
		{ s->debug_path, false, "", "/" },
		{ s->debug_path, false, NULL, "" },
		{ s->sysroot, true, "", "/" },
		{ s->sysroot, true, "", "/.debug/" },
		{ s->sysroot, true, "usr/lib/debug", "/" },
		{ local, m->root[0] != '\0', "", "/" },
		{ local, m->root[0] != '\0', "", "/.debug/" },
		{ local, m->root[0] != '\0', "usr/lib/debug", "/" },
	};
	const char *base = strrchr(m->path, '/');
	int len = base && base - m->path < PATH_MAX ? base - m->path : 0;
	char path[2 * PATH_MAX + 64];
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(places) && err; i++) {
		const struct debug_directory *p = &places[i];

		if (!p->directory)
			continue;
		snprintf(path, sizeof(path), "%s%.*s%s%s", p->prefix ? p->prefix : "", p->prefix ? len : 0,
			 m->path, p->suffix, link);
		err = try_file(p->directory, p->is_jail, path, proof, fd);
	}
	return err;
}

int debug_file_open_debug(struct debug_search *s, const struct module *m, const char *link, u32 crc, int *fd)
{
	struct proof proof = { .search = s, .module = m, .by_crc = true, .crc = crc };
	int err = try_build_id(s, &proof, fd);

	/* A link is a plain file name. A link with a directory would choose where to search. */
	if (err && link && *link && strlen(link) < NAME_MAX && !strchr(link, '/'))
		err = try_link(s, &proof, link, fd);
	err = try_server(s, &proof, SYMBOL_SERVER_DEBUG, err, fd);
	if (err || !s->is_too_big)
		return err;
	close(*fd);
	*fd = -1;
	return -EFBIG;
}
