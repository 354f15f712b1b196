/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks and files that no process of a session has any more are forgotten, when there are many. */
#include "user/session/session_forgotten.h"

#include <stdlib.h>

#include "user/heap/fold.h"
#include "user/heap/stacks.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/names/symbolize.h"
#include "user/session/session_private.h"
#include "user/session/session_process.h"
#include "user/session/session_told.h"

static int session_forgotten_compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

static void session_forget_stacks(struct session *s, const u32 *pids)
{
	auto_free bool *is_used = calloc((size_t)stack_table_slots(s->stacks) + 1, sizeof(*is_used));
	u64 before = stack_table_memory(s->stacks);

	if (!is_used)
		return;
	for (size_t i = 0; i < s->nr_processes; i++)
		heap_name_stacks(s->processes[i]->heap, s->stacks, is_used);
	stack_table_keep(s->stacks, is_used, pids, s->nr_processes);
	debug("session: stacks took %llu bytes, and take %llu without those of processes that are gone",
	      (unsigned long long)before, (unsigned long long)stack_table_memory(s->stacks));
}

static void session_forgotten_name_files(const struct target *t, bool *is_used)
{
	for (size_t i = 0; i < t->maps.nr; i++)
		if (t->maps.maps[i].module)
			is_used[t->maps.maps[i].module->id] = true;
	for (size_t i = 0; i < t->nr_allocators; i++)
		is_used[t->allocators[i].module->id] = true;
}

static void session_forget_files(struct session *s, const u32 *pids)
{
	auto_free bool *is_used = calloc(module_count(s->modules) + 1, sizeof(*is_used));

	if (!is_used)
		return;
	for (size_t i = 0; i < s->nr_processes; i++)
		session_forgotten_name_files(s->processes[i]->target, is_used);
	stack_table_name_modules(s->stacks, is_used);
	s->ops->keep_files(s->source, is_used);
	if (s->symbolizer)
		symbolizer_renew(s->symbolizer, pids, s->nr_processes);
	module_table_keep(s->modules, is_used);
}

void session_forget_unused(struct session *s)
{
	auto_free u32 *pids = NULL;

	/* Stacks and files of a recording have their numbers there for good. */
	if (s->recorder || s->scanning ||
	    (!module_table_is_crowded(s->modules) && !stack_table_is_crowded(s->stacks)))
		return;
	pids = calloc(s->nr_processes + 1, sizeof(*pids));
	if (!pids)
		return;
	for (size_t i = 0; i < s->nr_processes; i++)
		pids[i] = (u32)s->processes[i]->target->pid;
	qsort(pids, s->nr_processes, sizeof(*pids), session_forgotten_compare);
	session_forget_stacks(s, pids);
	/* Files of another machine have numbers there. */
	if (s->ops->keep_files && !session_told(s))
		session_forget_files(s, pids);
}
