/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of a function are found wherever the pieces meet in which code is read. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/skip.h"
#include "user/lib/elf.h"
#include "user/probe/probe_place.h"

#ifdef __x86_64__
/* Code that nobody runs: a call over a seam, one at the next seam, and one that is the last bytes. */
__asm__(".text\n.globl t_seams, t_called\n"
	"t_called: ret\n"
	"t_seams: .fill 65533, 1, 0x90\n call t_called\n .fill 65534, 1, 0x90\n call t_called\n"
	".fill 1000, 1, 0x90\n call t_called\n");

struct wanted {
	const char *name;
	u64 value;
};

static int see(void *ctx, const struct elf_symbol *sym)
{
	struct wanted *w = ctx;

	w->value = sym->value;
	return !strcmp(sym->name, w->name);
}

static u64 value_of(struct elf *elf, const char *name)
{
	struct wanted w = { .name = name };

	assert_int_equal(elf_each_symbol(elf, ELF_SYMTAB, see, &w), 1);
	return w.value;
}

static void calls_at_seams(void **state)
{
	static const u64 wanted[] = { 65533, 131072, 131072 + 5 + 1000 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf *elf;
	u64 start, *calls = NULL;
	size_t nr = 0;

	(void)state;
	assert_int_equal(elf_open(&elf, fd), 0);
	start = value_of(elf, "t_seams");
	assert_int_equal(
		probe_find_calls(elf, start, start + wanted[2] + 5, value_of(elf, "t_called"), &calls, &nr),
		0);
	assert_int_equal(nr, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(calls[i] - start, wanted[i]);
	free(calls);
	elf_close(elf);
	close(fd);
}
#else
static void calls_at_seams(void **state)
{
	(void)state;
	skip_because("the code is for x86_64");
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(calls_at_seams) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
