/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that map memory (--mmap): what the BPF programs need to know, and whose calls do not count. */
#include <string.h>

#include "user/lib/maps.h"
#include "user/source/source_bpf_private.h"
#include "user/target/allocator.h"

struct mapping_rows source_bpf_mapping_rows(const struct source_options *options)
{
	const struct alloc_table *fns = options->probes.fns;

	/* The kernel does not know of the requests that a taker sees: an allocator's own calls would count. */
	if (!options->probes.want_mmap || options->taker)
		return (struct mapping_rows){ 0 };
	return (struct mapping_rows){ .mmap_fn = alloc_fn_find(fns, "mmap"),
				      .munmap_fn = alloc_fn_find(fns, "munmap"),
				      .mremap_fn = alloc_fn_find(fns, "mremap"),
				      .brk_fn = alloc_fn_find(fns, "kernel:brk") };
}

u64 source_bpf_mapping_brk(const struct bpf_source *s, pid_t pid)
{
	struct maps_reader *r;
	struct map_line line;
	u64 brk = 0;

	if (!s->config.mapping.mmap_fn || maps_open(&r, pid))
		return 0;
	while (!brk && maps_next(r, &line) == 1)
		brk = strcmp(line.path, "[heap]") ? 0 : line.end;
	maps_close(r);
	return brk;
}

void source_bpf_mapping_note(const struct bpf_source *s, const struct target *t)
{
	struct bpf_process *known = source_bpf_find(s, t->pid);

	if (!s->config.mapping.mmap_fn || !known)
		return;
	known->linker = known->linker_end = 0;
	for (size_t i = 0; i < t->maps.nr; i++) {
		const struct mapping *map = &t->maps.maps[i];
		u32 id = map->module ? map->module->id : (u32)-1;

		/* musl's is its C library, too, and has the functions of an allocator. */
		if (id >= s->placing.nr_files || !s->placing.files[id].list.linker_hook ||
		    s->placing.files[id].list.nr)
			continue;
		known->linker = map->start;
		known->linker_end = map->end;
	}
}

const struct event_header *source_bpf_mapping_event(const struct bpf_source *s,
						    const struct event_header *record, struct heap_event *out)
{
	const struct mapping_rows *rows = &s->config.mapping;
	const struct bpf_process *known;

	if (!rows->mmap_fn || (record->kind != EVENT_ALLOC && record->kind != EVENT_FREE) ||
	    (record->fn != rows->mmap_fn && record->fn != rows->munmap_fn && record->fn != rows->brk_fn))
		return record;
	memcpy(out, record, sizeof(*out));
	known = source_bpf_find(s, (pid_t)record->pid);
	/* Where the call was made. */
	if (known && out->alignment - known->linker < known->linker_end - known->linker)
		return NULL;
	out->alignment = 0;
	return &out->h;
}
