/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names places in modules: function, file and line, inlined calls. The work is done late, and once for each place. */
#pragma once

#include "user/target/module.h"

struct symbolizer;

/* One named frame. A place with inlined calls has several, innermost first. */
struct symbol {
	const char *function; /* demangled; NULL = unknown: print module+0xoffset */
	const char *file;     /* NULL = unknown */
	u32 line;	      /* 0 = unknown */
	bool is_inlined;      /* into the next one */
	const char *linked;   /* name of the function for linkers; NULL = that of function */
	u32 start_line;	      /* where the function is declared; 0 = unknown */
	const char
		*language; /* of compiled code in no file, static: perf_name.language; NULL = native code */
};

struct symbolizer_options {
	/* Searched first; leading directories of paths are dropped until a file is found. NULL = none. */
	const char *sysroot;
	const char *debug_path; /* NULL, or a directory with debug files (as /usr/lib/debug) */
	bool asks_server;	/* fetch missing files from servers: user/names/symbol_server.h */
};

/* Name places in @modules, which must outlive the symbolizer. */
int symbolizer_new(struct symbolizer **out, const struct module_table *modules,
		   const struct symbolizer_options *options) __must_check;
void symbolizer_free(struct symbolizer *s);

/*
 * Name the call before the return address @ref. Always gives at least one symbol, perhaps with
 * nothing known. *@symbols belongs to the symbolizer and stays valid until symbolizer_free(). May
 * block on disk I/O; never touches the target; downloads only if asks_server. Returns 0 or -ENOMEM.
 */
int symbolize(struct symbolizer *s, struct code_ref ref, const struct symbol **symbols,
	      size_t *nr) __must_check;

/*
 * Name the variable at @ref; if @is_tls, ref.offset counts from the start of the module's thread-local segment.
 * *@name is NULL if it is not known; else it stays valid until symbolizer_free(), and *@offset is where in the
 * variable the place is. Otherwise as symbolize().
 */
int symbolize_data(struct symbolizer *s, struct code_ref ref, bool is_tls, const char **name,
		   u64 *offset) __must_check;

/*
 * Read the map of compiled code of process @pid again (user/names/perf_map.h): it names places in no file, as long as
 * no other process with a map has the same address. A process without a map is no error.
 */
void symbolizer_read_perf_map(struct symbolizer *s, pid_t pid);

/*
 * Forget all names, and maps of compiled code but those of @pids, which are sorted: they are looked up again when they
 * are needed. Names that were returned before are not valid any more.
 */
void symbolizer_renew(struct symbolizer *s, const u32 *pids, size_t nr_pids);

/* Open the file with the names of @m, unless it is open. The file stays closed if it cannot be found. */
void symbolizer_open(struct symbolizer *s, struct module *m);

/*
 * Write the readable name of the linker symbol @symbol, as of user/names/demangle.h, to @text; if it is not to be had,
 * the symbol.
 */
void symbolizer_demangle(struct symbolizer *s, char *text, size_t size, const char *symbol);

/* Servers are asked for files that are missing here. */
bool symbolizer_asks_server(const struct symbolizer *s);
/* Modules whose file on disk is not the mapped one (build IDs differ), so that names would be wrong. */
size_t symbolizer_stale(const struct symbolizer *s);
/* Modules by which the reader of names died, so that names of them are missing. */
size_t symbolizer_unread(const struct symbolizer *s);
