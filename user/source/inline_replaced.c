/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks whether the jumps of a target are where they were put. */
#include "user/source/inline_replaced.h"

#include <string.h>
#include <unistd.h>

#include "bpf/maps.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/maps.h"
#include "user/source/inline_target.h"

#define EACH_NS (1000 * 1000 * 1000ULL)

enum { CROWD = 32 /* targets */ };

/* Is the code of the file there again? */
static bool inline_replaced_is_old(const struct inline_target *t, const struct inject_patch *p)
{
	u8 now[sizeof(p->old)];

	return pread(t->mem, now, p->len, (off_t)p->addr) == p->len && !memcmp(now, p->old, p->len);
}

/* Is a file mapped at @addr? Then it was unmapped and mapped again, and gets jumps when its mappings are read. */
static bool is_mapped_again(pid_t pid, taddr_t addr)
{
	struct maps_reader *maps;
	struct map_line line;
	bool is_file = false;

	if (maps_open(&maps, pid))
		return true;
	while (maps_next(maps, &line) == 1 && line.start <= addr)
		if (addr < line.end)
			is_file = line.inode && !line.is_copy && strncmp(line.path, "/memfd:", 7) != 0;
	maps_close(maps);
	return is_file;
}

/* Jumps in [@start, @end) that the program has replaced. A hop is in padding, and counts with what leads to it. */
static u32 inline_replaced_nr(const struct inline_target *t, taddr_t start, taddr_t end)
{
	u32 nr = 0;

	if (t->mem < 0 || t->in->state != INJECT_IN)
		return 0;
	for (u32 i = 0; i < t->in->nr_patches; i++) {
		const struct inject_patch *p = &t->in->patches[i];

		if (!p->is_hop && p->addr >= start && p->addr < end && inline_replaced_is_old(t, p))
			nr += !is_mapped_again(t->pid, p->addr);
	}
	return nr;
}

void inline_replaced_look(struct inline_target *t)
{
	u32 nr = inline_replaced_nr(t, 0, ~(taddr_t)0);

	if (nr > t->nr_replaced && !t->past.overwritten)
		warn("inline: PID %d: %u jumps to heaptap's code were replaced by a copy of the code without them: "
		     "these calls are missing",
		     t->pid, nr);
	if (nr > t->nr_replaced)
		t->nr_replaced = nr;
}

void inline_replaced_poll(struct inline_target *t)
{
	u64 now = clock_now_ns();

	if (t->nr_replaced || now < t->next_replaced_ns)
		return;
	/* A look takes as long as some records: of a crowd each is looked at less often. */
	t->next_replaced_ns = now + EACH_NS * (1 + t->pace.crowd / CROWD);
	inline_replaced_look(t);
}

void inline_replaced_watch(const struct inline_target *t, struct watched_code *out)
{
	for (u32 i = 0; i < t->in->nr_patches && t->in->state == INJECT_IN; i++) {
		const struct inject_patch *p = &t->in->patches[i];

		if (p->addr != t->end_at || p->len < sizeof(out->at[0].code))
			continue;
		out->at[0].addr = p->addr;
		memcpy(&out->at[0].code, p->old, sizeof(out->at[0].code));
	}
}

void inline_replaced_forget(struct inline_target *t, taddr_t start, taddr_t end)
{
	u32 nr;

	inline_replaced_look(t);
	nr = inline_replaced_nr(t, start, end);
	t->past.overwritten += nr;
	t->past.other += nr;
	t->nr_replaced -= nr < t->nr_replaced ? nr : t->nr_replaced;
	inject_forget_range(t->in, start, end);
}
