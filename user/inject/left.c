/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds and takes out the code that a heaptap, killed together with its guard, has left in a target. */
#include "user/inject/left.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/inject/piece_object.h"
#include "user/inject/process_private.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/lib/maps.h"
#include "user/lib/proc.h"

/* The record as it is written. */
struct left_record {
	u64 layout; /* left_layout() of the heaptap that has written it */
	struct injection in;
};

_Static_assert(sizeof(struct left_record) <= PIECE_CODE_BYTES - PIECE_LEFT_OFFSET, "the record fits");

/* Another version of heaptap has another piece, or another record, and thus another number. */
static u64 left_layout(void)
{
	const u64 record[] = { sizeof(struct left_record), offsetof(struct left_record, in.patches),
			       offsetof(struct left_record, in.islands),
			       offsetof(struct left_record, in.copies), PIECE_REGION_BYTES };

	return hash_bytes(piece_object_start, piece_object_bytes(), hash_bytes(record, sizeof(record), 0));
}

static bool left_is_alive(const struct injection *in)
{
	struct proc_stat stat;

	return in->owner > 0 && !proc_read_stat(&stat, in->owner) && stat.start_time == in->owner_start;
}

/* The region of a piece in @pid; 0 = none. */
static taddr_t left_find_region(pid_t pid)
{
	struct maps_reader *maps;
	struct map_line line;
	taddr_t region = 0;

	if (maps_open(&maps, pid))
		return 0;
	while (!region && maps_next(maps, &line) == 1)
		if (!strncmp(line.path, MAPS_PIECE_PATH, strlen(MAPS_PIECE_PATH)))
			region = line.start - PIECE_PRIVATE_OFFSET;
	maps_close(maps);
	return region;
}

/* The target may have changed what is there: it can only have its own memory changed so. */
static bool is_sound(const struct injection *in, taddr_t region)
{
	if (in->region != region || in->state != INJECT_IN || in->nr_patches > INJECT_MAX_PATCHES ||
	    in->nr_islands > INJECT_MAX_ISLANDS)
		return false;
	if (in->nr_copies > INJECT_MAX_COPIES || in->nr_places > PIECE_MAX_THREADS ||
	    in->nr_shards > PIECE_MAX_SHARDS)
		return false;
	for (u32 i = 0; i < in->nr_patches; i++) {
		const struct inject_patch *p = &in->patches[i];

		if (!p->len || p->len > sizeof(p->old) || p->is_hop > 1)
			return false;
	}
	return true;
}

static int read_left(struct injection *out, pid_t pid)
{
	taddr_t region = left_find_region(pid);
	auto_close int mem = region ? inject_open_memory(pid) : -1;
	const taddr_t at = region + PIECE_LEFT_OFFSET;
	u64 layout;
	int err;

	if (!region)
		return 0;
	err = mem < 0 ? mem : inject_read(mem, at, &layout, sizeof(layout));
	if (!err && layout != left_layout())
		err = -EPROTONOSUPPORT;
	if (!err)
		err = inject_read(mem, at + offsetof(struct left_record, in), out, sizeof(*out));
	if (!err && !is_sound(out, region))
		err = -EBADMSG;
	return err ? err : 1;
}

int inject_save(const struct injection *in, int mem)
{
	auto_free struct left_record *record = calloc(1, sizeof(*record));

	if (!record)
		return -ENOMEM;
	record->layout = left_layout();
	record->in = *in;
	return inject_write(mem, in->region + PIECE_LEFT_OFFSET, record, sizeof(*record));
}

enum inject_left inject_find_left(pid_t pid, pid_t *owner)
{
	auto_free struct injection *old = malloc(sizeof(*old));

	*owner = 0;
	if (!old || read_left(old, pid) != 1)
		return left_find_region(pid) ? INJECT_LEFT_UNKNOWN : INJECT_LEFT_NOTHING;
	*owner = old->owner;
	return left_is_alive(old) ? INJECT_LEFT_IN_USE : INJECT_LEFT_BEHIND;
}

static bool left_is_copied(const struct injection *in, const struct inject_patch *p)
{
	for (u32 i = 0; i < in->nr_copies; i++)
		if (p->addr >= in->copies[i].addr &&
		    p->addr + p->len <= in->copies[i].addr + in->copies[i].bytes)
			return true;
	return false;
}

bool inject_is_exposed(pid_t pid)
{
	auto_free struct injection *in = malloc(sizeof(*in));

	if (!in || read_left(in, pid) != 1)
		return true;
	for (u32 i = 0; i < in->nr_patches; i++)
		if (!left_is_copied(in, &in->patches[i]))
			return true;
	return false;
}

int inject_take_left(struct injection *in)
{
	auto_free struct injection *old = malloc(sizeof(*old));
	int err = old ? read_left(old, in->pid) : -ENOMEM;

	if (err == -EPROTONOSUPPORT)
		return inject_fail(in, -EOPNOTSUPP, "code of another version of heaptap is in it");
	if (err <= 0)
		return err == -EBADMSG ? inject_fail(in, -EOPNOTSUPP, "unknown code of a heaptap is in it")
				       : err;
	/* A forked child has a copy of its parent's code, which records nothing in it. */
	if (old->pid == in->pid && left_is_alive(old))
		return inject_fail(in, -EOPNOTSUPP, "heaptap (PID %d) has code in it already",
				   (int)old->owner);
	old->pid = in->pid;
	old->start_time = in->start_time;
	err = inject_take_out(old, INJECT_LEAVE_NS);
	if (err)
		return inject_fail(in, -EOPNOTSUPP, "code that a killed heaptap left cannot be taken out: %s",
				   *old->why ? old->why : strerror(-err));
	in->has_taken_over = true;
	return 0;
}
