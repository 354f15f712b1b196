/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text-differs PID: bytes of the code that a process has mapped which are not what the file says, one line for each. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The inline source's copy of code of a file, with its jumps: /memfd:heaptap-code:PATH (deleted). */
#define COPY "/memfd:heaptap-code:"
#define GONE " (deleted)"

struct mapping {
	unsigned long long start, end, offset; /* in the process, in the file */
	char perms[5];
	const char *path; /* of the file whose code it is */
};

/* Returns 1 if this line of maps is code of a file. */
static int parse_mapping(char *line, struct mapping *m)
{
	char *path;
	size_t n;
	int at = -1, nr;

	line[strcspn(line, "\n")] = '\0';
	nr = sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &m->start, &m->end, m->perms, &m->offset, &at);
	if (nr != 4 || at < 0)
		return 0;
	path = line + at;
	if (m->perms[2] != 'x' || path[0] != '/')
		return 0;
	m->path = path;
	if (strncmp(path, COPY, strlen(COPY)) != 0)
		return 1;
	m->path += strlen(COPY);
	n = strlen(m->path);
	if (n >= strlen(GONE) && !strcmp(m->path + n - strlen(GONE), GONE))
		path[strlen(COPY) + n - strlen(GONE)] = '\0';
	return 1;
}

/* In n bytes that begin after done bytes of the mapping. */
static void print_differences(const struct mapping *m, unsigned long long done, const unsigned char *have,
			      const unsigned char *want, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++)
		if (have[i] != want[i])
			printf("%s: byte %llu of its code, at 0x%llx, is 0%o, not 0%o\n", m->path,
			       done + (unsigned long long)i + 1, m->start + done + (unsigned long long)i,
			       have[i], want[i]);
}

/* Compares until the file ends, or one of both cannot be read. */
static void compare_mapping(int mem, int file, const struct mapping *m)
{
	static unsigned char have[1 << 16], want[1 << 16];
	unsigned long long size = m->end - m->start;

	for (unsigned long long done = 0; done < size;) {
		size_t part = size - done < sizeof(have) ? size - done : sizeof(have);
		ssize_t n = pread(file, want, part, (off_t)(m->offset + done));

		n = n > 0 ? pread(mem, have, (size_t)n, (off_t)(m->start + done)) : n;
		if (n <= 0)
			return;
		if (memcmp(have, want, (size_t)n) != 0)
			print_differences(m, done, have, want, n);
		done += (size_t)n;
	}
}

/* Opens "/proc/PID/NAME". */
static int open_of(const char *pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t room = 0;
	struct mapping m;
	int mem, maps_fd;
	FILE *maps;

	if (argc != 2) {
		fprintf(stderr, "usage: text-differs PID\n");
		return 2;
	}
	mem = open_of(argv[1], "mem");
	maps_fd = open_of(argv[1], "maps");
	maps = maps_fd >= 0 ? fdopen(maps_fd, "r") : NULL;
	/* A process that has ended has no code. */
	while (mem >= 0 && maps && getline(&line, &room, maps) >= 0) {
		int file = parse_mapping(line, &m) ? open(m.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

		if (file < 0)
			continue;
		compare_mapping(mem, file, &m);
		close(file);
	}
	free(line);
	return 0;
}
