/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts the probes of functions into the targets of the inline source, or leaves a target to BPF. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/source/call_price.h"
#include "user/source/inline_replaced.h"
#include "user/source/inline_sites.h"
#include "user/source/inline_source.h"
#include "user/source/inline_target.h"
#include "user/source/placing.h"

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

void inline_place_note_late(const struct inline_source *s, struct inline_target *t)
{
	if (!s->options.stops_at_maps)
		inline_target_note_late(t, ": use --follow");
	else if (s->options.max_followed && s->life->has_shared && !s->has_declined &&
		 !is_stopped_by_us(t->pid))
		inline_target_note_late(t, "");
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
	err = sites && kept && own ? inline_sites_find(sites, &nr, f, elf, why) : -ENOMEM;
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
