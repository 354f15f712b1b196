/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's own functions in place of the C library's, beside those. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/types.h"

#define OWN(type, name, ...) type name(__VA_ARGS__)
OWN(void, small_qsort, void *, size_t, size_t, int (*)(const void *, const void *));
OWN(void, small_qsort_r, void *, size_t, size_t, int (*)(const void *, const void *, void *), void *);
OWN(char *, small_strstr, const char *, const char *);
OWN(long, small_strtol, const char *restrict, char **restrict, int);
OWN(unsigned long, small_strtoul, const char *restrict, char **restrict, int);
OWN(long long, small_strtoll, const char *restrict, char **restrict, int);
OWN(unsigned long long, small_strtoull, const char *restrict, char **restrict, int);
OWN(int, small_atoi, const char *);
OWN(long, small_sysconf, int);
OWN(int, small_mutex_init, pthread_mutex_t *restrict, const pthread_mutexattr_t *restrict);
OWN(int, small_mutex_destroy, pthread_mutex_t *);
OWN(int, small_mutex_lock, pthread_mutex_t *);
OWN(int, small_mutex_unlock, pthread_mutex_t *);
OWN(int, small_cond_init, pthread_cond_t *restrict, const pthread_condattr_t *restrict);
OWN(int, small_cond_destroy, pthread_cond_t *);
OWN(int, small_cond_timedwait, pthread_cond_t *restrict, pthread_mutex_t *restrict,
    const struct timespec *restrict);
OWN(int, small_cond_wait, pthread_cond_t *restrict, pthread_mutex_t *restrict);
OWN(int, small_cond_broadcast, pthread_cond_t *);
OWN(int, small_cond_signal, pthread_cond_t *);

#define qsort		       small_qsort
#define qsort_r		       small_qsort_r
#define strstr		       small_strstr
#define strtol		       small_strtol
#define strtoul		       small_strtoul
#define strtoll		       small_strtoll
#define strtoull	       small_strtoull
#define atoi		       small_atoi
#define sysconf		       small_sysconf
#define pthread_mutex_init     small_mutex_init
#define pthread_mutex_destroy  small_mutex_destroy
#define pthread_mutex_lock     small_mutex_lock
#define pthread_mutex_unlock   small_mutex_unlock
#define pthread_cond_init      small_cond_init
#define pthread_cond_destroy   small_cond_destroy
#define pthread_cond_timedwait small_cond_timedwait
#define pthread_cond_wait      small_cond_wait
#define pthread_cond_broadcast small_cond_broadcast
#define pthread_cond_signal    small_cond_signal
#include "user/agent/small_libc.c"
#undef strstr
#undef strtol
#undef strtoul
#undef strtoull
#undef sysconf

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static void test_sort(void **state)
{
	int list[200];

	(void)state;
	srand(1);
	for (size_t nr = 0; nr <= ARRAY_SIZE(list); nr++) {
		long sum = 0;

		for (size_t i = 0; i < nr; i++) {
			list[i] = rand() % 50;
			sum += list[i];
		}
		small_qsort(list, nr, sizeof(*list), compare_ints);
		for (size_t i = 0; i < nr; i++) {
			assert_true(!i || list[i - 1] <= list[i]);
			sum -= list[i];
		}
		assert_int_equal(sum, 0);
	}
}

static void test_search(void **state)
{
	static const char *const parts[] = { "", "a", "ab", "aab", "b", "c", "aaab", "aabaab" };
	static const char *const texts[] = { "", "a", "aaab", "aabaaab", "ab" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(parts); k++)
			assert_ptr_equal(small_strstr(texts[i], parts[k]), strstr(texts[i], parts[k]));
}

static void test_numbers(void **state)
{
	static const char *const texts[] = { "0",
					     "17",
					     " 42x",
					     "-8",
					     "+9",
					     "0x1F",
					     "0x",
					     "1f",
					     "",
					     "-",
					     "017",
					     "0b1",
					     "ff",
					     "99999999999999999999",
					     "18446744073709551615",
					     "9223372036854775807",
					     "-9223372036854775807",
					     "-18446744073709551616" };
	static const int bases[] = { 0, 8, 10, 16 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		for (size_t b = 0; b < ARRAY_SIZE(bases); b++) {
			char *end, *own_end;
			int err;
			unsigned long long number;

			errno = 0;
			number = strtoull(texts[i], &end, bases[b]);
			err = errno;
			errno = 0;
			assert_true(small_strtoull(texts[i], &own_end, bases[b]) == number);
			assert_int_equal(errno, err);
			assert_ptr_equal(own_end, end);
			assert_true(small_strtoul(texts[i], NULL, bases[b]) ==
				    strtoul(texts[i], NULL, bases[b]));
			assert_true(small_strtol(texts[i], &own_end, bases[b]) ==
				    strtol(texts[i], &end, bases[b]));
			assert_ptr_equal(own_end, end);
		}
	}
	assert_int_equal(small_atoi("12 "), 12);
	assert_int_equal(small_sysconf(_SC_PAGESIZE), sysconf(_SC_PAGESIZE));
	assert_int_equal(small_sysconf(_SC_CLK_TCK), sysconf(_SC_CLK_TCK));
	assert_int_equal(small_sysconf(_SC_OPEN_MAX), sysconf(_SC_OPEN_MAX));
}

enum { NR_THREADS = 4, NR_TURNS = 200 };

struct turns {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int turn;
};

struct player {
	struct turns *turns;
	int own;
};

static void *play(void *arg)
{
	struct player *p = arg;
	struct turns *t = p->turns;

	for (int i = 0; i < NR_TURNS; i++) {
		small_mutex_lock(&t->lock);
		while (t->turn % NR_THREADS != p->own)
			small_cond_wait(&t->changed, &t->lock);
		t->turn++;
		small_cond_broadcast(&t->changed);
		small_mutex_unlock(&t->lock);
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct turns t = { 0 };
	struct player players[NR_THREADS];
	pthread_t threads[NR_THREADS];
	struct timespec past = { 0 };

	(void)state;
	small_mutex_init(&t.lock, NULL);
	small_cond_init(&t.changed, NULL);
	for (int i = 0; i < NR_THREADS; i++) {
		players[i] = (struct player){ &t, i };
		assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(t.turn, NR_THREADS * NR_TURNS);
	small_mutex_lock(&t.lock);
	assert_int_equal(small_cond_timedwait(&t.changed, &t.lock, &past), ETIMEDOUT);
	small_mutex_unlock(&t.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
