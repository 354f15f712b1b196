/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of allocators chosen at start: this program has one, and is looked at before and after it has chosen. */
#include "user/probe/ifunc.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/child.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"

void *chosen_alloc(size_t size);
void *other_alloc(size_t size);
void *one_alloc(size_t size);
void *two_alloc(size_t size);
void *no_alloc(size_t size);

static volatile int zero;

__attribute__((noipa)) void *chosen_alloc(size_t size)
{
	return (void *)(size + 1);
}

__attribute__((noipa)) void *other_alloc(size_t size)
{
	return (void *)(size + 2);
}

static void *(*choose(void))(size_t)
{
	return zero ? other_alloc : chosen_alloc;
}

/* Names no function. */
static void *(*choose_nothing(void))(size_t)
{
	return NULL;
}

void *one_alloc(size_t size) __attribute__((ifunc("choose")));
void *two_alloc(size_t size) __attribute__((ifunc("choose")));
void *no_alloc(size_t size) __attribute__((ifunc("choose_nothing")));

struct world {
	struct module_table *modules;
	struct alloc_table *fns;
	struct target *target;
	const struct mapping *map;
	struct elf *elf;
	struct probe_list list;
	struct probe_custom custom[3];
	struct probe_options options;
};

static u16 row(struct alloc_table *fns, const char *symbol)
{
	struct alloc_fn fn = { symbol, symbol, ALLOC_MALLOC, FAMILY_CUSTOM, .size_arg = 1 };
	int nr = alloc_fn_find(fns, symbol);

	if (!nr)
		nr = alloc_fn_add(fns, &fn);
	assert_true(nr > 0);
	return nr;
}

/* The allocators @names of this program, as they are in the process @pid. */
static void look(struct world *w, pid_t pid, const char *const *names)
{
	u64 here = (u64)(uintptr_t)look;
	struct target *self;

	memset(w, 0, sizeof(*w));
	assert_int_equal(alloc_table_new(&w->fns), 0);
	w->options.fns = w->fns;
	w->options.custom = w->custom;
	for (; names[w->options.nr_custom]; w->options.nr_custom++)
		w->custom[w->options.nr_custom].fn = row(w->fns, names[w->options.nr_custom]);
	assert_int_equal(module_table_new(&w->modules), 0);
	assert_int_equal(target_new(&w->target, pid), 0);
	assert_true(target_read_maps(w->target, w->modules) >= 0);
	self = w->target;
	/* Where it lies elsewhere there is no saying by address: it is the first of them. */
	w->map = mapping_find(&self->maps, here);
	for (size_t i = 0; !w->map && i < self->maps.nr; i++)
		if (self->maps.maps[i].module && strstr(self->maps.maps[i].module->path, "test_ifunc"))
			w->map = &self->maps.maps[i];
	assert_non_null(w->map);
	assert_int_equal(elf_open(&w->elf, w->map->module->fd), 0);
	assert_int_equal(probe_list_init(&w->list, w->elf, "test_ifunc", &w->options), 0);
	assert_int_equal(ifunc_resolve(&w->list, w->elf, w->target, w->map, &w->options), 0);
}

static void look_away(struct world *w)
{
	probe_list_fini(&w->list);
	elf_close(w->elf);
	target_free(w->target);
	module_table_free(w->modules);
	alloc_table_free(w->fns);
}

static int see(void *ctx, const struct elf_symbol *sym)
{
	struct probe_site *s = ctx;

	if (strcmp(sym->name, s->start ? "other_alloc" : "chosen_alloc"))
		return 0;
	s->end = sym->value;
	return 1;
}

static u64 address_of(struct world *w, bool is_other)
{
	struct probe_site s = { .start = is_other };

	assert_int_equal(elf_each_symbol(w->elf, ELF_SYMTAB, see, &s), 1);
	return s.end;
}

static bool has_site(const struct world *w, u64 start)
{
	size_t nr = 0;

	for (size_t i = 0; i < w->list.nr; i++) {
		const struct probe_site *s = &w->list.sites[i];

		nr += s->start == start;
		assert_false(s->is_ifunc);
		assert_true(s->place >= s->start && s->place < s->end);
		assert_int_equal(s->flags & PROBE_RETURNS, PROBE_RETURNS);
	}
	assert_true(nr <= 1);
	return nr;
}

/* Bound: exactly what was chosen; two names of it are one site. */
static void test_bound(void **state)
{
	static const char *const names[] = { "one_alloc", "two_alloc", NULL };
	struct world w;
	struct child c;

	(void)state;
	assert_int_equal(child_start(&c, "/proc/self/exe", "bound", NULL), 0);
	look(&w, c.pid, names);
	assert_int_equal(w.list.nr, 1);
	assert_true(has_site(&w, address_of(&w, false)));
	assert_int_equal(w.list.nr_skipped, 0);
	look_away(&w);
	child_stop(&c);
}

static pid_t stopped_at_start(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl("/proc/self/exe", "unbound", CHILD_ARG, NULL);
		_exit(127);
	}
	assert_true(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	return pid;
}

/* Before the program's first instruction both choices have a site. */
static void finds_both(const char *const *names)
{
	pid_t pid = stopped_at_start();
	struct world w;

	look(&w, pid, names);
	assert_int_equal(w.list.nr, 2);
	assert_true(has_site(&w, address_of(&w, false)));
	assert_true(has_site(&w, address_of(&w, true)));
	look_away(&w);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Nothing is bound yet: all that it may choose. */
static void test_unbound(void **state)
{
	static const char *const names[] = { "one_alloc", NULL };

	(void)state;
	finds_both(names);
}

/* One of the choices has a name of its own that is asked for, too: still one site for each. */
static void test_named_choice(void **state)
{
	static const char *const names[] = { "one_alloc", "other_alloc", NULL };

	(void)state;
	finds_both(names);
}

/* Nothing to be known: said and counted. */
static void test_unknown(void **state)
{
	static const char *const names[] = { "no_alloc", NULL };
	pid_t pid = stopped_at_start();
	struct world w;

	(void)state;
	log_set_level(LOG_ERROR);
	look(&w, pid, names);
	log_set_level(LOG_INFO);
	assert_int_equal(w.list.nr, 0);
	assert_int_equal(w.list.nr_skipped, 1);
	look_away(&w);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_unbound),
		cmocka_unit_test(test_named_choice),
		cmocka_unit_test(test_unknown),
	};

	child_main(argc, argv);
	/* Because of these calls the linker puts slots into the GOT. */
	if (argc > 1000)
		return one_alloc(1) == two_alloc(2) || no_alloc(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
