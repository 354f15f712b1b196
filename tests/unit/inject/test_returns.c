/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that are under way return to the program again, on a CPU whose functions save a link register somewhere. */
#include "user/inject/process_private.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	REGION = 1 << 24,
	RETURNED = REGION + 0x80,
	STACK = 0x200000,
	OTHER_STACK = 0x400000,
	RET = 0x5000,
	NR_PLACES = 2
};

static const u64 SIGNED = 0x0025000000000000 | RETURNED;

/* A file stands for the memory of a target. */
struct world {
	struct injection in;
	struct inject_link links[2];
	size_t nr;
	int mem;
	struct piece_thread thread;
};

/* Where the thread in place @nr has its calls. */
static taddr_t thread_at(u32 nr)
{
	return REGION + PIECE_PLACES_OFFSET + nr * sizeof(struct piece_place) +
	       offsetof(struct piece_place, thread);
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct piece_key key = { .key = 1 };

	assert_non_null(w);
	w->in.region = REGION;
	w->in.nr_places = NR_PLACES;
	w->in.returned = RETURNED;
	w->nr = 1;
	w->links[0].sp = STACK - 256;
	w->mem = memfd_create("target", MFD_CLOEXEC);
	assert_true(w->mem >= 0);
	assert_int_equal(ftruncate(w->mem, REGION + PIECE_PLACES_OFFSET + PIECE_PLACES_MAPPED(NR_PLACES)), 0);
	assert_int_equal(inject_write(w->mem, REGION + PIECE_KEYS_OFFSET, &key, sizeof(key)), 0);
	return w;
}

static void world_free(struct world *w)
{
	close(w->mem);
	free(w);
}

/* The thread has a call that began at @sp, and returns to @ret. */
static void add_call(struct world *w, u64 sp, u64 ret)
{
	w->thread.pending[w->thread.nr_pending++] = (struct piece_pending){ .sp = sp, .ret = ret };
	assert_int_equal(inject_write(w->mem, thread_at(0), &w->thread, sizeof(w->thread)), 0);
}

static void set(const struct world *w, u64 at, u64 word)
{
	assert_int_equal(inject_write(w->mem, at, &word, sizeof(word)), 0);
}

static u64 get(const struct world *w, u64 at)
{
	u64 word = 0;

	assert_int_equal(inject_read(w->mem, at, &word, sizeof(word)), 0);
	return word;
}

static int look(struct world *w)
{
	return inject_restore_links(&w->in, &code_aarch64, w->mem, w->links, w->nr, true);
}

static int restore(struct world *w)
{
	return inject_restore_links(&w->in, &code_aarch64, w->mem, w->links, w->nr, false);
}

/* The function has saved the address in its frame. A look changes nothing. */
static void test_saved(void **state)
{
	struct world *w = world_new();

	(void)state;
	add_call(w, STACK, RET);
	set(w, STACK - 24, RETURNED);
	assert_int_equal(look(w), 0);
	assert_true(get(w, STACK - 24) == RETURNED);
	assert_int_equal(restore(w), 0);
	assert_true(get(w, STACK - 24) == RET);
	assert_false(w->links[0].is_changed);
	world_free(w);
}

/* The function has not saved it yet, or no longer has it there: what lies below the stack pointer is of no use. */
static void test_register(void **state)
{
	struct world *w = world_new();

	(void)state;
	w->links[0] = (struct inject_link){ .sp = STACK, .value = RETURNED };
	add_call(w, STACK, RET);
	set(w, STACK - 16, SIGNED);
	assert_int_equal(look(w), 0);
	assert_false(w->links[0].is_changed);
	assert_int_equal(restore(w), 0);
	assert_true(w->links[0].is_changed && w->links[0].value == RET);
	assert_true(get(w, STACK - 16) == SIGNED);
	world_free(w);
}

/* A signed address cannot be replaced, in the stack or in the register. */
static void test_signed(void **state)
{
	struct world *w = world_new();

	(void)state;
	add_call(w, STACK, RET);
	set(w, STACK - 24, SIGNED);
	assert_int_equal(look(w), -EAGAIN);
	set(w, STACK - 24, 0);
	w->links[0].value = SIGNED;
	assert_int_equal(look(w), -EAGAIN);
	w->links[0].value = RETURNED;
	assert_int_equal(look(w), 0);
	world_free(w);
}

/* Words of calls that are over stay as they are. */
static void test_old_words(void **state)
{
	struct world *w = world_new();

	(void)state;
	set(w, STACK - 24, RETURNED);
	set(w, STACK - 32, SIGNED);
	w->links[0].value = RETURNED;
	assert_int_equal(look(w), 0);
	assert_int_equal(restore(w), 0);
	assert_true(get(w, STACK - 24) == RETURNED);
	assert_false(w->links[0].is_changed);
	world_free(w);
}

/* A call inside a call; the outer function has come to its own by a jump from a third one. */
static void test_nested(void **state)
{
	struct world *w = world_new();

	(void)state;
	add_call(w, STACK, RET);
	add_call(w, STACK, RETURNED);
	add_call(w, STACK - 128, RET + 4);
	set(w, STACK - 40, RETURNED);
	set(w, STACK - 136, RETURNED);
	assert_int_equal(look(w), 0);
	assert_int_equal(restore(w), 0);
	assert_true(get(w, STACK - 40) == RET);
	assert_true(get(w, STACK - 136) == RET + 4);
	world_free(w);
}

/* A call that was left by longjmp(3) is still listed; a later one began above its place. */
static void test_forgotten(void **state)
{
	struct world *w = world_new();

	(void)state;
	add_call(w, STACK - 64, RET);
	add_call(w, STACK, RET + 4);
	set(w, STACK - 128, RETURNED);
	assert_int_equal(look(w), -EAGAIN);
	assert_int_equal(restore(w), -EAGAIN);
	assert_true(get(w, STACK - 128) == RET + 4);
	world_free(w);
}

/* An address that is nowhere may be in another register. A thread in a hook may be about to make one. */
static void test_unknown(void **state)
{
	struct world *w = world_new();

	(void)state;
	add_call(w, STACK, RET);
	assert_int_equal(look(w), -EAGAIN);
	set(w, STACK - 8, RETURNED);
	assert_int_equal(look(w), 0);
	w->thread.hook = 1;
	add_call(w, STACK, RETURNED);
	assert_int_equal(look(w), -EAGAIN);
	world_free(w);
}

/* A signal handler on a stack of its own has interrupted a function that has not saved its address. */
static void test_handler(void **state)
{
	const u64 frame = OTHER_STACK - 1024;
	struct world *w = world_new();

	(void)state;
	w->links[0].sp = frame - 64;
	add_call(w, STACK, RET);
	set(w, frame, RETURNED);
	set(w, frame + 8, STACK);
	set(w, frame + 16, 0x7000);
	assert_int_equal(look(w), -EAGAIN);
	set(w, frame + 40, 0x0000021046508001);
	assert_int_equal(look(w), 0);
	assert_int_equal(restore(w), 0);
	assert_true(get(w, frame) == RET);
	world_free(w);
}

/* Two threads, whose stacks lie side by side, are in one function each. */
static void test_threads(void **state)
{
	struct world *w = world_new();
	const struct piece_key keys[] = { { .key = 1 }, { .key = 3, .nr = 1 }, { .key = PIECE_CLAIMED } };

	(void)state;
	w->links[1] = (struct inject_link){ .sp = STACK + 4096 - 256, .value = RETURNED };
	w->nr = 2;
	add_call(w, STACK, RET);
	w->thread.pending[0] = (struct piece_pending){ .sp = STACK + 4096 - 128, .ret = RET + 4 };
	assert_int_equal(inject_write(w->mem, thread_at(1), &w->thread, sizeof(w->thread)), 0);
	assert_int_equal(inject_write(w->mem, REGION + PIECE_KEYS_OFFSET, keys, sizeof(keys)), 0);
	set(w, STACK - 8, RETURNED);
	assert_int_equal(look(w), 0);
	assert_int_equal(restore(w), 0);
	assert_true(get(w, STACK - 8) == RET);
	assert_true(w->links[1].is_changed && w->links[1].value == RET + 4);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saved),	cmocka_unit_test(test_register),
		cmocka_unit_test(test_signed),	cmocka_unit_test(test_old_words),
		cmocka_unit_test(test_nested),	cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_handler),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
