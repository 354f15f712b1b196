/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of the reading of a saved report, and the steps into objects and arrays, for its two readers. */
#pragma once

#include "user/lib/json_read.h"
#include "user/report/saved.h"
#include "user/target/module.h"

/* A frame as a report has it. */
struct saved_frame {
	char function[512], module[512], offset[32];
};

/* The reading of a report. */
struct saved_reading {
	const struct saved_sink *sink;
	struct saved_totals *totals;
	struct json_reader json;
	const char *why;
	struct saved_tables *tables;	/* owned */
	struct saved_process process;	/* that is being read */
	u64 live_low, live_high;	/* of caller, if its numbers are estimates */
	struct saved_caller caller;	/* that is being read; its texts are the two below */
	char function[256], place[256]; /* of caller */
	char *frames;			/* owned; a line per frame */
	size_t used;			/* bytes of @frames */
	struct saved_frame frame;
};

/* Remember why the report cannot be read. -EBADMSG. One reason is of the whole file. */
extern const char saved_no_report[];
int saved_wrong(struct saved_reading *r, const char *why) __must_check;

/* Copy as much of @text as fits. */
void saved_copy_text(char *out, size_t size, const char *text);

/* Read the value of member @key of an object, or skip the value; @token is its first one. 0 or -errno. */
typedef int (*saved_member_fn)(struct saved_reading *r, const char *key, enum json_token token);

int saved_object(struct saved_reading *r, enum json_token token, saved_member_fn member) __must_check;
int saved_array(struct saved_reading *r, enum json_token token,
		int (*item)(struct saved_reading *, enum json_token)) __must_check;
int saved_skip(struct saved_reading *r, enum json_token token) __must_check;
int saved_number(struct saved_reading *r, enum json_token token, u64 *value) __must_check;

/* Append @frame to the frames of the caller. */
int saved_add_frame(struct saved_reading *r, const struct saved_frame *frame) __must_check;

/* Read the tables of @text, wherever they are, to r->tables. 0, -ENOMEM, or -EBADMSG as from saved_read(). */
int saved_tables_read(struct saved_reading *r, const char *text, size_t len) __must_check;
void saved_tables_free(struct saved_tables *t);

/* A frame of a stack as a place in a file. */
struct saved_place {
	u64 offset;
	u32 module; /* its number in the tables */
	bool has_module;
	bool is_inlined; /* into the next frame, which has the same place */
};

u32 saved_tables_modules(const struct saved_tables *t); /* how many */
u32 saved_tables_stacks(const struct saved_tables *t);
/* File @i of the tables: its path, which is borrowed, and its build ID. */
void saved_tables_module(const struct saved_tables *t, u32 i, struct module *out);
/* Frame @i of stack @number. 0; -ENOENT behind the last one; or -EBADMSG if the tables lack something. */
int saved_tables_place(struct saved_reading *r, u32 number, u32 i, struct saved_place *out) __must_check;

/* Append the frames of stack @number of the tables to those of the caller. */
int saved_tables_stack(struct saved_reading *r, u64 number) __must_check;
