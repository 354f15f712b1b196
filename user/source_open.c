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

static int open_bpf(struct source **source, struct source_options *so, const struct options *o)
{
	struct caps caps;
	int err = source_bpf.probe(&caps);

	if (err) {
		caps_explain(&caps, o->command->name);
		return err;
	}
	if (!caps.is_uretprobe_safe)
		info("%s: this kernel kills programs under seccomp at uretprobes: probes on ret instructions "
		     "instead, which are slower",
		     o->command->name);
	err = source_bpf.create(source, so, &caps);
	if (err)
		error("%s: bpf: %s", o->command->name, strerror(-err));
	return err;
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
		.probes = { .want_mmap = o->want_mmap, .want_cpp = !o->no_cpp },
	};
	int err = list ? add_custom(list, &so, o) : -ENOMEM;

	if (!err)
		err = open_bpf(source, &so, o);
	if (err)
		return err;
	*ops = &source_bpf;
	*custom = take_ptr(list);
	return 0;
}
