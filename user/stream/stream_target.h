/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Write processes into a stream, with their modules, mappings and allocators: for recordings and for servers. */
#pragma once

#include "user/stream/stream_record.h"

struct stream_writer;
struct target;

/* The modules that a stream has introduced. Begins with zeros. */
struct stream_modules {
	u32 *numbers; /* owned; numbers in the stream, by id of the module; 0 = not introduced */
	size_t max_numbers;
	const struct module **list; /* owned; borrowed modules by number - 1 */
	u32 nr, max;
};

void stream_modules_fini(struct stream_modules *m);

/* A new stream begins: it has no modules. */
void stream_modules_clear(struct stream_modules *m);

/* The record of @t, which is traced since @time_ns. Strings are borrowed from @t. Parent and user are 0. */
struct stream_process stream_process_of(const struct target *t, u64 time_ns);

/* Set the program of @t, and how it began, by @rec. 0 or -ENOMEM. */
int stream_process_take(struct target *t, const struct stream_process *rec) __must_check;

/* Write each module of @t that @m does not have yet. 0, -ENOMEM, or the result of stream_write(). */
int stream_introduce(struct stream_writer *w, struct stream_modules *m, const struct target *t) __must_check;

/* Write all modules of @m again, with their numbers, into another stream. 0 or the result of stream_write(). */
int stream_write_modules(struct stream_writer *w, const struct stream_modules *m) __must_check;

/*
 * Write mappings and allocators of @t, and before them each module that @m does not have yet. 0, -ENOMEM, or the result
 * of stream_write().
 */
int stream_write_maps(struct stream_writer *w, struct stream_modules *m, const struct target *t) __must_check;
