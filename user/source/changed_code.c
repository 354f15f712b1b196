/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares functions in a target's memory with the file that they come from. */
#include "user/source/changed_code.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "arch/insn.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/proc_memory.h"

enum { MAX_BYTES = 128 };

/* x86's int3, arm64's brk: a breakpoint of ours in another trace, or of a debugger. */
static size_t breakpoint_len(u16 machine, const u8 *code)
{
	if (machine == EM_AARCH64)
		return code[3] == 0xd4 && (code[2] & 0xe0) == 0x20 && !(code[0] & 0x1f) ? 4 : 0;
	return code[0] == 0xcc ? 1 : 0;
}

static bool is_same(u16 machine, const u8 *memory, const u8 *file, size_t len)
{
	size_t step = machine == EM_AARCH64 ? 4 : 1;

	for (size_t i = 0; i + step <= len; i += step)
		if (memcmp(memory + i, file + i, step) && !breakpoint_len(machine, memory + i))
			return false;
	return true;
}

/* Bytes of the instruction at @place in the file. One that cannot be decoded counts as one byte. */
static size_t insn_len(const struct elf *elf, u64 place)
{
	u8 code[INSN_MAX_LENGTH];
	struct insn insn;

	if (elf_read_vaddr(elf, place, code, sizeof(code)) ||
	    insn_decode(&insn, elf->machine, place, code, sizeof(code)))
		return 1;
	return insn.length;
}

/* Compares code from @start up to the end of the instruction at @place. Unreadable code counts as unchanged. */
static bool is_unchanged(const struct proc_memory *mem, const struct mapping *map, const struct elf *elf,
			 u64 start, u64 place)
{
	u8 memory[MAX_BYTES], file[MAX_BYTES];
	size_t len;

	/* Far from the entry only the instruction itself is compared. */
	if (place - start > MAX_BYTES - INSN_MAX_LENGTH)
		start = place;
	len = place - start + insn_len(elf, place);
	if (elf_read_vaddr(elf, start, file, len) ||
	    proc_memory_read(mem, start + map->bias, memory, len) != (ssize_t)len)
		return true;
	return is_same(elf->machine, memory, file, len);
}

const char *changed_code_find(const struct target *t, const struct mapping *map, const struct probed_file *f,
			      const struct elf *elf)
{
	struct proc_memory mem;
	const char *changed = NULL;

	if (proc_memory_open(&mem, t->pid))
		return NULL;
	for (size_t i = 0; !changed && i < f->list.nr; i++) {
		const struct probe_site *site = &f->list.sites[i];
		bool is_ours = is_unchanged(&mem, map, elf, site->start, site->place);

		for (size_t k = 0; is_ours && k < site->nr_rets; k++)
			is_ours = is_unchanged(&mem, map, elf, site->rets[k], site->rets[k]);
		if (!is_ours)
			changed = site->row->name;
	}
	proc_memory_close(&mem);
	return changed;
}

/* A search for breakpoints in one mapping. */
struct breakpoint_search {
	const struct proc_memory *mem;
	const struct mapping *map;
	const struct elf *elf;
	const char *function; /* with the first breakpoint */
	size_t nr;
};

static void search_place(struct breakpoint_search *s, u64 place, const char *function)
{
	const size_t len = s->elf->machine == EM_AARCH64 ? 4 : 1;
	const taddr_t addr = place + s->map->bias;
	u8 memory[4], file[4];

	if (addr < s->map->start || addr + len > s->map->end || elf_read_vaddr(s->elf, place, file, len) ||
	    proc_memory_read(s->mem, addr, memory, len) != (ssize_t)len)
		return;
	if (!memcmp(memory, file, len) || !breakpoint_len(s->elf->machine, memory))
		return;
	if (!s->nr++)
		s->function = function;
}

size_t changed_code_breakpoints(const struct proc_memory *mem, const struct mapping *map,
				const struct probe_list *list, const struct elf *elf, const char **function)
{
	struct breakpoint_search s = { .mem = mem, .map = map, .elf = elf };

	for (size_t i = 0; i < list->nr; i++) {
		const struct probe_site *site = &list->sites[i];

		/* The place is not known from the file alone. */
		if (site->is_ifunc)
			continue;
		search_place(&s, site->place, site->row->name);
		for (size_t k = 0; k < site->nr_rets; k++)
			search_place(&s, site->rets[k], site->row->name);
	}
	for (size_t i = 0; i < list->nr_internal_calls; i++)
		search_place(&s, list->internal_calls[i], "free");
	if (list->linker_hook)
		search_place(&s, list->linker_hook, "_dl_debug_state");
	*function = s.function;
	return s.nr;
}

/* Is the code at @vaddr that of the file? More bytes than a breakpoint has: others may be mapped there by now. */
static bool is_of_file(const struct proc_memory *mem, const struct mapping *map, u64 vaddr)
{
	u8 memory[4], file[4];
	const taddr_t addr = vaddr + map->bias;

	return addr >= map->start && addr + sizeof(memory) <= map->end &&
	       proc_memory_read(mem, addr, memory, sizeof(memory)) == (ssize_t)sizeof(memory) &&
	       pread(map->module->fd, file, sizeof(file), (off_t)(addr - map->start + map->file_offset)) ==
		       (ssize_t)sizeof(file) &&
	       !memcmp(memory, file, sizeof(memory));
}

static const char *point_name(const struct probed_file *f, const struct probe_point *point)
{
	static const char *const others[NR_POINT_KINDS] = {
		[POINT_NOTE] = "a marker", [POINT_HOOK] = "_dl_debug_state",
		[POINT_PTRACE] = "ptrace", [POINT_EXIT] = "exit",
		[POINT_CLONE] = "clone",   [POINT_LEAK_CHECK] = "__lsan_do_leak_check",
	};

	return others[point->kind] ? others[point->kind]
				   : f->list.sites[point->probe - f->first_probe].row->name;
}

size_t changed_code_overwritten(const struct proc_memory *mem, const struct mapping *map,
				const struct probed_file *f, const char **function)
{
	size_t nr = 0;

	for (u32 i = 0; i < f->nr_points; i++) {
		const struct probe_point *point = &f->points[i];
		bool is_known = false;

		if (!is_of_file(mem, map, point->vaddr))
			continue;
		for (u32 k = 0; k < i && !is_known; k++)
			is_known = f->points[k].vaddr == point->vaddr;
		if (!is_known && !nr++)
			*function = point_name(f, point);
	}
	return nr;
}
