/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From options to a source that is ready. */
#include "user/source/source_open.h"

#include <errno.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/source/inline_limits.h"
#include "user/source/source.h"
#include "user/target/alloc_spec.h"

/* Rows of the allocator table for --alloc. */
static int add_custom(struct probe_custom *custom, struct alloc_table *fns, struct source_options *so,
		      const struct source_choice *c)
{
	so->probes.fns = fns;
	so->probes.custom = custom;
	for (size_t i = 0; i < c->nr_allocs; i++) {
		size_t fn = alloc_fn_count(fns);
		int err = alloc_spec_add(fns, &c->allocs[i]);

		if (err)
			return err;
		for (; fn < alloc_fn_count(fns); fn++)
			custom[so->probes.nr_custom++] =
				(struct probe_custom){ .fn = fn, .object = c->allocs[i].object };
	}
	return 0;
}

/* Only code in the program, ours or its own, leaves out calls before they cost anything. */
static void source_open_tell_of_samples(const struct source_choice *c, const char *backend)
{
	if (!IS_AGENT && c->sample_bytes && !c->tells_samples)
		info("%s: --sample by %s: each call is stopped all the same; only its record and stack are spared",
		     c->command, backend);
}

/* @err: the result of source_bpf.probe(). */
static int open_bpf(struct source **source, struct source_options *so, const struct source_choice *c,
		    const struct caps *caps, int err)
{
	if (err) {
		caps_explain(caps, c->command);
		return err;
	}
	source_open_tell_of_samples(c, "BPF");
	if (!caps->is_uretprobe_safe)
		info("%s: this kernel kills programs under seccomp at uretprobes: probes on ret instructions "
		     "instead, which are slower",
		     c->command);
	err = source_bpf.create(source, so, caps);
	if (err && err != -EOPNOTSUPP)
		error("%s: bpf: %s", c->command, strerror(-err));
	return err;
}

static int open_ptrace(struct source **source, struct source_options *so, const struct source_choice *c)
{
	struct caps caps;
	int err;

	if (source_ptrace.probe(&caps)) {
		error("%s: ptrace: %s", c->command, caps.reason);
		return -EOPNOTSUPP;
	}
	source_open_tell_of_samples(c, "ptrace");
	err = source_ptrace.create(source, so, &caps);
	if (err)
		error("%s: ptrace: %s", c->command, strerror(-err));
	return err;
}

static int open_inline(struct source **source, const struct source_ops **ops, struct source_options *so,
		       const struct source_choice *c)
{
	struct caps caps, traced;
	int err = source_inline.probe(&caps);

	*ops = &source_inline;
	if (!IS_AGENT && err && !source_inline_traced.probe(&traced)) {
		*ops = &source_inline_traced;
		caps = traced;
		err = 0;
	}
	if (err) {
		error("%s: inline: %s", c->command, caps.reason);
		return -EOPNOTSUPP;
	}
	err = (*ops)->create(source, so, &caps);
	if (err && err != -EOPNOTSUPP)
		error("%s: inline: %s", c->command, strerror(-err));
	return err;
}

bool source_forbids_code(void)
{
	const char *never = getenv("HEAPTAP_NO_CODE");

	return never && *never;
}

static bool may_put_code(const struct source_choice *c)
{
	return !IS_AGENT && c->backend == BACKEND_AUTO && c->code != CODE_NEVER && !c->tells_samples &&
	       !source_forbids_code();
}

/* Why the inline source must not be tried where nobody asks for it. NULL: it may be. */
static const char *reason_against_code(const struct source_choice *c, const struct source_ops *ops,
				       const struct source_options *so, const struct caps *caps)
{
	/* Only their ptracer stops children before their first instruction. */
	if (c->max_followed && ops == &source_inline && !so->stops_at_maps &&
	    (!c->joins_later || c->sample_bytes))
		return "it follows children";
	return inline_limits_here(caps, c->code == CODE_FIRST);
}

/* 0: the inline source @wanted is open. Else it is for another one. */
static int try_inline(struct source **source, const struct source_ops **ops, const struct source_ops *wanted,
		      struct source_options *so, const struct source_choice *c, const struct caps *caps)
{
	struct source_options inlined = *so;
	const char *why = reason_against_code(c, wanted, so, caps);
	int err;

	inlined.is_auto = true;
	/* Nothing is to be measured first where breakpoints are served by ptrace, or where blocks are sampled. */
	inlined.begins_by_bpf = c->code == CODE_LATER && wanted == &source_inline && !c->sample_bytes;
	inlined.max_cost = c->max_cost;
	inlined.joins_later = c->joins_later && inlined.begins_by_bpf;
	inlined.stops_at_maps |= inlined.joins_later;
	err = why ? -EOPNOTSUPP : wanted->create(source, &inlined, caps);
	if (!err)
		*ops = wanted;
	else if (wanted != &source_inline || c->code == CODE_LATER)
		debug("auto: without inline: %s", why ? why : strerror(-err));
	else
		info("auto: bpf, which takes longer than inline: %s", why ? why : strerror(-err));
	return err;
}

/* There is no BPF here. Unless something is asked for: inline where that may be and works, else ptrace. */
static int open_without_bpf(struct source **source, const struct source_ops **ops, struct source_options *so,
			    const struct source_choice *c, const struct caps *caps)
{
	struct caps traced;

	if (may_put_code(c) && !source_inline_traced.probe(&traced) &&
	    !try_inline(source, ops, &source_inline_traced, so, c, &traced)) {
		debug("%s: without BPF: %s", c->command, caps->reason);
		return 0;
	}
	if (c->backend == BACKEND_AUTO)
		info("%s: by ptrace, which is slower: %s", c->command, caps->reason);
	*ops = &source_ptrace;
	return open_ptrace(source, so, c);
}

/* Unless something is asked for: inline where that may be and works, else BPF where that works, else ptrace. */
static int open_any(struct source **source, const struct source_ops **ops, struct source_options *so,
		    const struct source_choice *c)
{
	struct caps caps;
	int err;

	if (IS_AGENT) {
		*ops = &source_ptrace;
		return open_ptrace(source, so, c);
	}
	if (c->backend == BACKEND_INLINE)
		return open_inline(source, ops, so, c);
	err = c->backend == BACKEND_PTRACE ? -EOPNOTSUPP : source_bpf.probe(&caps);
	/* Only the kernel sees system calls that are not made by the C library. */
	if (!err && !c->want_mmap && may_put_code(c) &&
	    !try_inline(source, ops, &source_inline, so, c, &caps))
		return 0;
	if (err && c->backend != BACKEND_BPF)
		return open_without_bpf(source, ops, so, c, &caps);
	*ops = &source_bpf;
	return open_bpf(source, so, c, &caps, err);
}

int source_open(struct source **source, const struct source_ops **ops, struct probe_custom **custom,
		struct alloc_table *fns, const struct source_choice *c, bool is_launch)
{
	auto_free struct probe_custom *list = calloc(ALLOC_MAX_FNS, sizeof(*list));
	struct source_options so = {
		.depth = c->depth,
		.ring_bytes = c->ring_bytes,
		.sample_bytes = IS_AGENT ? 0 : c->sample_bytes,
		.adapts_samples = !IS_AGENT && c->adapts_samples,
		.omit = c->omit,
		.usdt = c->usdt,
		.chosen = c->chosen,
		.stops_at_maps = is_launch || c->joins_targets,
		.stops_at_checks = c->stops_at_checks,
		.wants_end = c->wants_end,
		.drops_when_full = c->on_full == ON_FULL_DROP,
		.max_followed = c->max_followed,
		.follows_later = c->joins_targets,
		.want_free_stacks = c->check == CHECK_ALWAYS || (c->check == CHECK_STARTED && is_launch),
		/* The bytes of an operator are those of the malloc inside it. */
		.probes = { .want_mmap = c->want_mmap,
			    .want_cpp = !c->no_cpp,
			    .wants_exec = c->wants_exec,
			    .only_workers = !IS_AGENT && c->sample_bytes,
			    .only_sampler = !IS_AGENT && c->tells_samples },
	};
	const struct source_ops *chosen;
	int err = list ? add_custom(list, fns, &so, c) : -ENOMEM;

	if (err)
		error("%s: %s", c->command, strerror(-err));
	else
		err = open_any(source, &chosen, &so, c);
	if (err)
		return err;
	if (!IS_AGENT && c->want_mmap && chosen != &source_bpf)
		info("%s: --mmap: by the functions of the C library; raw system calls and brk are seen by BPF alone",
		     c->command);
	*ops = chosen;
	*custom = take_ptr(list);
	return 0;
}

size_t source_report_missing(const struct probe_custom *custom, const struct alloc_table *fns,
			     const char *command)
{
	size_t nr = 0;

	for (const struct probe_custom *c = custom; c && c->fn; c++) {
		if (c->is_found)
			continue;
		nr++;
		if (c->object)
			error("%s: --alloc: no function '%s' in any mapped file called %s: its calls were not seen",
			      command, alloc_fn(fns, c->fn)->symbol, c->object);
		else
			error("%s: --alloc: no function '%s' in any mapped file: its calls were not seen",
			      command, alloc_fn(fns, c->fn)->symbol);
	}
	return nr;
}
