/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields of the records of a stream: one table for writer and reader. */
#pragma once

#include "user/stream/stream_record.h"

/* Any record that has a layout. */
union stream_any {
	struct stream_hello hello;
	struct stream_function function;
	struct stream_process process;
	struct stream_module module;
	struct stream_maps maps;
	struct stream_mapping mapping;
	struct stream_allocator allocator;
	struct stream_thread thread;
	struct process_event life;
	struct stream_losses losses;
	struct stream_scan scan;
	struct stream_scan_row scan_row;
	struct stream_scan_link scan_link;
	struct stream_scan_why scan_why;
	struct stream_scan_step scan_step;
	struct stream_pid pid;
	struct stream_mark_record mark;
	struct stream_end end;
	u8 room[512];
};

enum stream_field_type { STREAM_FIELD_NUMBER, STREAM_FIELD_STRING, STREAM_FIELD_BYTES };

struct stream_field {
	u16 offset; /* in the struct */
	u8 type;    /* enum stream_field_type */
	u8 size; /* number: 1, 2, 4 or 8 bytes of the struct; bytes: most of them; the u8 behind is their number */
};

/* The fields of one kind of record, in order. */
struct stream_layout {
	const struct stream_field *fields;
	u8 nr;
};

/* NULL for a kind that is unknown, or is written in another way: STREAM_CONTEXT, STREAM_STACK. */
const struct stream_layout *stream_layout(u32 kind);

/* Write the body of @rec at @out, which has room for STREAM_MAX_RECORD bytes; longer strings are cut. */
u8 *stream_layout_put(const struct stream_layout *layout, u8 *out, const void *rec);

/*
 * Read a body. Missing fields are 0 or "". Strings of @rec lie in @strings, which has room for @len bytes and one for
 * each field. False if the body is damaged.
 */
bool stream_layout_get(const struct stream_layout *layout, const u8 *body, size_t len, union stream_any *rec,
		       char *strings);
