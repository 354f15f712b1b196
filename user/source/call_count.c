/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the calls of a process for a moment, which shows whether breakpoints would be too dear for it. */
#include "user/source/call_count.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/elf.h"
#include "user/source/probe_taker.h"
#include "user/source/source_bpf_private.h"

#define MS 1000000ULL
static const u64 own_ns = 10 * MS, longest_ns = 50 * MS, pause_ns = MS;
/* Breakpoints would be too dear if no more came in that time: SURE_PERMILLE of user/source/inline_count.c. */
enum { ENOUGH_CALLS = 600 };

/* Each has a link of its own, which takes milliseconds to end. */
enum { MAX_FILES = 16 };

/* Of link_set_drop_group(). Those of files are smaller. */
enum { GROUP = 0x7fffffff };

int call_count_add(struct call_count *c, const struct module *m, const struct probed_file *f,
		   const struct elf *elf)
{
	struct counted_file file = { .fd = m->fd, .offsets = calloc(f->nr_points + 1, sizeof(u64)) };
	int err = file.offsets ? array_extend(c->files, c->nr) : -ENOMEM;

	for (u32 i = 0; i < f->nr_points && !err; i++)
		if (f->points[i].kind == POINT_FREE || f->points[i].kind == POINT_ALLOC)
			err = elf_vaddr_to_offset(elf, f->points[i].vaddr, &file.offsets[file.nr++]);
	if (err)
		free(file.offsets);
	else
		c->files[c->nr++] = file;
	return err;
}

void call_count_fini(struct call_count *c)
{
	for (size_t i = 0; i < c->nr; i++)
		free(c->files[i].offsets);
	free(c->files);
	*c = (struct call_count){ 0 };
}

static int call_count_put_in(struct bpf_source *s, pid_t pid)
{
	struct link_group g = { .program = PROGRAM_COUNT_CALL, .pid = pid, .group = GROUP };
	int err;
	const struct programs *programs = source_bpf_load(s, g.program, &err);

	for (size_t i = 0; i < s->count.nr && !err; i++) {
		g.fd = s->count.files[i].fd;
		g.offsets = s->count.files[i].offsets;
		g.nr = s->count.files[i].nr;
		err = g.nr ? link_set_add(s->links, programs, &g, s->is_multi) : 0;
	}
	return err;
}

/* The CPU time of a process, by @clock, while nobody counts. */
static void see_own_time(struct call_rate *rate, clockid_t clock)
{
	u64 begin_ns = clock_now_ns(), cpu_ns = clock_ns(clock);

	while (clock_pause(pause_ns, begin_ns + own_ns))
		;
	rate->own_ns = clock_ns(clock) - cpu_ns;
	rate->own_time_ns = clock_now_ns() - begin_ns;
}

static void see_calls(struct call_rate *rate, const u64 *calls)
{
	u64 begin_ns = clock_now_ns(), end_ns = begin_ns + longest_ns, before = *calls;

	do
		rate->calls = __atomic_load_n(calls, __ATOMIC_RELAXED) - before;
	while (rate->calls < ENOUGH_CALLS && clock_pause(pause_ns, end_ns));
	rate->time_ns = clock_now_ns() - begin_ns;
}

static int source_call_count(struct bpf_source *s, const struct target *t, struct call_rate *rate)
{
	clockid_t clock;
	int err = source_bpf_load(s, PROGRAM_COUNT_CALL, &err) ? 0 : err, drop_err;

	if (!err && clock_getcpuclockid(t->pid, &clock))
		err = -ESRCH;
	if (err || !s->count.nr || s->count.nr > MAX_FILES)
		return err ? err : -E2BIG;
	see_own_time(rate, clock);
	err = call_count_put_in(s, t->pid);
	if (!err)
		see_calls(rate, &s->programs.state->nr_counted);
	drop_err = link_set_drop_group(s->links, GROUP);
	return err ? err : drop_err;
}

int source_bpf_count(const struct source *bpf, struct target *t, struct call_rate *out)
{
	struct bpf_source *s = (struct bpf_source *)(uintptr_t)bpf;
	int err;

	*out = (struct call_rate){ 0 };
	/* Links without a PID filter, and programs without cookies, are for other cases. */
	if (s->is_shared || s->is_cookie_fixed || !s->links)
		return -EOPNOTSUPP;
	err = placing_update(&s->placing, t);
	err = err < 0 ? err : source_call_count(s, t, out);
	placing_forget(&s->placing, t->pid);
	call_count_fini(&s->count);
	/* The program is of no use until the next count. */
	programs_unload(&s->late[PROGRAM_COUNT_CALL]);
	return err;
}
