/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: what is taken, what is refused and how, and that help and manual know every option. */
#include "user/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/target/allocator.h"
#include "user/report/output.h"
#include "user/report/report_rows.h"
#include "user/source/source_open.h"

#ifndef HEAPTAP_SOURCE
#define HEAPTAP_SOURCE "." /* tests run from the top of the source tree */
#endif

enum { MAX_ARGS = 32, MAX_TEXT = 16384 };

static struct options o;
static char message[MAX_TEXT]; /* what the last parse() said on stderr or stdout */

/* Parse "heaptap" and the words up to NULL; what is printed goes to message. */
static int parse_words(const char *const *words)
{
	static char line[MAX_TEXT];
	char *argv[MAX_ARGS] = { strcpy(line, "heaptap") };
	char *next = line + sizeof("heaptap");
	int saved_out = dup(STDOUT_FILENO);
	int saved_err = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	int argc = 1;
	size_t len;
	int ret;

	while (words[argc - 1]) {
		argv[argc] = strcpy(next, words[argc - 1]);
		next += strlen(next) + 1;
		argc++;
	}
	assert_non_null(file);
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	options_fini(&o);
	ret = options_parse(&o, argc, argv);
	fflush(stdout);
	dup2(saved_out, STDOUT_FILENO);
	dup2(saved_err, STDERR_FILENO);
	close(saved_out);
	close(saved_err);
	rewind(file);
	len = fread(message, 1, sizeof(message) - 1, file);
	message[len] = '\0';
	fclose(file);
	return ret;
}

#define parse(...) parse_words((const char *const[]){ __VA_ARGS__, NULL })

#define refuses(expected, ...)                                                                               \
	do {                                                                                                 \
		assert_int_equal(parse(__VA_ARGS__), -EINVAL);                                               \
		assert_string_equal(message, "heaptap: " expected "\n");                                     \
	} while (0)

static void defaults(void **state)
{
	(void)state;
	assert_int_equal(parse("run", "true"), 0);
	assert_ptr_equal(o.command, command_find("run"));
	assert_int_equal(o.depth, 127);
	assert_int_equal(o.top, 10);
	assert_int_equal(o.backend, BACKEND_AUTO);
	assert_int_equal(o.color, COLOR_AUTO);
	assert_string_equal(report_keys[o.sort].name, "live-bytes");
	assert_int_equal(o.interval_ns, 0);
	assert_int_equal(o.outputs.nr, 0);
	assert_string_equal(message, "");
}

static void every_kind_is_taken(void **state)
{
	(void)state;
	assert_int_equal(parse("attach", "-d", "0", "-i10s", "--duration=1.5h", "-o", "a.json", "-o", "b.txt",
			       "--sort", "peak", "-n", "0", "--nocpp", "--mmap", "--omit", "libx.so",
			       "--min-size", "1K", "--ring-size", "1G", "--force", "-v", "-p", "12", "redis",
			       "13", "--color", "never"),
			 0);
	assert_int_equal(o.depth, 0);
	assert_int_equal(o.interval_ns, 10000000000);
	assert_int_equal(o.duration_ns, 5400000000000);
	assert_int_equal(o.outputs.nr, 2);
	assert_string_equal(o.outputs.items[1], "b.txt");
	assert_null(o.outputs.items[2]);
	assert_string_equal(report_keys[o.sort].name, "peak");
	assert_int_equal(o.top, 0);
	assert_true(o.no_cpp && o.want_mmap && o.force && o.verbose && !o.quiet);
	assert_string_equal(o.omit.items[0], "libx.so");
	assert_int_equal(o.min_size, 1024);
	assert_int_equal(o.ring_bytes, 1 << 30);
	assert_int_equal(o.color, COLOR_NEVER);
	assert_int_equal(o.targets.nr, 3);
	assert_string_equal(o.targets.items[0], "12");
	assert_string_equal(o.targets.items[1], "redis");
	assert_string_equal(o.targets.items[2], "13");
}

static void thresholds_of_system(void **state)
{
	(void)state;
	assert_int_equal(parse("system", "--threshold", "500M", "--threshold", "growth:2.5%/h", "--comm", "a",
			       "--comm", "b"),
			 0);
	assert_int_equal(o.threshold_bytes, 500 << 20);
	assert_int_equal(o.threshold_growth, 25);
	assert_int_equal(o.comms.nr, 2);
	assert_int_equal(o.zoom, 3);
	assert_int_equal(parse("system", "--threshold", "0"), -EINVAL);
	assert_int_equal(parse("system", "--threshold", "growth:0%/h"), -EINVAL);
	assert_int_equal(parse("system", "--threshold", "growth:5%"), -EINVAL);
	assert_int_equal(parse("attach", "--threshold", "5M", "1"), -EINVAL);
}

static void program_keeps_its_options(void **state)
{
	(void)state;
	assert_int_equal(parse("run", "-d", "5", "ls", "-d", "--help"), 0);
	assert_int_equal(o.depth, 5);
	assert_int_equal(o.nr_args, 3);
	assert_string_equal(o.args[0], "ls");
	assert_string_equal(o.args[2], "--help");
	assert_null(o.args[3]);
	assert_int_equal(parse("run", "--", "-x", "--", "y"), 0);
	assert_int_equal(o.nr_args, 3);
	assert_string_equal(o.args[0], "-x");
	assert_string_equal(o.args[1], "--");
}

static void limits(void **state)
{
	(void)state;
	refuses("--interval: 0s: must be between 100ms and 7d", "run", "--interval", "0s", "x");
	refuses("--interval: 99ms: must be between 100ms and 7d", "run", "-i", "99ms", "x");
	refuses("--depth: 128: must be between 0 and 127", "run", "-d", "128", "x");
	refuses("--depth: -1: must be a number", "run", "-d", "-1", "x");
	refuses("--depth: 99999999999999999999: must be between 0 and 127", "run", "-d",
		"99999999999999999999", "x");
	refuses("--top: 4294967297: must be between 0 and 1000000", "run", "-n", "4294967297", "x");
	refuses("--ring-size: 1K: must be between 4K and 1G", "run", "--ring-size", "1K", "x");
	refuses("--ring-size: much: must be a size such as 4096, 64K or 1M", "run", "--ring-size", "much",
		"x");
	refuses("--backend: magic: must be one of auto bpf ptrace inline", "run", "-b", "magic", "x");
	refuses("--omit: must not be empty", "run", "--omit", "", "x");
	refuses("--min-size: must not be larger than --max-size", "run", "--min-size", "2", "--max-size", "1",
		"x");
	assert_int_equal(parse("run", "-d", "127", "-i", "100ms", "x"), 0);
	assert_int_equal(parse("run", "-d", "0", "-i", "7d", "x"), 0);
}

static void unknown_options(void **state)
{
	(void)state;
	refuses("--dpeth: no such option; did you mean --depth", "run", "--dpeth", "3", "x");
	refuses("--dpeth: no such option; did you mean --depth", "run", "--dpeth=3", "x");
	refuses("--xyzzy: no such option; see 'heaptap help run'", "run", "--xyzzy", "x");
	refuses("-z: no such option; see 'heaptap help attach'", "attach", "-vz", "x");
	refuses("--user: not an option of 'attach' but of 'run'", "attach", "--user", "me", "x");
	refuses("-u: not an option of 'attach' but of 'run'", "attach", "-u", "me", "x");
	refuses("--jobs: not an option of 'connect' but of 'run'", "connect", "--jobs", "2", "unix:/x");
	refuses("--depth: needs an argument, N", "run", "--depth");
	refuses("--depth: needs an argument, N", "run", "-d");
	refuses("--quiet: takes no argument", "run", "--quiet=1", "x");
}

static void commands_and_arguments(void **state)
{
	(void)state;
	refuses("attacx: no such command; did you mean 'attach'", "attacx", "1");
	refuses("xyzzy: no such command; see 'heaptap help'", "xyzzy");
	assert_int_equal(parse("1234"), 0);
	assert_string_equal(o.command->name, "attach");
	assert_string_equal(message, "heaptap: 'heaptap 1234' is 'heaptap attach 1234'\n");
	assert_int_equal(parse("/bin/true", "-q"), 0);
	assert_string_equal(o.command->name, "run");
	assert_int_equal(o.nr_args, 2);
	refuses("-v: the command comes first, as in 'heaptap run --verbose ...'; -V prints the version", "-v",
		"run", "x");
	refuses("run: needs [--] PROGRAM [ARG...]; see 'heaptap help run'", "run", "-v");
	refuses("attach: needs PID|NAME...; see 'heaptap help attach'", "attach");
	refuses("report: b: one argument too many; see 'heaptap help report'", "report", "a", "b");
	refuses("doctor: y: one argument too many; see 'heaptap help doctor'", "doctor", "x", "y");
	assert_int_equal(parse("attach", "-p", "1"), 0);
	assert_int_equal(parse_words((const char *const[]){ NULL }), -EINVAL);
	assert_non_null(strstr(message, "Usage: heaptap COMMAND"));
}

/* Escape sequences on the command line do not reach the terminal (S9). */
static void terminal_escapes_are_not_echoed(void **state)
{
	(void)state;
	assert_int_equal(parse("run", "--\033[31m", "x"), -EINVAL);
	assert_null(strchr(message, '\033'));
}

static void alloc_specs(void **state)
{
	struct alloc_table *fns;
	const struct alloc_spec *s;

	(void)state;
	assert_int_equal(parse("run", "--alloc",
			       "malloc=pool_alloc,free=pool_free,calloc=pool_calloc,arg=2,object=libp.so",
			       "--alloc", "malloc=m,free=f", "x"),
			 0);
	assert_int_equal(o.nr_allocs, 2);
	s = &o.allocs[0];
	assert_string_equal(s->malloc_symbol, "pool_alloc");
	assert_string_equal(s->calloc_symbol, "pool_calloc");
	assert_null(s->realloc_symbol);
	assert_string_equal(s->free_symbol, "pool_free");
	assert_string_equal(s->object, "libp.so");
	assert_int_equal(s->arg, 2);
	assert_int_equal(o.allocs[1].arg, 1);
	assert_int_equal(alloc_table_new(&fns), 0);
	assert_int_equal(alloc_spec_add(fns, s), 0);
	assert_int_equal(alloc_fn(fns, alloc_fn_find(fns, "pool_alloc"))->size_arg, 2);
	assert_int_equal(alloc_fn(fns, alloc_fn_find(fns, "pool_calloc"))->count_arg, 2);
	assert_int_equal(alloc_fn(fns, alloc_fn_find(fns, "pool_calloc"))->size_arg, 3);
	assert_int_equal(alloc_fn(fns, alloc_fn_find(fns, "pool_free"))->kind, ALLOC_FREE);
	alloc_table_free(fns);

	refuses("--alloc: malloc=m: must name free, or nothing would ever be freed", "run", "--alloc",
		"malloc=m", "x");
	refuses("--alloc: free=f: must name malloc or calloc", "run", "--alloc", "free=f", "x");
	refuses("--alloc: malloc=m,free=f,arg=0: arg must be between 1 and 3", "run", "--alloc",
		"malloc=m,free=f,arg=0", "x");
	/* No fifth argument can be read: calloc's two would be the fourth and the fifth. */
	refuses("--alloc: malloc=m,free=f,arg=4: arg must be between 1 and 3", "run", "--alloc",
		"malloc=m,free=f,arg=4", "x");
	refuses("--alloc: malloc=m,malloc=n,free=f: a key stands there twice", "run", "--alloc",
		"malloc=m,malloc=n,free=f", "x");
	refuses("--alloc: size=3: keys are malloc, calloc, realloc, free, arg and object", "run", "--alloc",
		"size=3", "x");
	refuses("--alloc: malloc=,free=f: must be a list of key=value", "run", "--alloc", "malloc=,free=f",
		"x");
	refuses("--alloc: ,: must be a list of key=value", "run", "--alloc", ",", "x");
}

/* Let HEAPTAP_CONFIG be a file with @text. */
static void set_config(const char *text)
{
	static char path[] = "/tmp/heaptap-config-XXXXXX";
	static int fd = -1;

	if (fd < 0) {
		fd = mkstemp(path);
		assert_true(fd >= 0);
		setenv("HEAPTAP_CONFIG", path, 1);
	}
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
	if (!*text) {
		unlink(path);
		close(fd);
		fd = -1;
		strcpy(path + sizeof(path) - 7, "XXXXXX");
		setenv("HEAPTAP_CONFIG", "/dev/null", 1);
	}
}

/* The parse failed, and said "config: FILE@expected". */
static void assert_config_error(const char *expected)
{
	char line[512];

	snprintf(line, sizeof(line), "heaptap: config: %s%s\n", getenv("HEAPTAP_CONFIG"), expected);
	assert_string_equal(message, line);
}

static void config_is_below_the_command_line(void **state)
{
	(void)state;
	set_config("# mine\n\ndepth 7\n  top\t20  \r\nmmap\nomit libx y.so\nuser me\nsort peak");
	assert_int_equal(parse("run", "-d", "9", "--omit", "z.so", "x"), 0);
	assert_int_equal(o.depth, 9);
	assert_int_equal(o.top, 20);
	assert_true(o.want_mmap);
	assert_int_equal(o.omit.nr, 2);
	assert_string_equal(o.omit.items[0], "libx y.so");
	assert_string_equal(o.omit.items[1], "z.so");
	assert_string_equal(o.user, "me");
	assert_string_equal(report_keys[o.sort].name, "peak");
	assert_int_equal(parse("attach", "1"), 0);
	assert_null(o.user);
	assert_int_equal(o.depth, 7);
	assert_int_equal(parse("attach", "--config", "/dev/null", "1"), 0);
	assert_int_equal(o.depth, 127);
	set_config("");
}

static void wrong_config_says_where(void **state)
{
	(void)state;
	set_config("top 3\ndepth 128\n");
	assert_int_equal(parse("run", "x"), -EINVAL);
	assert_config_error(":2: depth: 128: must be between 0 and 127");
	set_config("frobnicate");
	assert_int_equal(parse("run", "x"), -EINVAL);
	assert_config_error(":1: frobnicate: no such option");
	set_config("pid 1");
	assert_int_equal(parse("attach", "x"), -EINVAL);
	assert_config_error(":1: pid: no such option");
	set_config("mmap yes");
	assert_int_equal(parse("run", "x"), -EINVAL);
	assert_config_error(":1: mmap: takes no argument");
	set_config("depth");
	assert_int_equal(parse("run", "x"), -EINVAL);
	assert_config_error(":1: depth: needs an argument, N");
	assert_int_equal(parse("run", "--help"), 1);
	set_config("");
	refuses("config: /nonexistent/c: No such file or directory", "run", "--config", "/nonexistent/c",
		"x");
}

/* A config file that others may write, or that is in the working directory, is not used (S8). */
static void foreign_config_is_not_used(void **state)
{
	(void)state;
	set_config("depth 7");
	assert_int_equal(chmod(getenv("HEAPTAP_CONFIG"), 0602), 0);
	assert_int_equal(parse("run", "x"), 0);
	assert_int_equal(o.depth, 127);
	assert_non_null(strstr(message, "not used: everybody may write it"));
	set_config("");
	/* A relative path would mean the working directory; the manual as config would be an error. */
	setenv("HEAPTAP_CONFIG", "man/heaptap.1", 1);
	assert_int_equal(parse("run", "--config", "man/heaptap.1", "x"), -EINVAL);
	setenv("XDG_CONFIG_HOME", "man", 1);
	setenv("HOME", "man", 1);
	assert_int_equal(parse("run", "x"), 0);
	setenv("HEAPTAP_CONFIG", "/dev/null", 1);
}

/* Is @word in @text, not as a part of a longer one? */
static bool has_word(const char *text, const char *word)
{
	for (const char *p = text; (p = strstr(p, word)); p++) {
		char before = p > text ? p[-1] : ' ';
		char after = p[strlen(word)];

		if (before != '-' && !isalnum(before) && after != '-' && !isalnum(after))
			return true;
	}
	return false;
}

static void help_lists_options(void **state)
{
	(void)state;
	assert_int_equal(parse("--version"), 1);
	assert_int_equal(parse("-V"), 1);
	assert_int_equal(parse("version"), 1);
	assert_string_equal(message, "heaptap " HEAPTAP_VERSION "\n");
	assert_int_equal(parse("run", "--version"), 1);
	assert_string_equal(message, "heaptap " HEAPTAP_VERSION "\n");
	assert_int_equal(parse("--help"), 1);
	for (const struct command *c = commands; c->name; c++)
		assert_true(has_word(message, c->name));
	for (const struct command *c = commands; c->name; c++) {
		FILE *out = fmemopen(message, sizeof(message), "w");

		assert_non_null(out);
		options_help(out, c, true);
		fclose(out);
		for (const struct option_row *row = option_rows; row->name; row++) {
			char text[64];

			snprintf(text, sizeof(text), "--%s", row->name);
			assert_int_equal(has_word(message, text), row->commands >> (c - commands) & 1);
		}
	}
}

/* The pages on commands and options, with \- as -, and \f font changes left out. */
static char *read_manual(void)
{
	char *text = calloc(1, 1 << 17);
	size_t used = 0;
	glob_t pages;
	int c;

	assert_non_null(text);
	assert_int_equal(glob(HEAPTAP_SOURCE "/man/heaptap*.1", 0, NULL, &pages), 0);
	assert_int_equal(glob(HEAPTAP_SOURCE "/man/heaptap-options.7", GLOB_APPEND, NULL, &pages), 0);
	for (size_t i = 0; i < pages.gl_pathc; i++) {
		FILE *file = fopen(pages.gl_pathv[i], "r");

		assert_non_null(file);
		while ((c = getc(file)) != EOF && used < (1 << 17) - 1) {
			if (c == '\\' && (c = getc(file)) == 'f')
				getc(file);
			else
				text[used++] = c;
		}
		fclose(file);
	}
	globfree(&pages);
	return text;
}

static void manual_knows_nothing_else(void **state)
{
	char *manual = read_manual();

	(void)state;
	for (const char *p = manual; (p = strstr(p, "--")); p += 2) {
		size_t len = 2;
		bool is_known = false;

		if (!isalpha(p[2]))
			continue;
		while (isalnum(p[len]) || p[len] == '-')
			len++;
		for (const struct option_row *row = option_rows; row->name; row++)
			is_known |= strlen(row->name) == len - 2 && !strncmp(row->name, p + 2, len - 2);
		if (!is_known)
			fail_msg("the manual has %.*s, which is no option", (int)len, p);
	}
	free(manual);
}

static int clean_up(void **state)
{
	(void)state;
	options_fini(&o);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(every_kind_is_taken),
		cmocka_unit_test(thresholds_of_system),
		cmocka_unit_test(program_keeps_its_options),
		cmocka_unit_test(limits),
		cmocka_unit_test(unknown_options),
		cmocka_unit_test(commands_and_arguments),
		cmocka_unit_test(terminal_escapes_are_not_echoed),
		cmocka_unit_test(alloc_specs),
		cmocka_unit_test(config_is_below_the_command_line),
		cmocka_unit_test(wrong_config_says_where),
		cmocka_unit_test(foreign_config_is_not_used),
		cmocka_unit_test(help_lists_options),
		cmocka_unit_test(manual_knows_nothing_else),
	};

	setenv("HEAPTAP_CONFIG", "/dev/null", 1); /* not the one of who runs this */
	return cmocka_run_group_tests(tests, NULL, clean_up);
}
