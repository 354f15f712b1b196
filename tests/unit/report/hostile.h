/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process for tests of formats, in which names try to break the format: quotes, tags, line ends, control characters,
 * invalid UTF-8, and one of 100,000 characters.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/report/hostile_names.h"
#include "user/heap/stacks.h"
#include "user/lib/cleanup.h"
#include "user/report/report.h"
#include "user/scan/leaks.h"
#include "user/source/source.h"
#include "user/target/module.h"
#include "user/target/target.h"

enum { HOSTILE_PID = 1234, HOSTILE_BASE = 0x400000, NR_HOSTILE_ROWS = 16 };

static struct {
	struct heap *heap;
	struct stack_table *stacks;
	struct module_table *modules;
	struct mapping mapping;
	struct mapping_list maps;
	struct target target;
	struct losses losses;
	struct leaks leaks;
	struct leak_row rows[NR_HOSTILE_ROWS];
	struct report_process process;
	struct report report;
	char *text; /* of the last report */
	size_t len;
} hostile;

static u64 hostile_now_ns;

static inline void hostile_event(u8 kind, const char *function, u64 addr, u64 size, u64 stack)
{
	const struct heap_event ev = {
		.h = { .kind = kind,
		       .fn = alloc_fn_find(NULL, function),
		       .pid = HOSTILE_PID,
		       .tid = HOSTILE_PID },
		.time_ns = hostile_now_ns,
		.addr = addr,
		.size = size,
		.stack = stack,
	};

	assert_int_equal(heap_event(hostile.heap, &ev), 0);
}

static inline void hostile_stack(u64 id, u8 end, const u64 *offsets)
{
	struct stack_event ev = { .h = { .kind = EVENT_STACK, .pid = HOSTILE_PID }, .id = id, .end = end };

	for (; offsets[ev.nr_frames]; ev.nr_frames++)
		ev.ips[ev.nr_frames] = HOSTILE_BASE + offsets[ev.nr_frames];
	assert_int_equal(stack_table_add(hostile.stacks, &ev, &hostile.maps), 0);
}

/* Judge @blocks of @bytes of row @row. */
static inline void hostile_judge(u32 row, enum scan_verdict verdict, u64 blocks, u64 bytes)
{
	struct scan_sum sum = { blocks, bytes };

	hostile.rows[row].sums.of[verdict] = sum;
	hostile.leaks.result.sums.of[verdict].blocks += blocks;
	hostile.leaks.result.sums.of[verdict].bytes += bytes;
}

/*
 * Rows 0 to 4: 3 blocks of 100 in the hostile function, one freed; 1 of 5,000 below inlined functions; 1 of 7 below
 * the long name; 1 of 9 without a stack; 1 of 11 in a place without name. No verdicts yet, no wrong release.
 */
static inline int hostile_begin(void **state)
{
	static const u8 build_id[] = { 0xab, 0x12, 0x00, 0xff };
	static struct symbolizer *const any = (struct symbolizer *)&hostile;

	(void)state;
	memset(&hostile, 0, sizeof(hostile));
	symbolize_err = 0;
	hostile_now_ns = 1000000000;
	if (heap_new(&hostile.heap, NULL) || stack_table_new(&hostile.stacks) ||
	    module_table_new(&hostile.modules) ||
	    module_add(hostile.modules, "/bin/" HOSTILE_NAME, build_id, sizeof(build_id),
		       &hostile.mapping.module) ||
	    heap_check(hostile.heap, true))
		return -1;
	hostile.mapping = (struct mapping){ HOSTILE_BASE, HOSTILE_BASE + 0x10000, 0, HOSTILE_BASE,
					    hostile.mapping.module };
	hostile.maps = (struct mapping_list){ &hostile.mapping, 1, 0 };
	hostile.target = (struct target){ .pid = HOSTILE_PID,
					  .comm = "</c>\"\n\xff",
					  .exe = "/bin/" HOSTILE_NAME,
					  .exit_status = -1,
					  .maps = hostile.maps };
	hostile.process =
		(struct report_process){ &hostile.target, hostile.heap, hostile.stacks, &hostile.losses };
	hostile.report = (struct report){ .backend = "bpf",
					  .time_ns = 30000000000,
					  .duration_ns = 20000000000,
					  .processes = &hostile.process,
					  .nr_processes = 1,
					  .symbolizer = any,
					  .modules = hostile.modules };
	hostile.leaks =
		(struct leaks){ .has_verdict = true, .rows = hostile.rows, .nr_rows = NR_HOSTILE_ROWS };
	hostile_stack(100, STACK_COMPLETE, (const u64[]){ 0x200, 0x100, 0x400, 0 });
	hostile_stack(101, STACK_COMPLETE, (const u64[]){ 0x100, 0x400, 0 });
	hostile_stack(102, STACK_DEPTH, (const u64[]){ 0x300, 0x400, 0 });
	hostile_stack(103, STACK_COMPLETE, (const u64[]){ 0x500, 0x400, 0 });
	for (u64 i = 0; i < 3; i++)
		hostile_event(EVENT_ALLOC, "malloc", 0x1000 + i * 0x1000, 100, 100);
	hostile_event(EVENT_FREE, "free", 0x1000, 0, STACK_NONE);
	hostile_event(EVENT_ALLOC, "calloc", 0x10000, 5000, 101);
	hostile_event(EVENT_ALLOC, "_Znwm", 0x20000, 7, 102);
	hostile_event(EVENT_ALLOC, "malloc", 0x30000, 9, STACK_NONE);
	hostile_event(EVENT_ALLOC, "malloc", 0x40000, 11, 103);
	return 0;
}

static inline int hostile_end(void **state)
{
	(void)state;
	free(hostile.text);
	heap_free(hostile.heap);
	stack_table_free(hostile.stacks);
	module_table_free(hostile.modules);
	return 0;
}
