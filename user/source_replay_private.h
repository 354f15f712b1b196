/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a list of events is in memory: made by source_replay_read.c, delivered by source_replay.c. */
#pragma once

#include "user/options.h"
#include "user/source_replay.h"

struct process {
	struct target target;
	struct losses losses;
	bool is_paused;
	u32 image; /* of its latest exec: name, from 1; 0 = not told */
};

/* What stands before each record of the stream; then @bytes of the record, rounded up to 8. */
struct entry {
	u32 bytes;
	u32 process; /* index */
};

/* A record of the stream that is not delivered; its kind is no event's. */
struct lost_record {
	struct event_header h;
	struct losses losses;
};

/* The same: a marker. */
enum { MARK_RECORD = 1 };

struct mark_record {
	struct event_header h; /* flags: MARK_RECORD */
	u64 time_ns;
	char name[64];
};

/* What an exec became. */
struct image {
	char *comm, *exe; /* owned */
};

struct source {
	struct process **processes; /* owned, each too */
	size_t nr_processes;
	u64 *stream; /* owned; entries, each with its record */
	size_t nr_words, max_words;
	size_t next;	      /* word of the entry to deliver next */
	struct image *images; /* owned; an exec's child_pid is the number of its own, from 1 */
	size_t nr_images;
	struct option_list kinds; /* owned, with its strings: of allocators */
	source_replay_mark_fn on_mark;
	void *mark_ctx;
};

void source_replay_free(struct source *s);
