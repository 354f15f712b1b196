/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the BPF source, for user/source/source_bpf*.c only. */
#pragma once

#include "user/source/bystanders.h"
#include "user/source/call_count.h"
#include "user/source/copies.h"
#include "user/source/links.h"
#include "user/source/placing.h"
#include "user/source/programs.h"
#include "user/source/sample_pace.h"
#include "user/source/source.h"

/* Samples by the programs. */
struct bpf_samples {
	struct sample_pace pace;
	u64 nr;	      /* records since the last poll */
	u64 swept_ns; /* the last source_bpf_samples_poll() that looked for blocks of programs that have gone */
	bool has_gone;
};

struct bpf_source {
	struct source_options options;
	bool is_multi;	      /* uprobe_multi links */
	bool is_cookie_fixed; /* no cookies: each link has a load of its program */
	struct programs programs;
	struct programs late[PROGRAM_THREAD_EXIT]; /* each loaded for its first place; obj = NULL: not yet */
	bool walks_stacks; /* beside a taker: markers were found, or it has declined a process */
	struct source_config config;
	struct kernel_ring *ring;      /* owned */
	struct link_set *links;	       /* owned */
	struct unwind_tables *tables;  /* owned; NULL without stacks */
	struct alt_stacks *alt_stacks; /* owned; NULL where the kernel cannot list them */
	struct placing placing;
	struct copies copies;
	struct call_count count;
	struct linked_file *linked; /* owned; beside a taker */
	size_t nr_linked, max_linked;
	struct bpf_process *processes; /* owned */
	size_t nr_processes, max_processes;
	const struct sink *sink; /* during poll */
	int stats_fd;		 /* owned; the kernel measures the programs; -1 = it does not */
	struct probe_runs runs;	 /* that they had before */
	struct way_to_probe way;
	struct bpf_samples samples;
	bool is_shared; /* links see the calls of all processes, and the table of processes chooses */
	struct bystanders bystanders;
	u64 nr_overwritten; /* breakpoints that were found overwritten, of all processes */
	u64 nr_late;	    /* programs that began before the probes of a file of theirs were in */
};

/* Links of a file, which stay when a process unmaps it, and see it when it is back. */
struct linked_file {
	pid_t pid; /* whose calls they see; 0 = all */
	u32 module;
	bool has_calls, has_notes; /* allocator functions; all else */
};

/* A traced process, and the changes that its records have reported: mappings that are read now are not older. */
struct bpf_process {
	pid_t pid;
	u32 removals, execs, epoch;	/* as struct process_state */
	u32 nr_overwritten;		/* probes of its present program whose breakpoint is gone */
	u32 nr_copied;			/* breakpoints that it ran into, in copies of code */
	bool is_resting;		/* its probes are out: rest() */
	bool is_declined;		/* by the taker: its probes are breakpoints */
	bool has_trapped;		/* at one of these, which was told */
	bool is_image;			/* its present program began while it was traced, */
	bool is_late;			/* and before the probes of a file were in: it counts in late */
	taddr_t linker, linker_end;	/* its dynamic linker, with source_config.mapping */
	u64 exec_ns;			/* its present program began; 0 = before the trace */
	u64 overwritten, tracers, late; /* as struct losses; the first without nr_overwritten */
};

/* How its probes are put in: as links of BPF programs, or by a taker (user/source/probe_taker.h). */
extern const struct placing_ops bpf_place, bpf_place_for_taker;
void source_bpf_place_keep_files(struct source *source, bool *is_used);

/* update(), rest() and way() of the source. */
int source_bpf_update(struct source *source, struct target *t);
int source_bpf_rest(struct source *source, struct target *t, bool is_on);
enum source_way source_bpf_way(const struct source *source, pid_t pid);

/* Take all probes out that are for @pid alone: the next update puts them in again. */
void source_bpf_drop_probes(struct bpf_source *s, pid_t pid);

/*
 * System calls, for --mmap: choose their rows. The page behind the data of @pid, 0 = not known. The mappings of @t were
 * read. And: @record, or, of a system call, the event in *@out; NULL: the dynamic linker has made the call.
 */
struct mapping_rows source_bpf_mapping_rows(const struct source_options *options);
u64 source_bpf_mapping_brk(const struct bpf_source *s, pid_t pid);
void source_bpf_mapping_note(const struct bpf_source *s, const struct target *t);
const struct event_header *source_bpf_mapping_event(const struct bpf_source *s,
						    const struct event_header *record,
						    struct heap_event *out);

/* Load the programs, for samples if there are to be some. 0 or -errno, logged. And: a record has come; all have. */
int source_bpf_samples_load(struct bpf_source *s, u64 ring_bytes) __must_check;
void source_bpf_samples_see(struct bpf_source *s, const struct event_header *rec);
void source_bpf_samples_poll(struct bpf_source *s);

/* Load the program for places that are not in each trace, unless it is loaded. NULL: logged, and *@err is set. */
const struct programs *source_bpf_load(struct bpf_source *s, enum program which, int *err);

/* NULL: it is not known. */
struct bpf_process *source_bpf_find(const struct bpf_source *s, pid_t pid);

/* Has it breakpoints of the kernel? The probes of a taker are code of another kind. @known may be NULL. */
bool source_bpf_has_breakpoints(const struct bpf_source *s, const struct bpf_process *known);

/* Has @pid come to its end by a copy of code with a breakpoint of ours? Warns. And: trapped() of the source. */
void source_bpf_tell_of_copy(struct bpf_source *s, pid_t pid);
bool source_bpf_trapped(struct source *source, pid_t pid, pid_t tid);

/* Make tables for walks, in the kernel, through the code that @t has mapped now. 0 or -errno, logged. */
int source_bpf_update_tables(struct bpf_source *s, const struct target *t) __must_check;

/* The probes of @t are in: let the kernel's programs see at its end whether they still are. */
void source_bpf_watch_code(const struct bpf_source *s, const struct target *t);
