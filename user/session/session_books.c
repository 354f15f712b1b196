/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gives the scan of a sampled process the list of all its blocks. */
#include "user/session/session_books.h"

#include <errno.h>

#include "user/census/census.h"
#include "user/heap/heap_sample.h"
#include "user/lib/log.h"

void session_books_init(struct session_books *b, const struct process *p, struct leaks_options *lo)
{
	bool is_sampled = heap_sample_bytes(p->heap) != 0;

	*b = (struct session_books){ .census = NULL };
	if (lo->elsewhere || (!is_sampled && (!process_saw_few(p) || lo->books)))
		return;
	lo->only_books = process_saw_few(p);
	if (census_lister_new(&b->census)) {
		warn("scan: PID %d: out of memory: not judged by the books of its allocator", (int)lo->pid);
		return;
	}
	b->lister = (struct leaks_lister){ b->census, census_list };
	lo->lister = &b->lister;
}

void session_books_fini(struct session_books *b)
{
	census_lister_free(b->census);
}

bool session_lacks_books(struct process *p)
{
	const char *name;

	if (!p->leaks->has_verdict || leaks_by_books(p->leaks) ||
	    leaks_all(p->leaks)->of[SCAN_DEFINITE].blocks)
		return false;
	if (!p->has_asked_for_books) {
		p->has_asked_for_books = true;
		p->lacks_books = census_look(&name, p->target->pid, p->target->is_32bit ? 4 : 8) == -ENOENT;
	}
	return p->lacks_books;
}
