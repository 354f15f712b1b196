/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where probes go in a file: its allocator functions, and for each the cheapest place that sees every call. */
#pragma once

#include "user/allocator.h"

struct elf;

/* One function to probe. Addresses are ELF virtual addresses. */
struct probe_site {
	u16 fn;			/* row of the allocator table */
	u8 flags;		/* enum probe_flag, bpf/maps.h */
	u8 families;		/* bits of enum alloc_family: of all names that the function has */
	bool is_emulated;	/* no single step at the place */
	bool has_unseen_end;	/* some calls may end elsewhere than at rets */
	bool is_ifunc;		/* start is a resolver: the function must be asked of the target */
	u64 start, end;		/* of the function */
	u64 place;		/* of the probe at entry */
	u8 arg_at[5];		/* at the place, argument n is where argument arg_at[n] of a call is */
	u64 own_start, own_end; /* calls that return into here are part of the request */
	u64 *rets;		/* owned; return instructions, where the end cannot be seen by a uretprobe */
	size_t nr_rets;
};

struct probe_list {
	struct probe_site *sites; /* owned; one for each address */
	size_t nr;
	const char *kind; /* "glibc", "jemalloc", ..., "custom"; NULL = no allocator in it */
	bool is_runtime;  /* its operators new and delete are a runtime's, which hand blocks on as they are */
	bool walks_stack; /* it asks for its own call stack, on which a uretprobe would end */
	u64 linker_hook;  /* where the dynamic linker tells of changes (_dl_debug_state), 0 = not in it */
	u64 linker_state; /* what it is about to change then (r_state of _r_debug), 0 = not known */
	/*
	 * Calls of its free (site internal_site) that the C library makes for itself, past the PLT: blocks that
	 * its caches give back when a thread ends, which the program has freed long before.
	 */
	u64 *internal_calls; /* owned; addresses of the call instructions */
	size_t nr_internal_calls;
	size_t internal_site;
	size_t nr_skipped; /* functions that could not be probed; each one was logged */
};

/* A custom allocator's function: --alloc. */
struct probe_custom {
	u16 fn;		    /* row made by alloc_fn_add() */
	const char *object; /* only in files of this name; NULL = in any */
};

struct probe_options {
	bool want_mmap;
	bool want_cpp;		/* operators new and delete under their own names */
	bool has_return_places; /* calls whose ends are not found are seen where they return to */
	bool no_uretprobe;	/* see the end of calls by probes on ret instructions (dear) */
	const struct probe_custom *custom;
	size_t nr_custom;
};

/*
 * Find the allocator functions that @elf defines; @name is the file's name for messages and --alloc's
 * object. Reads only. Owned by the caller: probe_list_fini(). 0, -ENOMEM, -ENOTSUP for code that must not be
 * probed on this CPU. No allocators is no error: nr is 0.
 */
int probe_list_init(struct probe_list *out, struct elf *elf, const char *name,
		    const struct probe_options *options) __must_check;
void probe_list_fini(struct probe_list *list);

/*
 * Slots of @elf's GOT that hold the address of the function @symbol, or, without a name, what the resolver
 * at @resolver (0 = in another file) has chosen; for IFUNC. Calls @fn for each.
 */
int probe_got_slots(struct elf *elf, const char *symbol, u64 resolver, int (*fn)(void *ctx, u64 vaddr),
		    void *ctx) __must_check;

/*
 * The site for a function at @start, whose address was found out otherwise (IFUNC): place, flags and
 * rets are filled in as probe_list_init() does. 0 or -errno.
 */
int probe_site_init(struct probe_site *out, struct elf *elf, u16 fn, u64 start, u64 end,
		    const struct probe_options *options, const struct probe_list *list) __must_check;
