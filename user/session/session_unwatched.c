/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why nothing could be watched in a process, and what would help. */
#include "user/session/session_unwatched.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "user/heap/heap.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_told.h"
#include "user/source/caps.h"
#include "user/target/program_build.h"

/* The status of a program whose loader (glibc, musl) has not found a library. */
enum { STATUS_NO_LIBRARY = 127 };

bool process_is_unwatched(const struct process *p)
{
	if (p->target->nr_allocators || p->nr_events)
		return false;
	for (size_t fn = 1; fn < alloc_fn_count(heap_functions(p->heap)); fn++)
		if (heap_calls(p->heap, fn))
			return false;
	return true;
}

/* The files that a process maps to run code. */
struct mapped_files {
	size_t nr, nr_unopened;
	const struct module *program; /* NULL = not known */
};

static void count_files(struct mapped_files *f, const struct target *t)
{
	for (size_t i = 0; i < t->maps.nr; i++) {
		const struct module *m = t->maps.maps[i].module;

		/* "[vdso]" is no file. */
		if (!m || m->path[0] == '[')
			continue;
		f->nr++;
		f->nr_unopened += m->fd < 0;
		if (!f->program || (t->exe && !strcmp(m->path, t->exe)))
			f->program = m;
	}
}

/* A sentence's begin about the program, and what would help. */
struct kind {
	const char *what, *help;
};

static struct kind kind_of(const struct mapped_files *f)
{
	struct program_build b = { 0 };

	if (IS_AGENT)
		return (struct kind){ "", "name its allocator with --alloc malloc=NAME,free=NAME" };
	if (!f->program || f->program->fd < 0 || program_build_read(&b, f->program->fd))
		b = (struct program_build){ 0 };
	if (b.is_go)
		return (struct kind){ b.is_static ? "a static Go program, which has an allocator of its own: "
						  : "a Go program, which has an allocator of its own: ",
				      "Go's profiler (runtime/pprof) shows its heap" };
	if (b.is_static && b.is_stripped)
		return (struct kind){ "a static, stripped program: ",
				      "link it dynamically, or keep its symbol table" };
	return (struct kind){ b.is_static ? "a static program: " : "",
			      "name its own allocator with --alloc malloc=NAME,free=NAME" };
}

const char *session_explain_unwatched(const struct session *s, struct process *p)
{
	const struct target *t = p->target;
	struct mapped_files f = { 0 };
	struct kind kind;

	count_files(&f, t);
	/* A recording that memory did not suffice to read leaves it out. */
	if (t->exe && target_is_emulator(t->exe)) {
		snprintf(p->unwatched, sizeof(p->unwatched),
			 "an emulator, which runs the code of another program by itself");
		return "trace the program without the emulator";
	}
	if (!f.nr) {
		snprintf(p->unwatched, sizeof(p->unwatched), "none of its mappings is known");
		return NULL;
	}
	/* A recording or another machine has searched the files. */
	if (!s->is_replayed && !session_told(s) && f.nr_unopened) {
		snprintf(p->unwatched, sizeof(p->unwatched),
			 "%zu of its %zu mapped files could not be opened", f.nr_unopened, f.nr);
		return caps_ptrace_advice() ? caps_ptrace_advice() : "allow more open files (ulimit -n)";
	}
	if (p->lost.nr_unplaced) {
		snprintf(p->unwatched, sizeof(p->unwatched),
			 "its probes could not be placed: see the first messages");
		return NULL;
	}
	if (f.nr == 2 && t->has_exited && WIFEXITED(t->exit_status) &&
	    WEXITSTATUS(t->exit_status) == STATUS_NO_LIBRARY) {
		snprintf(p->unwatched, sizeof(p->unwatched),
			 "its libraries could not be loaded, as its loader says");
		return NULL;
	}
	kind = kind_of(&f);
	if (f.nr == 1)
		snprintf(p->unwatched, sizeof(p->unwatched),
			 "%sno allocator function in its only mapped file, %s", kind.what, f.program->path);
	else
		snprintf(p->unwatched, sizeof(p->unwatched),
			 "%sno allocator function in any of its %zu mapped files (first: %s)", kind.what,
			 f.nr, f.program->path);
	return s->options->source.omit && s->options->source.omit[0]
		       ? "trace it without --omit, which may leave out its allocator"
		       : kind.help;
}
