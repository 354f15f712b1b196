/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Python, PHP, Java, node and Go keep objects in memory that they map themselves, R's functions are none: say so. */
#include "user/session/session_runtime.h"

#include <string.h>

#include "user/lib/path.h"
#include "user/session/session_process.h"
#include "user/target/module.h"
#include "user/target/program_build.h"
#include "user/target/target.h"

enum where { IN_PROGRAM, IN_LIBRARY };

/* A file of the runtime: its name, behind which only a version or an ending follows. */
static const struct runtime {
	const char *name;
	enum where where;
	const char *note;
} runtimes[] = {
/* Notes have one line of a screen; doc/faq.md says more. */
#define PYTHON "Python: small objects are no blocks; PYTHONMALLOC=malloc shows them"
	{ "python", IN_PROGRAM, PYTHON },
	{ "libpython", IN_LIBRARY, PYTHON },
#define PHP "PHP: its values are no blocks; USE_ZEND_ALLOC=0 shows them"
	{ "php", IN_PROGRAM, PHP },
	{ "php-fpm", IN_PROGRAM, PHP },
	{ "php-cgi", IN_PROGRAM, PHP },
	{ "libphp", IN_LIBRARY, PHP },
	{ "libjvm.so", IN_LIBRARY, "Java: its objects are no blocks; jcmd PID GC.heap_info shows them" },
	{ "libR.so", IN_LIBRARY, "R: blocks are named by its evaluator; Rprofmem() names R's functions" },
#define NODE "JavaScript objects are no blocks; --heapsnapshot-signal shows them"
	{ "node", IN_PROGRAM, NODE },
	{ "nodejs", IN_PROGRAM, NODE },
	{ "libnode.so", IN_LIBRARY, NODE },
};

static bool is_runtime(const struct runtime *r, const char *name)
{
	size_t len = strlen(r->name);

	return !strncmp(name, r->name, len) && (!name[len] || strchr(".0123456789", name[len]));
}

/* The files of a recording are not open, and so nothing of Go is said of it. */
static bool is_go(const struct module *m)
{
	struct program_build b;

	return m->fd >= 0 && !program_build_read(&b, m->fd) && b.is_go;
}

const char *session_note_runtime(const struct process *p)
{
	const struct target *t = p->target;

	for (size_t i = 0; i < t->maps.nr; i++) {
		const struct module *m = t->maps.maps[i].module;
		bool is_program = m && t->exe && !strcmp(m->path, t->exe);
		const char *name = m ? path_name(m->path) : "";

		for (size_t k = 0; m && k < ARRAY_SIZE(runtimes); k++)
			if ((runtimes[k].where == IN_LIBRARY || is_program) && is_runtime(&runtimes[k], name))
				return runtimes[k].note;
		if (is_program && is_go(m))
			return "Go: its objects are no blocks; runtime/pprof shows them";
	}
	return NULL;
}
