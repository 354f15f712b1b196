/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parks pages of a file that get jumps, and puts copies in their place. */
#include "user/inject/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/inject/left.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/maps.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7, for mappings of files 5.13 */
#endif

/* Pages of one mapping, one behind the other. */
struct copied_run {
	taddr_t addr;
	u64 bytes, offset;
	bool is_alone; /* no other mapping of the file is beside it */
};

struct copied_runs {
	struct copied_run *runs; /* owned */
	size_t nr, max;
};

/* The copying of pages. */
struct copying {
	struct injection *in;
	struct stopped *s;
	int mem;
	const struct inject_file *file;
	const struct inject_patch *patches;
	size_t nr_patches;
	u64 fd;		/* of the target: the file of the copies */
	int ours;	/* the same file, opened by us */
	taddr_t *pages; /* owned; sorted */
	size_t nr_pages;
	struct copied_runs runs;
	u64 inode; /* of the mapping of the last one */
};

/* @nr pages are changed where they are. */
static void pages_stay(struct injection *in, u64 nr, const char *why)
{
	in->nr_in_place += (u32)nr;
	snprintf(in->why_in_place, sizeof(in->why_in_place), "%s", why);
}

bool inject_pages_can_move(void)
{
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
	auto_close int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *pages = mmap(NULL, 2 * PIECE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool can = false;

	if (pages == MAP_FAILED)
		return false;
	if (mmap(pages, PIECE_PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED)
		can = mremap(pages, PIECE_PAGE, PIECE_PAGE, flags, pages + PIECE_PAGE) != MAP_FAILED;
	munmap(pages, 2 * PIECE_PAGE);
	return can;
}

/* ---- which pages ---- */

static int compare_pages(const void *a, const void *b)
{
	taddr_t x = *(const taddr_t *)a, y = *(const taddr_t *)b;

	return (x > y) - (x < y);
}

static int list_pages(struct copying *c)
{
	const struct inject_patch *patches = c->patches;
	size_t nr = c->nr_patches, kept = 0;

	c->pages = calloc(2 * nr + 1, sizeof(*c->pages));
	if (!c->pages)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		taddr_t last = patches[i].addr + patches[i].len - 1;

		c->pages[2 * i] = patches[i].addr & ~(taddr_t)(PIECE_PAGE - 1);
		c->pages[2 * i + 1] = last & ~(taddr_t)(PIECE_PAGE - 1);
	}
	qsort(c->pages, 2 * nr, sizeof(*c->pages), compare_pages);
	for (size_t i = 0; i < 2 * nr; i++)
		if (!i || c->pages[i] != c->pages[i - 1])
			c->pages[kept++] = c->pages[i];
	c->nr_pages = kept;
	return 0;
}

/* Does a breakpoint that is not ours lie in the page? Bytes that the program has changed are copied as they are. */
static bool pages_has_breakpoint(const u8 *memory, const u8 *file)
{
	const struct code_cpu *cpu = code_native();

	for (size_t i = 0; i < PIECE_PAGE; i += cpu->step)
		if (memcmp(memory + i, file + i, cpu->step) && cpu->is_breakpoint(memory + i))
			return true;
	return false;
}

static bool has_kept(const struct inject_file *f, taddr_t page)
{
	for (size_t i = 0; i < f->nr_kept; i++)
		if (f->kept[i] - page < PIECE_PAGE)
			return true;
	return false;
}

/* Why the page at @page, which is at @offset of the file, must stay. NULL: it need not. */
static const char *reason_to_stay(const struct copying *c, taddr_t page, u64 offset)
{
	u8 memory[PIECE_PAGE], file[PIECE_PAGE] = { 0 };

	if (has_kept(c->file, page))
		return "a breakpoint of this trace is in the same page";
	if (pread(c->file->fd, file, sizeof(file), (off_t)offset) <= 0 ||
	    inject_read(c->mem, page, memory, sizeof(memory)))
		return "the page cannot be read";
	inject_hide_own(c->file, page, memory, sizeof(memory));
	return pages_has_breakpoint(memory, file) ? "a breakpoint of another program is in the same page"
						  : NULL;
}

static int pages_add_page(struct copying *c, const struct map_line *line, taddr_t page)
{
	struct copied_runs *runs = &c->runs;
	struct copied_run *last = runs->nr ? &runs->runs[runs->nr - 1] : NULL;
	u64 offset = line->offset + (page - line->start);

	if (last && last->addr + last->bytes == page && page != line->start) {
		last->bytes += PIECE_PAGE;
	} else {
		if (array_reserve(runs->runs, runs->max, runs->nr + 1))
			return -ENOMEM;
		last = &runs->runs[runs->nr++];
		*last = (struct copied_run){ .addr = page, .bytes = PIECE_PAGE, .offset = offset };
	}
	last->is_alone = last->bytes == line->end - line->start;
	c->inode = line->inode;
	return 0;
}

/* Readers of /proc/PID/maps know the file of a whole mapping that is copied by @line, which is the one behind it. */
static void pages_see_next(struct copying *c, const struct map_line *line)
{
	struct copied_run *last = c->runs.nr ? &c->runs.runs[c->runs.nr - 1] : NULL;

	if (last && last->addr + last->bytes == line->start && line->inode == c->inode &&
	    !line->is_executable)
		last->is_alone = false;
}

/* Only there does the kernel put uprobes. */
static bool gets_uprobes(const struct map_line *line)
{
	return line->inode && line->is_executable && !line->is_writable && !line->is_shared &&
	       line->is_readable && !line->is_copy;
}

static int pages_take_page(struct copying *c, const struct map_line *line, taddr_t page)
{
	const char *why;

	if (!gets_uprobes(line))
		return 0;
	why = reason_to_stay(c, page, line->offset + (page - line->start));
	if (!why)
		return pages_add_page(c, line, page);
	pages_stay(c->in, 1, why);
	return 0;
}

static int pages_find_runs(struct copying *c)
{
	struct maps_reader *maps;
	struct map_line line;
	size_t next = 0;
	int err = maps_open(&maps, c->s->all.pid);

	if (err)
		return err;
	while ((err = maps_next(maps, &line)) == 1) {
		pages_see_next(c, &line);
		if (next == c->nr_pages)
			break;
		while (next < c->nr_pages && c->pages[next] < line.start)
			next++;
		for (err = 0; next < c->nr_pages && c->pages[next] < line.end && !err; next++)
			err = pages_take_page(c, &line, c->pages[next]);
		if (err)
			break;
	}
	maps_close(maps);
	return err < 0 ? err : 0;
}

/* Readers of /proc/PID/maps see by the mappings beside a copy which file it belongs to. */
static void drop_lone_runs(struct copying *c)
{
	size_t nr = 0;

	for (size_t i = 0; i < c->runs.nr; i++) {
		const struct copied_run *run = &c->runs.runs[i];

		if (run->is_alone)
			pages_stay(c->in, run->bytes / PIECE_PAGE,
				   "no other mapping of the file is behind this code");
		else
			c->runs.runs[nr++] = *run;
	}
	c->runs.nr = nr;
}

/* ---- moving ---- */

/* A copy whose parked pages lie in [@start, @end). */
static const struct inject_copy *parked_in(const struct injection *in, taddr_t start, taddr_t end)
{
	for (u32 i = 0; i < in->nr_copies; i++)
		if (in->copies[i].park < end && start < in->copies[i].park + in->copies[i].bytes)
			return &in->copies[i];
	return NULL;
}

/* Where pages can be parked: also over those of a library that is gone. 0: no room. */
static taddr_t find_park(const struct injection *in, u64 bytes)
{
	const taddr_t start = in->region + PIECE_PARK_OFFSET;
	const struct inject_copy *other;
	taddr_t at = start;

	while ((other = parked_in(in, at, at + bytes)))
		at = other->park + other->bytes;
	return in->nr_copies < INJECT_MAX_COPIES && at + bytes <= start + PIECE_PARK_BYTES ? at : 0;
}

static int pages_move(struct stopped *s, taddr_t from, u64 bytes, int flags, taddr_t to)
{
	const u64 args[INJECT_ARGS] = { from, bytes, bytes, (u64)(MREMAP_MAYMOVE | MREMAP_FIXED | flags),
					to };
	u64 got;

	return inject_syscall(s, SYS_mremap, args, &got);
}

static int drop_copy(const struct copying *c, taddr_t copy, u64 bytes, int err)
{
	int ret = inject_unmap(c->s, copy, bytes);

	return err ? err : ret;
}

/* Write the jumps into @bytes, which are those of @run. -EAGAIN: the code is not that of the plan any more. */
static int write_patches(const struct copying *c, const struct copied_run *run, u8 *bytes)
{
	for (size_t i = 0; i < c->nr_patches; i++) {
		const struct inject_patch *p = &c->patches[i];
		u8 *at = bytes + (p->addr - run->addr);

		if (p->addr - run->addr >= run->bytes)
			continue;
		if (memcmp(at, p->old, p->len))
			return -EAGAIN;
		memcpy(at, p->new, p->len);
	}
	return 0;
}

/*
 * Make the copy, where it is unmapped together with the region should we die before it has its place. The jumps are in
 * its file, which gives a page its bytes again when the program drops it (MADV_DONTNEED). A byte of the original is
 * written over itself: parts of a mapping that was written to before it was divided become one again, also if uprobes
 * were written to several of them meanwhile.
 */
static int pages_make_copy(const struct copying *c, const struct copied_run *run, taddr_t *out)
{
	const taddr_t at = find_park(c->in, run->bytes);
	const u64 args[INJECT_ARGS] = {
		at, run->bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0), c->fd, run->offset
	};
	auto_free u8 *bytes = malloc(run->bytes);
	int err = bytes ? inject_read(c->mem, run->addr, bytes, run->bytes) : -ENOMEM;

	if (!err)
		err = inject_write(c->mem, run->addr, bytes, 1);
	if (!err)
		inject_hide_own(c->file, run->addr, bytes, run->bytes);
	if (!err)
		err = write_patches(c, run, bytes);
	if (!err && pwrite(c->ours, bytes, run->bytes, (off_t)run->offset) != (ssize_t)run->bytes)
		err = -EIO;
	return err ? err : inject_syscall(c->s, SYS_mmap, args, out);
}

/*
 * Put a copy in the place of @run, whose pages move to @park. Each call leaves code there: the first one moves the
 * pages, and keeps the mapping, the second one replaces it. *@is_harmed: there is no code now.
 */
static int copy_run(const struct copying *c, const struct copied_run *run, taddr_t park, bool *is_harmed)
{
	taddr_t copy;
	int err = pages_make_copy(c, run, &copy);

	if (err)
		return err;
	err = pages_move(c->s, run->addr, run->bytes, MREMAP_DONTUNMAP, park);
	if (!err) {
		err = pages_move(c->s, copy, run->bytes, 0, run->addr);
		if (!err)
			return 0;
		*is_harmed = pages_move(c->s, park, run->bytes, 0, run->addr) != 0;
	}
	return drop_copy(c, copy, run->bytes, err);
}

/* ---- the list of copies ---- */

/* Enter all runs for which there is room in the list, which must be complete before anything moves. */
static void list_runs(struct copying *c)
{
	struct injection *in = c->in;
	size_t nr = 0;

	for (size_t i = 0; i < c->runs.nr; i++) {
		const struct copied_run run = c->runs.runs[i];
		taddr_t park;

		/* Copies that lay there before: another file is mapped there now. */
		inject_forget_copies(in, run.addr, run.addr + run.bytes);
		park = find_park(in, run.bytes);
		if (!park) {
			pages_stay(in, run.bytes / PIECE_PAGE, "they are too many");
			continue;
		}
		in->copies[in->nr_copies] =
			(struct inject_copy){ .addr = run.addr, .park = park, .bytes = run.bytes };
		__atomic_store_n(&in->nr_copies, in->nr_copies + 1, __ATOMIC_RELEASE);
		c->runs.runs[nr++] = run;
	}
	c->runs.nr = nr;
}

/* The copies of all runs are the last ones in the list. Those that cannot be made are taken from it. */
static int copy_runs(const struct copying *c)
{
	struct injection *in = c->in;
	u32 first = in->nr_copies - (u32)c->runs.nr, nr = first;
	bool is_harmed = false;

	for (size_t i = 0; i < c->runs.nr && !is_harmed; i++) {
		const struct inject_copy copy = in->copies[first + i];
		int err = copy_run(c, &c->runs.runs[i], copy.park, &is_harmed);

		if (err)
			pages_stay(in, copy.bytes / PIECE_PAGE, strerror(-err));
		else
			in->copies[nr++] = copy;
	}
	if (is_harmed)
		return -EIO;
	if (nr == in->nr_copies)
		return 0;
	in->nr_copies = nr;
	return inject_save(in, c->mem);
}

static int pages_carry_out(struct copying *c)
{
	char name[INJECT_FILE_NAME];
	auto_close int ours = -1;
	u64 end = 0;
	int err, ret;

	for (size_t i = 0; i < c->runs.nr; i++)
		if (c->runs.runs[i].offset + c->runs.runs[i].bytes > end)
			end = c->runs.runs[i].offset + c->runs.runs[i].bytes;
	/* The name is for people who read /proc/PID/maps. */
	snprintf(name, sizeof(name), INJECT_COPY_NAME "%s", c->file->path);
	list_runs(c);
	err = c->runs.nr ? inject_save(c->in, c->mem) : 0;
	if (err || !c->runs.nr)
		return err;
	err = inject_make_file(c->s, c->mem, name, end, &c->fd);
	if (err) {
		for (size_t i = 0; i < c->runs.nr; i++)
			pages_stay(c->in, c->runs.runs[i].bytes / PIECE_PAGE, strerror(-err));
		c->in->nr_copies -= (u32)c->runs.nr;
		return inject_save(c->in, c->mem);
	}
	c->ours = ours = inject_open_file(c->s->all.pid, c->fd);
	err = copy_runs(c);
	ret = inject_close(c->s, c->fd);
	return err ? err : ret;
}

/* ---- pages that stay ---- */

bool inject_is_guarded(const char *smaps, taddr_t addr)
{
	auto_fclose FILE *f = fopen(smaps, "re");
	auto_free char *line = NULL;
	bool is_there = false;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		taddr_t start, end;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2)
			is_there = addr >= start && addr < end;
		else if (is_there && !strncmp(line, "VmFlags:", 8))
			return strstr(line, " bt");
	}
	return false;
}

static bool pages_is_copied(const struct injection *in, taddr_t page)
{
	for (u32 i = 0; i < in->nr_copies; i++)
		if (page - in->copies[i].addr < in->copies[i].bytes)
			return true;
	return false;
}

/* Copies are not guarded. */
static int check_guards(const struct copying *c)
{
	char smaps[32];

	snprintf(smaps, sizeof(smaps), "/proc/%d/smaps", c->s->all.pid);
	for (size_t i = 0; code_native()->has_guards && i < c->nr_pages; i++)
		if (!pages_is_copied(c->in, c->pages[i]) && inject_is_guarded(smaps, c->pages[i]))
			return inject_fail(c->in, -EOPNOTSUPP,
					   "its code is guarded (BTI), and cannot be copied: %s",
					   c->in->why_in_place);
	return 0;
}

int inject_pages_copy(struct injection *in, struct stopped *s, int mem, const struct inject_patch *patches,
		      size_t nr, const struct inject_file *f)
{
	struct copying c = { .in = in, .s = s, .mem = mem, .file = f, .patches = patches, .nr_patches = nr };
	int err = list_pages(&c);

	if (!err)
		err = pages_find_runs(&c);
	if (!err) {
		drop_lone_runs(&c);
		err = pages_carry_out(&c);
	}
	if (!err && f->must_move && in->nr_in_place)
		err = inject_fail(in, -EOPNOTSUPP, "its code cannot be copied: %s", in->why_in_place);
	if (!err)
		err = check_guards(&c);
	free(c.runs.runs);
	free(c.pages);
	return err;
}

/* ---- back ---- */

struct copy_state {
	bool is_there, is_parked;
};

/* Which of the copies @first and on are there? */
static int look_at_copies(struct copy_state *states, const struct injection *in, u32 first)
{
	struct maps_reader *maps;
	struct map_line line;
	int err = maps_open(&maps, in->pid);

	if (err)
		return err;
	while ((err = maps_next(maps, &line)) == 1) {
		for (u32 i = first; i < in->nr_copies; i++) {
			const struct inject_copy *c = &in->copies[i];

			if (line.start <= c->addr && c->addr + c->bytes <= line.end)
				states[i].is_there = line.is_copy;
			if (line.start <= c->park && c->park + c->bytes <= line.end)
				states[i].is_parked = line.is_parked;
		}
	}
	maps_close(maps);
	return err;
}

int inject_pages_return(struct injection *in, struct stopped *s, u32 first)
{
	auto_free struct copy_state *states = calloc(INJECT_MAX_COPIES, sizeof(*states));
	u32 nr = first;
	int err = states ? look_at_copies(states, in, first) : -ENOMEM, ret;

	if (err)
		return err;
	for (u32 i = first; i < in->nr_copies; i++) {
		struct inject_copy c = in->copies[i];

		ret = states[i].is_there && states[i].is_parked ? pages_move(s, c.park, c.bytes, 0, c.addr)
								: 0;
		if (ret) {
			err = ret == -EINPROGRESS || ret == -ETIME || ret == -EPERM ? ret : -EBUSY;
			in->copies[nr++] = c;
		}
	}
	in->nr_copies = nr;
	return err;
}

void inject_forget_copies(struct injection *in, taddr_t start, taddr_t end)
{
	u32 nr = 0;

	for (u32 i = 0; i < in->nr_copies; i++)
		if (in->copies[i].addr < start || in->copies[i].addr >= end)
			in->copies[nr++] = in->copies[i];
	in->nr_copies = nr;
}
