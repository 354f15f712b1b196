/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded: the clock of the wall jumps by a year at each look, forth and back. While the file HEAPTAP_CLOCK_FILE
 * exists, the clocks that only go on are ahead by as many seconds as it says, or by a day if it is empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { DAY_S = 86400, YEAR_S = 365 * DAY_S };

static long wall_jump(void)
{
	static int nr;

	return __atomic_fetch_add(&nr, 1, __ATOMIC_RELAXED) % 2 ? YEAR_S : -YEAR_S;
}

/* Without a change of errno. */
static long seconds_passed(void)
{
	const char *path = getenv("HEAPTAP_CLOCK_FILE");
	int was = errno, fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[16] = "";
	long passed = 0;

	if (fd >= 0) {
		passed = read(fd, text, sizeof(text) - 1) > 0 ? strtol(text, NULL, 10) : DAY_S;
		close(fd);
	}
	errno = was;
	return passed;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long err = syscall(SYS_clock_gettime, clock, now);

	if (err)
		return (int)err;
	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		now->tv_sec += wall_jump();
	else if (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME)
		now->tv_sec += seconds_passed();
	return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	now->tv_sec = ts.tv_sec;
	now->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *now)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (now)
		*now = ts.tv_sec;
	return ts.tv_sec;
}
