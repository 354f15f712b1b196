/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The meaning of the numbers in a stream that is read: functions, modules, mappings. For recordings and connections. */
#pragma once

#include "user/stream/stream_record.h"
#include "user/target/allocator.h"
#include "user/target/module.h"

enum { STREAM_MAX_MAPPINGS = 65536 }; /* of one process */

/* The names of one stream. Begins with zeros, modules and fns; stream_names_fini(). */
struct stream_names {
	struct module_table *modules; /* borrowed */
	struct alloc_table *fns;      /* borrowed; new functions go into it */
	u16 fn_of[ALLOC_MAX_FNS];     /* rows of fns by number in the stream */
	struct module **numbered;     /* owned list of borrowed modules, by number in the stream - 1 */
	u32 nr_numbered, max_numbered;
	struct mapping_list coming; /* owned; the mappings that have arrived of those expected */
	u32 nr_expected;
};

void stream_names_fini(struct stream_names *n);

/* A new stream begins, with numbers of its own. */
void stream_names_clear(struct stream_names *n);

/*
 * STREAM_FUNCTION. A function of another kind than ours of its name becomes a row of its own. Without a name: row 0.
 * 0; -EINVAL: a kind or a family that is not known; -ENOSPC: no more rows; -ENOMEM.
 */
int stream_names_function(struct stream_names *n, const struct stream_function *f) __must_check;

/* The next number is the module @m. 0 or -ENOMEM. */
int stream_names_module(struct stream_names *n, struct module *m) __must_check;

/* The module of @number, NULL for 0. The reader of the stream has checked that the number was introduced. */
struct module *stream_names_get(const struct stream_names *n, u32 number);

/* STREAM_MAPS: expect @nr mappings, at most STREAM_MAX_MAPPINGS; forget those that were coming. 0 or -ENOMEM. */
int stream_names_expect(struct stream_names *n, u32 nr) __must_check;

/* STREAM_MAPPING. 0; -EINVAL: not expected, or not behind the mapping before it. */
int stream_names_mapping(struct stream_names *n, const struct stream_mapping *m) __must_check;

/* Have all expected mappings come? */
static inline bool stream_names_have_all(const struct stream_names *n)
{
	return n->coming.nr == n->nr_expected;
}

/* Give all mappings that have come to @list, in place of its own. Its epoch stays. */
void stream_names_install(struct stream_names *n, struct mapping_list *list);
