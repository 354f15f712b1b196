/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a census, as text for people and as JSON. */
#pragma once

#include <stdio.h>

#include "user/census/census.h"
#include "user/census/census_baseline.h"
#include "user/census/census_known.h"
#include "user/census/census_names.h"

struct census_report_options {
	const char *comm;     /* name of the process */
	u32 top;	      /* rows of each table; 0 = all */
	u32 width;	      /* columns of the text; 0 = 80 */
	bool is_terminal;     /* a reader at a screen */
	bool is_brief;	      /* the text is for a screen: the tables that answer questions, with few rows */
	taddr_t why_addr;     /* show who holds this block; 0 = none */
	const char *why_type; /* show who holds blocks of this type; borrowed; NULL = none */
	struct census_names *names;		/* borrowed */
	const struct census_baseline *baseline; /* borrowed; NULL = none */
	const struct census_known *known;	/* borrowed; joined; NULL = none */
};

/* One format. */
struct census_format {
	const char *name; /* of the same row of report_formats */
	int (*write)(FILE *out, const struct census *c,
		     const struct census_report_options *o); /* 0 or -ENOMEM */
};

/* The table; the last row has no name. */
extern const struct census_format census_formats[];

int census_text(FILE *out, const struct census *c, const struct census_report_options *o) __must_check;
int census_json(FILE *out, const struct census *c, const struct census_report_options *o) __must_check;
/* Live bytes by verdict and type, and free bytes by arena, as lines for flame graphs. */
int census_folded(FILE *out, const struct census *c, const struct census_report_options *o) __must_check;
int census_csv(FILE *out, const struct census *c, const struct census_report_options *o) __must_check;
