/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that map memory (--mmap): what the BPF programs need to know, and whose calls do not count. */
#include <bpf/bpf.h>
#include <string.h>

#include "arch/cpu.h"
#include "fallback/code_memory.h"
#include "fallback/copied_code.h"
#include "user/lib/log.h"
#include "user/lib/maps.h"
#include "user/source/changed_code.h"
#include "user/source/source_bpf_private.h"
#include "user/target/allocator.h"

/* Programs that probes end: they run a copy of code with breakpoints, or return in another order than they call. */

/* The function with the place of a probe, in any process, from which @c was copied; NULL = none is alike. */
static const char *copied_find(const struct bpf_source *s, struct copied_code *c)
{
	const char *function = NULL;

	for (size_t i = 0; i < s->placing.nr_files; i++) {
		const struct probed_file *f = &s->placing.files[i];
		const char *found = f->nr_points ? changed_code_copied(f, c) : NULL;

		function = found ? found : function;
	}
	return function;
}

static void copied_count(struct bpf_source *s, struct bpf_process *known)
{
	known->nr_copied++;
	s->nr_overwritten++;
}

/* Has @pid come to its end by a copy of code with a breakpoint of ours, or by a return probe? */
void source_bpf_tell_of_copy(struct bpf_source *s, pid_t pid)
{
	struct bpf_process *known = source_bpf_find(s, pid);
	struct copied_code c = { .cpu = cpu_native(8), .nr = TRAP_CODE_BYTES };
	struct process_state p;
	const char *function;
	u32 key = pid;

	if (!known || known->has_trapped || bpf_map_lookup_elem(s->programs.processes_fd, &key, &p) ||
	    (!p.trap_pc && !p.has_bad_return) || !c.cpu)
		return;
	known->has_trapped = true;
	if (p.has_bad_return && source_bpf_has_breakpoints(s, known))
		warn("bpf: PID %d: the kernel sends it SIGILL, because calls of an allocator's function return in "
		     "another order than they began, as coroutines do that switch inside one: --backend inline and "
		     "--backend ptrace keep such programs alive",
		     pid);
	if (!p.trap_pc)
		return;
	c.addr = c.pc = p.trap_pc;
	memcpy(c.code, p.trap_code, sizeof(p.trap_code));
	function = copied_find(s, &c);
	if (!copied_code_is_known(&c))
		return;
	copied_count(s, known);
	warn("bpf: PID %d: ended by SIGTRAP: it had copied code with breakpoints of heaptap (%s), as programs do that "
	     "move their code to large pages or hook functions: use --backend ptrace",
	     pid, function);
}

bool source_bpf_has_breakpoints(const struct bpf_source *s, const struct bpf_process *known)
{
	return known && (!s->options.taker || known->is_declined);
}

bool source_bpf_trapped(struct source *source, pid_t pid, pid_t tid)
{
	struct bpf_source *s = (struct bpf_source *)source;
	struct bpf_process *known = source_bpf_find(s, pid);
	const struct cpu_memory memory = code_by_ptrace(tid);
	const struct cpu *cpu;
	const char *function;
	struct copied_code c;
	struct cpu_regs regs;

	if (!source_bpf_has_breakpoints(s, known) || cpu_of_thread(&cpu, tid) || cpu_regs_read(&regs, tid) ||
	    copied_code_read(&c, cpu, &regs, &memory))
		return false;
	function = copied_find(s, &c);
	if (copied_code_mend(&c, &regs, &memory) || cpu_regs_write(&regs, tid))
		return false;
	if (!known->nr_copied)
		warn("bpf: PID %d: it has copied code with breakpoints of heaptap (%s), which are taken out of the "
		     "copy: calls there are not seen",
		     pid, function);
	copied_count(s, known);
	return true;
}

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
