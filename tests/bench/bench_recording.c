/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures recordings. -m N FILE: makes one of N events, as a program of many sizes, stacks and threads would; prints
 * the ns of writing one event. FILE: prints heap events, allocations, bytes stored and unpacked, ns of reading one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/varint.h"
#include "user/stream/stream_read.h"
#include "user/stream/stream_write.h"
#include "user/stream/stream_zstd.h"

enum { NR_STACKS = 3000, NR_LIVE = 200000, NR_THREADS = 4, NR_SIZES = 64 };

static u64 state = 1;

static u64 below(u64 max)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % max;
}

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_recording: %s\n", what);
	exit(1);
}

static int to_file(void *ctx, const void *data, size_t len)
{
	return fwrite(data, 1, len, ctx) == len ? 0 : -1;
}

static void put(struct stream_writer *w, enum stream_kind kind, const void *rec)
{
	if (stream_write(w, kind, rec))
		die("write");
}

static void put_stacks(struct stream_writer *w)
{
	struct stack_event ev = { .h = { .kind = EVENT_STACK, .pid = 1000 }, .epoch = 1, .nr_frames = 30 };

	for (u64 id = 0; id < NR_STACKS; id++) {
		/* A tree: the outer half is one of 20. */
		for (u16 i = 0; i < ev.nr_frames; i++)
			ev.ips[i] =
				0x555555554000 + (i < 15 ? id * 4096 : id % 20 * 4096) % 0x200000 + i * 100;
		ev.id = 0x9e3779b97f4a7c15ULL * (id + 1);
		if (stream_write_event(w, &ev.h, sizeof(ev)))
			die("write");
	}
}

/* Free lists by size, as allocators have them: what was freed last is given out first. */
struct heap_model {
	u64 *freed[NR_SIZES];
	size_t nr_freed[NR_SIZES];
	u64 top;
	struct {
		u64 addr;
		u32 size;
	} live[NR_LIVE];
	size_t nr_live;
};

static struct heap_model m = { .top = 0x555555800000 };

static u64 give(u32 size)
{
	return m.nr_freed[size] ? m.freed[size][--m.nr_freed[size]] : (m.top += 16 * (u64)(size + 1));
}

static void take_back(u32 size, u64 addr)
{
	m.freed[size][m.nr_freed[size]++] = addr;
}

static struct heap_event next_event(u64 *time)
{
	struct heap_event ev = { .h = { .kind = EVENT_ALLOC, .fn = 1, .pid = 1000, .tid = 1000 } };
	size_t i;

	*time += 200 + below(1500);
	ev.h.tid += below(20) ? 0 : (u32)below(NR_THREADS);
	ev.time_ns = *time;
	/* Most blocks die young. */
	if (m.nr_live == NR_LIVE || (m.nr_live > 100 && below(2))) {
		i = below(4) ? m.nr_live - 1 - below(20) : below(m.nr_live);
		ev.h.kind = EVENT_FREE;
		ev.h.fn = 5;
		ev.addr = m.live[i].addr;
		take_back(m.live[i].size, ev.addr);
		m.live[i] = m.live[--m.nr_live];
		return ev;
	}
	i = below(4) ? below(100) : below(NR_STACKS);
	ev.stack = 0x9e3779b97f4a7c15ULL * (i + 1);
	m.live[m.nr_live].size = below(10) ? i % NR_SIZES : (u32)below(NR_SIZES);
	ev.size = 16 * m.live[m.nr_live].size + 8;
	ev.addr = m.live[m.nr_live].addr = give(m.live[m.nr_live].size);
	m.nr_live++;
	return ev;
}

static void make(const char *path, u64 nr)
{
	FILE *out = fopen(path, "w");
	const struct stream_writer_options o = { .ctx = out, .write = to_file, .codec = &stream_zstd };
	struct stream_writer *w;
	u64 time = 1000000;
	double ns = 0;
	enum { BATCH = 10000 };
	static struct heap_event batch[BATCH];

	if (!out || stream_writer_new(&w, &o))
		die(path);
	for (size_t i = 0; i < NR_SIZES; i++)
		m.freed[i] = malloc((NR_LIVE + 1) * sizeof(u64));
	put(w, STREAM_HELLO, &(struct stream_hello){ .time_shift = 8, .mono_ns = time, .producer = "bench" });
	put(w, STREAM_PROCESS, &(struct stream_process){ .pid = 1000, .word_size = 8, .comm = "bench" });
	put_stacks(w);
	for (u64 i = 0; i < nr; i += BATCH) {
		double start;

		for (size_t k = 0; k < BATCH; k++)
			batch[k] = next_event(&time);
		start = cpu_ns();
		for (size_t k = 0; k < BATCH; k++)
			if (stream_write_event(w, &batch[k].h, sizeof(batch[k])))
				die("write");
		ns += cpu_ns() - start;
	}
	put(w, STREAM_END, &(struct stream_end){ .time_ns = time });
	if (stream_flush(w) || fclose(out))
		die(path);
	stream_writer_free(w);
	printf("%.1f\n", ns / (double)nr);
}

static u64 nr_allocs, raw_bytes;

static int on_record(void *ctx, enum stream_kind kind, const void *rec)
{
	const struct heap_event *ev = rec;

	(void)ctx;
	nr_allocs += kind == STREAM_EVENT && ev->addr &&
		     (ev->h.kind == EVENT_ALLOC || ev->h.kind == EVENT_REALLOC_END);
	return 0;
}

/* Add up the sizes that chunks say they unpack to. */
static void count_raw(const u8 *p, size_t len)
{
	for (size_t at = STREAM_PREAMBLE_LEN; at + STREAM_HEADER_LEN <= len;
	     at += STREAM_HEADER_LEN + le32_get(p + at + 4))
		raw_bytes += STREAM_HEADER_LEN + le32_get(p + at + 8);
}

static void look(const char *path)
{
	const struct stream_handler handler = { .record = on_record };
	struct stream_reader *r;
	FILE *in = fopen(path, "r");
	size_t len;
	double ns;
	u8 *bytes;

	if (!in || fseek(in, 0, SEEK_END))
		die(path);
	len = (size_t)ftell(in);
	rewind(in);
	bytes = malloc(len + 1);
	if (!bytes || fread(bytes, 1, len, in) != len || stream_reader_new(&r, &handler, &stream_zstd))
		die(path);
	fclose(in);
	count_raw(bytes, len);
	ns = cpu_ns();
	if (stream_feed(r, bytes, len) || stream_finish(r))
		die(stream_why(r));
	ns = cpu_ns() - ns;
	printf("%llu %llu %zu %llu %.1f\n", (unsigned long long)stream_progress(r).nr_events,
	       (unsigned long long)nr_allocs, len, (unsigned long long)raw_bytes,
	       ns / ((double)stream_progress(r).nr_events + 1));
	stream_reader_free(r);
	free(bytes);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "-m"))
		make(argv[3], strtoull(argv[2], NULL, 10));
	else if (argc == 2)
		look(argv[1]);
	else
		die("usage: bench_recording [-m N] FILE");
	return 0;
}
