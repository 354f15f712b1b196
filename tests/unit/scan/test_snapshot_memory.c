/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads show memory in pieces: all of it, once, in order. And reads that hang, and threads that do not start. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/lib/clock.h"
#include "user/scan/page_scan.h"
#include "user/scan/snapshot_memory.h"
#include "tests/unit/skip.h"

enum {
	BYTES = 16 << 20,
	HOLE_EVERY = 5,	     /* touched pages before each page that was not touched */
	LONG_S = 100,	     /* seconds; a test that passes never waits so long */
	GUARD_INSTALL = 102, /* MADV_GUARD_INSTALL, Linux 6.13; the next number takes it away */
};

/* ---- a system with faults ---- */

static atomic_int threads_left; /* threads that still start; then pthread_create() fails */
static atomic_int nr_threads;	/* threads that have not ended */
static atomic_bool want_hang, no_page_scan;
static atomic_bool has_page_shifts; /* in entries of pagemap, as kernels before 4.2 have them */
static pthread_mutex_t hang =
	PTHREAD_MUTEX_INITIALIZER; /* while it is locked, reads of memory do not return */

struct begin {
	void *(*f)(void *);
	void *arg;
};

static void *counted(void *arg)
{
	struct begin begin = *(struct begin *)arg;

	free(arg);
	begin.f(begin.arg);
	atomic_fetch_sub(&nr_threads, 1);
	return NULL;
}

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		(__typeof__(real))dlsym(RTLD_NEXT, "pthread_create");
	struct begin *begin = malloc(sizeof(*begin));

	if (!begin || atomic_fetch_sub(&threads_left, 1) <= 0) {
		free(begin);
		return EAGAIN;
	}
	*begin = (struct begin){ f, arg };
	atomic_fetch_add(&nr_threads, 1);
	return real(t, attr, counted, begin);
}

/* Wait until threads that were left behind have ended. */
static void wait_alone(void)
{
	while (atomic_load(&nr_threads))
		usleep(1000);
}

/* Hang in one read of memory, but not of page maps. */
static void may_hang(size_t len)
{
	if (len < 4096 || !atomic_exchange(&want_hang, false))
		return;
	pthread_mutex_lock(&hang);
	pthread_mutex_unlock(&hang);
}

/* Entries as Linux 3.10 has them. */
static void make_old(int fd, u64 *entries, ssize_t len)
{
	char link[32], path[32] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) < 0 || !strstr(path, "/pagemap"))
		return;
	for (ssize_t i = 0; i < len / (ssize_t)sizeof(*entries); i++)
		entries[i] = (entries[i] & ~(63ULL << 55)) | 12ULL << 55;
}

ssize_t pread(int fd, void *buf, size_t len, off_t offset)
{
	ssize_t (*real)(int, void *, size_t, off_t) = (__typeof__(real))dlsym(RTLD_NEXT, "pread"), got;

	may_hang(len);
	got = real(fd, buf, len, offset);
	if (atomic_load(&has_page_shifts))
		make_old(fd, buf, got);
	return got;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nr_local,
			 const struct iovec *remote, unsigned long nr_remote, unsigned long flags)
{
	may_hang(local->iov_len);
	return syscall(SYS_process_vm_readv, pid, local, nr_local, remote, nr_remote, flags);
}

int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int, unsigned long, ...) = (__typeof__(real))dlsym(RTLD_NEXT, "ioctl");
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (atomic_load(&no_page_scan)) {
		errno = ENOTTY;
		return -1;
	}
	return real(fd, request, arg);
}

/* ---- memory of this process, and a visitor ---- */

static struct snapshot_map map;
static struct snapshot snap;
static u64 page;

static bool is_touched(u64 nr)
{
	return nr % (HOLE_EVERY + 1) != HOLE_EVERY;
}

static int make_memory(void **state)
{
	u8 *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	page = (u64)sysconf(_SC_PAGESIZE);
	if (p == MAP_FAILED)
		return -1;
	madvise(p, BYTES, MADV_NOHUGEPAGE);
	for (u64 i = 0; i < BYTES / page; i++)
		if (is_touched(i))
			memset(p + i * page, (int)(1 + i % 255), page);
	map = (struct snapshot_map){ .start = (taddr_t)(uintptr_t)p,
				     .end = (taddr_t)(uintptr_t)p + BYTES,
				     .path = (char *)"",
				     .is_readable = true,
				     .is_writable = true };
	snap = (struct snapshot){ .pid = getpid(), .mem_tid = getpid(), .maps = &map, .nr_maps = 1 };
	return 0;
}

static int drop_memory(void **state)
{
	(void)state;
	return munmap((void *)(uintptr_t)map.start, BYTES);
}

struct shown {
	atomic_int nr_inside[SNAPSHOT_PARTS];
	atomic_bool is_done_inside;
	u64 bytes[SNAPSHOT_PARTS];
	taddr_t first[SNAPSHOT_PARTS], end[SNAPSHOT_PARTS];
	taddr_t last; /* end of the piece before */
	u64 total;
	int look_error, done_error; /* errors to return */
	atomic_int nr_looks;
};

/* Runs in other threads than cmocka, so it reports faults by -EPROTO. */
static int look(void *ctx, u32 part, const struct snapshot_chunk *chunk)
{
	struct shown *s = ctx;
	u64 nr = (chunk->addr - map.start) / page;
	bool is_wrong = part >= SNAPSHOT_PARTS || chunk->len > SNAPSHOT_MAX_CHUNK;

	if (is_wrong || atomic_fetch_add(&s->nr_inside[part], 1) || chunk->addr < s->end[part])
		return -EPROTO;
	if (!s->end[part])
		s->first[part] = chunk->addr;
	s->end[part] = chunk->addr + chunk->len;
	for (size_t at = 0; at < chunk->len && !is_wrong; at += page, nr++)
		is_wrong = !is_touched(nr) || chunk->data[at] != 1 + nr % 255;
	s->bytes[part] += chunk->len;
	atomic_fetch_sub(&s->nr_inside[part], 1);
	if (is_wrong)
		return -EPROTO;
	return atomic_fetch_add(&s->nr_looks, 1) == 20 ? s->look_error : 0;
}

static int done(void *ctx, u32 part)
{
	struct shown *s = ctx;

	if (atomic_exchange(&s->is_done_inside, true) || atomic_load(&s->nr_inside[part]) ||
	    s->first[part] < s->last)
		return -EPROTO;
	s->last = s->end[part];
	s->total += s->bytes[part];
	s->bytes[part] = s->first[part] = s->end[part] = 0;
	atomic_store(&s->is_done_inside, false);
	return s->total > BYTES / 2 ? s->done_error : 0;
}

static int show(struct shown *s, struct memory_stream **out, u64 deadline_ns)
{
	const struct snapshot_visitor visitor = { s, look, done };
	const struct memory_options options = { .tid = snap.mem_tid, .deadline_ns = deadline_ns };

	snap.read_bytes = 0;
	memset(snap.skipped_bytes, 0, sizeof(snap.skipped_bytes));
	assert_int_equal(memory_stream_new(out, &snap, &options), 0);
	return memory_stream_read(*out, &visitor);
}

static void assert_all_shown(int nr)
{
	u64 nr_holes = BYTES / page / (HOLE_EVERY + 1);
	struct memory_stream *m;
	struct shown s = { 0 };

	atomic_store(&threads_left, nr);
	assert_int_equal(show(&s, &m, clock_now_ns() + LONG_S * 1000000000ULL), 0);
	assert_int_equal(s.total, BYTES - nr_holes * page);
	memory_stream_count(m, &snap);
	assert_int_equal(snap.read_bytes, s.total);
	for (int i = 0; i < NR_SNAPSHOT_SKIPS; i++)
		assert_int_equal(snap.skipped_bytes[i], 0);
	memory_stream_free(m);
}

/* ---- tests ---- */

static void all_once_in_order(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		assert_all_shown(100);
}

/* Without PAGEMAP_SCAN, like kernels before 6.7 (H1, H5). */
static void without_page_scan(void **state)
{
	(void)state;
	atomic_store(&no_page_scan, true);
	assert_all_shown(100);
	atomic_store(&no_page_scan, false);
}

/* Guard pages inside a mapping have no memory, so nothing is skipped with them (H1). */
static void guards_are_not_skipped(void **state)
{
	(void)state;
	for (u64 i = HOLE_EVERY; i < BYTES / page; i += HOLE_EVERY + 1)
		if (madvise((u8 *)(uintptr_t)map.start + i * page, page, GUARD_INSTALL))
			skip_because("this kernel has no guard pages inside mappings (Linux 6.13)");
	assert_all_shown(100);
	atomic_store(&no_page_scan, true);
	assert_all_shown(100);
	atomic_store(&no_page_scan, false);
	for (u64 i = HOLE_EVERY; i < BYTES / page; i += HOLE_EVERY + 1)
		assert_int_equal(madvise((u8 *)(uintptr_t)map.start + i * page, page, GUARD_INSTALL + 1), 0);
}

/* One thread is enough. Without a thread, reading fails (H1, H5). */
static void few_threads_start(void **state)
{
	struct memory_stream *m;
	struct shown s = { 0 };

	(void)state;
	assert_all_shown(1);
	atomic_store(&threads_left, 0);
	assert_int_equal(show(&s, &m, clock_now_ns() + LONG_S * 1000000000ULL), -EAGAIN);
	assert_int_equal(s.total, 0);
	memory_stream_free(m);
}

/* An error of the visitor ends the reading (H1, H5). */
static void errors_end_it(void **state)
{
	struct shown looks = { .look_error = -ENOMEM }, ends = { .done_error = -E2BIG };
	struct memory_stream *m;

	(void)state;
	atomic_store(&threads_left, 100);
	assert_int_equal(show(&looks, &m, clock_now_ns() + LONG_S * 1000000000ULL), -ENOMEM);
	memory_stream_free(m);
	assert_int_equal(show(&ends, &m, clock_now_ns() + LONG_S * 1000000000ULL), -E2BIG);
	assert_true(ends.total < BYTES);
	memory_stream_free(m);
}

/* Nothing waits for a hanging read beyond the deadline. When it returns at last, its memory still exists (H1, H5). */
static void a_read_hangs(void **state)
{
	struct shown *s = calloc(1, sizeof(*s));
	struct memory_stream *m;

	(void)state;
	assert_non_null(s);
	wait_alone();
	atomic_store(&threads_left, 100);
	pthread_mutex_lock(&hang);
	atomic_store(&want_hang, true);
	assert_int_equal(show(s, &m, clock_now_ns() + 1000000000), -ETIME);
	memory_stream_count(m, &snap);
	memory_stream_free(m);
	free(s);
	pthread_mutex_unlock(&hang);
	wait_alone();
}

/* Past the deadline no memory is read (H1, H5). */
static void late(void **state)
{
	struct memory_stream *m;
	struct shown s = { 0 };

	(void)state;
	atomic_store(&threads_left, 100);
	assert_int_equal(show(&s, &m, clock_now_ns() - 1), -ETIME);
	memory_stream_free(m);
	wait_alone();
}

static u64 count_present(void)
{
	u64 entry, nr = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (u64 i = 0; i < BYTES / page; i++) {
		off_t at = (off_t)((map.start / page + i) * sizeof(entry));

		assert_int_equal(pread(fd, &entry, sizeof(entry), at), sizeof(entry));
		nr += entry >> 63;
	}
	close(fd);
	return nr;
}

/* Pages that were never written are zeros, and are not made by the look at them. */
static void a_fetch_makes_no_pages(void **state)
{
	const struct memory_options o = { .tid = getpid(),
					  .deadline_ns = clock_now_ns() + LONG_S * 1000000000ULL };
	u8 *got = malloc(BYTES), *have = (u8 *)(uintptr_t)map.start;
	struct memory_stream *m = NULL;
	u64 before = count_present();

	(void)state;
	assert_non_null(got);
	assert_int_equal(memory_stream_new(&m, &snap, &o), 0);
	memset(got, 0xff, BYTES);
	assert_int_equal(memory_stream_fetch(m, true, map.start, got, BYTES), 0);
	/* From the middle of a page to the middle of one. */
	assert_int_equal(memory_stream_fetch(m, true, map.start + 100, got + 100, 9 * page), 0);
	memory_stream_free(m);
	assert_int_equal(count_present(), before);
	assert_memory_equal(got, have, BYTES);
	free(got);
}

/* All entries of pagemap have a bit that says "guard" today, and all pages are shown (H1). */
static void with_page_shifts(void **state)
{
	/* Tests have looked at the holes. */
	for (u64 i = HOLE_EVERY; i < BYTES / page; i += HOLE_EVERY + 1)
		assert_int_equal(madvise((u8 *)(uintptr_t)map.start + i * page, page, MADV_DONTNEED), 0);
	atomic_store(&no_page_scan, true);
	atomic_store(&has_page_shifts, true);
	assert_all_shown(100);
	a_fetch_makes_no_pages(state);
	atomic_store(&no_page_scan, false);
	atomic_store(&has_page_shifts, false);
}

/* A page that is swapped out has the bits of a watched guard of today (H1). */
static void swapped_before_4_2(void **state)
{
	const u64 swapped = ENTRY_SWAPPED | ENTRY_GUARD | ENTRY_WATCHED;

	(void)state;
	assert_true(entry_is_guard(swapped));
	atomic_store(&has_page_shifts, true);
	assert_false(entry_is_guard(swapped));
	atomic_store(&has_page_shifts, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_once_in_order),
		cmocka_unit_test(without_page_scan),
		cmocka_unit_test(guards_are_not_skipped),
		cmocka_unit_test(few_threads_start),
		cmocka_unit_test(errors_end_it),
		cmocka_unit_test(a_read_hangs),
		cmocka_unit_test(late),
		cmocka_unit_test(a_fetch_makes_no_pages),
		cmocka_unit_test(with_page_shifts),
		cmocka_unit_test(swapped_before_4_2),
	};

	return cmocka_run_group_tests(tests, make_memory, drop_memory);
}
