/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where probes go in a file: its allocator functions, and for each the cheapest place that sees every call. */
#pragma once

#include "user/target/allocator.h"

struct elf;

/* One function to probe. Addresses are ELF virtual addresses. */
struct probe_site {
	u16 fn;			    /* row of the allocator table */
	const struct alloc_fn *row; /* borrowed; row number fn */
	u8 flags;		    /* enum probe_flag, call/probe.h */
	bool is_blurred;	    /* it has names of several families, or with and without an alignment */
	bool is_vague;		/* its names differ in arguments: a call does not show which one was meant */
	bool is_emulated;	/* the kernel emulates the instruction at place, without a single step */
	bool has_unseen_end;	/* some calls may end elsewhere than at rets */
	bool is_ifunc;		/* start is a resolver: ifunc_resolve() must find the function */
	u64 start, end;		/* of the function */
	u64 place;		/* of the probe at entry */
	u8 arg_at[5];		/* at the place, argument n is where argument arg_at[n] of a call is */
	u64 own_start, own_end; /* calls that return into this code are part of the request */
	u64 *rets;		/* owned; return instructions, where the end cannot be seen by a uretprobe */
	size_t nr_rets;
};

struct probe_list {
	const struct alloc_table *fns; /* borrowed; of the options */
	struct probe_site *sites;      /* owned; one for each address */
	size_t nr;
	const char *kind; /* "glibc", "jemalloc", ..., "custom"; NULL = no allocator in it */
	const char *
		own_kind; /* the allocator that has functions beside malloc's here (own_api.h); NULL = none */
	bool lacks_own;	  /* some of these have no probe */
	bool is_runtime;  /* its operators new and delete return the blocks of malloc, without a header */
	bool walks_stack; /* the allocator walks its own call stack, and would stop at a uretprobe */
	u64 linker_hook; /* the dynamic linker calls it when mappings change (_dl_debug_state); 0 = not in this file */
	u64 linker_state; /* says what the linker changes then (r_state of _r_debug); 0 = not known */
	u64 ptrace;	  /* ptrace(), if wants_tracers; 0 = not in this file */
	u64 end, end_len; /* _exit(), if wants_end; 0 = not in this file */
	/* __lsan_ignore_object, __lsan_disable, __lsan_enable; with wants_exec execve and its like; 0 = none */
	u64 marked[IS_AGENT ? 3 : 6];
	/*
	 * With wants_exits, else 0: exit(); clone(), sigprocmask(), pthread_sigmask() and sigaction() of a C library;
	 * and the functions of LeakSanitizer that look for leaks.
	 */
	u64 exit, clone, masks[2], action, leak_checks[2];
	/*
	 * Calls of free (site internal_site) that the C library makes for itself, without the PLT. When a thread ends,
	 * its caches release blocks that the program has freed long before.
	 */
	u64 *internal_calls; /* owned; addresses of the call instructions */
	size_t nr_internal_calls;
	size_t internal_site;
	size_t nr_skipped; /* functions that could not be probed; each was logged */
};

/* A custom allocator's function: --alloc. */
struct probe_custom {
	u16 fn;		    /* row of probe_options.fns */
	const char *object; /* only in files of this name; NULL = in any */
	bool is_found;	    /* a mapped file defines it */
};

struct probe_options {
	bool want_mmap;
	bool sees_system_calls; /* the kernel tells of mappings: the functions of the C library get no probes */
	bool want_cpp;		/* operators new and delete under their own names */
	bool has_return_places; /* calls whose ret instructions are not found are seen at their return address */
	bool rare_ends; /* with it: those of all calls are, because few calls are followed to their ends */
	bool wants_tracers; /* find ptrace() */
	bool wants_end;	    /* find _exit() */
	bool wants_exec;    /* find execve(), execveat() and fexecve() */
	bool wants_exits;   /* find exit(), clone() and the others of struct probe_list */
	bool is_partial; /* some files get no probes: a function that hands its work on may do so to one of those */
	bool only_workers; /* no probes in functions that have another probed one do the work */
	bool only_sampler; /* nor in any: notes tell of the blocks that programs sample (user/probe/own_sampler.h) */
	bool no_uretprobe; /* see the end of calls by probes on ret instructions (slower) */
	/* Borrowed for the life of each list; rows of own APIs are added. NULL: none are. */
	struct alloc_table *fns;
	struct probe_custom *custom; /* borrowed; is_found is set by probe_list_init() */
	size_t nr_custom;
};

/*
 * Find the allocator functions that @elf defines; @name is the file's name for messages and for the object of --alloc.
 * Only reads. *@out is owned by the caller: probe_list_fini(). 0, -ENOMEM, or -ENOTSUP for code that must not be
 * probed on this CPU. A file without allocators is no error: nr is 0.
 */
int probe_list_init(struct probe_list *out, struct elf *elf, const char *name,
		    const struct probe_options *options) __must_check;
void probe_list_fini(struct probe_list *list);

/*
 * Set the bits in @blurred of the functions of @list that have names of several families, or with and without an
 * alignment: mimalloc's free is its operator delete too, so a call does not show which one the program meant.
 */
void probe_list_note_blurred(const struct probe_list *list, u64 blurred[ALLOC_MAX_FNS / 64]);

/*
 * For IFUNC: call @fn for each slot of @elf's GOT that holds the address of the function @symbol, or without a name the
 * function that the resolver at @resolver (0 = in another file) has chosen. @fn returns nonzero to stop.
 */
int probe_got_slots(struct elf *elf, const char *symbol, u64 resolver, int (*fn)(void *ctx, u64 vaddr),
		    void *ctx) __must_check;

/*
 * The site of a function at @start whose address is known from elsewhere (IFUNC): fills in place, flags and rets like
 * probe_list_init(). 0 or -errno.
 */
int probe_site_init(struct probe_site *out, struct elf *elf, u16 fn, u64 start, u64 end,
		    const struct probe_options *options, const struct probe_list *list) __must_check;

/* Describe @site for the life of a call (call/life.h). */
struct call_probe probe_site_describe(const struct probe_site *site);
