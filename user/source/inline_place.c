/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts the probes of functions into the targets of the inline source, or leaves a target to BPF. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/insn.h"
#include "user/inject/code.h"
#include "user/inject/plan.h"
#include "user/inject/process.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/probe/probe_place.h"
#include "user/source/call_price.h"
#include "user/source/inline_replaced.h"
#include "user/source/inline_source.h"
#include "user/source/inline_target.h"
#include "user/source/placing.h"

/* From the probes of a file to the places where its code leads to the piece. */

enum {
	TRIAL_DISTANCE = 1 << 20,
	SHORT_REACH = 127,	 /* bytes from the end of a short jump, at most */
	MAX_FUNCTION = 64 << 10, /* bytes that are decoded to find the last instruction of a function */
	CODE_ALIGNMENT = 16,
};

/* @site as the piece sees it: at the first instruction of the function, and without single steps. */
static struct call_probe probe_at_start(const struct probe_site *site)
{
	struct probe_site at = *site;

	at.place = site->start;
	at.is_emulated = true;
	for (u8 i = 0; i < ARRAY_SIZE(at.arg_at); i++)
		at.arg_at[i] = i;
	return probe_site_describe(&at);
}

/* Fill in *@out as @point asks for. False: the piece needs nothing there. */
static bool site_of(const struct probed_file *f, const struct probe_point *point, struct inject_site *out)
{
	static const enum piece_kind kinds[] = { [POINT_INTERNAL_CALL] = PIECE_INTERNAL_CALL,
						 [POINT_FREE] = PIECE_FREE,
						 [POINT_RET] = PIECE_RET,
						 [POINT_ALLOC] = PIECE_ALLOC,
						 [POINT_END] = PIECE_END };
	bool is_call = point->kind == POINT_INTERNAL_CALL, is_ret = point->kind == POINT_RET;
	u32 nr = is_call ? (u32)f->list.internal_site : point->probe - f->first_probe;
	const struct probe_site *site = &f->list.sites[nr];

	/* The piece itself sees to return addresses. */
	if (point->kind == POINT_RETURN || point->kind >= POINT_NOTE)
		return false;
	if (point->kind == POINT_END) {
		*out = (struct inject_site){ .addr = point->vaddr,
					     .start = point->vaddr,
					     .len = f->list.end_len,
					     .kind = PIECE_END,
					     .name = "_exit" };
		return true;
	}
	*out = (struct inject_site){ .addr = is_call || is_ret ? point->vaddr : site->start,
				     .start = is_call ? point->vaddr : site->start,
				     .len = is_call ? code_native()->jump_bytes : site->end - site->start,
				     .index = f->first_probe + nr,
				     .kind = kinds[point->kind],
				     .call = probe_at_start(site),
				     .name = site->row->name };
	out->seen_at = is_call || is_ret ? 0 : (u16)(point->vaddr - site->start);
	return true;
}

/* A function may end by a ret of another one, to which it has jumped. */
static void move_to_function_of_ret(const struct elf *elf, struct inject_site *site)
{
	u64 start, end;

	if (site->kind != PIECE_RET || (site->addr >= site->start && site->addr < site->start + site->len))
		return;
	if (!probe_function_of(elf, site->addr, &start, &end))
		return;
	site->start = start;
	site->len = end - start;
}

/* @has_ends: processes wait for a tracer in _exit(). */
static int list_sites(struct inject_site *sites, size_t *nr, const struct probed_file *f,
		      const struct elf *elf, bool has_ends)
{
	for (u32 i = 0; i < f->nr_points; i++) {
		struct inject_site *site = &sites[*nr];
		int err;

		if ((f->points[i].kind == POINT_END && !has_ends) || !site_of(f, &f->points[i], site))
			continue;
		move_to_function_of_ret(elf, site);
		err = elf_read_vaddr(elf, site->start, site->code, sizeof(site->code));
		if (err)
			return err;
		(*nr)++;
	}
	return 0;
}

/* ---- functions without room ---- */

static int inline_sites_read_file(void *ctx, taddr_t addr, void *bytes, size_t len)
{
	return elf_read_vaddr(ctx, addr, bytes, len);
}

/* The beginning of the next function, as far as symbols know it. */
struct next_function {
	u64 after, start;
};

static int see_function(void *ctx, const struct elf_symbol *sym)
{
	struct next_function *next = ctx;

	if (sym->shndx != SHN_UNDEF && sym->value >= next->after && sym->value < next->start)
		next->start = sym->value;
	return 0;
}

/*
 * Note the bytes between the function of @site and the next one: at most up to where linkers begin functions. False:
 * there are none, or they are noted already.
 */
static bool find_room(struct inject_site *site, struct elf *elf)
{
	const struct elf_segment *seg = elf_segment_at(elf, site->start);
	u64 end = site->start + site->len, room = 0;
	struct next_function next = { .after = end, .start = (end | (INJECT_MAX_ROOM - 1)) + 1 };

	if (site->kind == PIECE_INTERNAL_CALL || site->room || !seg || !(end % INJECT_MAX_ROOM) ||
	    elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, see_function, &next))
		return false;
	while (end + room < next.start && end + room < seg->vaddr + seg->filesz &&
	       !probe_is_start(elf, end + room))
		room++;
	site->room = room;
	return room;
}

/* ---- padding that a short jump reaches ---- */

/*
 * Where the function in [@start, @end) ends by an instruction that is not followed by the next one: the first byte of
 * the padding that a thread cannot return to, else 0. A call at the end does not return, but its return address is on
 * a stack.
 */
static u64 padding_behind(const struct elf *elf, u64 start, u64 end)
{
	u64 len = end - start;
	auto_free u8 *code = len && len <= MAX_FUNCTION ? malloc(len) : NULL;
	struct insn insn = { .kind = INSN_OTHER };

	if (!code || elf_read_vaddr(elf, start, code, len))
		return 0;
	for (u64 at = 0; at < len; at += insn.length)
		if (insn_decode(&insn, elf->machine, start + at, code + at, len - at))
			return 0;
	if (insn.kind == INSN_RETURN || insn.kind == INSN_JUMP || insn.kind == INSN_TRAP)
		return end;
	return insn.kind == INSN_CALL ? end + 1 : 0;
}

/*
 * The end of the padding that begins at @from, behind a function: it has room for one jump, or more. 0: no padding, or
 * something may begin there that neither symbols nor call frame information tell of.
 */
static u64 padding_end(struct elf *elf, u64 from)
{
	struct next_function next = { .after = from, .start = (from | (CODE_ALIGNMENT - 1)) + 1 };
	u8 code[2 * CODE_ALIGNMENT];
	struct insn insn;
	u64 start, end, at;

	if (!(from % CODE_ALIGNMENT) || elf_each_symbol(elf, ELF_DYNSYM | ELF_SYMTAB, see_function, &next) ||
	    elf_read_vaddr(elf, from, code, sizeof(code)))
		return 0;
	for (at = from; at < next.start && !probe_function_of(elf, at, &start, &end);)
		at++;
	next.start = at;
	for (at = from; at < next.start; at += insn.length)
		if (insn_decode(&insn, elf->machine, at, code + (at - from), sizeof(code) - (at - from)) ||
		    (insn.kind != INSN_NOP && insn.kind != INSN_TRAP))
			return 0;
	return next.start;
}

/*
 * Have @site lead to padding near it by a short jump: to the next place after those that were tried. Padding is used
 * from its end on, because functions that have no room themselves need its beginning. False: there is no such place.
 */
static bool find_hop(struct inject_site *site, struct elf *elf)
{
	const u64 reach = SHORT_REACH + code_native()->hop_bytes, jump = code_native()->jump_bytes;
	u64 at = site->addr < reach ? 0 : site->addr - reach;
	u64 start, end, first, hop;
	u32 nr = 0;

	if (site->kind == PIECE_INTERNAL_CALL || !code_native()->hop_bytes)
		return false;
	while (at <= site->addr + reach) {
		if (!probe_function_of(elf, at, &start, &end)) {
			at++;
			continue;
		}
		at = end;
		first = padding_behind(elf, start, end);
		hop = first ? padding_end(elf, end) : 0;
		for (; first + jump <= hop; nr++) {
			hop -= jump;
			if (nr < site->nr_hops)
				continue;
			site->nr_hops++;
			site->hop = hop;
			return !elf_read_vaddr(elf, hop, site->hop_code, sizeof(site->hop_code));
		}
	}
	site->hop = 0;
	return false;
}

/* ---- ends that are seen elsewhere ---- */

/* The program would see our address where the allocator walks its own call stack, or where an unwinder comes by. */
static bool is_convertible(const struct inject_site *sites, size_t nr, const struct inject_site *bad,
			   const struct probed_file *f)
{
	const struct probe_site *site = &f->list.sites[bad->index - f->first_probe];

	if (f->list.walks_stack || site->row->can_throw || !(site->flags & PROBE_RETURNS) ||
	    site->flags & PROBE_DELEGATES)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (sites[i].index == bad->index && sites[i].kind == PIECE_RET)
			return true;
	return false;
}

/* The end of calls of function @index is seen where they return to, and no longer at its ret instructions. */
static void see_at_return(struct inject_site *sites, size_t *nr, u32 index)
{
	size_t kept = 0;

	for (size_t i = 0; i < *nr; i++) {
		if (sites[i].index == index && sites[i].kind == PIECE_RET)
			continue;
		sites[kept] = sites[i];
		if (sites[kept].index == index)
			sites[kept].call.flags |= PROBE_AT_RETURN;
		kept++;
	}
	*nr = kept;
}

/* Try to lead all sites to the piece, without changing anything. *@bad: the one that refuses. */
static int try_sites(const struct inject_site *sites, size_t nr, struct elf *elf, size_t *bad, char *why)
{
	const struct inject_island island = { .start = sites->start + TRIAL_DISTANCE,
					      .bytes = inject_plan_bytes(nr) };
	const struct code_ways none = { 0 };
	struct inject_plan plan;
	int err = inject_plan_make(&plan, sites, nr, &island, &none, inline_sites_read_file, elf, why);

	*bad = plan.bad;
	inject_plan_fini(&plan);
	if (err)
		debug("inline: %s", why);
	return err;
}

/*
 * List in @out, which has room for all points of @f, the places of the file @elf that lead to the piece, by ELF virtual
 * address: calls at the first instruction of a function, wherever breakpoints see them. A function whose ret
 * instructions have no room for a jump gets PROBE_AT_RETURN, unless it can throw. 0, -ENOTSUP: a function cannot be led
 * to the piece, @why has its name and the reason, or another -errno.
 */
static int inline_sites_find(struct inject_site *out, size_t *nr, const struct probed_file *f,
			     struct elf *elf, bool has_ends, char why[INJECT_WHY_LEN])
{
	size_t bad;
	int err;

	*nr = 0;
	err = list_sites(out, nr, f, elf, has_ends);
	while (!err && *nr) {
		err = try_sites(out, *nr, elf, &bad, why);
		if (err != -EOPNOTSUPP)
			return err;
		err = 0;
		if (find_room(&out[bad], elf))
			continue;
		if (out[bad].kind == PIECE_END)
			out[bad] = out[--*nr];
		else if (is_convertible(out, *nr, &out[bad], f))
			see_at_return(out, nr, out[bad].index);
		else if (!find_hop(&out[bad], elf))
			return -ENOTSUP;
	}
	return err;
}

static int inline_place_new_file(void *ctx, const struct module *m, struct elf *elf)
{
	(void)ctx;
	(void)m;
	(void)elf;
	return 0;
}

/* Without one of its allocators, calls would be counted that look as if they had failed (new without its malloc). */
static int inline_place_refuse(const struct inline_source *s, struct inline_target *t,
			       const struct mapping *map, const char *why)
{
	error("inline: %s: PID %d: %s: use %s", map->module->path, t->pid, why, s->life->advice);
	if (!t->is_open && t->sight == INLINE_SEES)
		t->sight = INLINE_REFUSED;
	return -EOPNOTSUPP;
}

static bool has_one_thread(pid_t pid)
{
	struct proc_stat stat;

	return !proc_read_stat(&stat, pid) && stat.nr_threads == 1;
}

/*
 * BPF, or breakpoints unless calls are sampled, can see all calls of @pid in place of us, as long as none is under way:
 * at the beginning, or while its only thread waits for us.
 */
static bool can_decline(const struct inline_source *s, pid_t pid)
{
	const struct inline_target *t = inline_source_find(s, pid);

	/* With --follow, breakpoints are in all processes: they would end one that has jumps in pages of files. */
	if (s->has_in_place && s->options.max_followed && s->life->has_shared)
		return false;
	return s->may_decline && !(s->options.sample_bytes && s->life->have_changed) &&
	       (!t || !t->is_open || (s->options.stops_at_maps && has_one_thread(pid)));
}

static bool is_stopped_by_us(pid_t pid)
{
	struct proc_status status;

	return !proc_read_status(&status, pid) && status.tracer_pid == getpid();
}

void inline_place_note_late(struct inline_source *s, pid_t pid)
{
	bool is_let_run = s->options.stops_at_maps;
	struct proc_stat stat = { 0 };

	if (is_let_run &&
	    (!s->options.max_followed || !s->life->has_shared || s->has_declined || is_stopped_by_us(pid)))
		return;
	/* A child in the memory of its parent, or a program that nobody could look at, is not known yet. */
	if (!inline_source_find(s, pid) &&
	    (s->options.begins_by_bpf ||
	     inline_source_add(s, pid, proc_read_stat(&stat, pid) ? 0 : stat.start_time)))
		return;
	inline_target_note_late(inline_source_find(s, pid), is_let_run ? "" : ": use --follow");
}

/* A function of @map's file cannot be changed, and @why, if that has not been told. */
static int inline_place_decline(struct inline_source *s, const struct target *target,
				const struct mapping *map, const char *why)
{
	int err = inline_source_find(s, target->pid) ? 0
						     : inline_source_add(s, target->pid, target->start_time);
	struct inline_target *t = inline_source_find(s, target->pid);
	char price[192] = "";

	if (err)
		return err;
	if (t->rate.calls)
		snprintf(price, sizeof(price), ": at least %s of its CPU time",
			 human_percent(call_price_permille(&t->rate, s->breakpoint_ns), 1000).text);
	if (!can_decline(s, target->pid))
		return inline_place_refuse(s, t, map, why);
	log_line(!why		      ? LOG_DEBUG
		 : s->options.is_auto ? LOG_INFO
				      : LOG_WARN,
		 "%s: %s: PID %d: %s: all calls of this process%s are seen by %s, which takes longer%s",
		 s->options.is_auto ? "auto" : "inline", map->module->path, target->pid,
		 why ? why : "as before",
		 s->options.max_followed && s->life->has_shared && !s->options.joins_later
			 ? ", and of later programs with its libraries,"
			 : "",
		 s->life->have_changed ? "breakpoints" : "BPF", price);
	t->sight = INLINE_WANTS_BPF;
	s->has_declined = true;
	return -EOPNOTSUPP;
}

static int inline_place_explain(struct inline_source *s, const struct target *target,
				const struct mapping *map, int err)
{
	struct inline_target *t = inline_source_find(s, target->pid);
	const char *why = *t->in->why ? t->in->why : strerror(-err);
	int refused;

	if (!err || err == -ESRCH || err == -EINPROGRESS)
		return err;
	if (!target_is_alive(target) || !target_still_maps(target, map))
		return -EINPROGRESS;
	if (s->options.is_auto && can_decline(s, target->pid))
		return inline_place_decline(s, target, map, why);
	refused = inline_place_refuse(s, t, map, why);
	return err != -ENOMEM ? refused : err;
}

/* Breakpoints of others may end a program that has jumps in pages of a file. */
static int put_up_with(struct inline_source *s, const struct target *target, const struct mapping *map)
{
	const struct inline_target *t = inline_source_find(s, target->pid);

	if (s->options.is_auto && can_decline(s, target->pid))
		return inline_place_decline(s, target, map, t->in->why_in_place);
	s->has_in_place = true;
	info("inline: PID %d: %s: %u pages with jumps stay mappings of the file (%s): breakpoints of other "
	     "programs in these functions would end it",
	     t->pid, map->module->path, t->in->nr_in_place, t->in->why_in_place);
	return 0;
}

/* The breakpoints of @f that are in all processes, and stay there: code in one process is beside these. */
static int list_own(struct inject_file *file, struct inject_own *own, const struct mapping *map,
		    const struct probed_file *f, const struct elf *elf)
{
	int err = 0;

	file->own = own;
	for (u32 i = 0; i < f->nr_points && f->points[i].kind < POINT_NOTE && !err; i++) {
		struct inject_own *o = &own[file->nr_own++];

		o->addr = f->points[i].vaddr + map->bias;
		err = elf_read_vaddr(elf, f->points[i].vaddr, o->code, code_native()->step);
	}
	return err;
}

static int inline_place_put_in(void *ctx, const struct target *target, const struct mapping *map,
			       const struct probed_file *f, struct elf *elf)
{
	struct inline_source *s = ctx;
	auto_free struct inject_site *sites = calloc(f->nr_points + 1, sizeof(*sites));
	auto_free taddr_t *kept = calloc(f->nr_points + 1, sizeof(*kept));
	auto_free struct inject_own *own = calloc(f->nr_points + 1, sizeof(*own));
	struct inject_file file = { .fd = map->module->fd,
				    .near = map->start,
				    .path = map->module->path,
				    .kept = kept,
				    .must_move = s->options.joins_later };
	bool has_shared = s->life->has_shared && s->life->has_shared(s->below, map->module);
	struct inline_target *t = inline_source_find(s, target->pid);
	char why[INJECT_WHY_LEN] = "";
	const char *limit;
	size_t nr = 0;
	int err;

	if (!t && s->options.begins_by_bpf)
		return PROBE_TAKER_DECLINES;
	if (t && t->sight >= INLINE_AWAITS_CODE)
		return t->is_counting ? PROBE_TAKER_COUNTS : PROBE_TAKER_DECLINES;
	if (t && (t->sight == INLINE_REFUSED || t->in->state == INJECT_LEFT))
		return -EOPNOTSUPP;
	if (has_shared && !s->options.joins_later)
		return inline_place_decline(s, target, map, NULL);
	/* A process that is followed has a tracer. And the page of _exit() has execve(), where a breakpoint may be. */
	err = sites && kept && own ? inline_sites_find(sites, &nr, f, elf, !s->options.max_followed, why)
				   : -ENOMEM;
	if (err == -ENOTSUP)
		return inline_place_decline(s, target, map, why);
	if (!err && has_shared)
		err = list_own(&file, own, map, f, elf);
	if (err || !nr)
		return err;
	limit = !t || t->in->state == INJECT_NOTHING ? inline_limits_of(target->pid) : NULL;
	if (limit)
		return inline_place_decline(s, target, map, limit);
	for (size_t i = 0; i < nr; i++) {
		sites[i].addr += map->bias;
		sites[i].start += map->bias;
		sites[i].hop += sites[i].hop ? map->bias : 0;
	}
	for (u32 i = 0; i < f->nr_points; i++)
		if (f->points[i].kind >= POINT_NOTE && !probe_point_is_spare(f->points[i].kind))
			kept[file.nr_kept++] = f->points[i].vaddr + map->bias;
	if (!t)
		err = inline_source_add(s, target->pid, target->start_time);
	t = inline_source_find(s, target->pid);
	if (err)
		return err;
	t->in->nr_buckets = inline_target_buckets(&s->options);
	for (size_t i = 0; i < nr; i++)
		if (sites[i].kind == PIECE_END)
			t->end_at = sites[i].addr;
	err = guard_put_in(s->guard, t->in, sites, nr, &file);
	if (t->in->has_taken_over)
		info("inline: PID %d: code that a killed heaptap had left in it was taken out first", t->pid);
	t->in->has_taken_over = false;
	if (!err && t->in->nr_in_place) {
		err = put_up_with(s, target, map);
		if (err)
			return err;
	}
	if (!err) {
		pthread_mutex_lock(&s->lock);
		err = inline_target_map(t, &s->options);
		pthread_mutex_unlock(&s->lock);
	}
	return inline_place_explain(s, target, map, err);
}

static void inline_place_forget_range(void *ctx, pid_t pid, taddr_t start, taddr_t end)
{
	struct inline_target *t = inline_source_find(ctx, pid);

	if (t)
		inline_replaced_forget(t, start, end);
}

static bool inline_place_is_intact(void *ctx, pid_t pid, taddr_t start, taddr_t end)
{
	const struct inline_target *t = inline_source_find(ctx, pid);

	return !t || inline_target_is_intact(t, start, end);
}

static void inline_place_watch(void *ctx, pid_t pid, struct watched_code *out)
{
	const struct inline_target *t = inline_source_find(ctx, pid);

	if (t)
		inline_replaced_watch(t, out);
}

static bool is_in_copy(void *ctx, pid_t pid, taddr_t addr)
{
	const struct inline_target *t = inline_source_find(ctx, pid);

	for (u32 i = 0; t && i < t->in->nr_copies; i++)
		if (addr - t->in->copies[i].addr < t->in->copies[i].bytes)
			return true;
	return false;
}

struct probe_taker inline_place_taker(struct inline_source *s)
{
	return (struct probe_taker){ .ctx = s,
				     .new_file = inline_place_new_file,
				     .put_in = inline_place_put_in,
				     .forget_range = inline_place_forget_range,
				     .is_intact = inline_place_is_intact,
				     .watch = inline_place_watch,
				     .is_in_copy = is_in_copy };
}
