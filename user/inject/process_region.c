/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of the piece in a target: where it is, how it grows, how it goes. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/inject/left.h"
#include "user/inject/piece_object.h"
#include "user/inject/process_private.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/maps.h"

int inject_check_region(const struct injection *in)
{
	const taddr_t private = in->region + PIECE_PRIVATE_OFFSET;
	struct maps_reader *maps;
	struct map_line line;
	bool is_there = false;
	int err = maps_open(&maps, in->pid);

	if (err)
		return err;
	while (!is_there && (err = maps_next(maps, &line)) == 1)
		is_there = line.start <= private && private < line.end &&
			   !strncmp(line.path, MAPS_PIECE_PATH, strlen(MAPS_PIECE_PATH));
	maps_close(maps);
	return is_there ? 0 : err < 0 ? err : -ESRCH;
}

/* ---- making it ---- */

/* A part of the file that the target shares with us, or has a copy of. */
struct region_part {
	u64 offset, bytes, file_offset; /* in the region, mapped, in the file */
	int prot, flags;
};

enum { NR_PARTS = 6, FIRST_TO_GROW = 2 };

/* Without samples, their part has no bytes. */
static void list_parts(struct region_part parts[NR_PARTS], const struct injection *in, u32 nr_places,
		       u32 nr_shards)
{
	const int rw = PROT_READ | PROT_WRITE;

	parts[0] = (struct region_part){ PIECE_PRIVATE_OFFSET, PIECE_FILTER_BYTES, 0, rw, MAP_PRIVATE };
	parts[1] = (struct region_part){ PIECE_KEYS_OFFSET, PIECE_PRIVATE_BYTES - PIECE_FILTER_BYTES,
					 PIECE_FILTER_BYTES, rw, MAP_PRIVATE };
	parts[2] = (struct region_part){ PIECE_PLACES_OFFSET, PIECE_PLACES_MAPPED(nr_places),
					 PIECE_FILE_PLACES, rw, MAP_PRIVATE };
	parts[3] = (struct region_part){ PIECE_SHARED_OFFSET, PIECE_SHARED_MAPPED(nr_places),
					 PIECE_FILE_SHARED, rw, MAP_SHARED };
	parts[4] = (struct region_part){ PIECE_TABLES_OFFSET, PIECE_TABLES_MAPPED(nr_shards),
					 PIECE_FILE_TABLES, PROT_READ, MAP_SHARED };
	parts[5] = (struct region_part){ PIECE_SAMPLES_OFFSET,
					 in->nr_buckets ? PIECE_SAMPLES_MAPPED(in->nr_buckets) : 0,
					 PIECE_FILE_SAMPLES, rw, MAP_PRIVATE };
}

/* Advise about what is mapped from @begin to @end of the region. The kernel goes on behind holes, and then tells. */
static int advise_parts(struct stopped *s, taddr_t region, u64 begin, u64 end, int advice)
{
	int err = inject_advise(s, region + begin, end - begin, advice);

	return err == -ENOMEM ? 0 : err;
}

/*
 * A child would write to our rings; but its stubs go on to look for sampled blocks. Nothing of the region is of use in
 * a core file, but for pages of files.
 */
static int process_region_advise(struct stopped *s, taddr_t region)
{
	int err = inject_advise(s, region, PIECE_PARK_OFFSET, MADV_DONTDUMP);

	if (!err)
		err = advise_parts(s, region, PIECE_PLACES_OFFSET, PIECE_REGION_BYTES, MADV_DONTDUMP);
	return err ? err : advise_parts(s, region, PIECE_SHARED_OFFSET, PIECE_SAMPLES_OFFSET, MADV_DONTFORK);
}

int inject_map_file(struct stopped *s, int mem, struct injection *in, taddr_t region, bool is_child)
{
	struct region_part parts[NR_PARTS];
	u64 fd;
	int err = inject_make_file(s, mem, INJECT_MEMORY_NAME, PIECE_FILE_BYTES, &fd), ret;

	if (err)
		return err;
	list_parts(parts, in, in->nr_places, in->nr_shards);
	for (size_t i = 0; i < NR_PARTS && !err; i++) {
		const struct region_part *p = &parts[i];

		/* A child has the sampled blocks of its parent, and their counters. */
		if (!p->bytes ||
		    (is_child && (p->offset == PIECE_PRIVATE_OFFSET || p->offset == PIECE_SAMPLES_OFFSET)))
			continue;
		err = inject_map(s, region + p->offset, p->bytes, p->prot,
				 p->flags | MAP_FIXED | MAP_NORESERVE, fd, p->file_offset);
	}
	if (!err)
		err = process_region_advise(s, region);
	if (!err && in->keeps_file) {
		in->file = (s32)fd;
		return 0;
	}
	ret = inject_close(s, fd);
	return err ? err : ret;
}

int inject_close_file(struct injection *in)
{
	s32 fd = in->file;
	struct stopped s;
	int err = fd < 0 ? 0 : threads_stop(&s, in->pid, clock_now_ns() + INJECT_STOP_NS);

	if (err || fd < 0)
		return err;
	err = inject_close(&s, (u64)fd);
	threads_resume(&s);
	in->file = -1;
	return err;
}

/* Map the code, and behind it the page that is empty in a forked child. */
static int map_code(struct stopped *s, int mem, taddr_t region)
{
	const u64 bytes = PIECE_CODE_BYTES + PIECE_PAGE;
	int err = inject_map(s, region, bytes, PROT_READ | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (u64)-1, 0);

	if (!err)
		err = inject_write(mem, region, piece_object_start, piece_object_bytes());
	if (!err)
		err = inject_map(s, region + PIECE_CONTROL_OFFSET, PIECE_PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (u64)-1, 0);
	return err ? err : inject_advise(s, region + PIECE_CONTROL_OFFSET, PIECE_PAGE, MADV_WIPEONFORK);
}

/*
 * A place for the region: amid the largest hole of the address space. The kernel puts what the program maps beside its
 * libraries, or behind its heap, so nothing comes between the parts of the region. 0: there is no such hole.
 */
static taddr_t process_region_find_place(pid_t pid)
{
	struct maps_reader *maps;
	struct map_line line;
	taddr_t end = 0, best = 0;
	u64 most = 2 * PIECE_REGION_BYTES;

	if (maps_open(&maps, pid))
		return 0;
	/* The vsyscall page lies in the kernel's half of the addresses. */
	while (maps_next(maps, &line) == 1 && line.start <= INT64_MAX) {
		if (line.start - end > most) {
			most = line.start - end;
			best = (end + most / 2) & ~(taddr_t)(PIECE_ALIGNMENT - 1);
		}
		end = line.end;
	}
	maps_close(maps);
	return best;
}

/*
 * May the thread that makes our system calls not read the counter? Others begin with what their parent has. The kernel
 * writes the answer to our memory. One that does not know the question forbids nothing.
 */
static int ask_for_counter(bool *out, struct stopped *s, int mem, taddr_t region)
{
	const taddr_t answer = region + PIECE_CONTROL_OFFSET + sizeof(struct piece_control);
	const u64 args[INJECT_ARGS] = { PR_GET_TSC, answer };
	const u32 none = 0;
	u32 mode = 0;
	u64 got;
	int err = inject_syscall(s, SYS_prctl, args, &got);

	*out = false;
	if (err == -EINVAL)
		return 0;
	if (!err)
		err = inject_read(mem, answer, &mode, sizeof(mode));
	if (!err)
		err = inject_write(mem, answer, &none, sizeof(none));
	*out = mode == PR_TSC_SIGSEGV;
	return err;
}

/* From here on others know what to take out, should we die. */
static void name_region(struct injection *in, taddr_t region)
{
	const struct piece_head *head = (const void *)piece_object_start;

	in->nr_places = PIECE_FIRST_PLACES;
	in->nr_shards = PIECE_FIRST_SHARDS;
	in->ways = (struct code_ways){ region + head->enter, region + head->enter_call,
				       in->nr_buckets ? region + PIECE_KEYS_OFFSET : 0,
				       in->nr_buckets ? region + PIECE_PRIVATE_OFFSET : 0 };
	in->returned = 0;
	in->region = region;
	__atomic_store_n(&in->state, INJECT_IN, __ATOMIC_RELEASE);
}

int inject_make_region(struct injection *in, struct stopped *s, int mem)
{
	const struct piece_head *head = (const void *)piece_object_start;
	const taddr_t region = process_region_find_place(s->all.pid);
	const u32 state = in->state;
	int err, ret;

	if (!region)
		return -ENOMEM;
	name_region(in, region);
	err = map_code(s, mem, region);
	if (!err)
		err = inject_map_file(s, mem, in, region, false);
	if (!err)
		err = ask_for_counter(&in->has_no_counter, s, mem, region);
	if (!err) {
		in->returned = region + head->returned;
		return 0;
	}
	/* A program that locks all memory that it maps (mlockall) may lock no more of it. */
	if (err == -EAGAIN)
		err = inject_fail(in, -EOPNOTSUPP,
				  "it locks all of its memory, and may lock no more (RLIMIT_MEMLOCK)");
	ret = err != -EEXIST ? inject_unmap_region(s, region) : 0;
	in->region = 0;
	in->state = state;
	return ret ? inject_fail(in, err, "its memory cannot be unmapped: %s", strerror(-ret)) : err;
}

/* ---- the end ---- */

enum { UNMAPPED_AT_ONCE = 8 };

struct piece_mapping {
	taddr_t start;
	u64 bytes;
};

/* List mappings of our file in [@from, @to), at most @max. Returns their number, or -errno. */
static int list_ours(pid_t pid, taddr_t from, taddr_t to, struct piece_mapping *out, int max)
{
	struct maps_reader *maps;
	struct map_line line;
	int nr = 0, err = maps_open(&maps, pid);

	if (err)
		return err;
	while (nr < max && (err = maps_next(maps, &line)) == 1 && line.start < to)
		if (line.start >= from && !strncmp(line.path, MAPS_PIECE_PATH, strlen(MAPS_PIECE_PATH)))
			out[nr++] = (struct piece_mapping){ line.start, line.end - line.start };
	maps_close(maps);
	return err < 0 ? err : nr;
}

/*
 * The parts that grow are known by their mappings, not by their numbers, which may be ahead of what is mapped when we
 * died while they grew: the program's own memory may be there.
 */
int inject_unmap_region(struct stopped *s, taddr_t region)
{
	const taddr_t from = region + PIECE_PLACES_OFFSET, to = region + PIECE_REGION_BYTES;
	int err = inject_unmap(s, region, PIECE_PLACES_OFFSET), nr;
	struct piece_mapping ours[UNMAPPED_AT_ONCE];

	do {
		nr = err ? err : list_ours(s->all.pid, from, to, ours, UNMAPPED_AT_ONCE);
		for (int i = 0; i < nr && !err; i++)
			err = inject_unmap(s, ours[i].start, ours[i].bytes);
	} while (!err && nr == UNMAPPED_AT_ONCE);
	return nr < 0 ? nr : err;
}

/* ---- growing ---- */

/* Make a part longer where it is. -ENOMEM: other memory is behind it, or a limit is reached. */
static int grow_part(struct stopped *s, taddr_t region, const struct region_part *from,
		     const struct region_part *to)
{
	const u64 args[INJECT_ARGS] = { region + from->offset, from->bytes, to->bytes };
	u64 got;

	return from->bytes == to->bytes ? 0 : inject_syscall(s, SYS_mremap, args, &got);
}

static int grow_parts(const struct injection *in, struct stopped *s, u32 nr_places, u32 nr_shards)
{
	struct region_part from[NR_PARTS], to[NR_PARTS];
	size_t nr = FIRST_TO_GROW;
	int err = 0;

	list_parts(from, in, nr_places, nr_shards);
	list_parts(to, in, in->nr_places, in->nr_shards);
	while (nr < NR_PARTS && !(err = grow_part(s, in->region, &from[nr], &to[nr])))
		nr++;
	/* All, or nothing. */
	while (err && nr-- > FIRST_TO_GROW)
		if (to[nr].bytes > from[nr].bytes &&
		    inject_unmap(s, in->region + from[nr].offset + from[nr].bytes,
				 to[nr].bytes - from[nr].bytes))
			return -EBUSY;
	return err;
}

/* The numbers are those of the larger memory before it is there: whoever restores returns later looks at all places. */
static int process_region_grow(struct injection *in, struct stopped *s, int mem, u32 nr_places, u32 nr_shards)
{
	const u32 old_places = in->nr_places, old_shards = in->nr_shards;
	int err = inject_check_region(in);

	if (err)
		return err;
	in->nr_places = nr_places;
	in->nr_shards = nr_shards;
	err = inject_save(in, mem);
	if (!err)
		err = grow_parts(in, s, old_places, old_shards);
	/* Before threads go on that have waited for a place. */
	if (!err)
		return inject_write(
			mem, in->region + PIECE_SHARED_OFFSET + offsetof(struct piece_shared, nr_places),
			&nr_places, sizeof(nr_places));
	in->nr_places = old_places;
	in->nr_shards = old_shards;
	return err;
}

int inject_grow(struct injection *in, u32 nr_places, u32 nr_shards)
{
	u64 begin = clock_now_ns(), took;
	auto_close int mem = inject_open_memory(in->pid);
	struct stopped s;
	int err = mem < 0 ? mem : threads_stop(&s, in->pid, begin + INJECT_STOP_NS);

	if (err)
		return err;
	err = process_region_grow(in, &s, mem, nr_places, nr_shards);
	threads_resume(&s);
	took = clock_now_ns() - begin;
	in->put_in_ns = took > in->put_in_ns ? took : in->put_in_ns;
	return err;
}
