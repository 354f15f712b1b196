/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of names: of this program, and of a small library in all states that libraries are found in. */
#include "user/names/symbolize.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "user/names/demangle.h"
#include "user/target/image.h"
#include "user/lib/call_filter.h"
#include "user/lib/cleanup.h"
#include "tests/unit/rounds.h"
#include "tests/unit/skip.h"

/* Each test works in a folder of its own and builds what it needs there. */
struct fixture {
	char dir[64];
	struct module_table *modules;
	struct mapping_list maps;
	struct symbolizer *symbolizer;
	const struct symbol *symbols;
	size_t nr;
};

static bool has_compiler;

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	strcpy(f->dir, "/tmp/heaptap-names-XXXXXX");
	return mkdtemp(f->dir) ? module_table_new(&f->modules) : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	symbolizer_free(f->symbolizer);
	mapping_list_fini(&f->maps);
	module_table_free(f->modules);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

/* Run commands in the test's folder; the library's source is $SRC there. */
static void shell(struct fixture *f, const char *commands)
{
	char text[4096], cwd[1024];

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	snprintf(text, sizeof(text), "set -e; SRC='%s/tests/unit/fixtures/named.c'; cd '%s'; %s", cwd, f->dir,
		 commands);
	assert_int_equal(system(text), 0);
}

#define BUILD "${CC:-cc} -O2 -g -fPIC -shared -Wl,--build-id=sha1 -ffile-prefix-map=\"${SRC%/*}\"=/src "

static void need_compiler(void)
{
	if (!has_compiler)
		skip_because("no C compiler and binutils to build the library with");
}

static const char *path_in(struct fixture *f, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return path;
}

static void new_symbolizer(struct fixture *f, const char *sysroot, const char *debug_path)
{
	const struct symbolizer_options options = { .sysroot = sysroot, .debug_path = debug_path };

	symbolizer_free(f->symbolizer);
	assert_int_equal(symbolizer_new(&f->symbolizer, f->modules, &options), 0);
}

static void name(struct fixture *f, struct code_ref ref)
{
	if (!f->symbolizer)
		new_symbolizer(f, NULL, NULL);
	assert_int_equal(symbolize(f->symbolizer, ref, &f->symbols, &f->nr), 0);
	assert_true(f->nr > 0 && !f->symbols[f->nr - 1].is_inlined);
}

static void expect(struct fixture *f, size_t i, const char *function, const char *file, u32 line)
{
	const struct symbol *s = &f->symbols[i];

	assert_true(i < f->nr);
	assert_non_null(s->function);
	assert_string_equal(s->function, function);
	if (file) {
		assert_non_null(s->file);
		assert_non_null(strstr(s->file, file));
		assert_int_equal(s->line, line);
	}
	assert_int_equal(s->is_inlined, i + 1 < f->nr);
}

static void expect_unknown(struct fixture *f)
{
	assert_int_equal(f->nr, 1);
	assert_null(f->symbols[0].function);
	assert_null(f->symbols[0].file);
}

/* Load the library @file; the handle stays open until the process ends. */
static void *load(struct fixture *f, const char *file)
{
	void *library = dlopen(path_in(f, file), RTLD_NOW | RTLD_LOCAL);

	assert_non_null(library);
	return library;
}

/* A return address inside of the function that @function calls last. */
static struct code_ref place_in(struct fixture *f, void *library, const char *function)
{
	void *(*call)(void) = (void *(*)(void))(uintptr_t)dlsym(library, function);

	assert_non_null(call);
	assert_true(mapping_list_read(&f->maps, f->modules, getpid()) >= 0);
	return mapping_ref(&f->maps, (uintptr_t)call());
}

/* Here, @here_line is where the call below was written. */
static __attribute__((noinline)) void *return_address(void)
{
	return __builtin_return_address(0);
}

static u32 here_line;

static inline __attribute__((always_inline)) void *inlined_here(void)
{
	void *place = (here_line = __LINE__, return_address());

	__asm__ volatile("" : "+r"(place));
	return place;
}

static __attribute__((noinline)) void *function_here(void)
{
	void *place = inlined_here();

	__asm__ volatile("" : "+r"(place));
	return place;
}

static void own_program(void **state)
{
	struct fixture *f = *state;
	const struct symbol *first;
	struct code_ref ref;

	assert_int_equal(mapping_list_read(&f->maps, f->modules, getpid()), 1);
	ref = mapping_ref(&f->maps, (uintptr_t)function_here());
	name(f, ref);
	assert_int_equal(f->nr, 2);
	expect(f, 0, "inlined_here", "test_symbolize.c", here_line);
	expect(f, 1, "function_here", "test_symbolize.c", here_line + 8);
	first = f->symbols;
	name(f, ref);
	assert_ptr_equal(f->symbols, first);
}

static void places_in_no_module(void **state)
{
	struct fixture *f = *state;

	name(f, (struct code_ref){ .module = 0, .offset = 0x1234 });
	expect_unknown(f);
	name(f, (struct code_ref){ .module = 99, .offset = 0 });
	expect_unknown(f);
	assert_int_equal(mapping_list_read(&f->maps, f->modules, getpid()), 1);
	name(f, (struct code_ref){ .module = 1, .offset = UINT64_MAX });
	expect_unknown(f);
	name(f, (struct code_ref){ .module = 1, .offset = 0 });
	expect_unknown(f);
}

static void expect_all_inlined(struct fixture *f, void *library, const char *function)
{
	name(f, place_in(f, library, function));
	assert_int_equal(f->nr, 3);
	expect(f, 0, "innermost", "/src/named.c", 101);
	expect(f, 1, "middle", "/src/named.c", 202);
	expect(f, 2, function, "/src/named.c", 303);
}

static void library_with_dwarf(void **state)
{
	struct fixture *f = *state;
	void *library;

	need_compiler();
	shell(f, BUILD "-o lib.so \"$SRC\"; objcopy -R .debug_aranges lib.so");
	library = load(f, "lib.so");
	expect_all_inlined(f, library, "exported");
	name(f, place_in(f, library, "call_hidden"));
	expect(f, 0, "hidden", "/src/named.c", 404);
	name(f, place_in(f, library, "_ZNSt6vectorIiSaIiEE9push_backERKi"));
	expect(f, 0, "std::vector<int>::push_back(int const&)", NULL, 0);
	name(f, place_in(f, library, "_ZN7mycrate3foo17h0123456789abcdefE"));
	expect(f, 0, "mycrate::foo", NULL, 0);
	name(f, place_in(f, library, "_RNvNtCs1234_7mycrate3foo3bar"));
	expect(f, 0, "mycrate::foo::bar", NULL, 0);
}

/* DWARF 4 and 5 hold ranges and file tables in different ways; compressed sections are usual. */
static void formats_of_dwarf(void **state)
{
	struct fixture *f = *state;

	need_compiler();
	shell(f, BUILD "-gdwarf-4 -o 4.so \"$SRC\"; " BUILD "-gdwarf-5 -gz=zlib -o 5.so \"$SRC\"; " BUILD
		       "-gdwarf-5 -ffunction-sections -Wl,--gc-sections -o s.so \"$SRC\"");
	expect_all_inlined(f, load(f, "4.so"), "exported");
	expect_all_inlined(f, load(f, "5.so"), "exported");
	expect_all_inlined(f, load(f, "s.so"), "exported");
}

static void symbols_without_dwarf(void **state)
{
	struct fixture *f = *state;
	void *library;

	need_compiler();
	shell(f, BUILD "-o lib.so \"$SRC\"; strip -g lib.so");
	library = load(f, "lib.so");
	name(f, place_in(f, library, "call_hidden"));
	assert_int_equal(f->nr, 1);
	expect(f, 0, "hidden", NULL, 0);
	assert_null(f->symbols[0].file);
	name(f, place_in(f, library, "_ZNSt6vectorIiSaIiEE9push_backERKi"));
	expect(f, 0, "std::vector<int>::push_back(int const&)", NULL, 0);
}

/* With exported symbols only, a static function is in no symbol: no name is better than its neighbour's. */
static void beyond_the_end_of_symbols(void **state)
{
	struct fixture *f = *state;
	void *library;

	need_compiler();
	shell(f, BUILD "-o lib.so \"$SRC\"; strip lib.so");
	library = load(f, "lib.so");
	name(f, place_in(f, library, "exported"));
	expect(f, 0, "exported", NULL, 0);
	name(f, place_in(f, library, "call_hidden"));
	expect_unknown(f);
}

static void mini_debug_info(void **state)
{
	struct fixture *f = *state;

	need_compiler();
	if (system("command -v xz >/dev/null") != 0)
		skip_because("no xz to make .gnu_debugdata with");
	shell(f, BUILD "-o lib.so \"$SRC\"; objcopy --strip-debug --keep-symbol=hidden lib.so mini; xz mini; "
		       "strip lib.so; objcopy --add-section .gnu_debugdata=mini.xz lib.so");
	name(f, place_in(f, load(f, "lib.so"), "call_hidden"));
	expect(f, 0, "hidden", NULL, 0);
}

/* The process that reads the files: a child of this thread, without which nothing was named yet. */
static pid_t reader_pid(void)
{
	char path[64], comm[32] = "";
	pid_t pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)gettid());
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(comm, sizeof(comm), f));
	fclose(f);
	assert_string_equal(comm, "heaptap-names\n");
	return pid;
}

/* The number after @key in the status of the process that reads the files. */
static unsigned long long reader_status(const char *key, int base)
{
	char path[64], line[256];
	unsigned long long value = ULLONG_MAX;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)reader_pid());
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			value = strtoull(line + strlen(key) + 1, NULL, base);
	fclose(f);
	return value;
}

/* The reader has no rights, and no other files than those that it was given (S11). */
static void reader_without_rights(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(mapping_list_read(&f->maps, f->modules, getpid()), 1);
	name(f, mapping_ref(&f->maps, (uintptr_t)function_here()));
	assert_int_equal(reader_status("CapEff", 16), 0);
	assert_int_equal(reader_status("CapPrm", 16), 0);
	assert_int_equal(reader_status("NoNewPrivs", 10), 1);
	if (geteuid() == 0)
		assert_int_equal(reader_status("Uid", 10), 65534);
#if defined(HAS_CALL_FILTER) && !defined(__SANITIZE_ADDRESS__)
	assert_int_equal(reader_status("Seccomp", 10), 2);
#endif
}

/* Killed between two places: nothing is to blame, and nothing is missing (S12). */
static void reader_is_started_again(void **state)
{
	struct fixture *f = *state;
	struct code_ref ref;
	siginfo_t info;
	pid_t pid;

	assert_int_equal(mapping_list_read(&f->maps, f->modules, getpid()), 1);
	ref = mapping_ref(&f->maps, (uintptr_t)function_here());
	name(f, ref);
	pid = reader_pid();
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	ref.offset++;
	name(f, ref);
	assert_true(reader_pid() != pid);
	expect(f, f->nr - 1, "function_here", NULL, 0);
	assert_int_equal(symbolizer_unread(f->symbolizer), 0);
}

/* 400 MiB in a few kilobytes: unpacking stops, the exported names are still there. */
static void bomb_in_mini_debug_info(void **state)
{
	struct fixture *f = *state;
	void *library;

#ifdef __SANITIZE_ADDRESS__
	skip_because("the sanitizer's allocator ends the program where others return NULL");
#endif
	need_compiler();
	if (system("command -v xz >/dev/null") != 0)
		skip_because("no xz to make .gnu_debugdata with");
	shell(f, BUILD "-o lib.so \"$SRC\"; head -c 200M /dev/zero | xz -0 -T1 >bomb.xz; "
		       "strip lib.so; objcopy --add-section .gnu_debugdata=bomb.xz lib.so");
	library = load(f, "lib.so");
	name(f, place_in(f, library, "exported"));
	assert_in_range(reader_status("VmHWM", 10), 1, 170 << 10);
	name(f, place_in(f, library, "call_hidden"));
	expect_unknown(f);
}

/* 100 MiB of zeros in 100 KiB, for each library: debug information stays packed, and symbols are found (D6). */
static void bombs_in_dwarf(void **state)
{
	struct fixture *f = *state;
	char name_of_file[16];
	void *library;

	need_compiler();
	shell(f, BUILD "-o lib.so \"$SRC\"; strip -g lib.so; head -c 100M /dev/zero >bomb; "
		       "objcopy --add-section .debug_info=bomb lib.so big.so; rm bomb; "
		       "objcopy --compress-debug-sections=zlib big.so 0.so; "
		       "objcopy --compress-debug-sections=zlib-gnu big.so 1.so; rm big.so; "
		       "test $(stat -c %s 1.so) -lt 400000");
	for (int i = 0; i < 2; i++) {
		snprintf(name_of_file, sizeof(name_of_file), "%d.so", i);
		library = load(f, name_of_file);
		name(f, place_in(f, library, "call_hidden"));
		expect(f, 0, "hidden", NULL, 0);
	}
	assert_in_range(reader_status("VmHWM", 10), 1, 60 << 10);
}

#define SPLIT                                                                                                \
	BUILD "-o lib.so \"$SRC\"; objcopy --only-keep-debug lib.so lib.debug; strip lib.so; "               \
	      "objcopy --add-gnu-debuglink=lib.debug lib.so; "

static void debug_file_by_link(void **state)
{
	struct fixture *f = *state;

	need_compiler();
	shell(f, SPLIT "mkdir .debug; mv lib.debug .debug");
	expect_all_inlined(f, load(f, "lib.so"), "exported");
}

static void debug_file_in_debug_path(void **state)
{
	struct fixture *f = *state;
	struct code_ref ref;
	char folder[128];

	need_compiler();
	shell(f, SPLIT "mkdir elsewhere; mv lib.debug elsewhere");
	ref = place_in(f, load(f, "lib.so"), "call_hidden");
	name(f, ref);
	expect_unknown(f);
	snprintf(folder, sizeof(folder), "%s/elsewhere", f->dir);
	new_symbolizer(f, NULL, folder);
	name(f, ref);
	expect(f, 0, "hidden", "/src/named.c", 404);
}

static void debug_file_by_build_id(void **state)
{
	struct fixture *f = *state;
	const struct module *m;
	struct code_ref ref;
	char folder[128], commands[512], id[2 * BUILD_ID_MAX + 1] = "";

	need_compiler();
	shell(f, SPLIT "objcopy -R .gnu_debuglink lib.so");
	ref = place_in(f, load(f, "lib.so"), "call_hidden");
	m = module_get(f->modules, ref.module);
	for (size_t i = 0; i < m->build_id_len; i++)
		sprintf(id + 2 * i, "%02x", m->build_id[i]);
	snprintf(commands, sizeof(commands),
		 "mkdir -p d/.build-id/%.2s; mv lib.debug d/.build-id/%.2s/%s.debug", id, id, id + 2);
	shell(f, commands);
	snprintf(folder, sizeof(folder), "%s/d", f->dir);
	new_symbolizer(f, NULL, folder);
	name(f, ref);
	expect(f, 0, "hidden", "/src/named.c", 404);
}

/* A debug file of another build has wrong addresses, whatever its name. */
static void wrong_debug_file(void **state)
{
	struct fixture *f = *state;

	need_compiler();
	shell(f,
	      SPLIT BUILD "-O1 -DOTHER -o other.so \"$SRC\"; objcopy --only-keep-debug other.so lib.debug; "
			  "cmp -s lib.so other.so && exit 1; :");
	name(f, place_in(f, load(f, "lib.so"), "call_hidden"));
	expect_unknown(f);
}

/* Without build IDs the checksum in the link decides. */
static void debug_file_by_checksum(void **state)
{
	struct fixture *f = *state;
	struct code_ref ref;

	need_compiler();
	shell(f, SPLIT
	      "objcopy -R .note.gnu.build-id lib.so noid.so; "
	      "objcopy -R .note.gnu.build-id lib.so spoilt.so; mkdir a b; mv noid.so a; mv spoilt.so b; "
	      "cp lib.debug a; cp lib.debug b; echo x >>b/lib.debug");
	ref = place_in(f, load(f, "a/noid.so"), "call_hidden");
	assert_int_equal(module_get(f->modules, ref.module)->build_id_len, 0);
	name(f, ref);
	expect(f, 0, "hidden", "/src/named.c", 404);
	name(f, place_in(f, load(f, "b/spoilt.so"), "call_hidden"));
	expect_unknown(f);
}

static void sysroot_strips_folders(void **state)
{
	struct fixture *f = *state;
	struct code_ref ref;
	struct module *m;
	struct image image;
	auto_close int fd = -1;
	char root[600];

	need_compiler();
	shell(f, BUILD "-o lib.so \"$SRC\"; mkdir -p root/lib; cp lib.so root/lib/far.so; ln -s / root/out");
	ref = place_in(f, load(f, "lib.so"), "exported");
	fd = open(path_in(f, "lib.so"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(image_read_file(&image, fd), 0);
	module_table_set_remote(f->modules);
	assert_int_equal(
		module_add(f->modules, "/target/usr/lib/far.so", image.build_id, image.build_id_len, &m), 0);
	assert_int_equal(m->fd, -1);
	snprintf(root, sizeof(root), "%s/root", f->dir);
	ref.module = m->id;
	new_symbolizer(f, root, NULL);
	name(f, ref);
	expect(f, 2, "exported", "/src/named.c", 303);
	assert_int_equal(symbolizer_stale(f->symbolizer), 0);

	/* A link in the sysroot cannot lead out of it, and a remote path is not opened here. */
	snprintf(root, sizeof(root), "/out%s", path_in(f, "lib.so"));
	assert_int_equal(module_add(f->modules, root, image.build_id, image.build_id_len, &m), 0);
	ref.module = m->id;
	name(f, ref);
	expect_unknown(f);
	assert_int_equal(module_add(f->modules, path_in(f, "lib.so"), image.build_id, image.build_id_len, &m),
			 0);
	ref.module = m->id;
	name(f, ref);
	expect_unknown(f);
}

static void stale_file(void **state)
{
	static const u8 other_id[20] = { 1 };
	struct fixture *f = *state;
	struct code_ref ref;
	struct module *m;

	need_compiler();
	shell(f, BUILD "-o lib.so \"$SRC\"");
	ref = place_in(f, load(f, "lib.so"), "exported");
	assert_int_equal(module_add(f->modules, path_in(f, "lib.so"), other_id, sizeof(other_id), &m), 0);
	ref.module = m->id;
	name(f, ref);
	expect_unknown(f);
	ref.offset++;
	name(f, ref);
	expect_unknown(f);
	assert_int_equal(symbolizer_stale(f->symbolizer), 1);
}

static void deleted_and_replaced_file(void **state)
{
	struct fixture *f = *state;
	struct code_ref ref;

	if (geteuid() != 0)
		skip_because("only root reads /proc/PID/map_files");
	need_compiler();
	shell(f, BUILD "-o lib.so \"$SRC\"; " BUILD "-DVARIANT=renamed -o new.so \"$SRC\"");
	ref = place_in(f, load(f, "lib.so"), "exported");
	shell(f, "mv new.so lib.so");
	f->maps.hash++;
	assert_int_equal(mapping_list_read(&f->maps, f->modules, getpid()), 1);
	assert_true(module_get(f->modules, ref.module)->is_deleted);
	name(f, ref);
	expect(f, 2, "exported", "/src/named.c", 303);
	assert_int_equal(symbolizer_stale(f->symbolizer), 0);
}

/* Written over in place, as cp does: what we hold open has another build ID now. */
static void overwritten_file(void **state)
{
	struct fixture *f = *state;
	struct module *m;
	struct code_ref ref;
	struct image image;
	auto_close int fd = -1;

	need_compiler();
	shell(f, BUILD "-o lib.so \"$SRC\"; " BUILD "-DVARIANT=renamed -o new.so \"$SRC\"; cp lib.so run.so");
	ref = place_in(f, load(f, "run.so"), "exported");
	fd = open(path_in(f, "lib.so"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(image_read_file(&image, fd), 0);
	assert_int_equal(module_add(f->modules, path_in(f, "lib.so"), image.build_id, image.build_id_len, &m),
			 0);
	assert_true(m->fd >= 0);
	shell(f, "cat new.so >lib.so");
	ref.module = m->id;
	name(f, ref);
	expect_unknown(f);
	assert_int_equal(symbolizer_stale(f->symbolizer), 1);
}

static void odd_paths(void **state)
{
	struct fixture *f = *state;

	need_compiler();
	shell(f, BUILD
	      "-o lib.so \"$SRC\"; cp lib.so 'with  blank.so'; cp lib.so \"$(printf 'new\\nline.so')\"; "
	      "cp lib.so 'x (deleted)'");
	expect_all_inlined(f, load(f, "with  blank.so"), "exported");
	expect_all_inlined(f, load(f, "new\nline.so"), "exported");
	expect_all_inlined(f, load(f, "x (deleted)"), "exported");
}

/* A child that loads the library as it is in a file system that only the child sees. Sends a place in it. */
static void run_child(struct fixture *f, int out, int hold)
{
	void *(*call)(void), *place, *library;
	char byte, inside[128];

	snprintf(inside, sizeof(inside), "%s/inside", f->dir);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(inside, path_in(f, "box"), NULL, MS_BIND, NULL))
		_exit(1);
	library = dlopen(path_in(f, "box/lib.so"), RTLD_NOW);
	call = library ? (void *(*)(void))(uintptr_t)dlsym(library, "renamed") : NULL;
	if (!call)
		_exit(2);
	place = call();
	if (write(out, &place, sizeof(place)) != sizeof(place) || read(hold, &byte, 1) < 0)
		_exit(3);
	_exit(0);
}

static void other_mount_namespace(void **state)
{
	struct fixture *f = *state;
	int out[2], hold[2];
	void *place = NULL;
	pid_t pid;

	need_compiler();
	if (geteuid() != 0)
		skip_because("a mount namespace needs root");
	shell(f, "mkdir box inside; " BUILD "-o box/lib.so \"$SRC\"; " BUILD
		 "-DVARIANT=renamed -o inside/lib.so \"$SRC\"");
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(hold[1]);
		run_child(f, out[1], hold[0]);
	}
	close(out[1]);
	assert_int_equal(read(out[0], &place, sizeof(place)), sizeof(place));
	assert_int_equal(mapping_list_read(&f->maps, f->modules, pid), 1);
	name(f, mapping_ref(&f->maps, (uintptr_t)place));
	expect(f, 2, "renamed", "/src/named.c", 303);
	close(hold[0]);
	close(hold[1]);
	close(out[0]);
	waitpid(pid, NULL, 0);
}

/* Every file is a good one with a piece missing or spoilt: any answer will do but a crash. */
static void damaged_files(void **state)
{
	struct fixture *f = *state;
	int steps = 6 * rounds();
	auto_close int in = -1, out = -1;
	auto_free u8 *good = NULL;
	struct code_ref ref;
	struct stat st;

	need_compiler();
	shell(f, BUILD "-gdwarf-5 -o lib.so \"$SRC\"; : >bad.so");
	ref = place_in(f, load(f, "lib.so"), "exported");
	in = open(path_in(f, "lib.so"), O_RDONLY | O_CLOEXEC);
	out = open(path_in(f, "bad.so"), O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(in, &st), 0);
	good = malloc(st.st_size);
	assert_true(read(in, good, st.st_size) == st.st_size);
	for (int i = 0; i < 4 * steps; i++) {
		size_t at = (u64)st.st_size * (i % steps) / steps;
		size_t len = i < steps ? at : (size_t)st.st_size;
		u8 junk[64];
		struct module *m;

		assert_int_equal(ftruncate(out, 0), 0);
		assert_true(pwrite(out, good, len, 0) == (ssize_t)len);
		memset(junk, i < 2 * steps ? 0xff : i < 3 * steps ? 0 : 0x81, sizeof(junk));
		if (i >= steps)
			assert_true(pwrite(out, junk, sizeof(junk), at) == sizeof(junk));
		assert_int_equal(module_add(f->modules, path_in(f, "bad.so"), NULL, 0, &m), 0);
		ref.module = m->id;
		name(f, ref);
		new_symbolizer(f, NULL, NULL);
	}
}

static void readable_names(void **state)
{
	static const struct {
		const char *symbol, *readable;
	} cases[] = {
		{ "make_node", "make_node" },
		{ "make_node.isra.0", "make_node" },
		{ "make_node.constprop.0.cold", "make_node" },
		{ "with.dot", "with.dot" },
		{ "malloc@@GLIBC_2.2.5", "malloc" },
		{ "", "" },
		{ "@", "@" },
		{ "_Z", "_Z" },
		{ "_Znwm", "operator new(unsigned long)" },
		{ "_ZN3foo3barEv.part.0", "foo::bar()" },
		{ "_Z4foldIiEvT_", "fold<int>(int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int>::push_back(int const&)" },
		{ "_ZN1AC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
		  "A::A(std::string const&)" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt" },
		{ "_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar" },
		{ "_D4list8makeNodeFiZPv", "list.makeNode(int)" },
		{ "_DTi16_D3gcc9backtrace12LibBacktrace8toStringMxFZAya",
		  "non-virtual thunk to gcc.backtrace.LibBacktrace.toString() const" },
		{ "_DTi_D", "_DTi_D" },
		{ "_D4list4fillFS4tree4NodeQlQnQpQrQtQvQxQzQBbQBeQBhZv",
		  "list.fill(tree.Node, tree.Node, tree.Node, tree.Node, tree.Node, tree.Node, tree.Node, tree.Node, "
		  "tree.Node, tree.Node, tree.Node, tree.Node)" },
		{ "_Dmain", "D main" },
		{ "_DYNAMIC", "_DYNAMIC" },
	};
	char buf[DEMANGLE_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		demangle(buf, cases[i].symbol);
		assert_string_equal(buf, cases[i].readable);
	}
}

/* Pairs of the pair before: forty of them would fill all memory (D6). */
static void name_that_blows_up(void **state)
{
	char symbol[1024] = "_Z1f", buf[DEMANGLE_MAX];
	int n = strlen(symbol);

	(void)state;
	n += sprintf(symbol + n, "1PIiiE");
	for (int i = 0; i < 30; i++) {
		char ref[8] = "S_";

		if (i > 0)
			snprintf(ref, sizeof(ref), "S%c_", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
		n += sprintf(symbol + n, "S_I%s%sE", ref, ref);
	}
	demangle(buf, symbol);
	assert_true(strlen(buf) < DEMANGLE_MAX);
	/* In a name of D each function has the one before as parameter, twice. */
	n = sprintf(symbol, "_D1fFFiZv");
	for (int i = 0; i < 30; i++)
		n += sprintf(symbol + n, i ? "FQhQjZv" : "FQfQhZv");
	strcat(symbol, "Zv");
	demangle(buf, symbol);
	assert_string_equal(buf, symbol);
	memset(symbol, 'a', sizeof(symbol) - 1);
	symbol[sizeof(symbol) - 1] = '\0';
	demangle(buf, symbol);
	assert_string_equal(buf, symbol);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(own_program),
		TEST(places_in_no_module),
		TEST(library_with_dwarf),
		TEST(formats_of_dwarf),
		TEST(symbols_without_dwarf),
		TEST(beyond_the_end_of_symbols),
		TEST(mini_debug_info),
		TEST(bomb_in_mini_debug_info),
		TEST(bombs_in_dwarf),
		TEST(reader_without_rights),
		TEST(reader_is_started_again),
		TEST(debug_file_by_link),
		TEST(debug_file_in_debug_path),
		TEST(debug_file_by_build_id),
		TEST(wrong_debug_file),
		TEST(debug_file_by_checksum),
		TEST(sysroot_strips_folders),
		TEST(stale_file),
		TEST(deleted_and_replaced_file),
		TEST(overwritten_file),
		TEST(odd_paths),
		TEST(other_mount_namespace),
		TEST(damaged_files),
		cmocka_unit_test(readable_names),
		cmocka_unit_test(name_that_blows_up),
	};

	has_compiler = system("command -v ${CC:-cc} objcopy strip >/dev/null") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
