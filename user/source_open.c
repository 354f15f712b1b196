/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From options to a source that is ready. */
#include "user/source_open.h"

#include <errno.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"

/* Rows of the allocator table for --alloc. */
static int add_custom(struct probe_custom *custom, struct source_options *so, const struct options *o)
{
	so->probes.custom = custom;
	for (size_t i = 0; i < o->nr_allocs; i++) {
		size_t fn = alloc_fn_count();
		int err = alloc_spec_add(&o->allocs[i]);

		if (err)
			return err;
		for (; fn < alloc_fn_count(); fn++)
			custom[so->probes.nr_custom++] =
				(struct probe_custom){ .fn = fn, .object = o->allocs[i].object };
	}
	return 0;
}

/* @err: what probing it has said. */
static int open_bpf(struct source **source, struct source_options *so, const struct options *o,
		    const struct caps *caps, int err)
{
	if (err) {
		caps_explain(caps, o->command->name);
		return err;
	}
	if (!caps->is_uretprobe_safe)
		info("%s: this kernel kills programs under seccomp at uretprobes: probes on ret instructions "
		     "instead, which are slower",
		     o->command->name);
	err = source_bpf.create(source, so, caps);
	if (err)
		error("%s: bpf: %s", o->command->name, strerror(-err));
	return err;
}

static int open_ptrace(struct source **source, struct source_options *so, const struct options *o)
{
	struct caps caps;
	int err;

	if (source_ptrace.probe(&caps)) {
		error("%s: ptrace: %s", o->command->name, caps.reason);
		return -EOPNOTSUPP;
	}
	err = source_ptrace.create(source, so, &caps);
	if (err)
		error("%s: ptrace: %s", o->command->name, strerror(-err));
	return err;
}

/* BPF where it works, unless something else is asked for. */
static int open_any(struct source **source, const struct source_ops **ops, struct source_options *so,
		    const struct options *o)
{
	struct caps caps;
	int err = o->backend == BACKEND_PTRACE ? -EOPNOTSUPP : source_bpf.probe(&caps);

	if (!err || o->backend == BACKEND_BPF) {
		*ops = &source_bpf;
		return open_bpf(source, so, o, &caps, err);
	}
	if (o->backend == BACKEND_AUTO)
		info("%s: by ptrace, which is slower: %s", o->command->name, caps.reason);
	*ops = &source_ptrace;
	return open_ptrace(source, so, o);
}

int source_open(struct source **source, const struct source_ops **ops, struct probe_custom **custom,
		const struct options *o, bool is_launch)
{
	auto_free struct probe_custom *list = calloc(ALLOC_MAX_FNS, sizeof(*list));
	struct source_options so = {
		.depth = o->depth,
		.ring_bytes = o->ring_bytes,
		.omit = o->omit.items,
		.stops_at_maps = is_launch,
		.max_followed = o->follow ? o->max_procs : 0,
		.want_free_stacks = o->check == CHECK_ALWAYS || (o->check == CHECK_STARTED && is_launch),
		.probes = { .want_mmap = o->want_mmap, .want_cpp = !o->no_cpp },
	};
	const struct source_ops *chosen;
	int err = list ? add_custom(list, &so, o) : -ENOMEM;

	if (err)
		error("%s: %s", o->command->name, strerror(-err));
	else
		err = open_any(source, &chosen, &so, o);
	if (err)
		return err;
	*ops = chosen;
	*custom = take_ptr(list);
	return 0;
}
