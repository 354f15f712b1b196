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

#include "user/report/format.h"
#include "user/session/session.h"
#include "user/session/session_replay.h"

enum { PID = 4321 };

static const struct session_options options = { .command = "report" };
static struct session *session;
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

static int begin(void **state)
{
	int fd = memfd_create("events", MFD_CLOEXEC);
	char path[64];
	FILE *file = fdopen(fd, "w");

	(void)state;
	assert_non_null(file);
	write_events(file);
	assert_int_equal(fflush(file), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(session_new_replay(&session, &options, NULL, path), 0);
	fclose(file);
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(text);
	session_free(session);
	return 0;
}

struct writing {
	int (*write)(FILE *out, const struct report *report);
	FILE *out;
};

static int write_to(void *ctx, const struct report *report)
{
	const struct writing *w = ctx;

	return w->write(w->out, report);
}

static void write_report(int (*write)(FILE *, const struct report *))
{
	struct writing w = { .write = write };
	size_t len;

	free(text);
	text = NULL;
	w.out = open_memstream(&text, &len);
	assert_non_null(w.out);
	assert_int_equal(session_show(session, 0, write_to, &w), 0);
	fclose(w.out);
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
