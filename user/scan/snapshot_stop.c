/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshot of a stopped process. A thread of its own is the tracer: when that thread ends, the kernel detaches from
 * all threads of the process.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/log.h"
#include "user/lib/maps.h"
#include "user/lib/thread.h"
#include "user/scan/page_copy.h"
#include "user/scan/page_scan.h"
#include "user/scan/precopy.h"
#include "user/scan/scan_reason.h"
#include "user/scan/snapshot_fork.h"
#include "user/scan/snapshot_make.h"
#include "user/scan/snapshot_memory.h"
#include "user/scan/snapshot_threads.h"

enum {
	STOP_SHARE = 4,	      /* wait for threads to stop during a quarter of the pause, not longer */
	MAX_KEPT = 256 << 20, /* bytes of memory that the copy does not have */
	MAX_READ_S = 600,     /* the longest that a copy may be read */
};

/* The states of the process. The tracer leaves those that end with ING. */
enum stop_state {
	STOP_STARTING, /* its threads are being stopped */
	STOP_STOPPED,
	STOP_FAILED,  /* it could not be stopped, and runs */
	STOP_COPYING, /* one of its threads forks */
	STOP_COPIED,  /* stopped, and there is a copy */
	STOP_FREEING, /* its threads are being resumed, the copy stays */
	STOP_FREE,    /* it runs, and there is a copy */
	STOP_RESUMED, /* it runs again, or the tracer is resuming it; there is no copy */
};

struct stop_snapshot {
	struct snapshot base;
	struct stopped_threads held;
	const struct snapshot_holder *holder; /* borrowed */
	struct process_copy copy;	      /* of the tracer's thread */
	struct memory_stream *memory;	      /* owned */
	u64 started_ns, deadline_ns;
	bool wants_copy;
	struct precopy *precopy;			   /* borrowed; NULL = none, or used up */
	void (*copying)(void *ctx, pid_t pid, bool is_on); /* snapshot_options */
	void *copying_ctx;
	struct outliving outliving; /* the tracer of a process that shall be copied */
	bool has_thread;	    /* a thread of its own is the tracer, not the caller */
	pthread_t tracer;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum stop_state state; /* under the lock */
	int err;	       /* of STOP_FAILED, -errno */
};

/* Stop the process and read its registers. */
static int stop_and_read(struct stop_snapshot *st)
{
	u64 share = (st->deadline_ns - st->started_ns) / STOP_SHARE;
	int err = stop_all_begin(&st->held, st->started_ns + share);

	if (err)
		return err;
	st->base.nr_unstopped = stop_all_running(&st->held);
	/* To resume thousands of threads takes as long as to stop them, and is a part of the pause. */
	st->deadline_ns -= clock_now_ns() - st->started_ns;
	err = snapshot_read_registers(&st->base, &st->held, st->holder, st->deadline_ns);
	if (err)
		stop_all_end(&st->held);
	return err;
}

/* Stop the process in the calling thread, which becomes the tracer. */
static int stop_here(struct stop_snapshot *st)
{
	int err = stop_and_read(st);

	pthread_mutex_lock(&st->lock);
	st->err = err;
	st->state = err ? STOP_FAILED : STOP_STOPPED;
	pthread_cond_broadcast(&st->changed);
	pthread_mutex_unlock(&st->lock);
	return err;
}

/* Let the process fork, by the thread that holds it or that may talk to its holder. */
static int fork_process(struct stop_snapshot *st)
{
	int err;

	if (st->copying)
		st->copying(st->copying_ctx, st->base.pid, true);
	err = process_copy_make(&st->copy, &st->held, &st->base);
	if (st->copying)
		st->copying(st->copying_ctx, st->base.pid, false);
	return err;
}

/* The work of the tracer in a state that it leaves. Returns the next state. */
static enum stop_state tracer_step(struct stop_snapshot *st, enum stop_state state, int *err)
{
	if (IS_AGENT) /* which makes no copies */
		return STOP_RESUMED;
	switch (state) {
	case STOP_COPYING:
		*err = fork_process(st);
		return *err ? STOP_STOPPED : STOP_COPIED;
	default:
		stop_all_end(&st->held);
		return STOP_FREE;
	}
}

static bool is_step(enum stop_state state)
{
	return state == STOP_COPYING || state == STOP_FREEING;
}

/* The process runs again; the end of its copy is no pause. */
static void note_pause(struct stop_snapshot *st)
{
	if (!st->base.pause_ns)
		st->base.pause_ns = clock_now_ns() - st->started_ns;
}

static void snapshot_stop_trace(void *arg)
{
	struct stop_snapshot *st = arg;

	if (stop_here(st))
		return;
	pthread_mutex_lock(&st->lock);
	while (st->state != STOP_RESUMED) {
		enum stop_state state = st->state;
		int err = 0;

		if (!is_step(state)) {
			pthread_cond_wait(&st->changed, &st->lock);
			continue;
		}
		pthread_mutex_unlock(&st->lock);
		state = tracer_step(st, state, &err);
		pthread_mutex_lock(&st->lock);
		st->err = err;
		st->state = state;
		pthread_cond_broadcast(&st->changed);
	}
	pthread_mutex_unlock(&st->lock);
	stop_all_end(&st->held);
	note_pause(st);
	if (!IS_AGENT)
		process_copy_end(&st->copy);
}

/* The tracer of a process that carries out a call for heaptap must outlive heaptap until that has its own registers. */
static void *tracer_main(void *arg)
{
	struct stop_snapshot *st = arg;

	if (IS_AGENT || !st->wants_copy || outliving_run(&st->outliving, snapshot_stop_trace, st))
		snapshot_stop_trace(st);
	return NULL;
}

/* Let the tracer do the work of @state, and wait for it. Returns its error. */
static int ask_tracer(struct stop_snapshot *st, enum stop_state state)
{
	int err;

	pthread_mutex_lock(&st->lock);
	st->state = state;
	pthread_cond_broadcast(&st->changed);
	while (is_step(st->state))
		pthread_cond_wait(&st->changed, &st->lock);
	err = st->err;
	pthread_mutex_unlock(&st->lock);
	return err;
}

static int start_tracer(struct stop_snapshot *st)
{
	int err = thread_start(&st->tracer, "heaptap-stop", tracer_main, st);

	if (err)
		return err;
	st->has_thread = true;
	pthread_mutex_lock(&st->lock);
	while (st->state == STOP_STARTING)
		pthread_cond_wait(&st->changed, &st->lock);
	err = st->err;
	pthread_mutex_unlock(&st->lock);
	return err;
}

static int stop_read(struct snapshot *s, const struct snapshot_visitor *visitor)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;
	int err = memory_stream_read(st->memory, visitor);

	memory_stream_count(st->memory, s);
	return err;
}

static int stop_peek(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;

	return memory_stream_peek(st->memory, addr, buf, len);
}

static int stop_fetch(struct snapshot *s, taddr_t addr, void *buf, size_t len)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;
	const struct snapshot_map *map = snapshot_map_find(s, addr);
	bool is_own = map && snapshot_map_is_own(map) && len <= map->end - addr;

	return memory_stream_fetch(st->memory, is_own, addr, buf, len);
}

static taddr_t stop_next(struct snapshot *s, taddr_t at, taddr_t end)
{
	return memory_stream_next(((struct stop_snapshot *)s)->memory, at, end);
}

static void stop_resume(struct snapshot *s)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;

	if (st->state == STOP_RESUMED) /* only this thread sets that state */
		return;
	pthread_mutex_lock(&st->lock);
	st->state = STOP_RESUMED;
	pthread_cond_broadcast(&st->changed);
	pthread_mutex_unlock(&st->lock);
	if (st->has_thread)
		pthread_join(st->tracer, NULL);
	else
		stop_all_end(&st->held);
	note_pause(st);
	if (!IS_AGENT && !st->has_thread)
		process_copy_end(&st->copy);
}

static void stop_free(struct snapshot *s)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;

	memory_stream_free(st->memory);
	snapshot_fini(s);
	pthread_cond_destroy(&st->changed);
	pthread_mutex_destroy(&st->lock);
	free(st);
}

/* Pages that heaptap keeps, collected by parts. */
struct keeping {
	struct page_copy *kept;
	struct page_copy parts[SNAPSHOT_PARTS];
	u64 bytes;
};

static int keep_chunk(void *ctx, u32 part, const struct snapshot_chunk *chunk)
{
	struct keeping *k = ctx;

	if (__atomic_add_fetch(&k->bytes, chunk->len, __ATOMIC_RELAXED) > MAX_KEPT)
		return -EFBIG;
	return page_copy_add(&k->parts[part], chunk->addr, chunk->data, chunk->len);
}

static int keep_piece(void *ctx, u32 part)
{
	struct keeping *k = ctx;

	return page_copy_move(k->kept, &k->parts[part]);
}

/* Keep the memory of the mappings that @is_kept names, while the process is stopped. It counts what it skips. */
static int keep_memory(struct stop_snapshot *st, const bool *is_kept, struct page_copy *kept)
{
	const struct memory_options mo = { .tid = st->base.mem_tid,
					   .deadline_ns = st->deadline_ns,
					   .is_kept = is_kept };
	auto_free struct keeping *k = calloc(1, sizeof(*k));
	const struct snapshot_visitor visitor = { k, keep_chunk, keep_piece };
	struct memory_stream *m = NULL;
	int err = k ? memory_stream_new(&m, &st->base, &mo) : -ENOMEM;

	if (err)
		return err;
	k->kept = kept;
	err = memory_stream_read(m, &visitor);
	memory_stream_count(m, &st->base);
	st->base.read_bytes = 0; /* the visitor of the whole memory will see them */
	memory_stream_free(m);
	for (u32 i = 0; i < SNAPSHOT_PARTS; i++)
		page_copy_fini(&k->parts[i]);
	return err;
}

/* Does process @pagemap have a page in @map? Where nobody can tell it has. */
static bool has_pages(int pagemap, const struct snapshot_map *map)
{
	struct page_run run;
	struct page_scan arg = {
		.size = sizeof(arg),
		.start = map->start,
		.end = map->end,
		.vec = (u64)(uintptr_t)&run,
		.vec_len = 1,
		.max_pages = 1,
		.category_inverted = RUN_ZERO | RUN_FILE,
		.category_mask = RUN_ZERO | RUN_FILE,
		.category_anyof_mask = RUN_PRESENT | RUN_SWAPPED,
		.return_mask = RUN_PRESENT,
	};

	return ioctl(pagemap, PAGE_SCAN, &arg) != 0;
}

static int open_pagemap(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * Find the mappings that the copy shares with others, or lacks (MADV_DONTFORK, MADV_WIPEONFORK). Returns how many, or
 * -errno.
 */
static int snapshot_stop_find_kept(const struct stop_snapshot *st, bool *is_kept)
{
	struct snapshot copy = { .pid = st->copy.pid, .mem_tid = st->copy.pid };
	auto_close int theirs = open_pagemap(st->base.mem_tid), own = open_pagemap(st->copy.pid);
	int err = snapshot_read_maps(&copy), nr = 0;

	for (size_t i = 0; i < st->base.nr_maps && !err; i++) {
		const struct snapshot_map *map = &st->base.maps[i], *same;

		/* Ours: nobody reads it. */
		if (!strncmp(map->path, MAPS_PIECE_PATH, sizeof(MAPS_PIECE_PATH) - 1))
			continue;
		same = snapshot_map_find(&copy, map->start);
		is_kept[i] = (map->is_shared && map->is_writable) || !same || same->end < map->end;
		if (!is_kept[i] && map->is_writable && !map->ino)
			is_kept[i] = has_pages(theirs, map) && !has_pages(own, map);
		nr += is_kept[i];
	}
	snapshot_fini(&copy);
	return err ? err : nr;
}

/* Read @kept, which is taken, and for the rest the memory of @tid, instead of the process. */
static int turn_to(struct stop_snapshot *st, pid_t tid, const bool *is_kept, struct page_copy *kept)
{
	const struct memory_options mo = { .tid = tid,
					   .deadline_ns = clock_now_ns() + MAX_READ_S * 1000000000ULL,
					   .is_kept = is_kept,
					   .kept = kept };
	struct memory_stream *m = NULL;
	int err = memory_stream_new(&m, &st->base, &mo);

	if (err)
		return err;
	memory_stream_free(st->memory);
	st->memory = m;
	st->base.deadline_ns = 0;
	return 0;
}

/* There is a copy: read from it instead of the process. */
static int turn_to_copy(struct stop_snapshot *st)
{
	auto_free bool *is_kept = calloc(st->base.nr_maps + 1, sizeof(*is_kept));
	struct page_copy kept = { 0 };
	int err = is_kept ? snapshot_stop_find_kept(st, is_kept) : -ENOMEM;

	if (err > 0)
		err = keep_memory(st, is_kept, &kept);
	if (!err)
		err = turn_to(st, st->copy.pid, is_kept, &kept);
	page_copy_fini(&kept);
	if (err)
		memset(st->base.skipped_bytes, 0, sizeof(st->base.skipped_bytes));
	return err;
}

/* Complete @kept by all memory that was not copied before, and keep that instead of the process. */
static int keep_rest(struct stop_snapshot *st, const bool *is_done, struct page_copy *kept)
{
	auto_free bool *is_kept = calloc(st->base.nr_maps + 1, sizeof(*is_kept));
	struct page_copy rest = { 0 };
	int err = is_kept ? 0 : -ENOMEM;

	for (size_t i = 0; i < st->base.nr_maps && !err; i++)
		is_kept[i] = !is_done[i];
	if (!err)
		err = keep_memory(st, is_kept, &rest);
	if (!err)
		err = page_copy_move(kept, &rest);
	page_copy_fini(&rest);
	if (err)
		return err;
	page_copy_sort(kept);
	memset(is_kept, true, st->base.nr_maps * sizeof(*is_kept));
	return turn_to(st, st->base.mem_tid, is_kept, kept);
}

/* The process was copied while it ran: copy what it has written since. */
static int finish_precopy(struct stop_snapshot *st)
{
	auto_free bool *is_done = calloc(st->base.nr_maps + 1, sizeof(*is_done));
	struct page_copy kept = { 0 };
	int err = is_done ? precopy_finish(st->precopy, &st->base, st->deadline_ns, &kept, is_done) : -ENOMEM;

	st->precopy = NULL;
	if (!err)
		err = keep_rest(st, is_done, &kept);
	page_copy_fini(&kept);
	if (err)
		memset(st->base.skipped_bytes, 0, sizeof(st->base.skipped_bytes));
	return err;
}

/* After an error the copy stays until the process runs again: only then can one of its threads wait for it. */
static int snapshot_stop_make_copy(struct stop_snapshot *st)
{
	int err;

	if (IS_AGENT || (!st->has_thread && !st->copy.holder))
		return -ENOTSUP;
	if (st->has_thread && !st->outliving.pid)
		return -ENOMEM;
	err = st->has_thread ? ask_tracer(st, STOP_COPYING) : fork_process(st);
	return err ? err : turn_to_copy(st);
}

/* There is a copy: the process may run. Its holder, if there is one, lets it do so after this. */
static void stop_let_go(struct snapshot *s)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;

	if (!st->copy.pid) {
		snapshot_resume(s);
		return;
	}
	if (st->has_thread) {
		ask_tracer(st, STOP_FREEING);
	} else {
		stop_all_end(&st->held);
		st->state = STOP_FREE; /* there is no other thread */
	}
	note_pause(st);
}

static int stop_copy(struct snapshot *s)
{
	struct stop_snapshot *st = (struct stop_snapshot *)s;
	int err = -ECANCELED;

	if (!IS_AGENT && st->precopy && st->state == STOP_STOPPED)
		err = finish_precopy(st);
	else if (st->wants_copy && st->state == STOP_STOPPED)
		err = snapshot_stop_make_copy(st);
	if (err && err != -ECANCELED)
		warn("scan: PID %d: it cannot be copied: %s", s->pid, scan_reason_copy(err));
	return err;
}

static const struct snapshot_ops stop_ops = {
	.name = "stop",
	.copy = stop_copy,
	.let_go = stop_let_go,
	.read = stop_read,
	.peek = stop_peek,
	.fetch = stop_fetch,
	.next = stop_next,
	.resume = stop_resume,
	.free = stop_free,
};

/* Take word size and byte order from the ELF header of the program, or keep those of the registers. */
static void read_elf_class(struct snapshot *s)
{
	u8 ident[EI_NIDENT] = { 0 };
	auto_close int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", s->mem_tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, ident, sizeof(ident), 0) != sizeof(ident))
		return;
	if (memcmp(ident, ELFMAG, SELFMAG) != 0)
		return;
	s->word_size = ident[EI_CLASS] == ELFCLASS32 ? 4 : 8;
	s->is_big_endian = ident[EI_DATA] == ELFDATA2MSB;
}

/* Read all but registers and memory, while the process is stopped. */
static int snapshot_stop_read_moment(struct stop_snapshot *st, const struct snapshot_options *options)
{
	const struct memory_options mo = { .tid = st->base.mem_tid, .deadline_ns = st->deadline_ns };
	int err = snapshot_read_maps(&st->base);

	st->base.deadline_ns = st->deadline_ns;
	if (!err)
		err = snapshot_read_kernel_words(&st->base, options, st->deadline_ns);
	if (!err)
		err = memory_stream_new(&st->memory, &st->base, &mo);
	if (!err)
		read_elf_class(&st->base);
	return err;
}

int snapshot_stop_new(struct snapshot **out, pid_t pid, const struct snapshot_options *options)
{
	u64 max_pause_ns = options->max_pause_ns ? options->max_pause_ns : SNAPSHOT_MAX_PAUSE_MS * 1000000ULL;
	struct stop_snapshot *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return -ENOMEM;
	pthread_mutex_init(&st->lock, NULL);
	pthread_cond_init(&st->changed, NULL);
	st->base.ops = &stop_ops;
	st->base.pid = st->held.pid = pid;
	st->precopy = options->precopy;
	st->base.nr_jobs = options->nr_jobs;
	st->wants_copy = !st->precopy && options->way == SNAPSHOT_FORK;
	st->copy.outliving = &st->outliving;
	st->copy.holder = options->holder && options->holder->call ? options->holder : NULL;
	st->copying = options->copying;
	st->copying_ctx = options->copying_ctx;
	st->held.by = options->by;
	st->holder = options->holder;
	st->base.is_ending = options->is_ending;
	st->started_ns = clock_now_ns();
	st->deadline_ns = st->started_ns + max_pause_ns;
	err = options->by == STOP_BY_US ? start_tracer(st) : stop_here(st);
	if (!err)
		err = snapshot_stop_read_moment(st, options);
	if (err) {
		error("scan: PID %d: %s", pid, scan_reason(err, pid, max_pause_ns).text);
		snapshot_free(&st->base);
		return err;
	}
	*out = &st->base;
	return 0;
}
