/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of a pprof profile: strings, functions, locations, mappings. For user/report/report_pprof.c only. */
#pragma once

#include "user/lib/protobuf.h"
#include "user/report/intern.h"
#include "user/report/report.h"

/* Fields of the outermost message (profile.proto). */
enum pprof_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING = 6,
	PPROF_TIME_NS = 9,
	PPROF_DURATION_NS = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_COMMENT = 13,
	PPROF_DEFAULT_TYPE = 14,
};

/* A label of a sample: a text, or else a number. */
struct pprof_label {
	const char *key, *text;
	u64 number;
};

/* Ids in the file are the numbers of the items, plus one. */
struct pprof_tables {
	/*
	 * For OTLP: messages have no id, so that their other fields have a number less, and build IDs are attributes.
	 * The id of an item is its place behind an empty one.
	 */
	bool is_otlp;
	const struct report *report; /* borrowed: the one that is being added */
	u64 nr_reports; /* each has modules of its own, whose ids may be equal to those of another report */
	struct intern_strings strings;
	struct intern_table functions, locations, mappings, attributes;
};

/* Tables with the string "". Call pprof_tables_fini() also after -ENOMEM. 0 or -ENOMEM. */
int pprof_tables_init(struct pprof_tables *t, bool is_otlp) __must_check;
void pprof_tables_fini(struct pprof_tables *t);

/* From now on places of @r are added, which is borrowed until the next call. */
void pprof_tables_use(struct pprof_tables *t, const struct report *r);

/* The number of the string @text, escaped; of "" for NULL. 0 or -ENOMEM. */
int pprof_string(struct pprof_tables *t, const char *text, u64 *number) __must_check;

/* Make the program of @p the first mapping, which pprof takes for the main one. For empty tables. 0 or -ENOMEM. */
int pprof_main_mapping(struct pprof_tables *t, const struct report_process *p) __must_check;

/* The id of the location of return address @ref in process @p. 0 or -ENOMEM. */
int pprof_location(struct pprof_tables *t, const struct report_process *p, struct code_ref ref,
		   u64 *id) __must_check;

/* The id of a location without address, which shows @text in place of a function. 0 or -ENOMEM. */
int pprof_location_text(struct pprof_tables *t, const char *text, u64 *id) __must_check;

/* The id of the attribute @label. 0 or -ENOMEM. */
int pprof_attribute(struct pprof_tables *t, const struct pprof_label *label, u64 *id) __must_check;

/* Write item @i of a table to @out, as the field @field. */
typedef void pprof_put_fn(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i);
void pprof_put_mapping(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i);
void pprof_put_location(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i);
void pprof_put_function(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i);
void pprof_put_string(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i);
void pprof_put_attribute(const struct pprof_tables *t, struct protobuf *out, u32 field, size_t i);

/* Write a value of the type AnyValue: @text, or if that is NULL @number. */
void pprof_put_any(struct protobuf *out, u32 field, const char *text, u64 number);
