/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into heaptap: its HEAPTAP_FAIL_AT-th allocation fails; all from there on with HEAPTAP_FAIL_ON. How many
 * there were is added as a line to the file HEAPTAP_FAIL_COUNT. Other programs get all that they ask for. With
 * HEAPTAP_FAIL_READER it is that of heaptap's reader of names, libdw included. In place of a number HEAPTAP_FAIL_SIZE:
 * all calloc() of that many bytes fail.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nmemb, size_t size);
void *__libc_realloc(void *p, size_t size);

static long fail_at, nr;
static bool goes_on;
static size_t fail_size;
static const char *libdw_start, *libdw_end;

static void find_libdw(void)
{
	void *function = dlsym(RTLD_DEFAULT, "dwarf_begin_elf");
	Dl_info info;

	if (!function || !dladdr(function, &info))
		return;
	libdw_start = info.dli_fbase;
	libdw_end = libdw_start + (1 << 20);
}

__attribute__((constructor)) static void fail_init(int argc, char **argv)
{
	bool is_reader = argc && !strcmp(argv[0], "heaptap-names");
	const char *at = getenv("HEAPTAP_FAIL_AT"), *size = getenv("HEAPTAP_FAIL_SIZE"), *name;
	char exe[4096];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (len <= 0 || (!at && !size) || is_reader != !!getenv("HEAPTAP_FAIL_READER"))
		return;
	exe[len] = '\0';
	name = strrchr(exe, '/');
	if (!name || strcmp(name, "/heaptap") != 0)
		return;
	if (!is_reader)
		find_libdw();
	goes_on = getenv("HEAPTAP_FAIL_ON");
	fail_at = at ? strtol(at, NULL, 10) : 0;
	fail_size = size ? strtoul(size, NULL, 10) : 0;
}

__attribute__((destructor)) static void fail_fini(void)
{
	const char *path = getenv("HEAPTAP_FAIL_COUNT");
	FILE *f = fail_at > 0 && path && *path ? fopen(path, "a") : NULL;

	if (!f)
		return;
	fprintf(f, "%ld\n", nr);
	fclose(f);
}

static bool fails(const void *caller)
{
	long n;

	if (fail_at <= 0 || ((const char *)caller >= libdw_start && (const char *)caller < libdw_end))
		return false;
	n = __atomic_add_fetch(&nr, 1, __ATOMIC_RELAXED);
	if (n != fail_at && !(goes_on && n > fail_at))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t nmemb, size_t size)
{
	if (fail_size && nmemb == 1 && size == fail_size) {
		errno = ENOMEM;
		return NULL;
	}
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(nmemb, size);
}

void *realloc(void *p, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t nmemb, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(nmemb, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, bytes);
}
