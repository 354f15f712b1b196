/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breakpoints are taken out of untraced copies file by file, with the semaphores of their places (A16). */
#include "user/source/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { NR_FILES = 3 };

static struct copies copies;
static int files[NR_FILES];
static int answers[NR_FILES]; /* of link_set_touch(), by file */
static unsigned int nr_touched[NR_FILES];
static u64 semaphores[4];

static int number_of(int fd)
{
	char nr;

	assert_int_equal(pread(fd, &nr, 1, 0), 1);
	return nr;
}

/* In place of that of links.c. */
int link_set_touch(struct link_set *set, const struct programs *p, const struct link_group *g, bool is_multi)
{
	int nr = number_of(g->fd);

	(void)set;
	(void)p;
	assert_true(is_multi);
	nr_touched[nr]++;
	if (nr)
		return answers[nr];
	assert_int_equal(g->nr, 3);
	for (size_t i = 0; i < g->nr; i++)
		semaphores[i] = g->semaphores[i];
	return answers[nr];
}

static void note(int nr, const u64 *offsets, const u64 *marks, size_t nr_places)
{
	const struct link_group g = {
		.fd = files[nr], .pid = 1, .offsets = offsets, .semaphores = marks, .nr = nr_places
	};

	assert_int_equal(copies_note(&copies, &g), 0);
}

static int copies_begin(void **state)
{
	(void)state;
	for (char i = 0; i < NR_FILES; i++) {
		files[(int)i] = memfd_create("file", MFD_CLOEXEC);
		answers[(int)i] = 0;
		nr_touched[(int)i] = 0;
		if (write(files[(int)i], &i, 1) != 1)
			return -1;
	}
	return 0;
}

static int copies_end(void **state)
{
	(void)state;
	copies_fini(&copies);
	copies = (struct copies){ 0 };
	for (int i = 0; i < NR_FILES; i++)
		close(files[i]);
	return 0;
}

/* The kernel refuses a link to a place without its semaphore. */
static void places_keep_their_semaphores(void **state)
{
	static const u64 calls[] = { 16 }, notes[] = { 32, 48, 32 }, marks[] = { 64, 0, 64 };

	(void)state;
	note(0, calls, NULL, 1);
	note(0, notes, marks, 3);
	copies_sweep(&copies, NULL, NULL, 1);
	assert_int_equal(semaphores[0], 0);
	assert_int_equal(semaphores[1], 64);
	assert_int_equal(semaphores[2], 0);
}

/* Files behind one that is refused have their turn; the refused one is tried again, as long as there are copies. */
static void one_file_is_refused(void **state)
{
	static const u64 places[] = { 16, 32, 48 };

	(void)state;
	for (int i = 0; i < NR_FILES; i++)
		note(i, places, NULL, 3);
	answers[1] = -EINVAL;
	copies_sweep(&copies, NULL, NULL, 1);
	for (int i = 0; i < NR_FILES; i++)
		assert_int_equal(nr_touched[i], 1);
	assert_int_equal(copies.nr_swept, 0);
	answers[1] = 0;
	copies.next_ns = 0;
	copies_sweep(&copies, NULL, NULL, 1);
	assert_int_equal(copies.nr_swept, 1);
	copies.next_ns = 0;
	copies_sweep(&copies, NULL, NULL, 1);
	assert_int_equal(nr_touched[2], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(places_keep_their_semaphores, copies_begin, copies_end),
		cmocka_unit_test_setup_teardown(one_file_is_refused, copies_begin, copies_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
