/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process as a stream: a thread finds populated pages by pagemap and reads them ahead of the scan. */
#include "user/snapshot_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "user/lib/cleanup.h"

enum {
	SLOT_BYTES = 256 << 10, /* fits a second-level cache together with the next one */
	NR_SLOTS = 8,
	NR_RUNS = 256,
	NR_ENTRIES = 4096, /* pagemap entries per read */
	SPIN_NS = 100000,  /* about the time that a slot takes */
};

/* Which pages of a mapping count. */
enum span_mode {
	SPAN_ALL, /* all that are populated */
	SPAN_PRIVATE, /* those that are no longer the file's: read-only now, but written before (relocated data) */
	SPAN_SHMEM, /* all that the file holds: pagemap does not show what of it is swapped out */
	SPAN_SKIP,  /* none; populated ones are counted as skipped */
};

struct span {
	taddr_t start, end;
	u64 offset; /* of start, in its file */
	u32 map;
	u8 mode;
	u8 skip; /* reason, for SPAN_SKIP */
};

struct slot {
	taddr_t addr;
	size_t len;
	u32 map;
	u8 *data;
};

struct memory_stream {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	u32 refs;
	u32 nr_filled, nr_taken; /* slots since the start */
	int status;		 /* 1 = goes on, 0 = end, -errno */
	bool is_cancelled;
	u64 skipped[NR_SNAPSHOT_SKIPS];
	/* Consumer's. */
	bool is_started, is_holding, can_spin;
	u64 deadline_ns;
	/* Reader's, once started. */
	bool has_scan; /* PAGEMAP_SCAN works (Linux 6.7) */
	pid_t tid;
	int mem, pagemap;   /* owned; pagemap -1 = cannot tell, read all */
	u64 page;	    /* bytes */
	struct span *spans; /* owned */
	size_t nr_spans;
	struct slot slots[NR_SLOTS];
	u8 *buffer; /* owned */
};

/* The interface of <linux/fs.h> since 6.7, which older headers lack. */
struct page_run {
	u64 start, end, categories;
};
struct page_scan {
	u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
	u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define PAGE_SCAN _IOWR('f', 16, struct page_scan)
enum { RUN_FILE = 1 << 2, RUN_PRESENT = 1 << 3, RUN_SWAPPED = 1 << 4, RUN_ZERO = 1 << 5 };

/* Bits of a pagemap entry. */
#define ENTRY_PRESENT (1ULL << 63)
#define ENTRY_SWAPPED (1ULL << 62)
#define ENTRY_FILE    (1ULL << 61)
#define ENTRY_GUARD   (1ULL << 58)

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Memory behind which there may be a device. */
static bool is_device(const struct snapshot_map *map)
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

/* Shared memory that lives in no file system which could hang. */
static bool is_shmem(const struct snapshot_map *map)
{
	static const char *const places[] = { "/dev/shm/", "/memfd:", "/dev/zero", "/SYSV",
					      "/anon_hugepage" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (starts_with(map->path, places[i]))
			return true;
	return false;
}

/* How the pages of @map count; false: not at all. */
static bool span_of(const struct snapshot_map *map, struct span *span)
{
	if (starts_with(map->path, "[v")) /* vdso, vvar, vsyscall: the kernel's */
		return false;
	if (!map->is_writable && (!map->is_readable || map->is_shared))
		return false;
	span->start = map->start;
	span->end = map->end;
	span->mode = map->is_writable ? SPAN_ALL : SPAN_PRIVATE;
	if (map->is_shared && is_shmem(map))
		span->mode = SPAN_SHMEM;
	span->offset = map->file_offset;
	if (is_device(map)) {
		span->mode = SPAN_SKIP;
		span->skip = SKIP_DEVICE;
		return map->is_writable;
	}
	if (!map->is_readable) {
		span->mode = SPAN_SKIP;
		span->skip = SKIP_UNREADABLE;
	}
	return true;
}

static int make_spans(struct memory_stream *m, const struct snapshot *s)
{
	m->spans = calloc(s->nr_maps ? s->nr_maps : 1, sizeof(*m->spans));
	if (!m->spans)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_maps; i++) {
		struct span *span = &m->spans[m->nr_spans];

		span->map = (u32)i;
		if (span_of(&s->maps[i], span))
			m->nr_spans++;
	}
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
	if (m->mem >= 0)
		close(m->mem);
	if (m->pagemap >= 0)
		close(m->pagemap);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m->spans);
	free(m->buffer);
	free(m);
}

static int open_files(struct memory_stream *m, pid_t tid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	m->mem = open(path, O_RDONLY | O_CLOEXEC);
	if (m->mem < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", tid);
	m->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	return 0;
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
	err = pthread_mutex_init(&m->lock, NULL);
	if (err)
		pthread_cond_destroy(&m->changed);
	return -err;
}

int memory_stream_new(struct memory_stream **out, const struct snapshot *s, u64 deadline_ns)
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
	m->status = 1;
	m->mem = m->pagemap = -1;
	m->tid = s->mem_tid;
	m->has_scan = true;
	m->page = (u64)sysconf(_SC_PAGESIZE);
	m->deadline_ns = deadline_ns;
	m->buffer = malloc((size_t)NR_SLOTS * SLOT_BYTES);
	err = m->buffer ? make_spans(m, s) : -ENOMEM;
	if (!err)
		err = open_files(m, s->mem_tid);
	if (err) {
		stream_put(m);
		return err;
	}
	for (size_t i = 0; i < NR_SLOTS; i++)
		m->slots[i].data = m->buffer + i * SLOT_BYTES;
	*out = m;
	return 0;
}

/* Count @bytes that are not read. */
static void skip_bytes(struct memory_stream *m, enum snapshot_skip why, u64 bytes)
{
	pthread_mutex_lock(&m->lock);
	m->skipped[why] += bytes;
	pthread_mutex_unlock(&m->lock);
}

/* Wait for a free slot. NULL: nobody wants more. */
static struct slot *slot_wait(struct memory_stream *m)
{
	struct slot *slot = NULL;

	pthread_mutex_lock(&m->lock);
	while (!m->is_cancelled && m->nr_filled - m->nr_taken == NR_SLOTS)
		pthread_cond_wait(&m->changed, &m->lock);
	if (!m->is_cancelled)
		slot = &m->slots[m->nr_filled % NR_SLOTS];
	pthread_mutex_unlock(&m->lock);
	return slot;
}

static void slot_filled(struct memory_stream *m)
{
	pthread_mutex_lock(&m->lock);
	__atomic_store_n(&m->nr_filled, m->nr_filled + 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

/* Read [start, end) of one mapping, all populated. 0, -ECANCELED, -ESRCH. */
static int read_run(struct memory_stream *m, const struct span *span, taddr_t start, taddr_t end)
{
	if (span->mode == SPAN_SKIP) {
		skip_bytes(m, span->skip, end - start);
		return 0;
	}
	while (start < end) {
		struct slot *slot = slot_wait(m);
		size_t want = end - start < SLOT_BYTES ? end - start : SLOT_BYTES;
		ssize_t len;

		if (!slot)
			return -ECANCELED;
		len = pread(m->mem, slot->data, want, (off_t)start);
		if (len == 0)
			return -ESRCH; /* the address space is gone */
		if (len < 0) {
			/* To the next page: the fault is that of the first one. */
			want = m->page - start % m->page;
			skip_bytes(m, SKIP_FAULT, want);
			start += want;
			continue;
		}
		slot->addr = start;
		slot->len = (size_t)len;
		slot->map = span->map;
		slot_filled(m);
		start += (u64)len;
	}
	return 0;
}

/* One call of PAGEMAP_SCAN from *@pos on; *@pos is moved. Number of runs, or -errno. */
static int scan_runs(const struct memory_stream *m, const struct span *span, taddr_t *pos,
		     struct page_run *runs)
{
	u64 without = RUN_ZERO | (span->mode == SPAN_PRIVATE ? RUN_FILE : 0);
	struct page_scan arg = {
		.size = sizeof(arg),
		.start = *pos,
		.end = span->end,
		.vec = (u64)(uintptr_t)runs,
		.vec_len = NR_RUNS,
		.category_inverted = without,
		.category_mask = without,
		.category_anyof_mask = RUN_PRESENT | RUN_SWAPPED,
		.return_mask = RUN_PRESENT | RUN_SWAPPED,
	};
	int nr = ioctl(m->pagemap, PAGE_SCAN, &arg);

	if (nr < 0)
		return -errno;
	*pos = arg.walk_end > *pos ? arg.walk_end : span->end;
	return nr;
}

static int read_scanned(struct memory_stream *m, const struct span *span)
{
	struct page_run runs[NR_RUNS];
	taddr_t pos = span->start;

	while (pos < span->end) {
		int nr = scan_runs(m, span, &pos, runs);

		if (nr < 0)
			return nr;
		for (int i = 0; i < nr; i++) {
			int err = read_run(m, span, runs[i].start, runs[i].end);

			if (err)
				return err;
		}
	}
	return 0;
}

static bool is_wanted(const struct span *span, u64 entry)
{
	if (!(entry & (ENTRY_PRESENT | ENTRY_SWAPPED)) || (entry & ENTRY_GUARD))
		return false;
	return span->mode != SPAN_PRIVATE || !(entry & ENTRY_FILE);
}

/* The runs of wanted pages in @entries, which begin at @addr. */
static int read_entries(struct memory_stream *m, const struct span *span, taddr_t addr, const u64 *entries,
			size_t nr)
{
	for (size_t i = 0; i < nr;) {
		size_t first = i;
		int err;

		while (i < nr && is_wanted(span, entries[i]))
			i++;
		err = i > first ? read_run(m, span, addr + first * m->page, addr + i * m->page) : 0;
		if (err)
			return err;
		while (i < nr && !is_wanted(span, entries[i]))
			i++;
	}
	return 0;
}

/* For kernels before 6.7. */
static int read_by_entries(struct memory_stream *m, const struct span *span)
{
	auto_free u64 *entries = malloc(NR_ENTRIES * sizeof(*entries));
	taddr_t pos = span->start;

	if (!entries)
		return -ENOMEM;
	while (pos < span->end) {
		size_t want = (span->end - pos) / m->page;
		ssize_t len;
		int err;

		want = (want < NR_ENTRIES ? want : NR_ENTRIES) * sizeof(*entries);
		len = pread(m->pagemap, entries, want, (off_t)(pos / m->page * sizeof(*entries)));
		if (len < (ssize_t)sizeof(*entries))
			return read_run(m, span, pos, span->end); /* cannot tell: all of it */
		err = read_entries(m, span, pos, entries, (size_t)len / sizeof(*entries));
		if (err)
			return err;
		pos += (u64)len / sizeof(*entries) * m->page;
	}
	return 0;
}

/* -ENOTTY: cannot tell. */
static int read_shmem(struct memory_stream *m, const struct span *span)
{
	u64 at = span->offset, end = span->offset + (span->end - span->start);
	auto_close int fd = -1;
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, m->tid, span->start,
		 span->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (lseek(fd, (off_t)at, SEEK_DATA) < 0 && errno != ENXIO))
		return -ENOTTY;
	while (at < end) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole;
		int err;

		if (data < 0 || (u64)data >= end)
			return 0;
		hole = lseek(fd, data, SEEK_HOLE);
		at = hole < 0 || (u64)hole > end ? end : (u64)hole;
		err = read_run(m, span, span->start + ((u64)data - span->offset),
			       span->start + (at - span->offset));
		if (err)
			return err;
	}
	return 0;
}

static int read_span(struct memory_stream *m, const struct span *span)
{
	int err = span->mode == SPAN_SHMEM ? read_shmem(m, span) : -ENOTTY;

	if (err != -ENOTTY)
		return err;
	if (m->pagemap < 0)
		return read_run(m, span, span->start, span->end);
	if (m->has_scan)
		err = read_scanned(m, span);
	if (err != -ENOTTY && err != -EINVAL)
		return err;
	m->has_scan = false;
	return read_by_entries(m, span);
}

/* An address space that is gone has no pages, and reads end at once. */
static int check_alive(const struct memory_stream *m)
{
	u8 byte;

	return m->nr_spans && pread(m->mem, &byte, 1, (off_t)m->spans[0].start) == 0 ? -ESRCH : 0;
}

static void *reader_main(void *arg)
{
	struct memory_stream *m = arg;
	int err = 0;

	for (size_t i = 0; i < m->nr_spans && !err; i++)
		err = read_span(m, &m->spans[i]);
	if (!err)
		err = check_alive(m);
	pthread_mutex_lock(&m->lock);
	m->status = err;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	stream_put(m);
	return NULL;
}

/* Signals are for heaptap's main thread. */
static int start_reader(struct memory_stream *m)
{
	pthread_t thread;
	sigset_t all, old;
	int err;

	m->refs++;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, reader_main, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		m->refs--;
		return -err;
	}
	pthread_detach(thread);
	m->can_spin = get_nprocs() > 1;
	m->is_started = true;
	return 0;
}

/*
 * Wait a little for the next slot without sleeping; the lock is held on entry and on return. A scan that
 * sleeps is woken on the reader's CPU and waits there for it: then the two never run at once.
 */
static void spin(struct memory_stream *m)
{
	u64 until = snapshot_clock() + SPIN_NS;
	u32 nr_taken = m->nr_taken;

	if (!m->can_spin)
		return;
	pthread_mutex_unlock(&m->lock);
	while (__atomic_load_n(&m->nr_filled, __ATOMIC_RELAXED) == nr_taken && snapshot_clock() < until)
		;
	pthread_mutex_lock(&m->lock);
}

int memory_stream_next(struct memory_stream *m, struct snapshot_chunk *chunk)
{
	struct timespec until = {
		.tv_sec = (time_t)(m->deadline_ns / 1000000000),
		.tv_nsec = (long)(m->deadline_ns % 1000000000),
	};
	const struct slot *slot = NULL;
	int err = m->is_started ? 0 : start_reader(m);

	if (err)
		return err;
	pthread_mutex_lock(&m->lock);
	if (m->is_holding) {
		m->nr_taken++;
		pthread_cond_broadcast(&m->changed);
	}
	if (m->nr_filled == m->nr_taken && m->status == 1)
		spin(m);
	while (m->nr_filled == m->nr_taken && m->status == 1 && !err)
		err = pthread_cond_timedwait(&m->changed, &m->lock, &until);
	if (m->nr_filled != m->nr_taken)
		slot = &m->slots[m->nr_taken % NR_SLOTS];
	else if (m->status != 1)
		err = m->status;
	else
		err = -ETIME;
	m->is_holding = slot != NULL;
	pthread_mutex_unlock(&m->lock);
	if (!slot)
		return err;
	if (snapshot_clock() > m->deadline_ns)
		return -ETIME;
	*chunk = (struct snapshot_chunk){
		.addr = slot->addr, .data = slot->data, .len = slot->len, .map = slot->map
	};
	return 1;
}

int memory_stream_peek(struct memory_stream *m, taddr_t addr, void *buf, size_t len)
{
	/* A page that is not in memory may have to come from a file system that hangs. */
	for (taddr_t page = addr / m->page; m->pagemap >= 0 && page <= (addr + len - 1) / m->page; page++) {
		u64 entry = 0;

		if (pread(m->pagemap, &entry, sizeof(entry), (off_t)(page * sizeof(entry))) !=
			    sizeof(entry) ||
		    !(entry & ENTRY_PRESENT))
			return -ENODATA;
	}
	return pread(m->mem, buf, len, (off_t)addr) == (ssize_t)len ? 0 : -EIO;
}

void memory_stream_skipped(struct memory_stream *m, u64 bytes[NR_SNAPSHOT_SKIPS])
{
	pthread_mutex_lock(&m->lock);
	memcpy(bytes, m->skipped, sizeof(m->skipped));
	pthread_mutex_unlock(&m->lock);
}

void memory_stream_free(struct memory_stream *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->is_cancelled = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	stream_put(m);
}
