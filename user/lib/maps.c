/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses /proc/PID/maps exactly. */
#include "user/lib/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"

enum { MAPS_BUF_SIZE = 128 << 10 };

struct maps_reader {
	int fd;
	char *cut; /* owned; the last line, if it was too long for buf */
	taddr_t parked_end;
	size_t pos, len;
	char buf[MAPS_BUF_SIZE + 1];
};

/*
 * Parse digits of @base at *@p up to the byte @stop, and move *@p behind it. False if there are no digits, or too
 * many.
 */
static bool parse_number(const char **p, unsigned int base, char stop, u64 *out)
{
	const char *s = *p;
	u64 value = 0;

	for (;; s++) {
		unsigned int digit = 99;

		if (*s >= '0' && *s <= '9')
			digit = *s - '0';
		else if (*s >= 'a' && *s <= 'f')
			digit = *s - 'a' + 10;
		if (digit >= base)
			break;
		if (value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	if (s == *p || *s != stop)
		return false;
	*p = s + 1;
	*out = value;
	return true;
}

static bool parse_perms(const char **p, struct map_line *line)
{
	const char *s = *p;

	if ((s[0] != 'r' && s[0] != '-') || (s[1] != 'w' && s[1] != '-') || (s[2] != 'x' && s[2] != '-') ||
	    (s[3] != 's' && s[3] != 'p') || s[4] != ' ')
		return false;
	line->is_readable = s[0] == 'r';
	line->is_writable = s[1] == 'w';
	line->is_executable = s[2] == 'x';
	line->is_shared = s[3] == 's';
	*p = s + 5;
	return true;
}

/* Make newlines of "\012" in place; true if there was one. */
static bool maps_unescape(char *path)
{
	char *in = strstr(path, "\\012"), *out = in;

	if (!in)
		return false;
	while (*in) {
		if (strncmp(in, "\\012", 4) == 0) {
			*out++ = '\n';
			in += 4;
		} else {
			*out++ = *in++;
		}
	}
	*out = '\0';
	return true;
}

int maps_parse_line(char *text, size_t len, struct map_line *line)
{
	u64 dev_major, dev_minor;
	const char *p = text;
	char *path;

	text[len] = '\0';
	*line = (struct map_line){ 0 };
	if (!parse_number(&p, 16, '-', &line->start) || !parse_number(&p, 16, ' ', &line->end) ||
	    !parse_perms(&p, line) || !parse_number(&p, 16, ' ', &line->offset) ||
	    !parse_number(&p, 16, ':', &dev_major) || !parse_number(&p, 16, ' ', &dev_minor))
		return -EBADMSG;
	/* The inode is followed by padding up to the path; saved maps may have lost their trailing blanks. */
	if (!parse_number(&p, 10, ' ', &line->inode)) {
		if (!parse_number(&p, 10, '\0', &line->inode))
			return -EBADMSG;
		p--;
	}
	if (line->start >= line->end || dev_major > UINT32_MAX || dev_minor > UINT32_MAX)
		return -EBADMSG;
	line->dev_major = dev_major;
	line->dev_minor = dev_minor;
	path = text + (p - text);
	path += strspn(path, " ");
	line->is_ambiguous = maps_unescape(path);
	line->path = path;
	line->is_copy = !strncmp(path, MAPS_COPY_PATH, strlen(MAPS_COPY_PATH));
	return 0;
}

int maps_open_fd(struct maps_reader **out, int fd)
{
	struct maps_reader *r = malloc(sizeof(*r));

	if (!r) {
		close(fd);
		return -ENOMEM;
	}
	r->fd = fd;
	r->cut = NULL;
	r->parked_end = 0;
	r->pos = r->len = 0;
	*out = r;
	return 0;
}

int maps_open(struct maps_reader **out, pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", proc_reader(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return maps_open_fd(out, fd);
}

void maps_close(struct maps_reader *r)
{
	if (!r)
		return;
	close(r->fd);
	free(r->cut);
	free(r);
}

/* Read more bytes behind those in the buffer. 1, 0 at the end, or -errno. */
static int maps_fill(struct maps_reader *r)
{
	ssize_t n;

	memmove(r->buf, r->buf + r->pos, r->len - r->pos);
	r->len -= r->pos;
	r->pos = 0;
	do {
		n = read(r->fd, r->buf + r->len, MAPS_BUF_SIZE - r->len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r->len += n;
	return n > 0;
}

/* Drop what is left of a line whose beginning fills the buffer. */
static int skip_line(struct maps_reader *r)
{
	int more;

	do {
		r->pos = r->len = 0;
		more = maps_fill(r);
		if (more > 0) {
			char *newline = memchr(r->buf, '\n', r->len);

			r->pos = newline ? (size_t)(newline - r->buf) + 1 : 0;
		}
	} while (more > 0 && r->pos == 0);
	return more < 0 ? more : 0;
}

/* A line longer than the buffer: take it without the end of its path. */
static int next_cut(struct maps_reader *r, struct map_line *line)
{
	size_t len = r->len;
	int err;

	r->cut = malloc(len + 1);
	if (!r->cut)
		return -ENOMEM;
	memcpy(r->cut, r->buf, len);
	err = skip_line(r);
	if (!err)
		err = maps_parse_line(r->cut, len, line);
	line->is_cut = true;
	return err ? err : 1;
}

int maps_next(struct maps_reader *r, struct map_line *line)
{
	free(take_ptr(r->cut));
	for (;;) {
		char *text = r->buf + r->pos;
		char *newline = memchr(text, '\n', r->len - r->pos);
		int more;

		if (newline) {
			int err = maps_parse_line(text, newline - text, line);

			r->pos = newline + 1 - r->buf;
			if (!err)
				line->is_parked = maps_is_parked(&r->parked_end, line);
			return err ? err : 1;
		}
		if (r->pos == 0 && r->len == MAPS_BUF_SIZE)
			return next_cut(r, line);
		more = maps_fill(r);
		if (more <= 0)
			return more < 0 ? more : r->len ? -EBADMSG : 0;
	}
}

/* Parked pages begin right behind the private part of the piece's memory. */
bool maps_is_parked(taddr_t *end, const struct map_line *line)
{
	bool is_piece = !strncmp(line->path, MAPS_PIECE_PATH, strlen(MAPS_PIECE_PATH));
	bool is_parked = !is_piece && line->inode && line->start == *end;

	if (is_parked || (is_piece && !line->is_shared))
		*end = line->end;
	return is_parked;
}

bool maps_is_code(const struct map_line *line)
{
	return line->is_executable && !line->is_parked && strcmp(line->path, "[uprobes]") != 0 &&
	       strcmp(line->path, MAPS_UPROBES_TRAMPOLINE) != 0;
}

bool maps_is_complete(const struct maps_reader *r)
{
	char byte;

	/*
	 * The kernel ends the file early if the process gives up its memory. Then the file is empty from the start
	 * too.
	 */
	return pread(r->fd, &byte, 1, 0) == 1;
}
