/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells by names whether code belongs to the program or to the library of its language. */
#pragma once

#include "user/lib/types.h"
#include "user/names/symbolize.h"

/* Is the file @path a C library, the library of a language, or an allocator? */
bool library_is_file(const char *path);

/* Is the file @path an interpreter or a part of one: it runs code that a perf map may name? */
bool library_is_interpreter(const char *path);

/* Does @function of an interpreter run code: what calls it is not what made the code allocate? NULL = no name. */
bool library_runs_code(const char *function);

/*
 * Is @s, which has a function, code of the library of a language: std:: and operator new of C++; alloc::, core:: and
 * std:: of Rust; the run-time libraries of D and Ada; functions of a C library that was linked into the program?
 */
bool library_is_function(const struct symbol *s);

/* Has the function @name the name of a wrapper around the allocator: "xmalloc", "g_strdup", "sqlite3Malloc"? */
bool library_is_wrapper_name(const char *name);

/* Does the function @name start a program or a thread? What is further out says nothing. */
bool library_is_start(const char *name);
