/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copy a running process in rounds. */
#include "user/scan/precopy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/clock.h"
#include "user/lib/courtesy.h"
#include "user/lib/log.h"
#include "user/lib/proc_memory.h"
#include "user/lib/progress.h"
#include "user/scan/page_copy.h"
#include "user/scan/page_scan.h"
#include "user/scan/page_watch.h"
#include "user/scan/snapshot_make.h"

enum {
	MAX_ROUNDS = 10,
	ENOUGH = 2 << 20, /* bytes of a round: so few are copied in a stop of about a millisecond */
	NR_RUNS = 512,
	MAX_READ = 256 << 10, /* bytes of one read: the kernel may let nobody else work meanwhile */
};

/* The copy of one mapping: as large as that, and filled where pages are. */
struct mirror {
	taddr_t start, end;
	u8 *data;     /* owned */
	u8 *has;      /* owned; for each page: data has it */
	u64 nr_pages; /* that it has */
};

struct precopy {
	pid_t pid;
	struct page_watch watch;
	struct proc_memory memory; /* owned */
	struct precopy_options options;
	u64 page;		/* bytes */
	u64 bytes;		/* of all pages that mirrors have */
	u64 new_bytes;		/* copied in this round */
	u64 deadline_ns;	/* 0 = none */
	struct mirror *mirrors; /* owned; by address */
	size_t nr, max;
};

static void mirror_fini(struct mirror *m, u64 page)
{
	if (m->data)
		munmap(m->data, m->end - m->start);
	if (m->has)
		munmap(m->has, (m->end - m->start) / page);
}

void precopy_free(struct precopy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nr && p->watch.fd >= 0; i++)
		page_watch_remove(&p->watch, p->mirrors[i].start, p->mirrors[i].end);
	page_watch_close(&p->watch);
	proc_memory_close(&p->memory);
	for (size_t i = 0; i < p->nr; i++)
		mirror_fini(&p->mirrors[i], p->page);
	free(p->mirrors);
	free(p);
}

int precopy_new(struct precopy **out, pid_t pid, const struct precopy_options *options)
{
	struct precopy *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->options = *options;
	p->options.holder = NULL;
	p->page = (u64)sysconf(_SC_PAGESIZE);
	err = page_watch_open(&p->watch, pid, options->holder, options->max_pause_ns);
	if (!err)
		err = proc_memory_open(&p->memory, pid);
	if (err) {
		precopy_free(p);
		return err;
	}
	*out = p;
	return 0;
}

u64 precopy_rest(const struct precopy *p)
{
	return p->new_bytes;
}

u64 precopy_pause(const struct precopy *p)
{
	return p->watch.pause_ns;
}

/* The mirror that contains @map, or NULL. */
static struct mirror *find_mirror(const struct precopy *p, const struct snapshot_map *map)
{
	size_t at = array_search(i, 0, p->nr, p->mirrors[i].end <= map->start);
	struct mirror *m = &p->mirrors[at];

	return at < p->nr && m->start <= map->start && m->end >= map->end ? m : NULL;
}

/* Drop the mirrors that overlap @map: the mapping has grown, or is another one. Returns the place for a new one. */
static size_t drop_mirrors(struct precopy *p, const struct snapshot_map *map)
{
	size_t from = array_search(i, 0, p->nr, p->mirrors[i].end <= map->start), to = from;

	for (; to < p->nr && p->mirrors[to].start < map->end; to++) {
		p->bytes -= p->mirrors[to].nr_pages * p->page;
		mirror_fini(&p->mirrors[to], p->page);
	}
	if (to == from)
		return from;
	memmove(&p->mirrors[from], &p->mirrors[to], (p->nr - to) * sizeof(*p->mirrors));
	p->nr -= to - from;
	return from;
}

/* Memory of which only what is written takes room, or NULL. */
static void *precopy_reserve(u64 len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* -ENOMEM also if this process has no room for addresses. */
static int mirror_init(struct mirror *m, const struct snapshot_map *map, u64 page)
{
	u64 len = map->end - map->start;

	*m = (struct mirror){ .start = map->start, .end = map->end };
	m->data = precopy_reserve(len);
	m->has = precopy_reserve(len / page);
	if (m->data && m->has)
		return 0;
	mirror_fini(m, page);
	return -ENOMEM;
}

static int add_mirror(struct precopy *p, const struct snapshot_map *map)
{
	size_t at = drop_mirrors(p, map);
	struct mirror m;
	int err = array_reserve(p->mirrors, p->max, p->nr + 1);

	if (!err)
		err = mirror_init(&m, map, p->page);
	if (err)
		return err;
	memmove(&p->mirrors[at + 1], &p->mirrors[at], (p->nr - at) * sizeof(*p->mirrors));
	p->mirrors[at] = m;
	p->nr++;
	return 0;
}

/* Note that @m has the pages of [at, at + len). */
static void note_copied(struct precopy *p, struct mirror *m, taddr_t at, u64 len)
{
	u8 *has = m->has + (at - m->start) / p->page;

	for (u64 i = 0; i < len / p->page; i++) {
		p->bytes += has[i] ? 0 : p->page;
		m->nr_pages += !has[i];
		has[i] = 1;
	}
	p->new_bytes += len;
}

static void forget_page(struct precopy *p, struct mirror *m, taddr_t at)
{
	u8 *has = m->has + (at - m->start) / p->page;

	p->bytes -= *has ? p->page : 0;
	m->nr_pages -= *has;
	*has = 0;
}

/* Copy [at, end). Pages that cannot be read are not noted. */
static int precopy_copy_range(struct precopy *p, struct mirror *m, taddr_t at, taddr_t end)
{
	while (at < end) {
		u64 len = end - at < MAX_READ ? end - at : MAX_READ;
		ssize_t nr = proc_memory_read_much(&p->memory, at, m->data + (at - m->start), len);
		u64 whole = nr > 0 ? (u64)nr / p->page * p->page : 0;

		if (nr == 0)
			return -ESRCH;
		note_copied(p, m, at, whole);
		if (p->bytes > p->options.max_bytes)
			return -E2BIG;
		if (!whole)
			forget_page(p, m, at);
		at += whole ? whole : p->page;
	}
	return 0;
}

static int precopy_check_time(const struct precopy *p)
{
	if (p->options.is_unwanted && p->options.is_unwanted())
		return -ECANCELED;
	return p->deadline_ns && clock_now_ns() > p->deadline_ns ? -ETIME : 0;
}

/* One round in one mapping. */
static int copy_pages(struct precopy *p, struct mirror *m, const struct snapshot_map *map,
		      enum page_find which)
{
	struct page_run runs[NR_RUNS];
	taddr_t pos = map->start;
	int err = 0;

	while (pos < map->end && !err) {
		int nr = page_watch_find(&p->watch, &pos, map->end, which, runs, NR_RUNS);

		err = nr < 0 ? nr : precopy_check_time(p);
		for (int i = 0; i < nr && !err; i++)
			err = precopy_copy_range(p, m, runs[i].start, runs[i].end);
		progress_bytes(p->bytes, p->options.usual_bytes);
	}
	return err;
}

/* A mapping that has no mirror of its own, as mappings change and merge, is copied as a whole. */
static int precopy_copy_map(struct precopy *p, const struct snapshot_map *map)
{
	struct mirror *m = find_mirror(p, map);
	enum page_find which = m ? FIND_WRITTEN : FIND_NEW;
	int err = 0;

	/* Somebody else watches it, or it is gone again: then it is read in the stop. */
	if (page_watch_add(&p->watch, map->start, map->end))
		return 0;
	if (!m)
		err = add_mirror(p, map);
	m = err ? NULL : find_mirror(p, map);
	return m ? copy_pages(p, m, map, which) : err;
}

static int copy_round(struct precopy *p)
{
	struct snapshot now = { .pid = p->pid, .mem_tid = p->pid };
	int err = snapshot_read_maps(&now);

	p->new_bytes = 0;
	for (size_t i = 0; i < now.nr_maps && !err; i++)
		if (snapshot_map_is_own(&now.maps[i]))
			err = precopy_copy_map(p, &now.maps[i]);
	snapshot_fini(&now);
	return err;
}

int precopy_run(struct precopy *p)
{
	u64 last = UINT64_MAX;
	int err = 0;

	/* Page faults and new mappings of the process wait for locks that this takes. */
	courtesy_end();
	for (int i = 0; i < MAX_ROUNDS && !err; i++) {
		err = copy_round(p);
		debug("scan: PID %d: round %d: copied %llu bytes", (int)p->pid, i + 1,
		      (unsigned long long)p->new_bytes);
		/* The process writes as fast as it is copied: the rest does not get less. */
		if (p->new_bytes <= ENOUGH || (i > 2 && p->new_bytes > last - last / 4))
			break;
		last = p->new_bytes;
	}
	return err;
}

/* Append [start, end) of @m to @kept. Pages that @m has not are tried once more. */
static int keep_run(struct precopy *p, struct mirror *m, taddr_t start, taddr_t end, struct page_copy *kept,
		    struct snapshot *s)
{
	int err = 0;

	while (start < end && !err) {
		const u8 *has = m->has + (start - m->start) / p->page;
		u64 nr = (end - start) / p->page;
		const u8 *hole = memchr(has, 0, nr);
		u64 len = (hole ? (u64)(hole - has) : nr) * p->page;

		if (len)
			err = page_copy_add_part(kept, start, m->data + (start - m->start), len);
		start += len;
		if (!hole || err)
			continue;
		err = precopy_copy_range(p, m, start, start + p->page);
		if (*hole)
			continue;
		if (!page_watch_is_guard(&p->watch, start))
			s->skipped_bytes[SKIP_FAULT] += p->page;
		start += p->page;
	}
	return err;
}

/* A page that @m has, and that was not written since, is current. All others are copied now. */
static int finish_map(struct precopy *p, struct mirror *m, struct snapshot *s, const struct snapshot_map *map,
		      struct page_copy *kept)
{
	struct page_run runs[NR_RUNS];
	taddr_t pos = map->start;
	int err = 0;

	while (pos < map->end && !err) {
		int nr = page_watch_find(&p->watch, &pos, map->end, FIND_STATE, runs, NR_RUNS);

		err = nr < 0 ? nr : precopy_check_time(p);
		for (int i = 0; i < nr && !err; i++) {
			if ((runs[i].categories & (RUN_WATCHED | RUN_WRITTEN)) != RUN_WATCHED)
				err = precopy_copy_range(p, m, runs[i].start, runs[i].end);
			if (!err)
				err = keep_run(p, m, runs[i].start, runs[i].end, kept, s);
		}
	}
	return err;
}

/* The memory of all mirrors belongs to @kept from now on. */
static int precopy_hand_over(struct precopy *p, struct page_copy *kept)
{
	for (size_t i = 0; i < p->nr; i++) {
		struct mirror *m = &p->mirrors[i];
		int err = page_copy_own(kept, m->data, m->end - m->start);

		if (err)
			return err;
		m->data = NULL;
	}
	return 0;
}

int precopy_finish(struct precopy *p, struct snapshot *s, u64 deadline_ns, struct page_copy *kept,
		   bool *is_done)
{
	int err = 0;
	u8 byte;

	/* After an exec the memory is another one. */
	if (p->nr && proc_memory_read(&p->memory, p->mirrors[0].start, &byte, 1) == 0)
		return -ESRCH;
	p->deadline_ns = deadline_ns;
	p->options.is_unwanted = NULL;
	p->new_bytes = 0;
	for (size_t i = 0; i < s->nr_maps && !err; i++) {
		struct mirror *m = snapshot_map_is_own(&s->maps[i]) ? find_mirror(p, &s->maps[i]) : NULL;

		if (!m)
			continue;
		is_done[i] = true;
		err = finish_map(p, m, s, &s->maps[i], kept);
		if (!err)
			err = page_copy_whole(kept, s->maps[i].start, s->maps[i].end);
	}
	debug("scan: PID %d: copied %llu bytes in the stop", (int)p->pid, (unsigned long long)p->new_bytes);
	return err ? err : precopy_hand_over(p, kept);
}
