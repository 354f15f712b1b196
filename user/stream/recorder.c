/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn the events of a session into records of a stream, and write them to a file. */
#include "user/stream/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "user/lib/random.h"
#include "user/stream/event_list.h"
#include "user/heap/heap.h"
#include "user/scan/leaks.h"
#include "user/scan/leaks_why.h"
#include "user/lib/cleanup.h"
#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/lib/serve_only.h"
#include "user/stream/record_file.h"
#include "user/stream/seek.h"
#include "user/source/record.h"
#include "user/source/source.h"
#include "user/stream/stream_target.h"
#include "user/stream/stream_write.h"
#include "user/stream/stream_zstd.h"

enum {
	SINK_CHUNK = IS_AGENT ? 8 * 1024 : 128 * 1024, /* coded ones pack as well when they are short */
	TIME_SHIFT = 10,			       /* about a microsecond */
	SEEK_MAX_STACKS = STREAM_MAX_STACKS / 2,
};

struct recorder {
	struct event_list *list;	  /* owned; not NULL: --events, and nothing below is used */
	const struct recorder_sink *sink; /* borrowed; NULL = it is a file */
	struct record_file *file;	  /* owned; NULL with a sink */
	struct stream_writer *writer;	  /* owned */
	u32 depth;
	bool is_open; /* has begun, and has not ended */
	bool has_failed;
	bool is_local;		       /* recorder_set_local() */
	struct stream_modules modules; /* of the present part */
	u64 part_bytes, part_ns;       /* 0 = no limit */
	u64 part_start_ns;
	s64 ahead_ns; /* the clock of the events minus ours */
	u64 id;	      /* 0 = has not begun */
	u64 sample_bytes;
	u32 part;
	u64 nr_events, nr_bytes;    /* in earlier parts */
	struct stream_hello hello;  /* of the present part; its strings are not kept */
	struct stream_writer *main; /* owned; of the recording, while writer is that of a state; else NULL */
	u64 seek_bytes;		    /* 0 = no seek points */
	u64 seek_at;		    /* bytes of this part at the last one */
	u64 last_ns;		    /* the latest moment of a mark, or of a begin or an end of a process */
	bool has_cut;		    /* stacks may have to be written again */
	struct seek_head seek; /* of the next seek point; its start and marks are those of this part so far */
};

_Static_assert(STREAM_BUILD_ID_MAX == (int)BUILD_ID_MAX, "build IDs are copied");

/* An agent that only serves has no files. */
static bool has_sink(const struct recorder *r)
{
	return IS_SERVE_ONLY || r->sink;
}

/* The time now, by the clock of the events. */
static u64 now_ns(const struct recorder *r)
{
	return clock_now_ns() + (u64)r->ahead_ns;
}

static int write_chunk(void *ctx, const void *data, size_t len)
{
	struct recorder *r = ctx;

	return has_sink(r) ? r->sink->write(r->sink->ctx, data, len) : record_file_write(r->file, data, len);
}

int recorder_new(struct recorder **out, const struct recorder_options *o, const struct alloc_table *fns)
{
	struct stream_writer_options wo = { .fns = fns,
					    .write = write_chunk,
					    .codec = IS_AGENT ? NULL : &stream_zstd };
	struct recorder *r;
	int err = 0;

	*out = NULL;
	if (!o->path && !o->is_list && !o->sink)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	if (o->is_list) {
		err = event_list_new(&r->list, stdout, fns);
		if (err)
			free(r);
		else
			*out = r;
		return err;
	}
	wo.ctx = r;
	r->sink = o->sink;
	if (has_sink(r)) {
		if (random_fill(&r->id, sizeof(r->id)))
			r->id = clock_ns(CLOCK_REALTIME);
		wo.is_coded = IS_AGENT;
		wo.chunk_bytes = SINK_CHUNK;
	}
	r->depth = o->depth;
	r->seek_bytes = o->seek_bytes;
	r->part_bytes = o->part_bytes;
	r->part_ns = o->part_ns;
	if (!has_sink(r))
		err = record_file_new(&r->file, o->path, o->force, o->part_bytes || o->part_ns ? o->keep : 0);
	if (!err)
		err = stream_writer_new(&r->writer, &wo);
	if (err) {
		recorder_free(r);
		return err;
	}
	*out = r;
	return 0;
}

int recorder_check(const struct recorder_options *o)
{
	struct record_file *f = NULL;
	bool has_parts = o->part_bytes || o->part_ns;
	int err = !IS_SERVE_ONLY && o->path ? record_file_new(&f, o->path, o->force, 0) : 0;

	if (!IS_SERVE_ONLY)
		record_file_free(f);
	if (!err && has_parts && (!o->path || (!strstr(o->path, "%n") && !strstr(o->path, "%t")))) {
		error("--record-%s: --record needs %%n or %%t in its name", o->part_bytes ? "size" : "time");
		return -EINVAL;
	}
	return err;
}

/* The file has an error: report it, and try to write an end. */
static void recorder_give_up(struct recorder *r, int err)
{
	const struct stream_end end = { .time_ns = now_ns(r),
					.reason = STREAM_END_ERROR,
					.text = strerror(-err) };

	r->has_failed = true;
	r->is_open = false;
	/* The client is told by other means, or is gone. */
	if (has_sink(r))
		return;
	error("record: %s: %s: the recording ends here, after %s", record_file_name(r->file), strerror(-err),
	      human_bytes(stream_written(r->writer).bytes).text);
	stream_writer_resume(r->writer);
	if (stream_write(r->writer, STREAM_END, &end) || stream_flush(r->writer))
		debug("record: the end could not be written either");
	if (record_file_next(r->file))
		debug("record: close");
}

static bool stream_recorder_is_open(const struct recorder *r)
{
	return r && r->is_open;
}

static void stream_recorder_check(struct recorder *r, int err)
{
	if (err == -EINVAL)
		debug("record: a record that the format cannot hold");
	else if (err && r->main)
		debug("record: a seek point: %s", strerror(-err)); /* recorder_end_seek() sees it again */
	else if (err && r->is_open)
		recorder_give_up(r, err);
}

static void recorder_put(struct recorder *r, enum stream_kind kind, const void *rec)
{
	if (r->is_open)
		stream_recorder_check(r, stream_write(r->writer, kind, rec));
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	event_list_free(r->list);
	if (r->main) {
		stream_writer_free(r->writer);
		r->writer = r->main;
	}
	if (r->is_open) {
		recorder_put(r, STREAM_END,
			     &(struct stream_end){ .time_ns = now_ns(r),
						   .reason = STREAM_END_ERROR,
						   .text = "heaptap gave up" });
		if (r->is_open)
			stream_recorder_check(r, stream_flush(r->writer));
	}
	stream_writer_free(r->writer);
	if (!IS_SERVE_ONLY)
		record_file_free(r->file);
	stream_modules_fini(&r->modules);
	free(r);
}

void recorder_set_sample(struct recorder *r, u64 bytes)
{
	if (r)
		r->sample_bytes = bytes > 1 ? bytes : 0;
	if (r && r->list)
		event_list_sample(r->list, r->sample_bytes);
}

void recorder_join(struct recorder *r)
{
	r->part = 1;
}

void recorder_begin(struct recorder *r, const char *backend, bool wants_scan, u64 mono_ns)
{
	struct stream_hello hello = { .role = r && r->sink ? STREAM_ROLE_TARGET : STREAM_ROLE_FILE,
				      .time_shift = TIME_SHIFT,
				      .mono_ns = mono_ns,
				      .real_ns = clock_ns(CLOCK_REALTIME),
				      .wants_scan = wants_scan,
				      .producer = "heaptap " HEAPTAP_VERSION,
				      .backend = backend };
	struct utsname names;

	if (!r || r->list)
		return;
	r->is_open = true;
	r->part_start_ns = mono_ns;
	if (!r->id)
		r->ahead_ns = (s64)(mono_ns - clock_now_ns());
	hello.depth = r->depth;
	hello.start_ns = r->sink ? r->seek.start_ns : 0;
	hello.part = r->part;
	hello.sample_bytes = r->sample_bytes;
	if (!r->id && random_fill(&r->id, sizeof(r->id)))
		r->id = hello.real_ns;
	hello.id = r->id;
	r->hello = hello;
	r->seek.start_ns = 0;
	r->seek.nr_marks = 0;
	r->seek.has_all = true;
	r->seek_at = 0;
	if (!uname(&names)) {
		hello.machine = names.machine;
		hello.release = names.release;
	}
	recorder_put(r, STREAM_HELLO, &hello);
}

void recorder_maps(struct recorder *r, const struct target *t)
{
	if (r && r->list)
		event_list_process(r->list, t);
	if (stream_recorder_is_open(r))
		stream_recorder_check(r, stream_write_maps(r->writer, &r->modules, t));
}

void recorder_process(struct recorder *r, const struct target *t, u64 time_ns)
{
	struct stream_process rec = stream_process_of(t, time_ns);
	struct proc_status status;

	if (r && r->list)
		event_list_process(r->list, t);
	if (!stream_recorder_is_open(r))
		return;
	/* The PID of a process on another machine is another process here. */
	if ((r->is_local || r->sink) && !proc_read_status(&status, t->pid)) {
		rec.ppid = (u32)status.ppid;
		rec.uid = status.uid;
	}
	if (!IS_SERVE_ONLY && r->file)
		record_file_set_pid(r->file, t->pid);
	if (!r->seek.start_ns)
		r->seek.start_ns = time_ns;
	recorder_put(r, STREAM_PROCESS, &rec);
	recorder_maps(r, t);
	/* If the recording breaks off later, it has at least the process. */
	if (r->is_open)
		stream_recorder_check(r, stream_flush(r->writer));
}

/*
 * A state is written behind the moment @time_ns. That of the last heap event, which the writer knows, may be earlier:
 * an end is written with the time when it was seen.
 */
static void note_time(struct recorder *r, u64 time_ns)
{
	if (r->last_ns < time_ns)
		r->last_ns = time_ns;
}

void recorder_event(struct recorder *r, const struct event_header *rec, size_t len)
{
	if (r && r->list)
		event_list_event(r->list, rec);
	if (!stream_recorder_is_open(r))
		return;
	if (rec->kind > EVENT_STACK)
		note_time(r, record_time(rec));
	stream_recorder_check(r, stream_write_event(r->writer, rec, len));
}

void recorder_note(struct recorder *r, const struct note_event *ev)
{
	static const u8 marks[NR_NOTES] = {
		[NOTE_MARK] = STREAM_MARK_PROGRAM,  [NOTE_PAUSE] = STREAM_MARK_PAUSE,
		[NOTE_RESUME] = STREAM_MARK_RESUME, [NOTE_LEAK_CHECK] = STREAM_MARK_CHECK,
		[NOTE_IGNORE] = STREAM_MARK_IGNORE, [NOTE_DISABLE] = STREAM_MARK_DISABLE,
		[NOTE_ENABLE] = STREAM_MARK_ENABLE
	};
	char name[NOTE_NAME_BYTES] = "";
	const struct stream_mark_record mark = { .time_ns = ev->time_ns,
						 .what = ev->what < NR_NOTES ? marks[ev->what] : 0,
						 .text = name,
						 .pid = ev->h.pid,
						 .tid = ev->h.tid,
						 .addr = ev->what == NOTE_IGNORE ? ev->addr : 0 };

	if (ev->what == NOTE_MARK)
		snprintf(name, sizeof(name), "%.*s", NOTE_NAME_BYTES - 1, ev->name);
	if (stream_recorder_is_open(r) && mark.what)
		recorder_put(r, STREAM_MARK, &mark);
}

void recorder_stack_again(struct recorder *r, const struct stack_event *ev, size_t len)
{
	if (stream_recorder_is_open(r))
		stream_recorder_check(r, stream_write_stack_again(r->writer, ev, len));
}

void recorder_losses(struct recorder *r, pid_t pid, const struct losses *l, u8 flags)
{
	const struct stream_losses rec = { .pid = (u32)pid, .flags = flags, .l = *l };

	if (r && r->list)
		event_list_losses(r->list, pid, l);
	else if (stream_recorder_is_open(r))
		recorder_put(r, STREAM_LOSSES, &rec);
}

/* Is a sum not 0? */
static bool has_sums(const struct leak_row *row)
{
	static const struct scan_sums none;

	return row->through.blocks || memcmp(&row->sums, &none, sizeof(none));
}

static void put_scan_rows(struct recorder *r, const struct leaks *l, const struct heap *heap)
{
	for (u32 i = 0; i < l->nr_rows; i++) {
		struct heap_row row = heap_row_get(heap, i);
		struct stream_scan_row rec = { .stack = stream_stack_number(r->writer, row.stack),
					       .fn = row.fn,
					       .sums = l->rows[i].sums,
					       .through = l->rows[i].through };

		if (has_sums(&l->rows[i]))
			recorder_put(r, STREAM_SCAN_ROW, &rec);
	}
	for (size_t i = 0; i < l->nr_links; i++) {
		struct heap_row row = heap_row_get(heap, l->links[i].row);
		struct heap_row leader = heap_row_get(heap, l->links[i].leader);

		recorder_put(r, STREAM_SCAN_LINK,
			     &(struct stream_scan_link){ .stack = stream_stack_number(r->writer, row.stack),
							 .fn = row.fn,
							 .leader_stack =
								 stream_stack_number(r->writer, leader.stack),
							 .leader_fn = leader.fn,
							 .sum = l->links[i].sum });
	}
}

static void put_why(struct recorder *r, const struct leak_why *why, const struct heap *heap, u8 flags)
{
	struct heap_row row = heap_row_get(heap, why->row);
	const struct stream_scan_why rec = { .stack = stream_stack_number(r->writer, row.stack),
					     .fn = row.fn,
					     .flags = flags |
						      (why->row != WHY_NO_ROW ? STREAM_WHY_HAS_ROW : 0) |
						      (why->root_path ? STREAM_WHY_HAS_PATH : 0),
					     .verdict = why->verdict,
					     .word_size = why->word_size,
					     .root = why->root,
					     .addr = why->addr,
					     .root_addr = why->root_addr,
					     .root_tp = why->root_tp,
					     .root_tid = (u32)why->root_tid,
					     .root_where = why->root_where,
					     .nr_steps = (u32)why->nr_steps,
					     .nr_left_out = why->nr_left_out,
					     .root_path = why->root_path };

	recorder_put(r, STREAM_SCAN_WHY, &rec);
	for (size_t i = 0; i < why->nr_steps; i++) {
		const struct why_step *s = &why->steps[i];

		row = heap_row_get(heap, s->row);
		recorder_put(
			r, STREAM_SCAN_STEP,
			&(struct stream_scan_step){ .addr = s->addr,
						    .size = s->size,
						    .offset = s->offset,
						    .nr = s->nr,
						    .stack = stream_stack_number(r->writer, row.stack),
						    .fn = row.fn,
						    .flags = s->row != WHY_NO_ROW ? STREAM_WHY_HAS_ROW : 0 });
	}
}

/* Facts about the pointers of the program. */
static void recorder_put_hints(struct stream_scan *rec, const struct scan_result *r)
{
	rec->behind = r->behind;
	for (u32 i = 0; i < SCAN_NR_HEADERS; i++)
		rec->headers |= (u64)r->headers[i] << 16 * i;
	rec->tagged = r->tagged;
	rec->tag_mask = r->tag_mask;
	rec->nr_links = r->nr_links;
}

void recorder_scan(struct recorder *r, pid_t pid, const struct leaks *l, const struct heap *heap,
		   bool is_exiting)
{
	struct stream_scan rec = { .pid = (u32)pid };

	if (!stream_recorder_is_open(r))
		return;
	rec.flags = (l->has_verdict ? STREAM_SCAN_VERDICT : 0) |
		    (l->result.is_complete ? STREAM_SCAN_COMPLETE : 0) |
		    (l->is_partial ? STREAM_SCAN_PARTIAL : 0) | (is_exiting ? STREAM_SCAN_EXITING : 0) |
		    (l->has_before ? STREAM_SCAN_BEFORE : 0);
	rec.pause_ns = l->pause_ns;
	rec.max_pause_ns = l->max_pause_ns;
	rec.word_size = l->word_size;
	rec.scanned_bytes = l->result.scanned_bytes;
	rec.skipped_bytes = l->result.skipped_bytes;
	rec.nr_unstopped = l->result.nr_unstopped;
	rec.nr_overlaps = l->result.nr_overlaps;
	rec.why = l->why;
	if (!IS_AGENT) {
		recorder_put_hints(&rec, &l->result);
		rec.books_of = l->books.allocator;
		rec.books = l->books.sums;
	}
	rec.left_out = l->left_out;
	rec.fresh = l->fresh;
	rec.again = l->again;
	rec.sums = l->result.sums;
	recorder_put(r, STREAM_SCAN, &rec);
	put_scan_rows(r, l, heap);
	for (size_t i = 0; !IS_AGENT && i < l->nr_whys; i++)
		put_why(r, &l->whys[i], heap, 0);
	if (!IS_AGENT && l->asked)
		put_why(r, l->asked, heap, STREAM_WHY_ASKED);
	recorder_put(r, STREAM_SCAN_END, &(struct stream_pid){ (u32)pid });
}

void recorder_mark_report(struct recorder *r)
{
	if (stream_recorder_is_open(r))
		recorder_put(
			r, STREAM_MARK,
			&(struct stream_mark_record){ .time_ns = now_ns(r), .what = STREAM_MARK_REPORT });
}

/* Seek points name the marks before them. */
static void recorder_keep_mark(struct seek_head *seek, u64 time_ns, const char *text)
{
	struct seek_mark *mark = &seek->marks[seek->nr_marks];

	if (seek->nr_marks == SEEK_MAX_MARKS || strlen(text) >= sizeof(mark->name)) {
		seek->has_all = false;
		return;
	}
	mark->time_ns = time_ns;
	snprintf(mark->name, sizeof(mark->name), "%s", text);
	seek->nr_marks++;
}

void recorder_mark(struct recorder *r, u64 time_ns, const char *text)
{
	if (r && r->list)
		event_list_mark(r->list, time_ns, text);
	if (!stream_recorder_is_open(r))
		return;
	recorder_keep_mark(&r->seek, time_ns, text);
	note_time(r, time_ns);
	recorder_put(
		r, STREAM_MARK,
		&(struct stream_mark_record){ .time_ns = time_ns, .what = STREAM_MARK_USER, .text = text });
}

bool recorder_has_begun(const struct recorder *r)
{
	return !r || r->list || r->id;
}

bool recorder_is_open(const struct recorder *r)
{
	return stream_recorder_is_open(r);
}

void recorder_connect(struct recorder *r, const char *backend, u64 start_ns, u64 now_ns)
{
	r->has_failed = false;
	stream_modules_clear(&r->modules);
	stream_writer_restart(r->writer);
	r->seek.start_ns = start_ns;
	recorder_begin(r, backend, false, now_ns);
}

void recorder_disconnect(struct recorder *r)
{
	r->is_open = false;
}

u64 recorder_id(const struct recorder *r)
{
	return r->id;
}

unsigned int recorder_filled(const struct recorder *r)
{
	return r->is_open ? r->sink->filled(r->sink->ctx) : 8;
}

void recorder_flush(struct recorder *r)
{
	if (r->is_open)
		stream_recorder_check(r, stream_flush(r->writer));
}

void recorder_set_local(struct recorder *r)
{
	if (r)
		r->is_local = true;
}

void recorder_thread(struct recorder *r, u32 pid, u32 tid, const char *name)
{
	if (r && r->list)
		event_list_thread(r->list, (pid_t)pid, (pid_t)tid, name);
	if (stream_recorder_is_open(r))
		recorder_put(r, STREAM_THREAD,
			     &(struct stream_thread){ .pid = pid, .tid = tid, .comm = name });
}

void recorder_tick(struct recorder *r)
{
	if (stream_recorder_is_open(r))
		stream_recorder_check(r, stream_tick(r->writer, clock_now_ns()));
}

bool recorder_next_part(struct recorder *r, const char *backend, bool wants_scan)
{
	struct stream_written w;
	u64 now;

	if (IS_SERVE_ONLY || !stream_recorder_is_open(r) || (!r->part_bytes && !r->part_ns))
		return false;
	now = now_ns(r);
	if (!(r->part_bytes && record_file_size(r->file) >= r->part_bytes) &&
	    !(r->part_ns && now - r->part_start_ns >= r->part_ns))
		return false;
	w = stream_written(r->writer);
	recorder_put(r, STREAM_END,
		     &(struct stream_end){ .time_ns = now,
					   .duration_ns = now - r->part_start_ns,
					   .reason = STREAM_END_PART,
					   .nr_events = w.nr_events });
	if (r->is_open)
		stream_recorder_check(r, stream_flush(r->writer));
	if (!r->is_open)
		return false;
	stream_recorder_check(r, record_file_next(r->file));
	if (!r->is_open)
		return false;
	r->nr_events += w.nr_events;
	r->nr_bytes += stream_written(r->writer).bytes;
	r->part++;
	stream_modules_clear(&r->modules);
	stream_writer_restart(r->writer);
	recorder_begin(r, backend, wants_scan, now);
	return true;
}

bool recorder_has_stack(const struct recorder *r, u64 stack)
{
	return !r || (!r->part && !r->has_cut) || !r->is_open || stream_has_stack(r->writer, stack);
}

bool recorder_wants_seek(const struct recorder *r)
{
	struct stream_written w;

	if (!stream_recorder_is_open(r) || !r->seek_bytes || r->main || !r->seek.start_ns)
		return false;
	w = stream_written(r->writer);
	return w.bytes - r->seek_at >= r->seek_bytes && w.nr_stacks <= SEEK_MAX_STACKS;
}

void recorder_introduce(struct recorder *r, const struct target *t)
{
	if (stream_recorder_is_open(r))
		stream_recorder_check(r, stream_introduce(r->writer, &r->modules, t));
}

/* Chunks of the state go into chunks of the recording. */
static int recorder_write_state(void *ctx, const void *data, size_t len)
{
	struct recorder *r = ctx;

	return stream_write_chunk(r->main, STREAM_CHUNK_STATE, data, len);
}

/* Write what a state begins with. */
static void begin_state(struct recorder *r, const char *backend, bool wants_scan)
{
	struct stream_hello hello = r->hello;

	hello.mono_ns = r->seek.time_ns;
	hello.real_ns = r->hello.real_ns + (hello.mono_ns - r->hello.mono_ns);
	hello.backend = backend;
	hello.producer = "heaptap " HEAPTAP_VERSION;
	hello.wants_scan = wants_scan;
	recorder_put(r, STREAM_HELLO, &hello);
	stream_recorder_check(r, stream_write_functions(r->writer, r->main));
	stream_recorder_check(r, stream_write_modules(r->writer, &r->modules));
	for (u32 i = 0; i < r->seek.nr_marks; i++)
		recorder_put(r, STREAM_MARK,
			     &(struct stream_mark_record){ .time_ns = r->seek.marks[i].time_ns,
							   .what = STREAM_MARK_USER,
							   .text = r->seek.marks[i].name });
}

bool recorder_begin_seek(struct recorder *r, u64 nr_blocks, const char *backend, bool wants_scan)
{
	const struct stream_writer_options wo = { .fns = stream_writer_functions(r->writer),
						  .ctx = r,
						  .write = recorder_write_state,
						  .codec = IS_AGENT ? NULL : &stream_zstd };
	u64 bytes = stream_written(r->writer).bytes;
	struct stream_writer *state;

	if (!seek_is_worth(bytes - r->seek_at, nr_blocks))
		return false;
	r->seek_at = bytes;
	if (stream_writer_new(&state, &wo)) {
		debug("record: no memory for a seek point");
		return false;
	}
	r->has_cut = true;
	stream_recorder_check(r, stream_cut(r->writer, &r->seek.cut));
	if (!r->is_open) {
		stream_writer_free(state);
		return false;
	}
	r->seek.time_ns = r->seek.cut.time << TIME_SHIFT;
	if (r->seek.time_ns < r->seek.start_ns)
		r->seek.time_ns = r->seek.start_ns;
	if (r->seek.time_ns < r->last_ns)
		r->seek.time_ns = r->last_ns;
	r->main = r->writer;
	r->writer = state;
	begin_state(r, backend, wants_scan);
	return true;
}

void recorder_end_seek(struct recorder *r)
{
	const struct stream_end end = { .time_ns = r->seek.time_ns, .reason = STREAM_END_PART };
	struct stream_writer *state = r->writer;
	auto_free u8 *head = malloc(SEEK_MAX_BYTES);
	int err = stream_write(state, STREAM_END, &end);

	if (!err)
		err = stream_flush(state);
	stream_writer_free(state);
	r->writer = r->main;
	r->main = NULL;
	/* Without this chunk the state means nothing. */
	if (!err && head)
		err = stream_write_chunk(r->writer, STREAM_CHUNK_SEEK, head, seek_put(head, &r->seek));
	stream_recorder_check(r, err);
	r->seek_at = stream_written(r->writer).bytes;
}

void recorder_end(struct recorder *r, u64 time_ns, u64 duration_ns)
{
	struct stream_written written;
	int err;

	if (!stream_recorder_is_open(r))
		return;
	recorder_put(r, STREAM_END,
		     &(struct stream_end){ .time_ns = time_ns,
					   .duration_ns = duration_ns,
					   .reason = STREAM_END_DONE,
					   .nr_events = stream_written(r->writer).nr_events });
	if (r->is_open)
		stream_recorder_check(r, stream_flush(r->writer));
	if (!r->is_open)
		return;
	r->is_open = false;
	if (has_sink(r))
		return;
	written = stream_written(r->writer);
	err = record_file_next(r->file);
	r->has_failed |= err != 0;
	if (err)
		error("record: %s: %s", record_file_name(r->file), strerror(-err));
	else
		info("record: %s: %s events, %s", record_file_name(r->file),
		     human_count(r->nr_events + written.nr_events).text,
		     human_bytes(r->nr_bytes + written.bytes).text);
	if (written.nr_dropped_stacks)
		warn("record: %s stacks were left out: a recording has a limit",
		     human_count(written.nr_dropped_stacks).text);
}

int recorder_finish_list(struct recorder *r)
{
	return r && r->list ? event_list_finish(r->list) : 0;
}

void recorder_show_list(const struct recorder *r)
{
	if (r && r->list)
		event_list_show(r->list);
}

bool recorder_has_failed(const struct recorder *r)
{
	return r && r->has_failed;
}
