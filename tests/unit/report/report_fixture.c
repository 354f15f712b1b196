/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Included by tests of the text report: a process with a heap, stacks and names, and what a report says of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/report/symbolize_stand_in.h"
#include "user/heap/heap_sample.h"
#include "user/lib/clock.h"
#include "user/report/report.h"
#include "user/scan/leaks_why.h"
#include "user/target/module.h"
#include "user/report/format.h"
#include "user/report/report_parts.h"
#include "user/source/source.h"
#include "user/heap/stacks.h"
#include "user/target/target.h"

enum {
	PID = 1234,
	BASE = 0x400000, /* where the program is mapped; its ELF addresses begin at 0 */
};

#define LONG_NAME                                                                                             \
	"std::vector<std::pair<std::string, int>, std::allocator<std::pair<std::string, int> > >::_M_insert(" \
	"std::pair<std::string, int> const&)"

/* Names by offset, in place of the real symbolizer: symbols[0] is innermost. */
static const struct place {
	u64 offset;
	size_t nr;
	struct symbol symbols[2];
} places[] = {
	{ 0x100, 1, { { "make_node", "/src/list.c", 42, false } } },
	{ 0x110, 2, { { "grow", "/src/vec.h", 7, true }, { "push", "/src/vec.c", 70, false } } },
	{ 0x120, 1, { { "evil\033[2J\n\"name", "/src/\033]0;x.c", 1, false } } },
	{ 0x130, 1, { { "bare", NULL, 0, false } } },
	{ 0x140, 1, { { LONG_NAME, "/src/v.h", 9, false } } },
	{ 0x150,
	  1,
	  { { "std::__new_allocator<char>::allocate(unsigned long)", "/usr/include/new.h", 3, false } } },
	{ 0x160, 1, { { "xmalloc", "/src/xmalloc.c", 4, false } } },
	{ 0x200, 1, { { "insert", "/src/list.c", 77, false } } },
	{ 0x210, 1, { { "load", "/src/load.c", 5, false } } },
	{ 0x220, 1, { { "serve", "/src/serve.c", 6, false } } },
	{ 0x230, 1, { { "main", "/src/main.c", 12, false } } },
	{ 0x240, 1, { { "_start", NULL, 0, false } } },
	{ BASE + 0x20000, 1, { { "remember", "/app/a.py", 0, false } } }, /* compiled: in no file */
};

int symbolize(struct symbolizer *s, struct code_ref ref, const struct symbol **symbols, size_t *nr)
{
	static const struct symbol unknown;

	(void)s;
	*symbols = &unknown;
	*nr = 1;
	for (const struct place *p = places; p < places + ARRAY_SIZE(places); p++) {
		if (!ref.module == (p->offset >= BASE) && p->offset == ref.offset) {
			*symbols = p->symbols;
			*nr = p->nr;
		}
	}
	return symbolize_err;
}

static struct heap *heap;
static struct stack_table *stacks;
static struct module_table *modules;
static struct mapping mapping = { .start = BASE, .end = BASE + 0x10000, .bias = BASE };
static struct mapping_list maps = { &mapping, 1, 0 };
static struct target target;
static struct losses losses;
static struct report_process process;
static struct report report;
static u64 now_ns;
static char *text;

static __attribute__((unused)) u16 fn(const char *name)
{
	return alloc_fn_find(NULL, name);
}

static __attribute__((unused)) void event(u8 kind, u8 flags, const char *function, u64 addr, u64 size,
					  u64 stack)
{
	const struct heap_event ev = {
		.h = { .kind = kind, .flags = flags, .fn = fn(function), .pid = PID, .tid = PID },
		.time_ns = now_ns,
		.addr = addr,
		.size = size,
		.stack = stack,
	};

	assert_int_equal(heap_event(heap, &ev), 0);
}

static __attribute__((unused)) void alloc(const char *function, u64 addr, u64 size, u64 stack)
{
	event(EVENT_ALLOC, 0, function, addr, size, stack);
}

static __attribute__((unused)) void release(u64 addr, u8 flags)
{
	event(EVENT_FREE, flags, "free", addr, 0, STACK_NONE);
}

/* A stack of the given offsets in the program, 0-terminated. */
static __attribute__((unused)) void add_stack(u64 id, u8 end, const u64 *offsets)
{
	struct stack_event ev = { .h = { .kind = EVENT_STACK, .pid = PID }, .id = id, .end = end };

	for (; offsets[ev.nr_frames]; ev.nr_frames++)
		ev.ips[ev.nr_frames] = BASE + offsets[ev.nr_frames];
	assert_int_equal(stack_table_add(stacks, &ev, &maps), 0);
}

#define add_stack(id, end, ...) add_stack(id, end, (const u64[]){ __VA_ARGS__, 0 })

static __attribute__((unused)) int begin(void **state)
{
	static const u8 build_id[] = { 0xab, 0x12, 0x00, 0xff };
	static struct symbolizer *const any = (struct symbolizer *)&places;

	(void)state;
	if (heap_new(&heap, NULL) || stack_table_new(&stacks) || module_table_new(&modules) ||
	    module_add(modules, "/usr/bin/prog", build_id, sizeof(build_id), &mapping.module))
		return -1;
	target = (struct target){ .pid = PID, .comm = "prog", .exe = "/usr/bin/prog", .exit_status = -1 };
	losses = (struct losses){ 0 };
	process = (struct report_process){ &target, heap, stacks, &losses };
	report = (struct report){
		.backend = "bpf",
		.time_ns = 30ULL * SECOND_NS,
		.duration_ns = 20ULL * SECOND_NS,
		.processes = &process,
		.nr_processes = 1,
		.symbolizer = any,
		.modules = modules,
	};
	now_ns = 12ULL * SECOND_NS;
	nr_stale = nr_unread = 0;
	symbolize_err = 0;
	add_stack(100, STACK_COMPLETE, 0x100, 0x200, 0x210, 0x220, 0x230, 0x240);
	add_stack(101, STACK_COMPLETE, 0x110, 0x210, 0x220, 0x230, 0x240);
	add_stack(102, STACK_DEPTH, 0x120, 0x230);
	add_stack(103, STACK_NO_INFO, 0x130, 0x999);
	return 0;
}

static __attribute__((unused)) int end(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	heap_free(heap);
	stack_table_free(stacks);
	module_table_free(modules);
	return 0;
}

static __attribute__((unused)) const char *write_report(int (*write)(FILE *, const struct report *))
{
	size_t len;
	FILE *out;

	free(text);
	text = NULL;
	out = open_memstream(&text, &len);
	assert_non_null(out);
	assert_int_equal(write(out, &report), 0);
	fclose(out);
	return text;
}

static __attribute__((unused)) void has(const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static __attribute__((unused)) void starts(const char *part)
{
	if (strncmp(text, part, strlen(part)) != 0)
		fail_msg("does not begin with \"%s\":\n%s", part, text);
}

static __attribute__((unused)) void lacks(const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" in:\n%s", part, text);
}

/* 4 blocks of 1,000 by one caller, one of them freed at once; 1 of 100,000 by another; 1 failed. */
static __attribute__((unused)) void fill(void)
{
	for (u64 i = 0; i < 4; i++)
		alloc("malloc", 0x1000 + i * 0x1000, 1000, 100);
	release(0x4000, EVENT_TEMPORARY);
	now_ns += SECOND_NS;
	alloc("_Znwm", 0x100000, 100000, 101);
	alloc("calloc", 0, 5, 100);
	release(0xdead000, 0);
}
