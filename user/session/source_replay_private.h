/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A list of events in memory: user/session/source_replay_read.c makes it, user/session/source_replay.c delivers it. */
#pragma once

#include "user/session/kind_list.h"
#include "user/session/source_replay.h"

struct listed_process {
	struct target target;
	struct losses losses;
	bool is_paused;
	u32 image; /* number, from 1, of the name that its latest exec gave; 0 = none */
};

/* The head of each record of the stream; @bytes of the record follow, rounded up to 8. */
struct entry {
	u32 bytes;
	u32 process; /* index */
};

/* A record of losses, which is not delivered; its kind is 0. */
struct lost_record {
	struct event_header h;
	struct losses losses;
};

/* A marker is not delivered either. */
enum { MARK_RECORD = 1 };

struct mark_record {
	struct event_header h; /* flags: MARK_RECORD */
	u64 time_ns;
	char name[64];
};

/* The program of an exec. */
struct replay_image {
	char *comm, *exe; /* owned */
};

struct replay_source {
	struct listed_process **processes; /* owned, each too */
	size_t nr_processes;
	u64 *stream; /* owned; entries, each with its record */
	size_t nr_words, max_words;
	size_t next;		     /* word of the entry to deliver next */
	struct replay_image *images; /* owned; child_pid of an exec is a number in it, from 1 */
	size_t nr_images;
	struct kind_list kinds; /* of allocators */
	source_replay_mark_fn on_mark;
	void *mark_ctx;
};

static inline struct replay_source *replay_self(const struct source *s)
{
	return (struct replay_source *)(uintptr_t)s;
}

void source_replay_free(struct source *s);
