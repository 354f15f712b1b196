/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The records of a stream that give numbers and processes their names: functions, modules, mappings, allocators. */
#pragma once

#include "user/stream/stream_record.h"
#include "user/target/allocator.h"
#include "user/target/module.h"

enum { STREAM_MAX_MAPPINGS = 65536 }; /* of one process */

/* The processes that the stream is about are those of a session, or of a connection. */
struct stream_names_owner {
	void *ctx;
	/* The process that has @pid now. NULL: none. */
	struct target *(*find)(void *ctx, u32 pid);
	/* A record of @kind takes so much memory more, or less. 0, or -errno to refuse it. */
	int (*charge)(void *ctx, enum stream_kind kind, s64 bytes);
};

/* The names of one stream. Begins with zeros, modules, fns, max_modules and owner; stream_names_fini(). */
struct stream_names {
	struct module_table *modules; /* borrowed */
	struct alloc_table *fns;      /* borrowed; new functions go into it */
	u32 max_modules;	      /* of all streams in modules */
	struct stream_names_owner owner;
	u16 fn_of[ALLOC_MAX_FNS]; /* rows of fns by number in the stream */
	struct module **numbered; /* owned list of borrowed modules, by number in the stream - 1 */
	char **kinds;		  /* owned, each too; names of allocators, which targets borrow */
	u32 nr_numbered, max_numbered, nr_kinds;
	bool is_later;	 /* modules of another stream about these processes are known */
	bool is_mapping; /* mappings of the process @mapped are coming */
	u32 mapped, nr_expected;
	struct mapping_list coming; /* owned; those that have come */
	const char *why;	    /* what is wrong with the last record; NULL = the owner knows */
};

void stream_names_fini(struct stream_names *n);

/* A new stream about the same processes begins, with numbers of its own. */
void stream_names_clear(struct stream_names *n);

/* Is a record of @kind one for stream_names_take()? Between mappings nothing else may come: it says so. */
static inline bool stream_names_takes(const struct stream_names *n, enum stream_kind kind)
{
	return n->is_mapping || kind == STREAM_FUNCTION || kind == STREAM_MODULE || kind == STREAM_MAPS ||
	       kind == STREAM_MAPPING || kind == STREAM_ALLOCATOR;
}

/*
 * Take a record that the reader of the stream has checked. *@changed is the process whose mappings, or allocators, are
 * others now, with the next epoch; NULL if there is none. A function of another kind than ours of its name becomes a
 * row of its own, one without a name, or with control characters in it, is row 0; kinds of allocators that are no words
 * become "other". 0; -EBADMSG: it cannot be true, see why; -ENOMEM; or what the owner gives.
 */
int stream_names_take(struct stream_names *n, enum stream_kind kind, const void *rec,
		      struct target **changed) __must_check;
