/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The place that a stack is named by: not the library of a language, no wrapper of the allocator. */
#include "tests/unit/report/report_fixture.c"
#include "user/report/library_code.h"
#include "user/report/own_code.h"
#include "user/report/short_name.h"
#include "user/report/wrappers.h"

static struct wrappers *wrappers;

static void is_named(u64 stack, const char *expected)
{
	char place[OWN_PLACE_MAX];

	assert_int_equal(own_code_name(&report, &process, stack, place), 0);
	assert_string_equal(place, expected);
}

static void find_wrappers(void)
{
	wrappers_free(wrappers);
	assert_int_equal(wrappers_new(&wrappers, heap, stacks, NULL), 0);
	process.wrappers = wrappers;
}

static int end_all(void **state)
{
	wrappers_free(wrappers);
	wrappers = NULL;
	return end(state);
}

static void names_tell_libraries(void **state)
{
	static const struct {
		struct symbol symbol;
		bool is_library;
	} cases[] = {
		{ { "std::vector<int>::push_back(int)", NULL, 0 }, true },
		{ { "operator new(unsigned long)", NULL, 0 }, true },
		{ { "alloc::vec::Vec<T>::push", NULL, 0 }, true },
		{ { "<T as alloc::slice::hack::ConvertVec>::to_vec", NULL, 0 }, true },
		{ { "<alloc::string::String as core::clone::Clone>::clone", NULL, 0 }, true },
		{ { "<&mut alloc::vec::Vec<u8> as std::io::Write>::write", NULL, 0 }, true },
		{ { "<app::Thing as core::clone::Clone>::clone", NULL, 0 }, false },
		{ { "app::run", "/src/main.rs", 3 }, false },
		/* Namespaces of C++ that are called as crates of Rust. */
		{ { "core::Engine::load(int)", "/src/e.cc", 3 }, false },
		{ { "core::fmt::write", "/rustc/1234/library/core/src/fmt/mod.rs", 3 }, true },
		{ { "core::fmt::write", NULL, 0 }, true },
		{ { "_d_newclass", NULL, 0 }, true },
		{ { "core.memory.GC.malloc", NULL, 0 }, true },
		{ { "ada__strings__unbounded__append", NULL, 0 }, true },
		{ { "strdup", NULL, 0 }, true },
		/* The event loop that calls a program: with a line in node, whose own functions have none. */
		{ { "uv__run_timers", "/deps/uv/src/timer.c", 178 }, true },
		{ { "my_strdup_list", NULL, 0 }, false },
		{ { "listOnTimeout", "node:internal/timers", 524 }, true },
		{ { "listOnTimeout", "/app/timers.js", 524 }, false },
		{ { "operator()", "/usr/include/c++/12/bits/std_thread.h", 259 }, true },
		{ { "make_b()", "/src/b.cpp", 8 }, false },
		{ { "(anonymous namespace)::f(int)", NULL, 0 }, false },
		{ { "main::{lambda(int)#1}::operator()(int) const", NULL, 0 }, false },
	};
	static const char *const wraps[] = { "xmalloc", "g_malloc0",  "g_strdup",  "sqlite3Malloc",
					     "zmalloc", "ngx_palloc", "pool_alloc" };
	static const char *const others[] = { "Arena::malloc(int)", "allocate_session", "malice", "parse" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (library_is_function(&cases[i].symbol) != cases[i].is_library)
			fail_msg("%s", cases[i].symbol.function);
	for (size_t i = 0; i < ARRAY_SIZE(wraps); i++)
		assert_true(library_is_wrapper_name(wraps[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(library_is_wrapper_name(others[i]));
	assert_true(library_is_file("/usr/lib/x86_64-linux-gnu/libc.so.6"));
	assert_true(library_is_file("/lib/libstdc++.so.6.0.30"));
	assert_false(library_is_file("/usr/lib/libcurl.so.4"));
}

static void fitting_places(void **state)
{
	static const struct {
		const char *place;
		size_t width;
		const char *shown;
	} cases[] = {
		{ "make_b (stl.cpp:8)", 30, "make_b (stl.cpp:8)" },
		{ "app::Cache<std::pair<int, long>>::insert (cache.cpp:12)", 36,
		  "Cache<...>::insert (cache.cpp:12)" },
		{ "app::Cache<std::pair<int, long>, 3>::insert (cache.cpp:12)", 30, "insert (cache.cpp:12)" },
		{ "app::Cache<int>::insert (cache.cpp:12)", 10, "insert" },
		{ "app::(anonymous namespace)::Cache<int>::operator<< (x.cpp:1)", 24,
		  "operator<< (x.cpp:1)" },
		{ "a_very_long_name_of_a_function_in_c (file.c:1)", 16, "a_very...on_in_c" },
		{ "<rs::Job as core::ops::Drop>::drop (rs.rs:3)", 14, "drop (rs.rs:3)" },
		{ "prog+0x1234", 5, "p...4" },
		{ "f", 0, "f" },
		{ "", 9, "" },
	};
	char buf[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(fit_place(buf, sizeof(buf), cases[i].place, cases[i].width),
				    cases[i].shown);
}

static void bare_names(void **state)
{
	static const char *const cases[][2] = {
		{ "make_b()", "make_b" },
		{ "f(int, char const*) const [clone .cold]", "f" },
		{ "(anonymous namespace)::run(int)", "(anonymous namespace)::run" },
		{ "main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()" },
		{ "X::operator()() const", "X::operator()" },
		{ "main::{lambda(int)#1}", "main::{lambda(int)#1}" },
		{ "plain", "plain" },
		{ "", "" },
	};
	char buf[80];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(bare_name(buf, sizeof(buf), cases[i][0], 60), cases[i][1]);
}

static void libraries_and_named_wrappers_are_left_out(void **state)
{
	(void)state;
	add_stack(10, STACK_COMPLETE, 0x150, 0x100, 0x230);
	is_named(10, "make_node (list.c:42)");
	add_stack(11, STACK_COMPLETE, 0x160, 0x210, 0x230);
	is_named(11, "load (load.c:5)");
	/* A function that main alone calls is no wrapper, whatever its name is. */
	add_stack(12, STACK_COMPLETE, 0x160, 0x230);
	is_named(12, "xmalloc (xmalloc.c:4)");
	/* If all is library code, the innermost function is the best there is. */
	add_stack(13, STACK_COMPLETE, 0x150, 0x240);
	is_named(13, "std::__new_allocator<char>::allocate (new.h:3)");
	add_stack(14, STACK_COMPLETE, 0x700, 0x710, 0x240);
	is_named(14, "prog+0x700");
	add_stack(15, STACK_COMPLETE, 0x120, 0x230);
	is_named(15, "evil\\x1b[2J\\x0a\"name (\\x1b]0;x.c:1)");
	is_named(STACK_NONE, "");
	is_named(999, "");
}

/* The memory of an interpreter is that of the code that it runs, if a perf map names that. */
static void an_interpreter_allocates_for_its_code(void **state)
{
	const u64 compiled = 0x20000;

	(void)state;
	add_stack(20, STACK_COMPLETE, 0x100, compiled, 0x230);
	is_named(20, "make_node (list.c:42)");
	assert_int_equal(module_add(modules, "/usr/bin/python3.12", NULL, 0, &mapping.module), 0);
	add_stack(21, STACK_COMPLETE, 0x110, 0x100, compiled, 0x210, compiled, 0x230);
	is_named(21, "remember (a.py)");
	add_stack(22, STACK_COMPLETE, 0x110, 0x210, 0x230);
	is_named(22, "grow (vec.h:7)");
	/* Without symbols it has the names of what it exports. */
	target.exe = "/usr/bin/python3.12";
	add_stack(23, STACK_COMPLETE, 0x888, 0x889, 0x130, 0x230);
	is_named(23, "bare (python3.12)");
	add_stack(24, STACK_COMPLETE, 0x888, 0x230);
	is_named(24, "python3.12+0x888");
	assert_true(library_is_interpreter("/usr/lib/libpython3.11.so.1.0"));
	assert_true(library_is_interpreter("/usr/lib/python3.11/lib-dynload/_ctypes.so"));
	assert_false(library_is_interpreter("/usr/lib/python3/dist-packages/numpy/core/_multiarray.so"));
}

/* The interpreter is in a library: neither what starts it is the place nor a function of it without a name. */
static void an_interpreter_is_no_program_that_starts_it(void **state)
{
	struct mapping two[] = { { .start = BASE, .end = BASE + 0x220, .bias = BASE },
				 { .start = BASE + 0x220, .end = BASE + 0x10000, .bias = BASE } };

	(void)state;
	target.exe = "/usr/bin/ruby3.1";
	assert_int_equal(module_add(modules, "/usr/lib/libruby-3.1.so.3.1.2", NULL, 0, &two[0].module), 0);
	assert_int_equal(module_add(modules, target.exe, NULL, 0, &two[1].module), 0);
	maps = (struct mapping_list){ two, 2, 0 };
	add_stack(40, STACK_COMPLETE, 0x190, 0x130, 0x190, 0x888, 0x240);
	is_named(40, "bare (libruby-3.1.so.3.1.2)");
	add_stack(41, STACK_COMPLETE, 0x190, 0x160, 0x200, 0x888, 0x240);
	is_named(41, "insert (list.c:77)");
	add_stack(42, STACK_COMPLETE, 0x190, 0x888, 0x240);
	is_named(42, "ruby3.1+0x888");
	maps = (struct mapping_list){ &mapping, 1, 0 };
	assert_true(library_is_interpreter("/usr/lib/jvm/java-17/lib/libjli.so"));
	assert_true(library_is_function(
		&(struct symbol){ "os::malloc(unsigned long, MEMFLAGS)", NULL, 0, false }));
	assert_false(library_is_function(&(struct symbol){ "os::process::start()", NULL, 0, false }));
}

/* An object that an extension in compiled code asks for is the extension's. */
static void an_interpreter_allocates_for_its_extensions(void **state)
{
	struct mapping two[] = { { .start = BASE, .end = BASE + 0x200, .bias = BASE },
				 { .start = BASE + 0x200, .end = BASE + 0x10000, .bias = BASE } };

	(void)state;
	assert_int_equal(module_add(modules, "/usr/bin/python3.12", NULL, 0, &two[0].module), 0);
	assert_int_equal(module_add(modules, "/srv/ext.so", NULL, 0, &two[1].module), 0);
	maps = (struct mapping_list){ two, 2, 0 };
	add_stack(30, STACK_COMPLETE, 0x110, 0x100, 0x210, 0x110, 0x230);
	is_named(30, "load (load.c:5)");
	maps = (struct mapping_list){ &mapping, 1, 0 };
	/* Callers of the loop that runs code asked for no object. */
	assert_true(library_runs_code("_PyEval_EvalFrameDefault"));
	assert_false(library_runs_code("PyBytes_FromStringAndSize"));
	assert_false(library_runs_code(NULL));
}

/* Many callers and many sizes make a wrapper; a constructor has many callers, and one size. */
static void wrappers_are_found_by_structure(void **state)
{
	(void)state;
	for (u64 i = 0; i < 5; i++) {
		add_stack(300 + i, STACK_COMPLETE, 0x100, 0x210 + i, 0x230);
		add_stack(400 + i, STACK_COMPLETE, 0x110, 0x210 + i, 0x230);
		alloc("malloc", 0x10000 + i * 0x100, 10 + i, 300 + i);
		alloc("malloc", 0x20000 + i * 0x100, 10, 400 + i);
	}
	is_named(300, "make_node (list.c:42)");
	find_wrappers();
	is_named(300, "load (load.c:5)");
	is_named(400, "grow (vec.h:7)");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end_all)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(names_tell_libraries),
					    TEST(bare_names),
					    TEST(fitting_places),
					    TEST(libraries_and_named_wrappers_are_left_out),
					    TEST(an_interpreter_allocates_for_its_code),
					    TEST(an_interpreter_allocates_for_its_extensions),
					    TEST(an_interpreter_is_no_program_that_starts_it),
					    TEST(wrappers_are_found_by_structure) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
