/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breakpoints in a child's code: in, out, several uses of one, those of others, and the code as it was at the end. */
#include "fallback/places.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fallback/code_memory.h"

enum { CODE_BYTES = 8192, NR = 300, STEP = 16 };

/* A child that waits, with memory that stands for code; the same address in both. */
struct world {
	u8 *code;
	u8 before[CODE_BYTES];
	pid_t pid;
	int mem_fd;
	struct places places;
};

static void begin(struct world *w)
{
	char path[32];

	w->code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(w->code, MAP_FAILED);
	for (size_t i = 0; i < CODE_BYTES; i++)
		w->code[i] = (u8)(i * 7 % 97);
	memcpy(w->before, w->code, CODE_BYTES);
	mprotect(w->code, CODE_BYTES, PROT_READ | PROT_EXEC);
	w->pid = fork();
	if (!w->pid)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "/proc/%d/mem", w->pid);
	w->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(w->mem_fd >= 0);
	places_init(&w->places, cpu_native(sizeof(void *)), code_by_file(w->mem_fd));
	assert_non_null(w->places.cpu);
}

static void end(struct world *w)
{
	int status;

	places_fini(&w->places);
	close(w->mem_fd);
	kill(w->pid, SIGKILL);
	waitpid(w->pid, &status, 0);
	munmap(w->code, CODE_BYTES);
}

static void read_code(const struct world *w, u8 *code)
{
	assert_int_equal(pread(w->mem_fd, code, CODE_BYTES, (off_t)(uintptr_t)w->code), CODE_BYTES);
}

static bool is_as_before(const struct world *w)
{
	u8 code[CODE_BYTES];

	read_code(w, code);
	return !memcmp(code, w->before, CODE_BYTES);
}

static int add(struct world *w, size_t at, u32 kind, u32 probe)
{
	const struct place place = { .addr = (taddr_t)(uintptr_t)w->code + at, .probe = probe, .kind = kind };

	return places_add(&w->places, &place);
}

static struct breakpoint *find(const struct world *w, size_t at)
{
	return places_find(&w->places, (taddr_t)(uintptr_t)w->code + at);
}

/* Does a thread that reports SIGTRAP behind @addr count as one that hit our breakpoint there? */
static bool is_hit(const struct places *p, taddr_t addr)
{
	struct cpu_regs regs = { .size = 0 };
	taddr_t at = 0;

	cpu_set(p->cpu, &regs, CPU_PC, addr + p->cpu->trap_skip);
	if (!places_hit(p, &regs, &at))
		return false;
	assert_int_equal(cpu_get(p->cpu, &regs, CPU_PC), addr);
	return at == addr;
}

static void check_in_and_out(struct cpu_memory (*memory_of)(const struct world *w))
{
	struct world w;
	u8 code[CPU_CODE_BYTES];
	taddr_t start;

	begin(&w);
	w.places.memory = memory_of(&w);
	start = (taddr_t)(uintptr_t)w.code;
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(add(&w, i * STEP, PLACE_RET, (u32)i), 0);
	assert_false(is_as_before(&w));
	/* The program's own code shows through. */
	assert_int_equal(places_read_code(&w.places, start + STEP - 4, code, sizeof(code)), sizeof(code));
	assert_memory_equal(code, w.before + STEP - 4, sizeof(code));
	for (size_t i = 0; i < NR; i++) {
		assert_non_null(find(&w, i * STEP));
		assert_memory_equal(find(&w, i * STEP)->original, w.before + i * STEP, CPU_CODE_BYTES);
	}
	places_remove_range(&w.places, start, start + CODE_BYTES / 2);
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(find(&w, i * STEP) != NULL, i * STEP >= CODE_BYTES / 2);
	assert_true(is_hit(&w.places, start));
	assert_false(is_hit(&w.places, start + 1));
	assert_false(places_is_in_code(&w.places, start));
	assert_true(places_is_in_code(&w.places, start + CODE_BYTES / 2));
	places_clean(&w.places, &w.places.memory);
	assert_true(is_as_before(&w));
	end(&w);
}

static struct cpu_memory by_file(const struct world *w)
{
	return code_by_file(w->mem_fd);
}

static void in_and_out(void **state)
{
	(void)state;
	check_in_and_out(by_file);
}

static struct cpu_memory by_ptrace(const struct world *w)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SEIZE, w->pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, w->pid, 0, 0), 0);
	assert_int_equal(waitpid(w->pid, &status, __WALL), w->pid);
	return code_by_ptrace(w->pid);
}

/* Words begin and end elsewhere than breakpoints. */
static void in_and_out_by_words(void **state)
{
	(void)state;
	check_in_and_out(by_ptrace);
}

/* One breakpoint for several things: ends of calls first, the code is put back with the last. */
static void several_uses(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	assert_int_equal(add(&w, 64, PLACE_ENTER_ALLOC, 1), 0);
	assert_int_equal(add(&w, 64, PLACE_RET, 2), 0);
	assert_int_equal(add(&w, 64, PLACE_RET, 2), 0);
	assert_int_equal(find(&w, 64)->nr_uses, 2);
	assert_int_equal(find(&w, 64)->uses[0].kind, PLACE_RET);
	places_remove(&w.places, (taddr_t)(uintptr_t)w.code + 64, PLACE_RET, 2);
	assert_false(is_as_before(&w));
	places_remove(&w.places, (taddr_t)(uintptr_t)w.code + 64, PLACE_ENTER_ALLOC, 1);
	assert_true(is_as_before(&w));
	assert_null(find(&w, 64));
	_Static_assert(PLACES_AT_ONE >= 100, "so many functions of mimalloc 3 end in one place");
	for (u32 i = 0; i < PLACES_AT_ONE; i++)
		assert_int_equal(add(&w, 64, PLACE_RET, i), 0);
	assert_int_equal(add(&w, 64, PLACE_RET, PLACES_AT_ONE), -ENOSPC);
	end(&w);
}

/* Not ours, not there, gone, and overwritten meanwhile. */
static void of_others(void **state)
{
	struct world w;
	u8 code[CPU_BREAKPOINT_BYTES];
	taddr_t start;
	size_t len;

	(void)state;
	begin(&w);
	start = (taddr_t)(uintptr_t)w.code;
	len = cpu_breakpoint(w.places.cpu, start + 32, code);
	assert_int_equal(pwrite(w.mem_fd, code, len, (off_t)start + 32), len);
	assert_int_equal(add(&w, 32, PLACE_RET, 1), -EEXIST);
	assert_int_equal(add(&w, -(size_t)start, PLACE_RET, 1), -EFAULT);
	assert_int_equal(add(&w, 2 * CODE_BYTES - (size_t)start, PLACE_RET, 1), -EFAULT);
	assert_int_equal(add(&w, 128, PLACE_RET, 1), 0);
	assert_int_equal(places_repair(&w.places), 0);
	/* The kernel puts the file's code back when a uprobe at the same place goes. */
	assert_int_equal(pwrite(w.mem_fd, w.before + 128, len, (off_t)start + 128), len);
	assert_int_equal(places_repair(&w.places), 1);
	assert_int_equal(places_repair(&w.places), 0);
	/* Code in which our breakpoint was overwritten is not touched. */
	assert_int_equal(pwrite(w.mem_fd, "\x12\x34\x56\x78", len, (off_t)start + 128), len);
	places_clean(&w.places, &w.places.memory);
	assert_int_equal(pread(w.mem_fd, code, len, (off_t)start + 128), len);
	assert_memory_equal(code, "\x12\x34\x56\x78", len);
	end(&w);
}

/* For a child's memory, a copy itself: what stood in the parent's can be taken out there. */
static void copied(void **state)
{
	struct places copy;
	struct world w;
	taddr_t start;

	(void)state;
	begin(&w);
	start = (taddr_t)(uintptr_t)w.code;
	places_init(&copy, w.places.cpu, w.places.memory);
	assert_int_equal(places_copy(&copy, &w.places), 0);
	assert_null(places_find(&copy, start));
	places_fini(&copy);
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(add(&w, i * STEP, PLACE_RET, (u32)i), 0);
	places_remove(&w.places, start, PLACE_RET, 0);
	places_init(&copy, w.places.cpu, w.places.memory);
	assert_int_equal(places_copy(&copy, &w.places), 0);
	places_fini(&w.places);
	assert_true(is_hit(&copy, start));
	assert_null(places_find(&copy, start));
	for (size_t i = 1; i < NR; i++)
		assert_int_equal(places_find(&copy, start + i * STEP)->uses[0].probe, i);
	assert_false(is_as_before(&w));
	places_clean(&copy, &copy.memory);
	assert_true(is_as_before(&w));
	places_fini(&copy);
	end(&w);
}

static void lifted(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	assert_int_equal(add(&w, 80, PLACE_RET, 1), 0);
	assert_int_equal(places_lift(&w.places, find(&w, 80)), 0);
	assert_true(is_as_before(&w));
	assert_int_equal(places_lower(&w.places, find(&w, 80)), 0);
	assert_false(is_as_before(&w));
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_and_out),	cmocka_unit_test(in_and_out_by_words),
		cmocka_unit_test(several_uses), cmocka_unit_test(of_others),
		cmocka_unit_test(copied),	cmocka_unit_test(lifted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
