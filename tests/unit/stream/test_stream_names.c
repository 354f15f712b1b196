/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the records of names in a stream: functions, modules, mappings, allocators; also false ones (F5, G4). */
#include "user/stream/stream_names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "user/target/target.h"

enum { PID = 9, MAX_MODULES = 3 };

struct world {
	struct stream_names n;
	struct target target;
	s64 bytes;
	struct target *changed;
};

static struct target *find_target(void *ctx, u32 pid)
{
	struct world *w = ctx;

	return pid == PID ? &w->target : NULL;
}

static int charge(void *ctx, enum stream_kind kind, s64 bytes)
{
	struct world *w = ctx;

	w->bytes += kind == STREAM_MAPS ? bytes : 0;
	return w->bytes > 100000 ? -E2BIG : 0;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	*state = w;
	if (!w)
		return -1;
	w->target = (struct target){ .pid = PID, .maps = { .epoch = 5 } };
	w->n.max_modules = MAX_MODULES;
	w->n.owner = (struct stream_names_owner){ w, find_target, charge };
	return alloc_table_new(&w->n.fns) || module_table_new(&w->n.modules);
}

static int teardown(void **state)
{
	struct world *w = *state;

	stream_names_fini(&w->n);
	module_table_free(w->n.modules);
	alloc_table_free(w->n.fns);
	mapping_list_fini(&w->target.maps);
	free(w->target.allocators);
	free(w);
	return 0;
}

static void takes(struct world *w, enum stream_kind kind, const void *rec)
{
	assert_true(stream_names_takes(&w->n, kind));
	assert_int_equal(stream_names_take(&w->n, kind, rec, &w->changed), 0);
}

static void refuses(struct world *w, enum stream_kind kind, const void *rec, const char *why)
{
	assert_int_equal(stream_names_take(&w->n, kind, rec, &w->changed), -EBADMSG);
	assert_string_equal(w->n.why, why);
	assert_null(w->changed);
}

static void functions(void **state)
{
	struct world *w = *state;
	size_t nr = alloc_fn_count(NULL);

	takes(w, STREAM_FUNCTION, &(struct stream_function){ 7, ALLOC_FREE, FAMILY_MALLOC, "free", "free" });
	assert_int_equal(w->n.fn_of[7], alloc_fn_find(NULL, "free"));
	takes(w, STREAM_FUNCTION,
	      &(struct stream_function){ 8, ALLOC_MALLOC, FAMILY_MALLOC, "a/b.(*T).\xc3\xa9{x}#1", "x" });
	assert_int_equal(w->n.fn_of[8], nr);
	/* Another allocator's free that allocates is not ours. */
	takes(w, STREAM_FUNCTION,
	      &(struct stream_function){ 9, ALLOC_MALLOC, FAMILY_MALLOC, "free", "free" });
	assert_int_equal(w->n.fn_of[9], nr + 1);
	takes(w, STREAM_FUNCTION, &(struct stream_function){ 10, ALLOC_MALLOC, FAMILY_MALLOC, "", "" });
	assert_int_equal(w->n.fn_of[10], 0);
	refuses(w, STREAM_FUNCTION, &(struct stream_function){ 7, 200, FAMILY_MALLOC, "free", "free" },
		"an allocator function of a kind that is not known");
	assert_int_equal(w->n.fn_of[7], 0);
	/* Functions with control characters are none. */
	takes(w, STREAM_FUNCTION,
	      &(struct stream_function){ 8, ALLOC_MALLOC, FAMILY_MALLOC, "mal\033[31mloc", "x" });
	assert_int_equal(w->n.fn_of[8], 0);
	takes(w, STREAM_FUNCTION, &(struct stream_function){ 9, ALLOC_MALLOC, FAMILY_MALLOC, "x", "\x7f" });
	assert_int_equal(w->n.fn_of[9], 0);
	assert_int_equal(alloc_fn_count(w->n.fns), nr + 2);
}

static void module(struct world *w, u64 ino)
{
	takes(w, STREAM_MODULE,
	      &(struct stream_module){ .ino = ino, .path = "/lib/none.so", .link = "/lib/none" });
}

/* A later stream about the same processes names files again, or others: all streams together have a limit. */
static void modules(void **state)
{
	struct world *w = *state;

	module(w, 1);
	module(w, 2);
	assert_int_equal(module_count(w->n.modules), 2);
	stream_names_clear(&w->n);
	module(w, 2);
	assert_int_equal(module_count(w->n.modules), 2);
	module(w, 3);
	assert_string_equal(module_get(w->n.modules, 3)->link, "/lib/none");
	refuses(w, STREAM_MODULE, &(struct stream_module){ .ino = 4, .path = "/x", .link = "" },
		"too many files");
}

static const struct stream_mapping *mapping(u64 start, u64 end, u32 number)
{
	static struct stream_mapping m;

	m = (struct stream_mapping){ .start = start, .end = end, .bias = start, .module = number };
	return &m;
}

static const struct stream_maps two = { .pid = PID, .nr = 2 };

static void mappings(void **state)
{
	struct world *w = *state;
	const char *const misplaced = "a mapping out of place";

	module(w, 1);
	refuses(w, STREAM_MAPPING, mapping(0x1000, 0x2000, 0), misplaced);
	takes(w, STREAM_MAPS, &two);
	assert_null(w->changed);
	refuses(w, STREAM_MAPPING, mapping(0x1000, 0x1000, 0), misplaced);
	takes(w, STREAM_MAPPING, mapping(0x1000, 0x2000, 1));
	assert_null(w->changed);
	refuses(w, STREAM_MAPPING, mapping(0x1800, 0x3000, 0), misplaced);
	takes(w, STREAM_MAPPING, mapping(0x2000, 0x3000, 0));
	assert_ptr_equal(w->changed, &w->target);
	assert_int_equal(w->target.maps.nr, 2);
	assert_int_equal(w->target.maps.epoch, 6);
	assert_int_equal(w->target.maps.maps[0].module->id, 1);
	assert_null(w->target.maps.maps[1].module);
	refuses(w, STREAM_MAPPING, mapping(0x3000, 0x4000, 0), misplaced);
	refuses(w, STREAM_MAPS, &(struct stream_maps){ .pid = PID, .nr = STREAM_MAX_MAPPINGS + 1 },
		"too many mappings");
	refuses(w, STREAM_MAPS, &(struct stream_maps){ .pid = PID + 1 },
		"mappings of a process that is not there");
	takes(w, STREAM_MAPS, &(struct stream_maps){ .pid = PID });
	assert_ptr_equal(w->changed, &w->target);
	assert_int_equal(w->target.maps.nr, 0);
	assert_int_equal(w->bytes, 0);
}

/* Nothing comes between mappings; a stream that breaks off there does not damage the next one. */
static void between_mappings(void **state)
{
	struct world *w = *state;

	assert_false(stream_names_takes(&w->n, STREAM_EVENT));
	takes(w, STREAM_MAPS, &two);
	takes(w, STREAM_MAPPING, mapping(0x1000, 0x2000, 0));
	assert_true(stream_names_takes(&w->n, STREAM_EVENT));
	refuses(w, STREAM_EVENT, &(struct heap_event){ .size = 1 }, "something else between mappings");
	refuses(w, STREAM_MAPS, &two, "something else between mappings");
	assert_int_equal(w->bytes, 2 * sizeof(struct mapping));
	stream_names_clear(&w->n);
	assert_int_equal(w->bytes, 0);
	takes(w, STREAM_MAPS, &two);
	assert_int_equal(stream_names_take(&w->n, STREAM_MAPPING, mapping(0x1000, 0x2000, 0), &w->changed),
			 0);
	assert_int_equal(w->target.maps.nr, 0);
}

static void dear_mappings(void **state)
{
	struct world *w = *state;

	assert_int_equal(stream_names_take(&w->n, STREAM_MAPS,
					   &(struct stream_maps){ .pid = PID, .nr = 60000 }, &w->changed),
			 -E2BIG);
	assert_null(w->n.why);
}

static void allocators(void **state)
{
	static const char *const kinds[][2] = { { "\033]0;x", "other" },
						{ "", "other" },
						{ "a kind of an allocator, much too long", "other" },
						{ "Hoard", "Hoard" },
						{ "libstdc++", "libstdc++" } };
	struct stream_allocator a = { .pid = PID, .module = 1 };
	struct world *w = *state;

	module(w, 1);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		w->target.nr_allocators = 0;
		a.kind = kinds[i][0];
		takes(w, STREAM_ALLOCATOR, &a);
		assert_ptr_equal(w->changed, &w->target);
		assert_string_equal(w->target.allocators[0].kind, kinds[i][1]);
		takes(w, STREAM_ALLOCATOR, &a);
		assert_null(w->changed);
	}
	a.pid++;
	refuses(w, STREAM_ALLOCATOR, &a, "an allocator of a process that is not there");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(functions, setup, teardown),
		cmocka_unit_test_setup_teardown(modules, setup, teardown),
		cmocka_unit_test_setup_teardown(mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(between_mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(dear_mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(allocators, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
