/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Take the records of a stream, wherever they are kept: checks, numbers that become names, the time. */
#pragma once

#include "user/stream/stream_names.h"
#include "user/stream/stream_read.h"

/* A stream of a recording or a connection. Begins with zeros, names, takers and reader; stream_names_fini(). */
struct stream_taker {
	struct stream_names names;
	/*
	 * Handlers by kind, of records as struct stream_handler gets them; ctx is that of names.owner. NULL: the owner
	 * needs no such records. Events have functions of names.fns. Losses, verdicts, threads, exec, fork and
	 * exit are of a process that the owner finds. 0 or -errno, see stream_refuse().
	 */
	int (*const *takers)(void *ctx, const void *rec);
	/* The mappings, or the allocators, of @t are others now. 0 or -errno. */
	int (*changed)(void *ctx, const struct target *t);
	struct stream_reader *reader; /* owned; made and freed by the owner */
	u64 nr_strays;		      /* events that were left out: their process is not there */
	u64 last_ns; /* the latest time of a record; that of the end is right whatever came before */
};

/* Take a record from the reader. A record of a process that is not there is left out or refused. 0 or -errno. */
int stream_take(struct stream_taker *t, enum stream_kind kind, const void *rec) __must_check;
