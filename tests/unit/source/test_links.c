/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of link sets: what a keeper that is killed while it makes links leaves in programs is taken out (A3). */
#include "user/source/links.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/helper_process.h"
#include "user/source/link_keeper.h"

enum { NR_PLACES = 3 };

/* Shared with the keepers. */
struct requests {
	size_t nr_keepers, nr;
	struct keeper_request last;
	u64 offsets[NR_PLACES]; /* of the last one */
};

static struct requests *seen;
static int devnull; /* stands for programs and files */

/* In place of that of link_keeper.c: dies of a request for links, and does as it is told otherwise. */
void keeper_main(int fd, struct keeper_places *places, struct source_state *state,
		 const struct tracer_changer *changer)
{
	struct keeper_request r;
	const int answer = 0;

	(void)state;
	(void)changer;
	helper_process_keep(&fd, 1, true);
	seen->nr_keepers++;
	while (recv(HELPER_PROCESS_FIRST, &r, sizeof(r), 0) == sizeof(r)) {
		seen->nr++;
		seen->last = r;
		memcpy(seen->offsets, places->offsets, sizeof(seen->offsets));
		if (r.op == KEEPER_ADD)
			_exit(1);
		(void)!send(HELPER_PROCESS_FIRST, &answer, sizeof(answer), MSG_NOSIGNAL);
	}
	places->end = KEEPER_HAS_ENDED;
	_exit(0);
}

/* In place of that of programs.c. */
int programs_fd(const struct programs *p, enum program program)
{
	(void)p;
	(void)program;
	return devnull;
}

static void test_killed(void **state)
{
	static struct programs programs;
	const u64 offsets[NR_PLACES] = { 16, 32, 48 };
	struct link_group g = { .pid = 1, .offsets = offsets, .nr = NR_PLACES };
	struct link_set *set;

	(void)state;
	g.fd = devnull = open("/dev/null", O_RDONLY | O_CLOEXEC);
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(seen, MAP_FAILED);
	assert_int_equal(link_set_new(&set, &programs, NULL), 0);
	assert_int_equal(link_set_add(set, &programs, &g, true), -EPIPE);
	assert_int_equal(seen->nr_keepers, 2);
	assert_int_equal(seen->nr, 2);
	assert_int_equal(seen->last.op, KEEPER_TOUCH);
	assert_int_equal(seen->last.nr, NR_PLACES);
	assert_true(seen->last.is_multi);
	assert_memory_equal(seen->offsets, offsets, sizeof(offsets));
	link_set_free(set);
	close(devnull);
	munmap(seen, sizeof(*seen));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_killed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
