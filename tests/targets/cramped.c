/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cramped: limits its memory, waits until no code of heaptap is in it (there is none but by --backend inline), and then
 * holds 5 blocks of 100 bytes and loses 3.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "tests/targets/truth.h"

enum { SPARE_BYTES = 8 << 20 };

static void *volatile held[5];

/* The files of the mappings fit into it by far. */
static char *read_file(const char *path)
{
	static char text[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n, used = 0;

	while (fd >= 0 && (n = read(fd, text + used, sizeof(text) - 1 - (size_t)used)) > 0)
		used += n;
	close(fd);
	text[used] = '\0';
	return text;
}

FN static void *hold(void)
{
	return malloc(100);
}

FN static void lose(void)
{
	void *p = malloc(100);

	keep(p);
}

int main(void)
{
	rlim_t pages = strtoul(read_file("/proc/self/statm"), NULL, 10);
	const struct rlimit limit = { pages * (rlim_t)sysconf(_SC_PAGESIZE) + SPARE_BYTES, RLIM_INFINITY };

	truth_begin();
	if (setrlimit(RLIMIT_AS, &limit))
		return 1;
	while (strstr(read_file("/proc/self/maps"), "/memfd:heaptap-inline"))
		usleep(1000);
	for (int i = 0; i < 5; i++)
		held[i] = hold();
	for (int i = 0; i < 3; i++)
		lose();
	return 0;
}
