/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of files and functions that belong to the libraries of languages. */
#include "user/report/library_code.h"

#include <ctype.h>
#include <string.h>

#include "user/lib/path.h"

enum { MAX_PLAIN_NAME = 64 };

/* Does @name begin with one of the @nr words of @list? */
static bool library_begins(const char *name, const char *const *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	return false;
}

#define BEGINS(name, list) library_begins(name, list, ARRAY_SIZE(list))

bool library_is_file(const char *path)
{
	static const char *const begins[] = {
		"libc.so",	"libc-2.",	"ld-linux",    "ld-musl",     "ld64.so",      "libc.musl-",
		"libpthread",	"libdl.so",	"libm.so",     "librt.so",    "libresolv.so", "libstdc++.so",
		"libc++.so",	"libc++abi.so", "libgcc_s",    "libdruntime", "libphobos",    "libgphobos",
		"libgdruntime", "libgnat-",	"libgnarl-",   "libasan.so",  "liblsan.so",   "libtsan.so",
		"libubsan.so",	"libjemalloc",	"libtcmalloc", "libmimalloc", "[vdso]",
	};

	return BEGINS(path_name(path), begins);
}

bool library_is_interpreter(const char *path)
{
	static const char *const begins[] = { "python",	   "libpython",	   "libffi.so", "node",
					      "nodejs",	   "libnode.so",   "java",	"libjli.so",
					      "libjvm.so", "php",	   "ruby",	"libruby",
					      "dotnet",	   "libcoreclr.so" };

	return BEGINS(path_name(path), begins) || strstr(path, "/lib-dynload/");
}

bool library_runs_code(const char *function)
{
	static const char *const begins[] = { "_PyEval_EvalFrame", "PyEval_EvalFrame", "Builtins_",
					      "execute_ex",	   "vm_exec",	       "Interpreter" };

	return function && BEGINS(function, begins);
}

/* Names of Rust crates that no program can have. */
static bool library_is_rust_path(const char *name)
{
	static const char *const crates[] = { "alloc::", "core::", "std::", "hashbrown::", "__rustc::" };

	return BEGINS(name, crates);
}

/*
 * "<alloc::vec::Vec<T> as core::clone::Clone>::clone" and "<T as alloc::...>::f" belong to the library; but
 * "<app::Thing as core::clone::Clone>::clone" is code of the program.
 */
static bool library_is_rust_impl(const char *name)
{
	const char *as = strstr(name, " as ");
	const char *type = name + 1 + strspn(name + 1, "<&[(* ");
	size_t len = strcspn(type, ":<>,;()[] ");

	if (!strncmp(type, "mut ", 4) || !strncmp(type, "dyn ", 4))
		type += 4, len = strcspn(type, ":<>,;()[] ");
	if (library_is_rust_path(type))
		return true;
	if (!as || !library_is_rust_path(as + 4))
		return false;
	/* A type without a path is a parameter or a type of the language. */
	return strncmp(type + len, "::", 2) != 0 || !strncmp(as + 4, "alloc::", 7);
}

static bool library_is_cpp(const char *name)
{
	static const char *const begins[] = {
		"std::",	"__gnu_cxx::",	   "v8::",	  "node::",
		"Builtins_",	"__cxxabiv1::",	   "boost::",	  "abi::",
		"operator new", "operator delete", "os::malloc(", "os::realloc(", /* of Java */
	};

	return BEGINS(name, begins);
}

static bool library_is_c(const char *name)
{
	static const char *const begins[] = {
		"_IO_",	       "__IO_",	     "__libc_",	 "__GI_", "__cxa_", "__rust_", "__rdl_",
		"__rg_",       "__gnat_",    "_d_",	 "_dl_",  "_nl_",   "__str",   "__getdelim",
		"__vasprintf", "__asprintf", "system__", "ada__", "gnat__", "system.", "ada.",
		"gnat.",       "object.",    "core.",	 "rt.",	  "std.",   "gc.",     "uv_",
	};
	static const char *const names[] = {
		"strdup",	  "strndup",	 "wcsdup",	   "getline",  "getdelim", "asprintf",
		"vasprintf",	  "fopen",	 "fopen64",	   "fdopen",   "freopen",  "popen",
		"opendir",	  "fdopendir",	 "scandir",	   "realpath", "getcwd",   "setenv",
		"putenv",	  "setlocale",	 "newlocale",	   "regcomp",  "qsort",	   "qsort_r",
		"open_memstream", "getaddrinfo", "pthread_create", "tsearch",  "hcreate",  "glob",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return BEGINS(name, begins);
}

bool library_is_function(const struct symbol *s)
{
	const char *name = s->function;
	bool is_rust = s->file && strlen(s->file) > 3 && !strcmp(s->file + strlen(s->file) - 3, ".rs");

	/* Code of node around the program is JavaScript, too. */
	if (s->file && !strncmp(s->file, "node:", 5))
		return true;
	/* Names of inlined functions have no namespace. */
	if (s->file && (!strncmp(s->file, "/rustc/", 7) || strstr(s->file, "/include/c++/")))
		return true;
	if (*name == '<')
		return library_is_rust_impl(name);
	/* Namespaces of C++ may be called as crates of Rust are, but their functions have parameters. */
	if (library_is_rust_path(name) && (is_rust || !strchr(name, '(')))
		return true;
	return library_is_cpp(name) || library_is_c(name);
}

bool library_is_wrapper_name(const char *name)
{
	static const char *const parts[] = { "malloc",	"calloc",   "realloc", "strdup",
					     "strndup", "asprintf", "memdup",  "palloc" };
	static const char *const ends[] = { "alloc", "alloc0", "zalloc", "allocz" };
	char lower[MAX_PLAIN_NAME];
	size_t len = strlen(name);

	/* Functions of C only: a class that is called so may be the program's. */
	if (len >= sizeof(lower) || strpbrk(name, ":(<."))
		return false;
	for (size_t i = 0; i <= len; i++)
		lower[i] = (char)tolower((unsigned char)name[i]);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(lower, parts[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (len >= strlen(ends[i]) && !strcmp(lower + len - strlen(ends[i]), ends[i]))
			return true;
	return false;
}

bool library_is_start(const char *name)
{
	static const char *const names[] = { "_start", "call_init", "clone", "clone3", "start_thread" };
	static const char *const begins[] = { "__libc_start_", "__libc_csu_", "_dl_", "__clone" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return BEGINS(name, begins);
}
