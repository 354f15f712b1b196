/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a text of events to both reports, with real names: all that works without root and without a target. */
#include "user/report/report.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/session/source_replay.h"
#include "user/heap/stacks.h"
#include "user/names/symbolize.h"
#include "user/report/format.h"
#include "user/target/target.h"

enum { PID = 4321 };

static struct module_table *modules;
static struct source *source;
static struct heap *heap;
static struct stack_table *stacks;
static struct symbolizer *symbolizer;
static char *text;

/* Functions of this program stand for those of the target. */
static __attribute__((noinline)) u64 make_node(u64 x)
{
	return x * 3 + 1;
}

static __attribute__((noinline)) u64 load_list(u64 x)
{
	return make_node(x) ^ make_node(x + 1);
}

/* A return address in @function: behind its first instructions. */
static u64 inside(u64 (*function)(u64))
{
	return (u64)(uintptr_t)function + 4;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *bias)
{
	(void)size;
	*(u64 *)bias = info->dlpi_addr;
	return 1;
}

static void write_events(FILE *file)
{
	char exe[4096];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	u64 bias = 0;

	assert_true(len > 0);
	exe[len] = '\0';
	dl_iterate_phdr(first_object, &bias);
	fprintf(file, "process %d prog %s\n", PID, exe);
	fprintf(file, "map %d 0x%llx 0x%llx 0x%llx %s\n", PID,
		(unsigned long long)inside(make_node) & ~0xfffffULL,
		(unsigned long long)(inside(make_node) | 0xfffff) + 1, (unsigned long long)bias, exe);
	fprintf(file, "stack 2 %d complete 0x%llx 0x%llx\n", PID, (unsigned long long)inside(make_node),
		(unsigned long long)inside(load_list));
	fprintf(file, "stack 3 %d depth 0x%llx\n", PID, (unsigned long long)inside(load_list));
	fprintf(file, "alloc %d 1 malloc 0x1000 100 2 1000000000\n", PID);
	fprintf(file, "alloc %d 1 malloc 0x2000 200 2\n", PID);
	fprintf(file, "alloc %d 2 calloc 0x3000 50000 3\n", PID);
	fprintf(file, "free %d 2 free 0x1000 0 2000000000\n", PID);
	fprintf(file, "lost %d 0 1 0 0\n", PID);
	fprintf(file, "realloc-begin %d 1 realloc 0x2000 300 2\n", PID);
	fprintf(file, "realloc-end %d 1 realloc 0x2000 0x4000 300 2\n", PID);
	fprintf(file, "exit %d 256\n", PID);
}

static int take(void *ctx, const struct event_header *rec, size_t len)
{
	struct target *target = ctx;

	(void)len;
	if (rec->kind == EVENT_STACK)
		return stack_table_add(stacks, (const struct stack_event *)rec, &target->maps);
	if (rec->kind == EVENT_EXIT) {
		target->has_exited = true;
		target->exit_status = (int)((const struct process_event *)rec)->exit_status;
	} else {
		return heap_event(heap, (const struct heap_event *)rec);
	}
	return 0;
}

static void replay(void)
{
	int fd = memfd_create("events", MFD_CLOEXEC);
	char path[64];
	FILE *file = fdopen(fd, "w");
	struct sink sink = { .record = take };

	assert_non_null(file);
	write_events(file);
	assert_int_equal(fflush(file), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(source_replay_open(&source, path, modules, NULL), 0);
	fclose(file);
	sink.ctx = source_replay_target(source, 0);
	assert_non_null(sink.ctx);
	assert_int_equal(source_replay.attach(source, sink.ctx), 0);
	while (!source_replay_is_done(source))
		assert_true(source_replay.poll(source, &sink) >= 0);
}

static int begin(void **state)
{
	static const struct symbolizer_options no_options;

	(void)state;
	if (module_table_new(&modules) || heap_new(&heap, NULL) || stack_table_new(&stacks) ||
	    symbolizer_new(&symbolizer, modules, &no_options))
		return -1;
	replay();
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(text);
	symbolizer_free(symbolizer);
	stack_table_free(stacks);
	heap_free(heap);
	source_replay.free(source);
	module_table_free(modules);
	return 0;
}

static void write_report(int (*write)(FILE *, const struct report *))
{
	const struct losses lost = source_replay.losses(source, PID);
	const struct report_process process = { source_replay_target(source, 0), heap, stacks, &lost };
	const struct report report = {
		.backend = "replay",
		.time_ns = 3000000000,
		.duration_ns = 3000000000,
		.processes = &process,
		.nr_processes = 1,
		.symbolizer = symbolizer,
		.modules = modules,
	};
	size_t len;
	FILE *out;

	free(text);
	text = NULL;
	out = open_memstream(&text, &len);
	assert_non_null(out);
	assert_int_equal(write(out, &report), 0);
	fclose(out);
}

static void has(const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static void text_says_it(void **state)
{
	(void)state;
	write_report(report_text);
	has("exited with status 1\n");
	has("  live        49.1 KiB (50,300 B) in 2 blocks\n");
	has("  lost        1 free, so blocks shown as live may be free\n");
	has("  calls       malloc 2, calloc 1, realloc 1, free 1\n");
	has("#1   48.8 KiB (99.4 %) live in 1 block, by calloc\n        load_list at ");
	has("        (cut here: depth)\n");
	has("#2   300 B (0.6 %) live in 1 block, by realloc\n        make_node at ");
	has("test_report_replay.c:");
}

static void json_says_the_same(void **state)
{
	(void)state;
	write_report(report_json);
	has("\"backend\":\"replay\",");
	has("\"code\":1");
	has("\"live_blocks\":2,\"live_bytes\":50300,");
	has("\"frees\":1,\"stacks\":0,");
	has("{\"name\":\"make_node\",\"source\":");
	has("{\"name\":\"load_list\",\"source\":");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_says_it),
		cmocka_unit_test(json_says_the_same),
	};

	/* The compiler must keep the functions that stand for those of the target. */
	if (load_list(1) == load_list(2))
		return 1;
	return cmocka_run_group_tests(tests, begin, end);
}
