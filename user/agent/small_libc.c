/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * In place of musl's functions of these names, which are made for speed, all bases and cancelled threads, and are 9 KiB
 * larger: sorting, searching a text, reading lines and numbers, waiting for a change.
 */
#include <ctype.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void swap(char *a, char *b, size_t size)
{
	while (size--) {
		char c = *a;

		*a++ = *b;
		*b++ = c;
	}
}

struct order {
	int (*compare)(const void *a, const void *b, void *ctx);
	void *ctx;
};

/* Let item @at, and what is below it, be a heap of @nr items. */
static void sink(char *items, size_t at, size_t nr, size_t size, const struct order *o)
{
	size_t child;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr &&
		    o->compare(items + child * size, items + (child + 1) * size, o->ctx) < 0)
			child++;
		if (o->compare(items + at * size, items + child * size, o->ctx) >= 0)
			return;
		swap(items + at * size, items + child * size, size);
		at = child;
	}
}

void qsort_r(void *base, size_t nr, size_t size, int (*compare)(const void *, const void *, void *),
	     void *ctx)
{
	const struct order o = { compare, ctx };

	for (size_t i = nr / 2; i--;)
		sink(base, i, nr, size, &o);
	while (nr-- > 1) {
		swap(base, (char *)base + nr * size, size);
		sink(base, 0, nr, size, &o);
	}
}

static int compare_plain(const void *a, const void *b, void *ctx)
{
	int (*const *compare)(const void *, const void *) = ctx;

	return (*compare)(a, b);
}

void qsort(void *base, size_t nr, size_t size, int (*compare)(const void *, const void *))
{
	qsort_r(base, nr, size, compare_plain, &compare);
}

char *strstr(const char *text, const char *part)
{
	size_t len = strlen(part);

	for (; strncmp(text, part, len); text++)
		if (!*text)
			return NULL;
	return (char *)(uintptr_t)text;
}

char *fgets(char *restrict line, int size, FILE *restrict file)
{
	int nr = 0;

	while (nr < size - 1 && fread(line + nr, 1, 1, file) == 1)
		if (line[nr++] == '\n')
			break;
	line[nr] = '\0';
	return nr ? line : NULL;
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10 : 99;
}

/* The absolute value; *@is_minus: a minus stood before it. More than @max: @max, and ERANGE. */
static uint64_t take_number(const char *text, char **end, int base, uint64_t max, bool *is_minus)
{
	const char *at = text, *digits;
	bool is_over = false;
	uint64_t value = 0;

	while (isspace((unsigned char)*at))
		at++;
	*is_minus = *at == '-';
	at += *at == '-' || *at == '+';
	if ((!base || base == 16) && *at == '0' && (at[1] | 32) == 'x' && digit_of(at[2]) < 16) {
		at += 2;
		base = 16;
	}
	if (!base)
		base = *at == '0' ? 8 : 10;
	for (digits = at; digit_of(*at) < base; at++) {
		uint64_t digit = (uint64_t)digit_of(*at);

		is_over |= value > (max - digit) / (uint64_t)base;
		value = value * (uint64_t)base + digit;
	}
	if (end)
		*end = (char *)(uintptr_t)(at > digits ? at : text);
	if (!is_over)
		return value;
	errno = ERANGE;
	return max;
}

static int64_t take_signed(const char *text, char **end, int base, int64_t max)
{
	bool is_minus = text[strspn(text, " \t")] == '-';
	uint64_t value = take_number(text, end, base, (uint64_t)max + is_minus, &is_minus);

	return (int64_t)(is_minus ? -value : value);
}

static uint64_t take_unsigned(const char *text, char **end, int base, uint64_t max)
{
	bool is_minus;
	uint64_t value = take_number(text, end, base, max, &is_minus);

	return is_minus && value != max ? -value : value;
}

long strtol(const char *restrict text, char **restrict end, int base)
{
	return (long)take_signed(text, end, base, INTPTR_MAX);
}

unsigned long strtoul(const char *restrict text, char **restrict end, int base)
{
	return (unsigned long)take_unsigned(text, end, base, UINTPTR_MAX);
}

unsigned long long strtoull(const char *restrict text, char **restrict end, int base)
{
	return take_unsigned(text, end, base, UINT64_MAX);
}

long long strtoll(const char *restrict text, char **restrict end, int base)
{
	return take_signed(text, end, base, INT64_MAX);
}

int atoi(const char *text)
{
	return (int)strtol(text, NULL, 10);
}

/* The names that heaptap asks for. */
long sysconf(int name)
{
	struct rlimit limit;

	switch (name) {
	case _SC_PAGESIZE:
		return getpagesize();
	case _SC_CLK_TCK:
		return 100; /* for programs, whatever the kernel's own clock is */
	case _SC_OPEN_MAX:
		return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT32_MAX ? -1
										      : (long)limit.rlim_cur;
	}
	errno = EINVAL;
	return -1;
}

enum { UNLOCKED, LOCKED, AWAITED };

static int *lock_of(pthread_mutex_t *m)
{
	return (int *)m;
}

static long futex(int *word, int how, int value, const long *when)
{
	return syscall(SYS_futex, word, how | FUTEX_PRIVATE_FLAG, value, when, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* heaptap has mutexes without attributes only. */
int pthread_mutex_init(pthread_mutex_t *restrict m, const pthread_mutexattr_t *restrict attr)
{
	(void)attr;
	*lock_of(m) = UNLOCKED;
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *m)
{
	(void)m;
	return 0;
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	int *lock = lock_of(m), expected = UNLOCKED;

	if (__atomic_compare_exchange_n(lock, &expected, LOCKED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	while (__atomic_exchange_n(lock, AWAITED, __ATOMIC_ACQUIRE) != UNLOCKED)
		futex(lock, FUTEX_WAIT, AWAITED, NULL);
	return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *m)
{
	int *lock = lock_of(m);

	if (__atomic_exchange_n(lock, UNLOCKED, __ATOMIC_RELEASE) == AWAITED)
		futex(lock, FUTEX_WAKE, 1, NULL);
	return 0;
}

/* A condition is a number that changes when it is signalled, and the clock of its waits. */
struct condition {
	int changes, clock;
};

_Static_assert(sizeof(struct condition) <= sizeof(pthread_cond_t), "it lies in one of musl");

static struct condition *condition_of(pthread_cond_t *c)
{
	return (struct condition *)c;
}

int pthread_cond_init(pthread_cond_t *restrict c, const pthread_condattr_t *restrict attr)
{
	clockid_t clock = CLOCK_REALTIME;

	if (attr)
		pthread_condattr_getclock(attr, &clock);
	*condition_of(c) = (struct condition){ .clock = clock };
	return 0;
}

int pthread_cond_destroy(pthread_cond_t *c)
{
	(void)c;
	return 0;
}

int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict lock,
			   const struct timespec *restrict until)
{
	struct condition *d = condition_of(c);
	int seen = __atomic_load_n(&d->changes, __ATOMIC_SEQ_CST);
	int how = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG |
		  (d->clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);
	long when[2] = { until ? (long)until->tv_sec : 0,
			 until ? until->tv_nsec : 0 }; /* as the kernel knows it */
	bool is_late;

	pthread_mutex_unlock(lock);
	is_late = futex(&d->changes, how, seen, until ? when : NULL) && errno == ETIMEDOUT;
	pthread_mutex_lock(lock);
	return is_late ? ETIMEDOUT : 0;
}

int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict lock)
{
	return pthread_cond_timedwait(c, lock, NULL);
}

int pthread_cond_broadcast(pthread_cond_t *c)
{
	struct condition *d = condition_of(c);

	__atomic_add_fetch(&d->changes, 1, __ATOMIC_SEQ_CST);
	futex(&d->changes, FUTEX_WAKE, INT32_MAX, NULL);
	return 0;
}

int pthread_cond_signal(pthread_cond_t *c)
{
	return pthread_cond_broadcast(c);
}
