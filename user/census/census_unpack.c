/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unpacks a core file that is compressed by zstd. */
#include "user/census/census_unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zstd.h>

#include "user/lib/cleanup.h"
#include "user/lib/file_at.h"
#include "user/lib/unnamed_file.h"
#include "user/lib/zero.h"

enum { BUFFER = 256 << 10, MAX_WINDOW_BITS = 31, KEPT_FREE = 16 /* one part of so many */ };
#define MAX_BYTES (1ULL << 40)

struct unpacking {
	ZSTD_DCtx *zstd; /* owned */
	u8 *in, *out;	 /* owned */
	int to;
	u64 nr;	  /* bytes so far */
	u64 room; /* bytes that may still be written */
};

/* Runs of zeros become holes. */
static int census_unpack_put(struct unpacking *u, size_t len)
{
	if (len > MAX_BYTES - u->nr)
		return -EFBIG;
	if (is_zero(u->out, len)) {
		u->nr += len;
		return 0;
	}
	if (len > u->room)
		return -ENOSPC;
	u->room -= len;
	u->nr += len;
	return file_write_at(u->to, u->out, len, u->nr - len);
}

/* The bytes that a file may take: a part of the disk stays free for others. */
static u64 room_at(int fd)
{
	struct statvfs fs;
	u64 room;

	if (fstatvfs(fd, &fs) || !fs.f_blocks)
		return MAX_BYTES;
	room = (u64)fs.f_bavail * fs.f_frsize;
	return room - room / KEPT_FREE;
}

static int census_unpack_fd(struct unpacking *u, int fd)
{
	size_t state = 1;
	int err = 0;
	ssize_t len;

	while (!err && (len = read(fd, u->in, BUFFER)) > 0) {
		ZSTD_inBuffer in = { u->in, (size_t)len, 0 };

		/* A full buffer may have more behind it, although all input is taken. */
		for (bool is_full = true; !err && (in.pos < in.size || is_full);) {
			ZSTD_outBuffer out = { u->out, BUFFER, 0 };

			state = ZSTD_decompressStream(u->zstd, &out, &in);
			err = ZSTD_isError(state) ? -EINVAL : census_unpack_put(u, out.pos);
			is_full = out.pos == BUFFER;
		}
	}
	if (!err && len < 0)
		return -errno;
	/* A file that ends in the middle is a core that ends there. */
	return !err && ftruncate(u->to, (off_t)u->nr) ? -errno : err;
}

int census_unpack(int fd)
{
	auto_close int to = unnamed_file("/var/tmp");
	struct unpacking u = {
		.zstd = ZSTD_createDCtx(), .in = malloc(BUFFER), .out = malloc(BUFFER), .to = to
	};
	int err = !u.zstd || !u.in || !u.out ? -ENOMEM : to < 0 ? to : 0;

	if (!err && ZSTD_isError(ZSTD_DCtx_setParameter(u.zstd, ZSTD_d_windowLogMax, MAX_WINDOW_BITS)))
		err = -EINVAL;
	if (!err && lseek(fd, 0, SEEK_SET) < 0)
		err = -errno;
	u.room = err ? 0 : room_at(to);
	if (!err)
		err = census_unpack_fd(&u, fd);
	ZSTD_freeDCtx(u.zstd);
	free(u.in);
	free(u.out);
	return err ? err : take_fd(to);
}
