/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Profiles for pprof and its readers, of one report or of several. */
#pragma once

#include <stdio.h>

#include "user/lib/types.h"

struct pprof;
struct report;

/* As Go names them. All have the same samples, but those of leaks, which have leaked blocks only. */
enum pprof_kind {
	PPROF_HEAP,   /* readers show live bytes first */
	PPROF_ALLOCS, /* all bytes ever allocated */
	PPROF_LEAKS,  /* leaked bytes */
	PPROF_OTLP,   /* for OpenTelemetry: the request that brings all of them, in place of profile.proto */
	NR_PPROF_KINDS
};

/* Begin a profile in @file, compressed. *@out is owned by the caller: pprof_end(). 0 or -ENOMEM. */
int pprof_new(struct pprof **out, FILE *file, enum pprof_kind kind) __must_check;

/* Add the processes of @r. Names are looked up, which may block on disk I/O. 0, -ENOMEM, or -errno of the file. */
int pprof_add(struct pprof *p, const struct report *r) __must_check;

/* Complete the file, and free @p. 0 or -errno. */
int pprof_end(struct pprof *p) __must_check;
