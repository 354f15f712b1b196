/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places of variables: this program's own, a library's, thread-local ones; and their names. */
#include "user/names/data_ref.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/scan/snapshot.h"
#include "user/names/symbolize.h"
#include "tests/unit/skip.h"

/* Not static, so that nothing drops or renames them. */
char data_ref_in_data[40] = "x";
char data_ref_in_bss[4096];
_Thread_local char data_ref_in_tls[24];

static struct module_table *modules;
static struct mapping_list maps;
static struct symbolizer *symbolizer;

static int begin(void **state)
{
	(void)state;
	if (module_table_new(&modules) || mapping_list_read(&maps, modules, getpid()) != 1)
		return -1;
	return symbolizer_new(&symbolizer, modules, NULL);
}

static int end(void **state)
{
	(void)state;
	symbolizer_free(symbolizer);
	mapping_list_fini(&maps);
	module_table_free(modules);
	return 0;
}

static void expect(struct code_ref ref, bool is_tls, const char *wanted, u64 wanted_offset)
{
	const char *name;
	u64 offset;

	assert_int_not_equal(ref.module, 0);
	assert_int_equal(symbolize_data(symbolizer, ref, is_tls, &name, &offset), 0);
	assert_non_null(name);
	assert_string_equal(name, wanted);
	assert_int_equal(offset, wanted_offset);
}

static void globals(void **state)
{
	(void)state;
	expect(data_ref(&maps, (taddr_t)(uintptr_t)data_ref_in_data), false, "data_ref_in_data", 0);
	expect(data_ref(&maps, (taddr_t)(uintptr_t)(data_ref_in_data + 39)), false, "data_ref_in_data", 39);
	expect(data_ref(&maps, (taddr_t)(uintptr_t)(data_ref_in_bss + 4095)), false, "data_ref_in_bss", 4095);
}

static void of_a_library(void **state)
{
	struct code_ref ref = data_ref(&maps, (taddr_t)(uintptr_t)stdout);

	(void)state;
	assert_int_not_equal(ref.module, 0);
	assert_non_null(strstr(module_get(modules, ref.module)->path, "libc"));
}

static void nowhere(void **state)
{
	char *block = malloc(100);
	char here = 1;

	(void)state;
	assert_int_equal(data_ref(&maps, (taddr_t)(uintptr_t)block).module, 0);
	assert_int_equal(data_ref(&maps, (taddr_t)(uintptr_t)&here).module, 0);
	assert_int_equal(data_ref(&maps, 0).module, 0);
	assert_int_equal(data_ref(&maps, UINT64_MAX).module, 0);
	assert_int_equal(data_ref(&(struct mapping_list){ 0 }, 4096).module, 0);
	assert_int_equal(data_ref_tls(&(struct mapping_list){ 0 }, "", 4096, 4096).module, 0);
	free(block);
}

/* A thread cannot read its own registers: a copy of this process has the same address for its variable. */
static void thread_local(void **state)
{
	struct snapshot *snap;
	struct code_ref ref;
	taddr_t tp;
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		data_ref_in_tls[3] = 1;
		for (;;)
			pause();
	}
	if (snapshot_stop_new(&snap, pid, &(struct snapshot_options){ 0 })) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		skip_because("no right to stop a child");
	}
	tp = snap->threads[0].tp;
	snapshot_free(snap);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	ref = data_ref_tls(&maps, NULL, tp, (taddr_t)(uintptr_t)(data_ref_in_tls + 3));
	expect(ref, true, "data_ref_in_tls", 3);
	assert_int_equal(data_ref_tls(&maps, NULL, tp, tp + 4096).module, 0);
	assert_int_equal(data_ref_tls(&maps, NULL, 0, tp).module, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(globals, begin, end),
		cmocka_unit_test_setup_teardown(of_a_library, begin, end),
		cmocka_unit_test_setup_teardown(nowhere, begin, end),
		cmocka_unit_test_setup_teardown(thread_local, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
