/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process in pieces. Workers find populated pages by pagemap, read them, and show them to the visitor. */
#include "user/scan/snapshot_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/maps.h"
#include "user/lib/proc_memory.h"
#include "user/lib/thread.h"
#include "user/scan/page_copy.h"
#include "user/scan/page_scan.h"
#include "user/scan/snapshot_resident.h"

enum {
	PIECE_RUNS = 16, /* most runs of a piece; where memory is dense it has few */
	NR_RUNS = 256,
	NR_ENTRIES = 4096,    /* pagemap entries per read */
	MAX_CLOSED = 1 << 30, /* bytes without rights; before Linux 6.7 to look through more takes too long */
	MAX_WORKERS = SNAPSHOT_PARTS, /* one for each part at most */
	PARTS_EACH = 4,
};

/* Which pages of a mapping are read. */
enum span_mode {
	SPAN_ALL,     /* all populated ones */
	SPAN_PRIVATE, /* private copies: read-only now, but written before (relocated data) */
	SPAN_CLOSED,  /* the same without rights, which mprotect(2) may give back */
	SPAN_SHMEM,   /* all pages of the file, because pagemap does not show which are swapped out */
	SPAN_KEPT,    /* all that heaptap keeps */
	SPAN_SKIP,    /* none; populated ones count as skipped */
};

struct memory_span {
	taddr_t start, end;
	u64 offset; /* of start, in the file */
	u32 map;
	u8 mode, skip; /* skip: the reason, for SPAN_SKIP */
	bool is_file;  /* SPAN_KEPT: what was never written is as in the file, and not kept */
};

/* Populated memory of one mapping. */
struct memory_run {
	taddr_t start;
	u32 len;
	u32 map;
};

/* The memory that one worker reads and shows at a time: at most SNAPSHOT_MAX_CHUNK bytes. */
struct memory_piece {
	u32 part;
	u32 nr;
	struct memory_run runs[PIECE_RUNS];
};

/* Where the next piece is. Under plan_lock, which only workers take. */
struct plan {
	size_t span; /* index of the present span */
	taddr_t pos; /* in the span; the pages before are in runs already */
	struct page_run runs[NR_RUNS];
	int nr_runs, next_run;
	taddr_t at, end; /* the rest of the present run */
	bool has_scan;	 /* PAGEMAP_SCAN works (Linux 6.7) */
	bool is_begun;
};

struct memory_stream {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	u32 refs;
	u32 nr_begun, nr_done; /* pieces since the start; the pieces between the two are being shown */
	u32 nr_workers;	       /* that have not ended */
	u32 nr_inside;	       /* workers inside a function of the visitor */
	u32 nr_parts;	       /* parts in use; each takes memory */
	bool is_shown[SNAPSHOT_PARTS]; /* complete, but the visitor has not collected it yet */
	bool is_handing;	       /* a worker is inside visitor.done() */
	bool is_over;		       /* workers shall end */
	int status;
	u64 skipped[NR_SNAPSHOT_SKIPS], read_bytes;
	/* Do not change while workers run. After is_over the visitor may not exist any more. */
	struct snapshot_visitor visitor;
	u64 deadline_ns;
	u32 nr_jobs; /* 0 = one for each CPU */
	pid_t tid;
	struct proc_memory memory; /* owned */
	int pagemap;		   /* owned; -1: not known which pages are populated, read all */
	u64 page;		   /* bytes */
	struct page_copy kept;	   /* owned: a worker may outlive the snapshot */
	struct memory_span *spans; /* owned; workers may change the mode, under plan_lock */
	size_t nr_spans;
	pthread_mutex_t plan_lock;
	struct plan plan;
};

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool memory_is_device(const struct snapshot_map *map)
{
	static const char *const devices[] = { "/dev/", "/sys/", "/proc/", "/dmabuf:", "anon_inode:" };
	static const char *const plain[] = { "/dev/zero", "/dev/shm/", "/dev/hugepages/",
					     "anon_inode:[io_uring]" };

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (starts_with(map->path, plain[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		if (starts_with(map->path, devices[i]))
			return true;
	return false;
}

/* True for shared memory in a file system that cannot hang. */
static bool is_shmem(const struct snapshot_map *map)
{
	static const char *const places[] = { "/dev/shm/", "/memfd:", "/dev/zero", "/SYSV",
					      "/anon_hugepage" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (starts_with(map->path, places[i]))
			return true;
	return false;
}

/* Choose the pages of @map that are read. False: none, and none counts as skipped. */
static bool span_of(const struct snapshot_map *map, struct memory_span *span)
{
	if (starts_with(map->path, "[v")) /* vdso, vvar, vsyscall: memory of the kernel */
		return false;
	/* Ours, of the inline source: it names blocks that the program itself has forgotten. */
	if (starts_with(map->path, MAPS_PIECE_PATH))
		return false;
	if (!map->is_writable && map->is_shared)
		return false;
	span->start = map->start;
	span->end = map->end;
	span->mode = map->is_writable ? SPAN_ALL : SPAN_PRIVATE;
	if (map->is_shared && is_shmem(map))
		span->mode = SPAN_SHMEM;
	span->offset = map->file_offset;
	if (memory_is_device(map)) {
		span->mode = SPAN_SKIP;
		span->skip = SKIP_DEVICE;
		return map->is_writable;
	}
	if (!map->is_readable && !map->is_writable) {
		span->mode = SPAN_CLOSED;
	} else if (!map->is_readable) {
		span->mode = SPAN_SKIP;
		span->skip = SKIP_UNREADABLE;
	}
	return true;
}

static int snapshot_memory_make_spans(struct memory_stream *m, const struct snapshot *s,
				      const struct memory_options *o)
{
	m->spans = calloc(s->nr_maps ? s->nr_maps : 1, sizeof(*m->spans));
	if (!m->spans)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_maps; i++) {
		struct memory_span *span = &m->spans[m->nr_spans];
		bool is_kept = o->is_kept && o->is_kept[i];

		span->map = (u32)i;
		if ((o->is_kept && !o->kept && !is_kept) || !span_of(&s->maps[i], span))
			continue;
		if (is_kept && o->kept) {
			/* Whoever kept the others has counted what cannot be read. */
			if (span->mode == SPAN_SKIP)
				continue;
			span->mode = SPAN_KEPT;
			span->is_file = s->maps[i].ino && !s->maps[i].is_writable;
		}
		m->nr_spans++;
	}
	return 0;
}

/* Narrow @span to what exists, where nobody tells which pages do. False: nothing of it exists. */
static bool narrow_span(struct memory_span *span, const struct resident_map *map)
{
	u64 bytes = span->mode == SPAN_PRIVATE ? map->private_bytes : map->bytes;

	/* A read would make missing pages of shared memory, and pages that another process has filled do not count. */
	if (span->mode == SPAN_SHMEM && bytes < span->end - span->start) {
		span->mode = SPAN_SKIP;
		span->skip = SKIP_UNREADABLE;
	}
	return bytes || span->mode == SPAN_SKIP;
}

/* Without pagemap: drop the spans of which nothing is in memory. Without smaps too, all are read. */
static int narrow_spans(struct memory_stream *m)
{
	auto_free struct resident_map *maps = NULL;
	size_t nr_maps, nr = 0;
	int err = resident_read(&maps, &nr_maps, m->tid);

	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t i = 0; i < m->nr_spans; i++) {
		const struct resident_map *map = resident_find(maps, nr_maps, m->spans[i].start);

		if (!map || m->spans[i].mode == SPAN_KEPT || narrow_span(&m->spans[i], map))
			m->spans[nr++] = m->spans[i];
	}
	m->nr_spans = nr;
	return 0;
}

static void stream_put(struct memory_stream *m)
{
	bool is_last;

	pthread_mutex_lock(&m->lock);
	is_last = --m->refs == 0;
	pthread_mutex_unlock(&m->lock);
	if (!is_last)
		return;
	proc_memory_close(&m->memory);
	if (m->pagemap >= 0)
		close(m->pagemap);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->plan_lock);
	if (HAS_COPIES)
		page_copy_fini(&m->kept);
	free(m->spans);
	free(m);
}

static int open_files(struct memory_stream *m, pid_t tid)
{
	int err = proc_memory_open(&m->memory, tid);
	char path[32];

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", tid);
	m->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	return m->pagemap < 0 ? narrow_spans(m) : 0;
}

static int init_sync(struct memory_stream *m)
{
	pthread_condattr_t attr;
	int err = pthread_condattr_init(&attr);

	if (err)
		return -err;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = pthread_cond_init(&m->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (err)
		return -err;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->plan_lock, NULL);
	return 0;
}

int memory_stream_new(struct memory_stream **out, const struct snapshot *s, const struct memory_options *o)
{
	struct memory_stream *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	err = init_sync(m);
	if (err) {
		free(m);
		return err;
	}
	m->refs = 1;
	m->pagemap = -1;
	m->tid = o->tid;
	m->plan.has_scan = true;
	m->page = (u64)sysconf(_SC_PAGESIZE);
	m->deadline_ns = o->deadline_ns;
	m->nr_jobs = s->nr_jobs;
	err = snapshot_memory_make_spans(m, s, o);
	if (!err)
		err = open_files(m, o->tid);
	if (err) {
		stream_put(m);
		return err;
	}
	if (o->kept) {
		m->kept = *o->kept;
		*o->kept = (struct page_copy){ 0 };
	}
	*out = m;
	return 0;
}

/* Count @bytes as skipped. */
static void skip_bytes(struct memory_stream *m, enum snapshot_skip why, u64 bytes)
{
	pthread_mutex_lock(&m->lock);
	m->skipped[why] += bytes;
	pthread_mutex_unlock(&m->lock);
}

static bool is_private_only(const struct memory_span *span)
{
	return span->mode == SPAN_PRIVATE || span->mode == SPAN_CLOSED;
}

/* Find runs from plan.pos on by PAGEMAP_SCAN, and advance plan.pos. Returns how many, or -errno. */
static int find_by_scan(struct memory_stream *m, const struct memory_span *span)
{
	u64 without = RUN_ZERO | (is_private_only(span) ? RUN_FILE : 0);
	struct plan *plan = &m->plan;
	struct page_scan arg = {
		.size = sizeof(arg),
		.start = plan->pos,
		.end = span->end,
		.vec = (u64)(uintptr_t)plan->runs,
		.vec_len = NR_RUNS,
		.category_inverted = without,
		.category_mask = without,
		.category_anyof_mask = RUN_PRESENT | RUN_SWAPPED,
		.return_mask = RUN_PRESENT | RUN_SWAPPED,
	};
	int nr = ioctl(m->pagemap, PAGE_SCAN, &arg);

	if (nr < 0)
		return -errno;
	plan->pos = arg.walk_end > plan->pos ? arg.walk_end : span->end;
	return nr;
}

static bool snapshot_memory_is_wanted(const struct memory_span *span, u64 entry)
{
	if (!(entry & (ENTRY_PRESENT | ENTRY_SWAPPED)) || entry_is_guard(entry))
		return false;
	return !is_private_only(span) || !(entry & ENTRY_FILE);
}

/* Make one run of the rest of the span. */
static int snapshot_memory_take_rest(struct plan *plan, const struct memory_span *span)
{
	plan->runs[0] = (struct page_run){ .start = plan->pos, .end = span->end };
	plan->pos = span->end;
	return 1;
}

/* Like find_by_scan(), for kernels before 6.7. */
static int find_by_entries(struct memory_stream *m, const struct memory_span *span)
{
	struct plan *plan = &m->plan;
	size_t want = (span->end - plan->pos) / m->page, nr;
	u64 entries[NR_ENTRIES];
	int nr_runs = 0;
	ssize_t len;

	want = (want < NR_ENTRIES ? want : NR_ENTRIES) * sizeof(*entries);
	len = pread(m->pagemap, entries, want, (off_t)(plan->pos / m->page * sizeof(*entries)));
	if (len < (ssize_t)sizeof(*entries))
		return snapshot_memory_take_rest(plan, span); /* not known: read all */
	nr = (size_t)len / sizeof(*entries);
	for (size_t i = 0; i < nr; i++, plan->pos += m->page) {
		bool is_next = nr_runs && plan->runs[nr_runs - 1].end == plan->pos;

		if (!snapshot_memory_is_wanted(span, entries[i]))
			continue;
		if (!is_next && nr_runs == NR_RUNS)
			break;
		if (!is_next)
			plan->runs[nr_runs++].start = plan->pos;
		plan->runs[nr_runs - 1].end = plan->pos + m->page;
	}
	return nr_runs;
}

/* Like find_by_scan(): the pages that a file of shared memory holds. -ENOTTY: not known. */
static int find_by_seek(struct memory_stream *m, const struct memory_span *span)
{
	struct plan *plan = &m->plan;
	u64 at = span->offset + (plan->pos - span->start), end = span->offset + (span->end - span->start);
	auto_close int fd = -1;
	char path[96];
	int nr = 0;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, m->tid, span->start,
		 span->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (lseek(fd, (off_t)at, SEEK_DATA) < 0 && errno != ENXIO))
		return -ENOTTY;
	while (at < end && nr < NR_RUNS) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole;

		if (data < 0 || (u64)data >= end) {
			at = end;
			break;
		}
		hole = lseek(fd, data, SEEK_HOLE);
		at = hole < 0 || (u64)hole > end ? end : (u64)hole;
		plan->runs[nr++] = (struct page_run){ .start = span->start + ((u64)data - span->offset),
						      .end = span->start + (at - span->offset) };
	}
	plan->pos = span->start + (at - span->offset);
	return nr;
}

/* Like find_by_scan(): the pages that heaptap keeps. */
static int snapshot_memory_find_kept(struct memory_stream *m, const struct memory_span *span)
{
	struct plan *plan = &m->plan;
	const struct page_copy *kept = &m->kept;
	size_t at = page_copy_find(kept, plan->pos);
	int nr = 0;

	for (; at < kept->nr && kept->runs[at].start < span->end && nr < NR_RUNS; at++) {
		plan->runs[nr++] =
			(struct page_run){ .start = kept->runs[at].start, .end = kept->runs[at].end };
		plan->pos = kept->runs[at].end;
	}
	if (nr < NR_RUNS)
		plan->pos = span->end;
	return nr;
}

/* Find runs of the present span from plan.pos on, and advance plan.pos. Returns how many, or -errno. */
static int snapshot_memory_find_runs(struct memory_stream *m, struct memory_span *span)
{
	int nr = span->mode == SPAN_SHMEM ? find_by_seek(m, span) : -ENOTTY;

	if (HAS_COPIES && span->mode == SPAN_KEPT)
		return snapshot_memory_find_kept(m, span);
	if (nr != -ENOTTY)
		return nr;
	if (span->mode == SPAN_SHMEM)
		span->mode = SPAN_ALL;
	/* Such memory is mostly reserved and was never written. A read would fill it. */
	if (span->mode == SPAN_CLOSED &&
	    (m->pagemap < 0 || (!m->plan.has_scan && span->end - span->start > MAX_CLOSED))) {
		m->plan.pos = span->end;
		return 0;
	}
	if (m->pagemap < 0)
		return snapshot_memory_take_rest(&m->plan, span);
	if (!m->plan.has_scan)
		return find_by_entries(m, span);
	nr = find_by_scan(m, span);
	if (nr != -ENOTTY && nr != -EINVAL)
		return nr;
	m->plan.has_scan = false;
	return snapshot_memory_find_runs(m, span);
}

/* -ESRCH if the address space is gone: then no page is found, and read() returns 0. */
static int check_alive(const struct memory_stream *m)
{
	u8 byte;

	return m->nr_spans && proc_memory_read(&m->memory, m->spans[0].start, &byte, 1) == 0 ? -ESRCH : 0;
}

/* Advance to the next run that is to be read. 1; 0 at the end; or -errno. */
static int next_run(struct memory_stream *m)
{
	struct plan *plan = &m->plan;

	while (plan->span < m->nr_spans) {
		struct memory_span *span = &m->spans[plan->span];
		const struct page_run *run = &plan->runs[plan->next_run];

		if (!plan->is_begun) {
			plan->pos = span->start;
			plan->is_begun = true;
		}
		if (plan->next_run == plan->nr_runs) {
			int nr = plan->pos < span->end ? snapshot_memory_find_runs(m, span) : 0;

			if (nr < 0)
				return nr;
			plan->next_run = 0;
			plan->nr_runs = nr;
			if (!nr && plan->pos >= span->end) {
				plan->span++;
				plan->is_begun = false;
			}
			continue;
		}
		plan->next_run++;
		if (span->mode == SPAN_SKIP) {
			skip_bytes(m, span->skip, run->end - run->start);
			continue;
		}
		plan->at = run->start;
		plan->end = run->end;
		return 1;
	}
	return check_alive(m);
}

/* Fill @piece with the next runs. 0; -ECANCELED at the end; or -errno. */
static int plan_piece(struct memory_stream *m, struct memory_piece *piece)
{
	struct plan *plan = &m->plan;
	u64 room = SNAPSHOT_MAX_CHUNK;

	piece->nr = 0;
	while (room && piece->nr < PIECE_RUNS) {
		u64 left = plan->end - plan->at;
		int nr = left ? 1 : next_run(m);

		if (nr < 0)
			return nr;
		if (nr == 0)
			break;
		left = plan->end - plan->at;
		left = left < room ? left : room;
		piece->runs[piece->nr++] = (struct memory_run){ .start = plan->at,
								.len = (u32)left,
								.map = m->spans[plan->span].map };
		plan->at += left;
		room -= left;
	}
	return piece->nr ? 0 : -ECANCELED;
}

/* Choose the next piece and its part. Waits until the part is free. 0; -ECANCELED: no more pieces; -errno. */
static int begin_piece(struct memory_stream *m, struct memory_piece *piece)
{
	int err;

	pthread_mutex_lock(&m->plan_lock);
	err = plan_piece(m, piece);
	pthread_mutex_lock(&m->lock);
	while (!err && !m->is_over && m->nr_begun - m->nr_done == m->nr_parts)
		pthread_cond_wait(&m->changed, &m->lock);
	if (!err && m->is_over)
		err = -ECANCELED;
	if (!err)
		piece->part = m->nr_begun++ % m->nr_parts;
	pthread_mutex_unlock(&m->lock);
	pthread_mutex_unlock(&m->plan_lock);
	return err;
}

/* Enter the visitor, which exists while workers are inside. False if it may not exist any more. */
static bool snapshot_memory_enter(struct memory_stream *m, u64 nr_bytes)
{
	bool is_over;

	pthread_mutex_lock(&m->lock);
	is_over = m->is_over;
	if (!is_over) {
		m->nr_inside++;
		m->read_bytes += nr_bytes;
	}
	pthread_mutex_unlock(&m->lock);
	return !is_over;
}

/* Leave the visitor. The lock is held. The first error ends all workers. */
static void snapshot_memory_leave(struct memory_stream *m, int err)
{
	m->nr_inside--;
	if (err && !m->is_over) {
		m->is_over = true;
		m->status = err;
	}
	pthread_cond_broadcast(&m->changed);
}

static int snapshot_memory_show(struct memory_stream *m, u32 part, const struct snapshot_chunk *chunk)
{
	int err;

	if (!snapshot_memory_enter(m, chunk->len))
		return -ECANCELED;
	err = m->visitor.look(m->visitor.ctx, part, chunk);
	pthread_mutex_lock(&m->lock);
	snapshot_memory_leave(m, err);
	pthread_mutex_unlock(&m->lock);
	return err;
}

/* Like proc_memory_read(), into @buffer or elsewhere: *@data. What heaptap keeps comes first, and stays where it is. */
static ssize_t snapshot_memory_read_some(struct memory_stream *m, taddr_t addr, u8 *buffer, size_t len,
					 const u8 **data)
{
	*data = HAS_COPIES ? page_copy_at(&m->kept, addr, &len) : NULL;
	if (*data)
		return (ssize_t)len;
	*data = buffer;
	return proc_memory_read_much(&m->memory, addr, buffer, len);
}

/* Read and show one run. */
static int show_run(struct memory_stream *m, u32 part, const struct memory_run *run, u8 *buffer)
{
	taddr_t at = run->start, end = run->start + run->len;
	int err = 0;

	while (at < end && !err) {
		struct snapshot_chunk chunk = { .addr = at, .map = run->map };
		ssize_t len = snapshot_memory_read_some(m, at, buffer, end - at, &chunk.data);

		if (len == 0)
			return -ESRCH; /* the address space is gone */
		if (len < 0) {
			/* Skip one page: the read failed at the first one. PAGEMAP_SCAN lists guards as swapped out. */
			if (m->pagemap < 0 || !page_scan_is_guard(m->pagemap, at))
				skip_bytes(m, SKIP_FAULT, m->page - at % m->page);
			at += m->page - at % m->page;
			continue;
		}
		chunk.len = (size_t)len;
		err = snapshot_memory_show(m, part, &chunk);
		at += (u64)len;
	}
	return err;
}

/* Let the visitor collect complete pieces, in order. A worker that does so already will see this piece too. */
static void end_piece(struct memory_stream *m, u32 part)
{
	pthread_mutex_lock(&m->lock);
	m->is_shown[part] = true;
	while (!m->is_over && !m->is_handing && m->is_shown[m->nr_done % m->nr_parts]) {
		u32 next = m->nr_done % m->nr_parts;
		int err;

		m->is_handing = true;
		m->nr_inside++;
		pthread_mutex_unlock(&m->lock);
		err = m->visitor.done(m->visitor.ctx, next);
		pthread_mutex_lock(&m->lock);
		m->is_handing = m->is_shown[next] = false;
		m->nr_done++;
		snapshot_memory_leave(m, err);
	}
	pthread_mutex_unlock(&m->lock);
}

static void *worker_main(void *arg)
{
	struct memory_stream *m = arg;
	auto_free u8 *buffer = malloc(SNAPSHOT_MAX_CHUNK);
	struct memory_piece piece;
	int err = buffer ? 0 : -ENOMEM;

	while (!err && !(err = begin_piece(m, &piece))) {
		for (u32 i = 0; i < piece.nr && !err; i++)
			err = show_run(m, piece.part, &piece.runs[i], buffer);
		if (!err)
			end_piece(m, piece.part);
	}
	pthread_mutex_lock(&m->lock);
	if (err != -ECANCELED && !m->is_over) {
		m->is_over = true;
		m->status = err;
	}
	m->nr_workers--;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	stream_put(m);
	return NULL;
}

/*
 * Start one worker per CPU that heaptap may use, or as many as the user wants. Each reads into its own cache.
 */
static int start_workers(struct memory_stream *m)
{
	int err = 0, nr_cpus = 1;
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		nr_cpus = CPU_COUNT(&cpus);
	pthread_mutex_lock(&m->lock);
	if (m->nr_jobs)
		nr_cpus = (int)m->nr_jobs;
	for (int i = 0; i < nr_cpus && i < MAX_WORKERS && !err; i++) {
		err = thread_start(NULL, "heaptap-scan", worker_main, m);
		if (err)
			break;
		m->refs++;
		m->nr_workers++;
	}
	/* Later pieces may wait for the oldest one, because its worker may be slow or wait for a CPU. */
	m->nr_parts =
		m->nr_workers * PARTS_EACH < SNAPSHOT_PARTS ? m->nr_workers * PARTS_EACH : SNAPSHOT_PARTS;
	if (m->nr_workers == 1)
		m->nr_parts = 1;
	err = m->nr_workers ? 0 : err;
	pthread_mutex_unlock(&m->lock);
	return err;
}

int memory_stream_read(struct memory_stream *m, const struct snapshot_visitor *visitor)
{
	struct timespec until = {
		.tv_sec = (time_t)(m->deadline_ns / 1000000000),
		.tv_nsec = (long)(m->deadline_ns % 1000000000),
	};
	int err;

	m->visitor = *visitor;
	err = start_workers(m);
	if (err)
		return err;
	pthread_mutex_lock(&m->lock);
	while (!err && m->nr_workers && !m->is_over)
		err = pthread_cond_timedwait(&m->changed, &m->lock, &until);
	if (!m->is_over && (err || clock_now_ns() > m->deadline_ns))
		m->status = -ETIME;
	/* A read may hang for ever, but the visitor does not: wait for workers inside it. */
	m->is_over = true;
	pthread_cond_broadcast(&m->changed);
	while (m->nr_inside)
		pthread_cond_wait(&m->changed, &m->lock);
	err = m->status;
	pthread_mutex_unlock(&m->lock);
	return err;
}

/* Is @addr in a mapping of which heaptap keeps all there is? The memory of the process is of a later moment. */
static bool is_kept(const struct memory_stream *m, taddr_t addr)
{
	size_t at = array_search(i, 0, m->nr_spans, m->spans[i].end <= addr);

	return HAS_COPIES && m->kept.nr && at < m->nr_spans && m->spans[at].start <= addr &&
	       m->spans[at].mode == SPAN_KEPT && !m->spans[at].is_file;
}

int memory_stream_fetch(struct memory_stream *m, bool is_own, taddr_t addr, void *buf, size_t len)
{
	if (HAS_COPIES && page_copy_read(&m->kept, addr, buf, len) == len)
		return 0;
	if (is_kept(m, addr))
		return -ENODATA;
	if (is_own)
		return page_scan_read(m->pagemap, &m->memory, addr, buf, len);
	return proc_memory_read(&m->memory, addr, buf, len) == (ssize_t)len ? 0 : -EIO;
}

int memory_stream_peek(struct memory_stream *m, taddr_t addr, void *buf, size_t len)
{
	if (HAS_COPIES && page_copy_read(&m->kept, addr, buf, len) == len)
		return 0;
	/* A page that is not in memory may come from a file system that hangs. */
	if (!page_scan_is_there(m->pagemap, addr, len))
		return -ENODATA;
	return memory_stream_fetch(m, false, addr, buf, len);
}

taddr_t memory_stream_next(const struct memory_stream *m, taddr_t at, taddr_t end)
{
	size_t i = HAS_COPIES ? page_copy_find(&m->kept, at) : 0;

	if (!is_kept(m, at))
		return m->pagemap < 0 ? at : page_scan_next(m->pagemap, at, end);
	return i < m->kept.nr && m->kept.runs[i].start < end ? m->kept.runs[i].start : end;
}

void memory_stream_count(struct memory_stream *m, struct snapshot *s)
{
	pthread_mutex_lock(&m->lock);
	for (int i = 0; i < NR_SNAPSHOT_SKIPS; i++)
		s->skipped_bytes[i] += m->skipped[i];
	s->read_bytes += m->read_bytes;
	pthread_mutex_unlock(&m->lock);
}

void memory_stream_free(struct memory_stream *m)
{
	if (m)
		stream_put(m);
}
