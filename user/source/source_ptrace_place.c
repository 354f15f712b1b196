/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ptrace source: the breakpoints of one file in one process, or why there can be none. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fallback/guardian.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/source/source_ptrace_private.h"

/* There can be no breakpoint at @place. */
static void explain_place(const struct target *t, const struct module *m, const struct place *place, int err,
			  bool is_for_calls)
{
	warn("probe: %s: PID %d: no breakpoint at 0x%" PRIx64 ": %s%s", m->path, t->pid, place->addr,
	     err == -EEXIST ? "there is one of somebody else's"
	     : err == -EIO  ? "the code is shared with other processes, or cannot be written"
			    : strerror(-err),
	     is_for_calls ? ": no call of its functions is seen" : "");
}

static u32 skip_calls(const struct probed_file *f, u32 at)
{
	while (at < f->nr_points && f->points[at].kind <= POINT_ALLOC)
		at++;
	return at;
}

static bool has_malloc(const struct probed_file *f)
{
	for (size_t i = 0; i < f->list.nr; i++)
		if (!strcmp(f->list.sites[i].row->name, "malloc"))
			return true;
	return false;
}

/*
 * No call of @f's functions is seen. If one is malloc, calls of other allocators are left out from then on, too: those
 * of new would look as if they had failed.
 */
static int leave_calls_out(const struct ptrace_source *s, const struct target *t, const struct mapping *map,
			   const struct probed_file *f)
{
	struct attached *a = source_ptrace_find(s, t->pid);

	if (a && has_malloc(f))
		a->is_refused = true;
	return guardian_do(s->guardian, COMMAND_REMOVE, t->pid, map->start, map->end);
}

/*
 * The breakpoints of @map are in. -EEXIST, with a message: a thread does not stop at one. In memory that has uprobes,
 * or has had some, the kernel takes a breakpoint for a uprobe that is in its list for the place, for whatever process,
 * also when no code shows it.
 */
static int source_ptrace_try(const struct ptrace_source *s, const struct target *t, const struct mapping *map)
{
	int err = IS_AGENT ? 0 : guardian_do(s->guardian, COMMAND_TRY, t->pid, map->start, map->end);

	if (err == -EEXIST)
		warn("probe: %s: PID %d: breakpoints do not work there: the kernel has a uprobe at the place, which "
		     "serves another process or was left behind: no call of its functions is seen" TEXT_OF_HOST(
			     "; try --backend inline"),
		     map->module->path, t->pid);
	else if (err)
		debug("ptrace: PID %d: breakpoints were not tried: %s", t->pid, strerror(-err));
	return err == -EEXIST || err == -EPIPE ? err : 0;
}

/*
 * Put breakpoints in. A place where there can be none is left out, with a message; if it is for calls, all such places
 * of the file are, because the numbers would be wrong.
 */
int source_ptrace_put_in(const struct ptrace_source *s, const struct target *t, const struct mapping *map,
			 const struct probed_file *f, u32 first)
{
	static const enum place_kind kinds[NR_POINT_KINDS] = {
		[POINT_INTERNAL_CALL] = PLACE_INTERNAL_CALL,
		[POINT_FREE] = PLACE_ENTER_FREE,
		[POINT_RET] = PLACE_RET,
		[POINT_ALLOC] = PLACE_ENTER_ALLOC,
		[POINT_NOTE] = PLACE_NOTE,
		[POINT_HOOK] = PLACE_HOOK,
		[POINT_EXIT] = PLACE_EXIT,
		[POINT_CLONE] = PLACE_CLONE,
		[POINT_MASK] = PLACE_MASK,
		[POINT_ACTION] = PLACE_ACTION,
		[POINT_LEAK_CHECK] = PLACE_LEAK_CHECK,
	};
	const struct attached *a = source_ptrace_find(s, t->pid);
	auto_free struct place *places = calloc(f->nr_points, sizeof(*places));
	bool is_left_out = a && a->is_refused && f->list.nr;
	u32 done = is_left_out ? skip_calls(f, first) : first, nr;
	int err = 0;

	if (!places)
		return -ENOMEM;
	for (u32 i = 0; i < f->nr_points; i++)
		places[i] = (struct place){ .addr = map->bias + f->points[i].vaddr,
					    .probe = f->points[i].probe,
					    .kind = kinds[f->points[i].kind] };
	while (!err && done < f->nr_points) {
		bool is_for_calls;

		err = guardian_add_places(s->guardian, t->pid, places + done, f->nr_points - done, &nr);
		done += nr;
		if (!err || err == -EPIPE || err == -ESRCH || err == -ENOMEM)
			continue;
		is_for_calls = f->points[done].kind <= POINT_ALLOC;
		explain_place(t, map->module, &places[done], err, is_for_calls);
		err = is_for_calls ? leave_calls_out(s, t, map, f) : 0;
		is_left_out |= is_for_calls;
		done = is_for_calls ? skip_calls(f, done) : done + 1;
	}
	if (!err && !is_left_out && f->list.nr && a && a->watch.was_running)
		err = source_ptrace_try(s, t, map);
	if (err == -EEXIST) {
		is_left_out = true;
		err = leave_calls_out(s, t, map, f);
	}
	return err ? err : is_left_out ? PLACING_LEAVES_OUT : 0;
}
