/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads /tmp/perf-PID.map: lines of address, size and name, which the process writes as it compiles. */
#include "user/names/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"

enum {
	MAX_BYTES = 64 << 20,
	MAX_ENTRIES = 1 << 20,
	MAX_BACK = 64, /* entries before the nearest one that may be longer and reach over it */
};

struct perf_entry {
	u64 start, size;
	const char *name; /* in the text */
	u32 len;
	u32 number; /* of the line */
};

struct perf_map {
	struct perf_entry *list; /* owned; by address */
	size_t nr, max;
	char *text; /* owned */
	u64 left_out;
};

/* ---- the file ---- */

/* The PID of @pid in its own PID namespace: the last one of NSpid. */
static pid_t perf_inner_pid(pid_t pid)
{
	char path[64], line[256];
	auto_fclose FILE *file = NULL;
	pid_t inner = pid;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *last = strrchr(line, '\t');

		if (!strncmp(line, "NSpid:", 6) && last)
			inner = (pid_t)atoi(last + 1);
	}
	return inner;
}

/* Open the map below @root. Links are not followed: they may lead out of the container. */
static int perf_open_in(const char *root, pid_t pid, uid_t owner)
{
	auto_close int top = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1;
	char name[32];
	struct stat st;
	int fd;

	if (top >= 0)
		dir = openat(top, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	snprintf(name, sizeof(name), "perf-%d.map", (int)pid);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == owner)
		return fd;
	close(fd);
	return -EPERM;
}

static int perf_open(pid_t pid)
{
	char root[32], process[32];
	struct stat st;

	snprintf(process, sizeof(process), "/proc/%d", (int)pid);
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	if (stat(process, &st))
		return perf_open_in("/", pid, getuid());
	return perf_open_in(root, perf_inner_pid(pid), st.st_uid);
}

int perf_map_read(struct perf_map **out, pid_t pid)
{
	auto_close int fd = perf_open(pid);
	auto_free char *text = NULL;
	size_t used = 0, max = 0;
	struct stat st;
	ssize_t len;
	int err;

	if (fd < 0)
		return fd;
	do {
		if (array_reserve(text, max, used + (64 << 10)))
			return -ENOMEM;
		len = read(fd, text + used, max - used);
		used += len > 0 ? (size_t)len : 0;
	} while (len > 0 && used < MAX_BYTES);
	if (len < 0)
		return -errno;
	err = perf_map_new(out, take_ptr(text), used);
	/* The file may have grown since its end was read. */
	if (!err && used >= MAX_BYTES && !fstat(fd, &st) && (u64)st.st_size > used)
		(*out)->left_out += (u64)st.st_size - used;
	return err;
}

/* ---- the entries ---- */

static int perf_compare(const void *a, const void *b)
{
	const struct perf_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* A hexadecimal number and the blank behind it, from *@at on. False: the line is no entry. */
static bool perf_number(const char **at, const char *end, u64 *number)
{
	const char *s = *at;

	for (*number = 0; s < end && *s != ' ' && s - *at < 18; s++) {
		const char *digits = "0123456789abcdef", *digit = strchr(digits, *s | 0x20);

		if (!digit || !*s)
			return false;
		*number = *number << 4 | (u64)(digit - digits);
	}
	if (s == *at || s >= end || *s != ' ')
		return false;
	*at = s + 1;
	return true;
}

static int perf_add_line(struct perf_map *m, const char *line, const char *end, u32 number)
{
	struct perf_entry e = { .number = number };

	if (!perf_number(&line, end, &e.start) || !perf_number(&line, end, &e.size) || line == end)
		return 0;
	if (array_reserve(m->list, m->max, m->nr + 1))
		return -ENOMEM;
	e.name = line;
	e.len = (u32)(end - line);
	m->list[m->nr++] = e;
	return 0;
}

int perf_map_new(struct perf_map **out, char *text, size_t len)
{
	struct perf_map *m = calloc(1, sizeof(*m));
	const char *end = text + len, *line = text, *next;
	u32 number = 0;
	int err = m ? 0 : -ENOMEM;

	if (err) {
		free(text);
		return err;
	}
	m->text = text;
	/* The last line may be half written. */
	while (!err && line < end && number < MAX_ENTRIES &&
	       (next = memchr(line, '\n', (size_t)(end - line)))) {
		err = perf_add_line(m, line, next, number++);
		line = next + 1;
	}
	if (err) {
		perf_map_free(m);
		return err;
	}
	m->left_out = number == MAX_ENTRIES ? (u64)(end - line) : 0;
	if (m->nr)
		qsort(m->list, m->nr, sizeof(*m->list), perf_compare);
	*out = m;
	return 0;
}

u64 perf_map_left_out(const struct perf_map *m)
{
	return m->left_out;
}

void perf_map_free(struct perf_map *m)
{
	if (!m)
		return;
	free(m->list);
	free(m->text);
	free(m);
}

/* ---- the names ---- */

/* Take ":2" from the end of the file of @name, as a number. False: it does not end so. */
static bool perf_take_number(struct perf_name *name, u32 *number)
{
	const char *colon = name->file_len ? memrchr(name->file, ':', name->file_len) : NULL;
	size_t len = colon ? name->file_len - (size_t)(colon + 1 - name->file) : 0;

	*number = 0;
	for (size_t i = 0; i < len; i++) {
		if (colon[1 + i] < '0' || colon[1 + i] > '9' || len > 9)
			return false;
		*number = *number * 10 + (u32)(colon[1 + i] - '0');
	}
	if (!len)
		return false;
	name->file_len = (size_t)(colon - name->file);
	return true;
}

/* "JS:~load /app/a.js:2:25" of node: the function, which may have no name, its file, line and column. */
static void perf_split_node(struct perf_name *name)
{
	static const char *const kinds[] = { "JS:", "LazyCompile:", "Function:", "Script:", "Eval:" };
	static const char anonymous[] = "(anonymous)";
	const char *space;
	u32 column;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i]);

		if (name->function_len <= len || strncmp(name->function, kinds[i], len) != 0)
			continue;
		name->language = "javascript";
		name->function += len;
		name->function_len -= len;
		while (name->function_len > 1 && strchr("~*^+-", *name->function))
			name->function++, name->function_len--;
		space = memchr(name->function, ' ', name->function_len);
		if (!space)
			return;
		name->file = space + 1;
		name->file_len = name->function_len - (size_t)(space + 1 - name->function);
		name->function_len = (size_t)(space - name->function);
		if (!name->function_len) {
			name->function = anonymous;
			name->function_len = sizeof(anonymous) - 1;
		}
		if (perf_take_number(name, &column) && !perf_take_number(name, &name->line))
			name->line = column;
		return;
	}
}

/* "py::load:/app/a.py" of Python. */
static void perf_split_python(struct perf_name *name)
{
	const char *colon;

	if (name->function_len <= 4 || strncmp(name->function, "py::", 4) != 0)
		return;
	name->language = "python";
	name->function += 4;
	name->function_len -= 4;
	colon = memchr(name->function, ':', name->function_len);
	if (!colon)
		return;
	name->file = colon + 1;
	name->file_len = name->function_len - (size_t)(colon + 1 - name->function);
	name->function_len = (size_t)(colon - name->function);
}

bool perf_map_find(const struct perf_map *m, u64 addr, struct perf_name *name)
{
	const struct perf_entry *best = NULL;
	size_t low = 0, high = m->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->list[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i-- > 0 && low - i <= MAX_BACK;)
		if (addr - m->list[i].start < m->list[i].size && (!best || m->list[i].number > best->number))
			best = &m->list[i];
	if (!best)
		return false;
	*name = (struct perf_name){ .function = best->name,
				    .function_len = best->len,
				    .language = "compiled" };
	perf_split_node(name);
	perf_split_python(name);
	return name->function_len != 0;
}
