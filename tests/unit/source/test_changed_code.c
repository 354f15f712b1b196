/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the comparison of a function in memory with its file: this program patches a function of its own (E8). */
#include "user/source/changed_code.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/elf.h"
#include "user/lib/proc_memory.h"

#ifdef __x86_64__
/* The probe's place is the instruction with the constant, behind a nop. */
__asm__(".text\n.globl c_function\n.type c_function,@function\nc_function: nop\n"
	"c_place: mov $0x11223344,%eax\n ret\n.size c_function, . - c_function\n");
extern u8 c_function[], __executable_start[];

/* A nop of five bytes, as compilers leave them for tracers. */
__asm__(".text\n.globl c_nop\n.type c_nop,@function\nc_nop: .byte 0x0f,0x1f,0x44,0,0\n"
	" mov $0x11223344,%eax\n ret\n.size c_nop, . - c_nop\n");
extern u8 c_nop[];

static u8 *function_of_probe = c_function;
static size_t place_of_probe = 1;

static void patch(size_t at, u8 byte)
{
	void *page = (void *)((uintptr_t)function_of_probe & ~4095UL);

	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	*(volatile u8 *)(function_of_probe + at) = byte;
	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_EXEC), 0);
}

static size_t nr_breakpoints, nr_overwritten;

/* Also fills nr_breakpoints and nr_overwritten. */
static const char *compared(void)
{
	u64 vaddr = (u64)((uintptr_t)function_of_probe - (uintptr_t)__executable_start);
	struct probe_site site = { .row = alloc_fn(NULL, alloc_fn_find(NULL, "malloc")),
				   .start = vaddr,
				   .place = vaddr + place_of_probe };
	/* The beginning and the end of calls are seen at one place. */
	struct probe_point points[] = { { site.place, 3, POINT_RETURN }, { site.place, 3, POINT_ALLOC } };
	struct probed_file file = {
		.list = { .sites = &site, .nr = 1 }, .first_probe = 3, .points = points, .nr_points = 2
	};
	struct module module = { .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC) };
	struct mapping map = { .start = (uintptr_t)__executable_start,
			       .bias = (uintptr_t)__executable_start,
			       .end = UINT64_MAX,
			       .module = &module };
	struct target t = { .pid = getpid() };
	const char *changed, *function;
	struct proc_memory mem;
	struct elf *elf;

	assert_int_equal(elf_open(&elf, module.fd), 0);
	assert_int_equal(proc_memory_open(&mem, t.pid), 0);
	nr_breakpoints = changed_code_breakpoints(&mem, &map, &file.list, elf, &function);
	if (nr_breakpoints)
		assert_string_equal(function, "malloc");
	function = NULL;
	nr_overwritten = changed_code_overwritten(&mem, &map, &file, &function);
	if (nr_overwritten)
		assert_string_equal(function, "malloc");
	proc_memory_close(&mem);
	changed = changed_code_find(&t, &map, &file, elf);
	elf_close(elf);
	close(module.fd);
	return changed;
}

/* Patch the byte at @at, compare, and put the byte back. */
static const char *patched(size_t at, u8 byte)
{
	u8 before = c_function[at];
	const char *changed;

	patch(at, byte);
	changed = compared();
	patch(at, before);
	return changed;
}

static void test_same(void **state)
{
	(void)state;
	assert_null(compared());
	assert_int_equal(nr_breakpoints, 0);
}

static void test_entry(void **state)
{
	(void)state;
	assert_string_equal(patched(0, 0xe9), "malloc");
}

/* A constant in the instruction under the probe: the kernel would run the old one. */
static void test_constant(void **state)
{
	(void)state;
	assert_string_equal(patched(5, 0x12), "malloc");
}

static void test_breakpoint(void **state)
{
	(void)state;
	assert_null(patched(1, 0xcc));
	assert_int_equal(nr_breakpoints, 1);
}

/* Something else than a breakpoint is at the probe's place, or a breakpoint is elsewhere. */
static void test_no_breakpoint(void **state)
{
	(void)state;
	assert_non_null(patched(1, 0xe9));
	assert_int_equal(nr_breakpoints, 0);
	assert_null(patched(0, 0xcc));
	assert_int_equal(nr_breakpoints, 0);
}

/* A probe whose breakpoint is not in memory any more counts once. Code of others is no such probe. */
static void test_overwritten(void **state)
{
	(void)state;
	assert_null(compared());
	assert_int_equal(nr_overwritten, 1);
	assert_null(patched(1, 0xcc));
	assert_int_equal(nr_overwritten, 0);
	assert_non_null(patched(3, 0x99));
	assert_int_equal(nr_overwritten, 0);
}

/*
 * A call over the nop that does not lead to the kernel's trampoline is another tracer's hook, which a probe would skip.
 * tests/e2e/faults_environment.bats tries the kernel's own call.
 */
static void test_call_over_nop(void **state)
{
	const u8 call[] = { 0xe8, 0x10, 0, 0, 0 };
	u8 before[sizeof(call)];

	(void)state;
	function_of_probe = c_nop;
	place_of_probe = 0;
	memcpy(before, c_nop, sizeof(before));
	assert_null(compared());
	for (size_t i = 0; i < sizeof(call); i++)
		patch(i, call[i]);
	assert_string_equal(compared(), "malloc");
	assert_int_equal(nr_breakpoints, 0);
	for (size_t i = 0; i < sizeof(call); i++)
		patch(i, before[i]);
	assert_null(patched(0, 0xcc));
	assert_int_equal(nr_breakpoints, 1);
	function_of_probe = c_function;
	place_of_probe = 1;
}

static void test_behind(void **state)
{
	(void)state;
	assert_null(patched(6, 0x90));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(test_same),	    cmocka_unit_test(test_entry),
		cmocka_unit_test(test_constant),    cmocka_unit_test(test_breakpoint),
		cmocka_unit_test(test_behind),	    cmocka_unit_test(test_no_breakpoint),
		cmocka_unit_test(test_overwritten), cmocka_unit_test(test_call_over_nop),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
