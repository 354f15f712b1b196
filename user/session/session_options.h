/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of a session. The command line fills them in (user/cli/options_rooms.c); strings and lists are borrowed. */
#pragma once

#include "user/names/symbolize.h"
#include "user/source/source_open.h"
#include "user/source/tuning.h"
#include "user/stream/recorder.h"
#include "user/stream/span.h"

/* Which reports have leak verdicts. */
enum session_scans { SCAN_AT_END, SCAN_ALWAYS, SCAN_NEVER };

/* How leak verdicts are found, and what they show. */
struct verdict_options {
	u64 max_pause_ns;  /* 0 = as it suits the command */
	u32 snapshot;	   /* enum snapshot_way */
	u32 nr_jobs;	   /* threads that read memory; 0 = one for each CPU */
	u64 max_copy;	   /* bytes of a copy for it; 0 = what there is room for */
	u64 pointer_mask;  /* bits of a word that make an address; 0 = all */
	bool unaligned;	   /* look for pointers at every byte */
	u32 leaks;	   /* enum leak_kinds */
	u32 nr_whys;	   /* callers with an example of who holds their blocks */
	u64 why_addr;	   /* a block to show the holder of; 0 = none */
	u32 nr_samples;	   /* leaked blocks of each caller to show */
	u32 content_bytes; /* of each */
};

/* Rules of --fail-on. */
struct fail_rules {
	bool on_definite;  /* at least @bytes are lost for sure */
	bool on_errors;	   /* a release was wrong */
	bool spares_older; /* of these, blocks from before the trace do not count */
	u32 growth;	   /* the process grew by so many tenths of a percent; 0 = not asked for */
	u64 bytes;
};

static inline bool fail_rules_any(const struct fail_rules *r)
{
	return r->on_definite || r->on_errors || r->growth;
}

struct session_options {
	const char *command; /* its name, for messages: "run" */
	struct source_choice source;
	struct recorder_options recorder;
	struct tuning tuning; /* that the session begins with */
	u32 scan;	      /* enum session_scans */
	struct verdict_options verdict;
	struct fail_rules fail;
	const struct suppress_list *suppress; /* NULL = none */
	bool no_own_rules; /* leave out the suppressions that programs have in themselves */
	u64 stop_after;	   /* allocations; 0 = no limit */
	struct symbolizer_options names;
	u64 max_memory;		    /* bytes, for all of heaptap; 0 = session_default_memory() */
	bool start_paused;	    /* allocations count from the first HEAPTAP_RESUME on */
	const struct span *between; /* of a recording, only what was allocated then; NULL = all */
	bool keeps_place;	    /* session_go_on() may be called */
	bool wants_tape;	    /* a report shows events: heap_keep_tape() */
	bool wants_slices;	    /* a report shows parts of the time: heap_keep_slices() */
	const char *wrappers;	    /* names of functions that pass on blocks: wrappers_new() */
	bool wants_residence;	    /* reports show the resident memory */
	bool shows_progress;	    /* while a recording is read, or a verdict found */
	/* Is @pid, a process of source.chosen, wanted? It may have ended. NULL = each is. */
	bool (*is_chosen)(void *ctx, pid_t pid);
	void *chosen_ctx;	   /* borrowed */
	bool (*is_unwanted)(void); /* break verdicts off? Called in any thread. NULL = no */
};

/* Why a session of @o cannot show sampled blocks only. NULL: it can. */
const char *session_needs_all(const struct session_options *o);
