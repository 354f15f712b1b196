/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares functions in a target's memory with the file that they come from. */
#include "user/source/changed_code.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/insn.h"
#include "bpf/maps.h"
#include "fallback/copied_code.h"
#include "user/inject/left.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/lib/maps.h"
#include "user/lib/proc_memory.h"

enum { MAX_BYTES = 128, OPCODE_INT3 = 0xcc, OPCODE_CALL = 0xe8, CALL_BYTES = 5 };

/* Code of a target beside that of its file. */
struct code_pair {
	pid_t pid;
	u16 machine;
	taddr_t addr;
	const u8 *memory, *file;
	size_t len;
};

/* x86's int3, arm64's brk: a breakpoint of ours in another trace, or of a debugger. */
static size_t breakpoint_len(u16 machine, const u8 *code)
{
	if (machine == EM_AARCH64)
		return code[3] == 0xd4 && (code[2] & 0xe0) == 0x20 && !(code[0] & 0x1f) ? 4 : 0;
	return code[0] == OPCODE_INT3 ? 1 : 0;
}

/* No program can give a mapping of its own this name. */
static bool is_in_trampoline(pid_t pid, taddr_t addr)
{
	struct maps_reader *r;
	struct map_line line;
	bool is_in = false;

	if (maps_open(&r, pid))
		return false;
	while (!is_in && maps_next(r, &line) == 1)
		is_in = addr >= line.start && addr < line.end && !strcmp(line.path, MAPS_UPROBES_TRAMPOLINE);
	maps_close(r);
	return is_in;
}

/*
 * Linux 6.18 writes a call to its trampoline over a nop of five bytes under a uprobe, after the first trap there. The
 * first byte is a breakpoint meanwhile.
 */
static bool is_kernels_call(const struct code_pair *c, size_t at)
{
	static const u8 long_nop[CALL_BYTES] = { 0x0f, 0x1f, 0x44, 0, 0 };
	const u8 *memory = c->memory + at;
	s32 distance;

	if (c->machine != EM_X86_64 || at + CALL_BYTES > c->len ||
	    memcmp(c->file + at, long_nop, sizeof(long_nop)) ||
	    (memory[0] != OPCODE_CALL && memory[0] != OPCODE_INT3))
		return false;
	memcpy(&distance, memory + 1, sizeof(distance));
	return is_in_trampoline(c->pid, c->addr + at + CALL_BYTES + (u64)(s64)distance);
}

/* Bytes from @at on that a tracer has written over others. */
static size_t written_len(const struct code_pair *c, size_t at)
{
	return is_kernels_call(c, at) ? CALL_BYTES : breakpoint_len(c->machine, c->memory + at);
}

static bool changed_code_is_same(const struct code_pair *c)
{
	size_t step = c->machine == EM_AARCH64 ? 4 : 1, written;

	for (size_t i = 0; i + step <= c->len; i += step) {
		if (!memcmp(c->memory + i, c->file + i, step))
			continue;
		written = written_len(c, i);
		if (!written)
			return false;
		i += written - step;
	}
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
	struct code_pair c = { .pid = mem->pid, .machine = elf->machine, .memory = memory, .file = file };
	size_t len;

	/* Far from the entry only the instruction itself is compared. */
	if (place - start > MAX_BYTES - INSN_MAX_LENGTH)
		start = place;
	len = place - start + insn_len(elf, place);
	if (elf_read_vaddr(elf, start, file, len) ||
	    proc_memory_read(mem, start + map->bias, memory, len) != (ssize_t)len)
		return true;
	c.addr = start + map->bias;
	c.len = len;
	return changed_code_is_same(&c);
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

/* Is it code of a heaptap? Then that is told. */
static bool tell_of_heaptap(const struct target *t)
{
	pid_t owner = 0;
	enum inject_left left = IS_AGENT ? INJECT_LEFT_NOTHING : inject_find_left(t->pid, &owner);

	if (left == INJECT_LEFT_NOTHING)
		return false;
	if (left == INJECT_LEFT_IN_USE)
		error("%s (pid %d): another heaptap (PID %d) traces it by code inside it: stop that one first; "
		      "'heaptap scan %d' asks it for a verdict",
		      t->comm, (int)t->pid, (int)owner, (int)t->pid);
	else if (left == INJECT_LEFT_UNKNOWN)
		error("%s (pid %d): code of another version of heaptap is inside it: that version takes it out",
		      t->comm, (int)t->pid);
	else
		error("%s (pid %d): a killed heaptap has left code inside it: 'heaptap attach --backend inline -t 1s "
		      "%d' takes it out",
		      t->comm, (int)t->pid, (int)t->pid);
	return true;
}

bool changed_code_is_in_use(const struct target *t)
{
	pid_t owner;

	return inject_find_left(t->pid, &owner) == INJECT_LEFT_IN_USE && tell_of_heaptap(t);
}

int changed_code_refuse(const struct target *t, const struct mapping *map, const struct probed_file *f,
			const struct elf *elf)
{
	const char *function = changed_code_find(t, map, f, elf);

	if (!function)
		return 0;
	if (!target_still_maps(t, map))
		return -EINPROGRESS;
	if (tell_of_heaptap(t))
		return -EOPNOTSUPP;
	error("probe: %s: PID %d: %s was changed in memory (hooked?), and a probe would run the code of the file: "
	      "use --backend ptrace",
	      map->module->path, t->pid, function);
	return -EOPNOTSUPP;
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
	u8 memory[CALL_BYTES], file[CALL_BYTES];
	struct code_pair c = { s->mem->pid, s->elf->machine, addr, memory, file, CALL_BYTES };

	if (addr < s->map->start || addr + len > s->map->end || elf_read_vaddr(s->elf, place, file, len) ||
	    proc_memory_read(s->mem, addr, memory, len) != (ssize_t)len)
		return;
	if (!memcmp(memory, file, len))
		return;
	if (!breakpoint_len(s->elf->machine, memory) &&
	    (elf_read_vaddr(s->elf, place, file, c.len) ||
	     proc_memory_read(s->mem, addr, memory, c.len) != (ssize_t)c.len || !is_kernels_call(&c, 0)))
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

/* The first bytes in the file of the code at @vaddr. More bytes than a breakpoint has. */
static bool read_file_code(const struct mapping *map, u64 vaddr, u32 *code)
{
	const taddr_t addr = vaddr + map->bias;

	return addr >= map->start && addr + sizeof(*code) <= map->end &&
	       pread(map->module->fd, code, sizeof(*code), (off_t)(addr - map->start + map->file_offset)) ==
		       (ssize_t)sizeof(*code);
}

/* The first bytes of the code at @vaddr in memory and in the file. False: they cannot be read. */
static bool changed_code_read_both(const struct proc_memory *mem, const struct mapping *map, u64 vaddr,
				   u32 *memory, u32 *file)
{
	return read_file_code(map, vaddr, file) &&
	       proc_memory_read(mem, vaddr + map->bias, memory, sizeof(*memory)) == (ssize_t)sizeof(*memory);
}

/* Is the code at @vaddr that of the file? Other memory may be mapped there by now. */
static bool is_of_file(const struct proc_memory *mem, const struct mapping *map, u64 vaddr)
{
	u32 memory, file;

	return changed_code_read_both(mem, map, vaddr, &memory, &file) && memory == file;
}

/* Is there a breakpoint at @vaddr that the file of @f does not have? x86's is one byte. */
static bool changed_code_has_breakpoint(const struct proc_memory *mem, const struct mapping *map,
					const struct probed_file *f, u64 vaddr)
{
	u32 memory, file;
	size_t len = f->machine == EM_X86_64 || f->machine == EM_386 ? 1 : sizeof(memory);

	return changed_code_read_both(mem, map, vaddr, &memory, &file) && memcmp(&memory, &file, len);
}

static const char *point_name(const struct probed_file *f, const struct probe_point *point)
{
	static const char *const others[NR_POINT_KINDS] = {
		[POINT_NOTE] = "a marker",
		[POINT_HOOK] = "_dl_debug_state",
		[POINT_PTRACE] = "ptrace",
		[POINT_EXIT] = "exit",
		[POINT_END] = "_exit",
		[POINT_CLONE] = "clone",
		[POINT_MASK] = "sigprocmask",
		[POINT_ACTION] = "sigaction",
		[POINT_LEAK_CHECK] = "__lsan_do_leak_check",
	};

	return others[point->kind] ? others[point->kind]
				   : f->list.sites[point->probe - f->first_probe].row->name;
}

/* Do the first @i points of @f have @vaddr, too? */
static bool is_known_point(const struct probed_file *f, u32 i, u64 vaddr)
{
	while (i-- > 0)
		if (f->points[i].vaddr == vaddr)
			return true;
	return false;
}

size_t changed_code_watch(struct watched_code *out, size_t nr, const struct mapping *map,
			  const struct probed_file *f)
{
	size_t most = nr + MAX_WATCHED_CODE / 2;

	most = most < MAX_WATCHED_CODE ? most : MAX_WATCHED_CODE;
	for (u32 i = 0; i < f->nr_points && nr < most; i++) {
		u64 vaddr = f->points[i].vaddr;
		u32 code;

		if (is_known_point(f, i, vaddr) || !read_file_code(map, vaddr, &code))
			continue;
		out->at[nr].addr = vaddr + map->bias;
		out->at[nr++].code = code;
	}
	return nr;
}

size_t changed_code_overwritten(const struct proc_memory *mem, const struct mapping *map,
				const struct probed_file *f, const char **function)
{
	size_t nr = 0;

	for (u32 i = 0; i < f->nr_points; i++) {
		const struct probe_point *point = &f->points[i];

		if (!is_of_file(mem, map, point->vaddr))
			continue;
		if (!is_known_point(f, i, point->vaddr) && !nr++)
			*function = point_name(f, point);
	}
	return nr;
}

const char *changed_code_of_others(const struct probed_file *f)
{
	struct mapping own = f->code;
	size_t len = own.end - own.start;
	void *code =
		mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, own.module->fd, (off_t)own.file_offset);
	struct proc_memory mem;
	const char *function = NULL;

	if (code == MAP_FAILED)
		return NULL;
	own.bias += (taddr_t)(uintptr_t)code - own.start;
	own.start = (taddr_t)(uintptr_t)code;
	own.end = own.start + len;
	if (!proc_memory_open(&mem, getpid())) {
		for (u32 i = 0; i < f->nr_points && !function; i++)
			if (changed_code_has_breakpoint(&mem, &own, f, f->points[i].vaddr))
				function = point_name(f, &f->points[i]);
		proc_memory_close(&mem);
	}
	munmap(code, len);
	return function;
}

const char *changed_code_copied(const struct probed_file *f, struct copied_code *c)
{
	const struct mapping *map = &f->code;
	const char *function = NULL;

	for (u32 i = 0; i < f->nr_points; i++) {
		const taddr_t addr = f->points[i].vaddr + map->bias;
		u8 code[CPU_CODE_BYTES];
		ssize_t nr = addr < map->start || addr >= map->end
				     ? 0
				     : pread(map->module->fd, code, sizeof(code),
					     (off_t)(addr - map->start + map->file_offset));

		if (nr > 0 && copied_code_try(c, addr, code, (size_t)nr))
			function = point_name(f, &f->points[i]);
	}
	return function;
}
