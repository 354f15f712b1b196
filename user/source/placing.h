/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which mapped files of a target get probes, and where: common to the sources that trace processes of this machine.
 * Each file is searched for allocators once. A source only puts probes in and takes them out (struct placing_ops).
 */
#pragma once

#include "call/note.h"
#include "user/probe/probe.h"
#include "user/target/target.h"

struct watched_code;

/* The purpose of a probe in a file. Probes are put in in this order, because no release may be missed. */
enum probe_point_kind {
	POINT_INTERNAL_CALL, /* a call of free that the C library makes for itself */
	POINT_FREE,	     /* entry of a function that releases */
	POINT_RETURN,	     /* entry of a function whose end is seen at its return address */
	POINT_RET,	     /* a ret instruction */
	POINT_ALLOC,	     /* entry of a function that allocates */
	POINT_END,	     /* _exit() of the C library, if BPF tells of the lives of processes */
	POINT_NOTE,	     /* a marker of the program; probe is the index of the marker */
	POINT_HOOK,	     /* where the dynamic linker reports changes */
	POINT_PTRACE,	     /* ptrace() of the C library; BPF only */
	POINT_EXIT,	     /* exit(); ptrace only, like the next four */
	POINT_CLONE,	     /* clone() of the C library */
	POINT_MASK,	     /* sigprocmask() or pthread_sigmask() of the C library */
	POINT_ACTION,	     /* sigaction() of the C library */
	POINT_LEAK_CHECK,    /* LeakSanitizer begins to look for leaks */
	NR_POINT_KINDS
};

struct probe_point {
	u64 vaddr; /* ELF virtual address */
	u32 probe; /* index of the probed function or marker among all of the source; of no meaning for POINT_HOOK */
	u32 kind; /* enum probe_point_kind */
};
/* A file and its probes, for all processes that map it. */
struct probed_file {
	bool is_known, is_scanned;
	bool is_left_out;		/* there was no room for its functions or markers */
	bool is_left;			/* placing_leave() */
	u16 machine;			/* EM_... */
	struct mapping code;		/* in one of the processes */
	const char *function_of_others; /* placing_look_for_others() */
	struct probe_list list;
	struct note_probe *notes;	    /* owned; its markers, note_places says where */
	u64 *note_places, *note_semaphores; /* owned; ELF virtual addresses; no semaphore is 0 */
	u32 nr_notes;
	u32 first_probe, first_note; /* index of its first function and marker */
	struct probe_point *points;  /* owned; sorted by kind */
	u32 nr_points;
};

/* put_in(): logged; calls in the file will not be seen. */
enum { PLACING_LEAVES_OUT = 1 };

/* The source's part. Functions return 0 or -errno; @ctx is the one of placing_init(). */
struct placing_ops {
	bool is_per_mapping; /* probes lie in mappings, not in files: each mapping of a file gets its own */
	bool has_semaphores; /* put_in() counts those of markers up */
	u32 max_probes;	     /* functions; and markers */

	/* @nr functions, the first one of index @first. */
	int (*add_probes)(void *ctx, u32 first, const struct call_probe *probes, u32 nr);
	/* @nr markers, the first one of index @first. */
	int (*add_notes)(void *ctx, u32 first, const struct note_probe *notes, u32 nr);
	/* A file is seen for the first time, also one that --omit names. May be NULL. */
	int (*new_file)(void *ctx, const struct module *m, struct elf *elf);
	/* Put the probes of @f, at least one, into @t, where @map maps the file. */
	int (*put_in)(void *ctx, const struct target *t, const struct mapping *map,
		      const struct probed_file *f, struct elf *elf);
	/* [@start, @end) is no longer mapped in @pid: probes in it are gone. Only with is_per_mapping. */
	int (*forget_range)(void *ctx, pid_t pid, taddr_t start, taddr_t end);
	/*
	 * Are the probes in [@start, @end), which is mapped in @pid, still there? Not if it was unmapped and came back
	 * to the same place. Only with is_per_mapping; NULL = they are.
	 */
	bool (*is_intact)(void *ctx, pid_t pid, taddr_t start, taddr_t end);
};

struct placing_options {
	struct probe_options probes;
	const char *const *omit; /* files without probes, by name or path, and NULL; or NULL; borrowed */
	const char *const
		*usdt;	/* "PROVIDER:NAME" of notes that are marks, too, and NULL; or NULL; borrowed */
	bool is_shared; /* probes in a file see the calls of all processes */
};

struct placing {
	const struct placing_ops *ops;
	void *ctx;
	struct placing_options options;
	struct probed_file *files; /* owned; by module id */
	size_t nr_files, max_files;
	struct placement *placements; /* owned */
	size_t nr_placements, max_placements;
	u32 nr_probes, nr_notes; /* functions and markers of all files */
	size_t nr_left_out;	 /* files without probes, because there was no room */
	const char *left_out;	 /* path of the last one; borrowed */
	u64 usdt_found;		 /* bits of options.usdt, of the first 64 */
	u64 omit_found;		 /* like it, of options.omit */
};

void placing_init(struct placing *p, const struct placing_ops *ops, void *ctx,
		  const struct placing_options *options);
void placing_fini(struct placing *p);

/*
 * The mappings of @t have been read: put probes into files that are new in it, and note allocators in @t. What can be
 * done only later (-EINPROGRESS of put_in) is done when the mappings are read again, target_read_again(). How many of
 * its files have no probes, because there is no room for more: logged. Or -ESRCH without a message (the process has
 * ended), or another -errno, logged.
 */
int placing_update(struct placing *p, struct target *t) __must_check;

/* Are all probes of @pid still there? If not, placing_update() puts them in again. */
bool placing_is_intact(const struct placing *p, pid_t pid);

/* @t has probes already, from its parent or because they are shared: note its allocators. 0 or -ENOMEM. */
int placing_note_allocators(const struct placing *p, struct target *t) __must_check;

/* @child has a copy of the memory of @parent, with the probes in it. 0 or -ENOMEM. */
int placing_copy(struct placing *p, pid_t parent, pid_t child) __must_check;

/* Log what options.usdt names and no file has, and what options.omit names and no mapping is. */
void placing_report_missing(const struct placing *p);

/* The shared probes of file @m are gone for good. */
void placing_leave(struct placing *p, const struct module *m);

void placing_keep(struct placing *p, bool *is_used); /* as keep_files of a source: those with probes stay */
/* The probes of @pid are gone, or are not its own any more: the next update puts them in again. */
void placing_forget(struct placing *p, pid_t pid);

/* Some places of probes in @t, for breakpoints of the kernel, into @out, which is all zero. */
void placing_watch(const struct placing *p, const struct target *t, struct watched_code *out);

/*
 * How many places of probes in @t, for breakpoints of the kernel, have the code of the file in memory again.
 * *@function names the first one, static or of the file's table. Places that cannot be read do not count.
 */
size_t placing_look(const struct placing *p, const struct target *t, const char **function);

/* Is @pc among the first instructions of a function that has a probe in @t, but for the first one? */
bool placing_is_at_start(const struct placing *p, const struct target *t, taddr_t pc);

/* Look for probes of others at our places. And: a function of @pid that had one; NULL = none. */
void placing_look_for_others(struct placing *p);
const char *placing_function_of_others(const struct placing *p, pid_t pid);
