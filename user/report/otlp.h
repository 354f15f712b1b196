/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile as OpenTelemetry sends it: ExportProfilesServiceRequest of opentelemetry-proto, v1development. It has a
 * resource for each process, and there a profile for each type of value. For user/report/report_pprof.c only.
 */
#pragma once

#include <stdio.h>

#include "user/report/pprof_tables.h"

struct otlp;

struct pprof_type {
	const char *type, *unit;
};

/* @types is borrowed. 0 or -ENOMEM. */
int otlp_new(struct otlp **out, const struct pprof_type *types, size_t nr_types) __must_check;

/* The samples that follow have this stack of locations, ids of @nr places, innermost first. */
void otlp_stack(struct otlp *o, const u64 *ids, size_t nr);

/* A sample with the labels that have a value. @values: one of each type; 0 = it is in no profile. 0 or -ENOMEM. */
int otlp_sample(struct otlp *o, struct pprof_tables *t, const struct pprof_label *labels, size_t nr,
		const u64 *values) __must_check;

/* A sentence on the process whose samples come. 0 or -ENOMEM. */
int otlp_remark(struct otlp *o, const char *text) __must_check;

/* Complete @p of @r: all samples since the last process are its own. 0 or -ENOMEM. */
int otlp_process(struct otlp *o, struct pprof_tables *t, const struct report *r,
		 const struct report_process *p) __must_check;

/* Write the message to @out, and free @o. Errors of the file show at its end. 0 or -ENOMEM. */
int otlp_end(struct otlp *o, const struct pprof_tables *t, FILE *out);
