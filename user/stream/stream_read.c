/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check and unpack chunks, and complete the short forms of records. */
#include "user/stream/stream_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/heap/heap_sample.h"
#include "user/lib/crc32c.h"
#include "user/lib/varint.h"
#include "user/stream/stream_coder.h"
#include "user/stream/stream_layout.h"
#include "user/stream/stream_split.h"
#include "user/stream/stream_state.h"

enum {
	MAX_FNS = 256,
	MAX_MODULES = 1 << 16,
	MAX_STRINGS = STREAM_MAX_RECORD + 64, /* bytes of one record, each string with its final 0 */
};

/* The next byte of a column. */
struct cursor {
	const u8 *p, *end;
};

struct stream_reader {
	struct stream_handler handler;
	const struct stream_codec *codec;
	int err;
	char why[256];
	struct stream_progress progress;
	bool has_preamble, has_hello, is_over;
	bool is_halted; /* inside of the chunk in the input buffer */
	u8 *input;	/* owned; the beginning of a chunk */
	size_t nr_input;
	u8 *raw;			/* owned; an unpacked chunk; NULL until one comes */
	struct stream_coder *coder;	/* owned; NULL until a coded chunk comes */
	char *strings;			/* owned; of the record at hand */
	union stream_any any;		/* the record at hand */
	struct stack_event stack_event; /* the last stack */

	struct cursor cursors[NR_STREAM_COLUMNS];
	struct cursor
		*columns[NR_STREAM_COLUMNS]; /* all of them the first cursor unless the chunk has columns */

	struct stream_state state;
	u16 nr_ips;
	u32 nr_modules;
	bool has_fn[MAX_FNS];
	u64 nr_absent; /* stacks before the place where reading began */
};

static inline bool cursor_get(struct cursor *c, u64 *value)
{
	const u8 *p = varint_get(c->p, c->end, value);

	if (p)
		c->p = p;
	return p;
}

int stream_refuse(struct stream_reader *r, int err, bool has_place, const char *fmt, ...)
{
	size_t used = 0;
	va_list ap;

	if (has_place && r->handler.line)
		used = (size_t)snprintf(r->why, sizeof(r->why), "line %" PRIu64 ": ", (u64)*r->handler.line);
	else if (has_place)
		used = (size_t)snprintf(r->why, sizeof(r->why), "chunk %" PRIu64 ", at byte %" PRIu64 ": ",
					r->progress.nr_chunks, r->progress.bytes);
	va_start(ap, fmt);
	vsnprintf(r->why + used, sizeof(r->why) - used, fmt, ap);
	va_end(ap);
	r->err = err;
	return err;
}

#define stream_read_fail(r, err, ...) stream_refuse(r, err, (r)->has_preamble, __VA_ARGS__)

static int stream_read_damaged(struct stream_reader *r, const char *what)
{
	return r->err ? r->err : stream_read_fail(r, -EBADMSG, "%s", what);
}

int stream_reader_new(struct stream_reader **out, const struct stream_handler *handler,
		      const struct stream_codec *codec)
{
	struct stream_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->input = malloc(STREAM_HEADER_LEN + STREAM_MAX_RAW);
	r->strings = malloc(MAX_STRINGS);
	if (!r->input || !r->strings || stream_state_init(&r->state)) {
		stream_reader_free(r);
		return -ENOMEM;
	}
	r->handler = *handler;
	r->codec = codec;
	*out = r;
	return 0;
}

void stream_reader_free(struct stream_reader *r)
{
	if (!r)
		return;
	free(r->input);
	free(r->raw);
	free(r->coder);
	free(r->strings);
	stream_state_fini(&r->state);
	free(r);
}

/* Coded chunks begin anew. */
static void stream_read_forget(struct stream_reader *r)
{
	free(r->coder);
	r->coder = NULL;
}

void stream_reader_restart(struct stream_reader *r)
{
	r->err = 0;
	r->why[0] = '\0';
	r->progress = (struct stream_progress){ 0 };
	r->has_preamble = r->has_hello = r->is_over = r->is_halted = false;
	r->nr_input = 0;
	stream_state_reset(&r->state);
	r->nr_ips = 0;
	r->nr_modules = 0;
	memset(r->has_fn, 0, sizeof(r->has_fn));
	r->nr_absent = 0;
	stream_read_forget(r);
}

static int stream_read_hand_out(struct stream_reader *r, enum stream_kind kind, const void *rec)
{
	int err = r->handler.record(r->handler.ctx, kind, rec);

	return err < 0 && !r->err ? stream_read_fail(r, err, "%s", strerror(-err)) : err;
}

/* Check a record against the records before. Return NULL, or the error in words. */

static const char *check_hello(struct stream_reader *r)
{
	const struct stream_hello *hello = &r->any.hello;

	if (r->has_hello)
		return "a second beginning";
	if (hello->time_shift > 63)
		return "unit of time out of range";
	if (hello->sample_bytes > SAMPLE_MOST_BYTES)
		return "distance of samples out of range";
	r->has_hello = true;
	stream_state_begin(&r->state, hello);
	return NULL;
}

static const char *check_function(struct stream_reader *r)
{
	if (r->any.function.fn >= MAX_FNS)
		return "number of a function out of range";
	r->has_fn[r->any.function.fn] = true;
	return NULL;
}

static bool is_pid(u32 pid)
{
	return pid && pid <= INT32_MAX;
}

static const char *check_process(struct stream_reader *r)
{
	return is_pid(r->any.process.pid) ? NULL : "a pid out of range";
}

static const char *check_losses(struct stream_reader *r)
{
	return r->any.losses.l.abandoned > r->any.losses.l.other ? "losses that cannot be" : NULL;
}

static const char *check_module(struct stream_reader *r)
{
	if (r->any.module.module != r->nr_modules + 1 || r->nr_modules == MAX_MODULES)
		return "number of a module out of order";
	r->nr_modules++;
	return NULL;
}

static const char *check_mapping(struct stream_reader *r)
{
	return r->any.mapping.module > r->nr_modules ? "mapping of a module that is not there" : NULL;
}

static const char *check_allocator(struct stream_reader *r)
{
	u32 module = r->any.allocator.module;

	return !module || module > r->nr_modules ? "allocator in a module that is not there" : NULL;
}

/* Turn the number of a stack into its place in the state. False if there is no such stack. */
static bool place_stack(const struct stream_reader *r, u64 *stack)
{
	if (*stack >= STACK_FIRST_ID && *stack < STACK_FIRST_ID + r->nr_absent)
		return false;
	if (*stack >= STACK_FIRST_ID)
		*stack -= r->nr_absent;
	return *stack < r->state.nr_stacks;
}

/* Turn the number of a stack into its id; an absent stack is lost. False if there is no such stack. */
static bool stream_read_find_stack(const struct stream_reader *r, u64 *stack, u32 fn)
{
	if (fn >= MAX_FNS || *stack >= r->state.nr_stacks + r->nr_absent)
		return false;
	*stack = place_stack(r, stack) ? r->state.stacks[*stack].id : STACK_LOST;
	return true;
}

static const char *check_row(struct stream_reader *r)
{
	struct stream_scan_row *row = &r->any.scan_row;

	return stream_read_find_stack(r, &row->stack, row->fn) ? NULL
							       : "verdicts of a stack that is not there";
}

static const char *check_link(struct stream_reader *r)
{
	struct stream_scan_link *l = &r->any.scan_link;

	return stream_read_find_stack(r, &l->stack, l->fn) &&
			       stream_read_find_stack(r, &l->leader_stack, l->leader_fn)
		       ? NULL
		       : "link of stacks that are not there";
}

static const char *check_why(struct stream_reader *r)
{
	struct stream_scan_why *w = &r->any.scan_why;

	return stream_read_find_stack(r, &w->stack, w->fn) ? NULL : "chain of a stack that is not there";
}

static const char *check_step(struct stream_reader *r)
{
	struct stream_scan_step *step = &r->any.scan_step;

	return stream_read_find_stack(r, &step->stack, step->fn) ? NULL
								 : "chain of a stack that is not there";
}

static const char *check_end(struct stream_reader *r)
{
	r->is_over = true;
	return NULL;
}

static const char *check_exec(struct stream_reader *r)
{
	r->any.life.h.kind = EVENT_EXEC;
	return NULL;
}

static const char *check_fork(struct stream_reader *r)
{
	r->any.life.h.kind = EVENT_FORK;
	return is_pid(r->any.life.child_pid) && r->any.life.child_pid != r->any.life.h.pid
		       ? NULL
		       : "a child that cannot be";
}

static const char *check_exit(struct stream_reader *r)
{
	r->any.life.h.kind = EVENT_EXIT;
	return NULL;
}

static const char *(*const checks[NR_STREAM_RECORDS])(struct stream_reader *r) = {
	[STREAM_HELLO] = check_hello,	      [STREAM_FUNCTION] = check_function,
	[STREAM_MODULE] = check_module,	      [STREAM_MAPPING] = check_mapping,
	[STREAM_ALLOCATOR] = check_allocator, [STREAM_SCAN_ROW] = check_row,
	[STREAM_SCAN_LINK] = check_link,      [STREAM_SCAN_WHY] = check_why,
	[STREAM_SCAN_STEP] = check_step,      [STREAM_END] = check_end,
	[STREAM_EXEC] = check_exec,	      [STREAM_FORK] = check_fork,
	[STREAM_EXIT] = check_exit,	      [STREAM_PROCESS] = check_process,
	[STREAM_LOSSES] = check_losses,
};

static int read_context(struct stream_reader *r, const u8 *p, const u8 *end)
{
	u64 number = 0, pid = 0, tid = 0;

	p = varint_get(p, end, &number);
	p = varint_get(p, end, &pid);
	p = varint_get(p, end, &tid);
	if (!p || number >= STREAM_MAX_THREADS || pid > INT32_MAX || tid > INT32_MAX)
		return stream_read_damaged(r, "a thread cannot be understood");
	r->state.contexts[number] =
		(struct stream_context){ .pid = (u32)pid, .tid = (u32)tid, .is_known = true };
	return 0;
}

static int stream_read_add_stack(struct stream_reader *r)
{
	int err = stream_state_add_stack(&r->state, r->stack_event.id);

	if (err == -E2BIG)
		return stream_read_damaged(r, "too many stacks");
	return err ? stream_read_fail(r, err, "out of memory") : 0;
}

/* Read frames into the stack event. The outermost frames may be those of the last stack. */
static const u8 *read_frames(struct stream_reader *r, const u8 *p, const u8 *end)
{
	struct stack_event *ev = &r->stack_event;
	u64 nr = 0, same = 0, delta = 0, last;

	p = varint_get(p, end, &nr);
	p = varint_get(p, end, &same);
	if (!p || nr > STACK_MAX_FRAMES || same > nr || same > r->nr_ips)
		return NULL;
	memmove(&ev->ips[nr - same], &ev->ips[r->nr_ips - same], same * sizeof(u64));
	r->nr_ips = (u16)nr;
	ev->nr_frames = (u16)nr;
	last = same ? ev->ips[nr - same] : 0;
	for (u64 i = nr - same; p && i-- > 0;) {
		p = varint_get(p, end, &delta);
		last += from_zigzag(delta);
		ev->ips[i] = last;
	}
	return p;
}

static int stream_read_stack(struct stream_reader *r, const u8 *p, const u8 *end)
{
	struct stack_event *ev = &r->stack_event;
	u64 pid = 0, epoch = 0;

	p = varint_get(p, end, &pid);
	p = varint_get(p, end, &epoch);
	if (!p || p == end || pid > INT32_MAX || epoch > UINT32_MAX)
		return stream_read_damaged(r, "a stack cannot be understood");
	ev->h = (struct event_header){ .kind = EVENT_STACK, .pid = (u32)pid };
	ev->epoch = (u32)epoch;
	ev->end = *p < NR_STACK_ENDS ? *p : STACK_LIMIT;
	p = read_frames(r, p + 1, end);
	if (!p)
		return stream_read_damaged(r, "the frames of a stack cannot be understood");
	ev->id = end - p >= 8 ? le32_get(p) | (u64)le32_get(p + 4) << 32 : stack_event_id(ev);
	if (ev->id < STACK_FIRST_ID)
		return stream_read_damaged(r, "a stack has the id of none");
	if (stream_read_add_stack(r))
		return r->err;
	return stream_read_hand_out(r, STREAM_STACK, ev);
}

/* Read the record of @kind at @body, and call the handler. */
static int take_record(struct stream_reader *r, u8 kind, const u8 *body, size_t len)
{
	const struct stream_layout *layout = stream_layout(kind);
	const char *why = NULL;

	if (!r->has_hello && kind != STREAM_HELLO)
		return stream_read_damaged(r, "it does not begin with who wrote it");
	if (kind == STREAM_CONTEXT)
		return read_context(r, body, body + len);
	if (kind == STREAM_FORGET) {
		stream_guess_begin(r->state.guess, r->state.guess->bits);
		return 0;
	}
	if (kind == STREAM_STACK)
		return stream_read_stack(r, body, body + len);
	if (!layout) {
		r->progress.nr_unknown++;
		return 0;
	}
	if (!stream_layout_get(layout, body, len, &r->any, r->strings))
		why = "a record cannot be understood";
	else if (kind < NR_STREAM_RECORDS && checks[kind])
		why = checks[kind](r);
	return why ? stream_read_damaged(r, why) : stream_read_hand_out(r, kind, &r->any);
}

/* A record with a body. */
static int read_record(struct stream_reader *r)
{
	struct cursor *in = r->columns[STREAM_COLUMN_RECORDS];
	const u8 *body;
	u64 len = 0;
	u8 kind;

	if (in->p == in->end)
		return stream_read_damaged(r, "a record is cut off");
	kind = *in->p++;
	if (!cursor_get(in, &len) || len > (size_t)(in->end - in->p) || len > STREAM_MAX_RECORD)
		return stream_read_damaged(r, "a record is longer than its chunk");
	body = in->p;
	in->p += len;
	return take_record(r, kind, body, len);
}

/* False on damage. *@is_guess: it follows from the size, which comes later. */
static bool read_addr(struct stream_reader *r, u8 op, bool *is_guess)
{
	u64 value = 0, addr;

	if (!cursor_get(r->columns[stream_addr_column(op)], &value))
		return false;
	*is_guess = (op & (OP_RECENT | 7)) == (OP_RECENT | OP_ALLOC) && !value;
	if (*is_guess)
		return true;
	addr = r->state.addr + (from_zigzag(value) << 3);
	if (op & OP_RECENT && !stream_state_recent(&r->state, value, &addr))
		return false;
	stream_state_add_addr(&r->state, addr);
	return true;
}

/* Read stack, function and size of a short event, or guess the fields that were left out. */
static bool read_rest(struct stream_reader *r, u8 op, struct heap_event *ev)
{
	bool is_free = ev->h.kind == EVENT_FREE;
	struct stream_context *c = &r->state.contexts[r->state.context];
	u32 *guess = &r->state.stacks[c->last].next[!is_free];
	struct stream_stack *m;
	u64 fn = 0;

	ev->stack = *guess;
	if (op & OP_STACK &&
	    (!cursor_get(r->columns[STREAM_COLUMN_STACKS], &ev->stack) || !place_stack(r, &ev->stack)))
		return false;
	*guess = (u32)ev->stack;
	if (ev->stack)
		c->last = (u32)ev->stack;
	m = &r->state.stacks[ev->stack];
	if (op & OP_FN) {
		if (!cursor_get(r->columns[STREAM_COLUMN_FNS], &fn) || fn >= MAX_FNS)
			return false;
		m->fn[!is_free] = (u16)fn;
	}
	ev->h.fn = m->fn[!is_free];
	ev->size = is_free ? 0 : m->size;
	if (!(op & OP_SIZE))
		return true;
	if (!cursor_get(r->columns[STREAM_COLUMN_SIZES], &ev->size))
		return false;
	m->size = is_free ? m->size : ev->size;
	return true;
}

/* Read a short event into @ev, which is 0. False on damage. */
static bool read_short(struct stream_reader *r, u8 op, struct heap_event *ev)
{
	static const u8 kinds[NR_STREAM_OPS] = { [OP_ALLOC] = EVENT_ALLOC,
						 [OP_FREE] = EVENT_FREE,
						 [OP_FREE_TEMPORARY] = EVENT_FREE,
						 [OP_REALLOC_BEGIN] = EVENT_REALLOC_BEGIN,
						 [OP_REALLOC_END] = EVENT_REALLOC_END };
	u64 time = 0, context = r->state.context;
	struct stream_context *c;
	bool is_guess = false;

	ev->h.kind = kinds[op & 7];
	ev->h.flags = (op & 7) == OP_FREE_TEMPORARY ? EVENT_TEMPORARY : 0;
	if (!cursor_get(r->columns[STREAM_COLUMN_TIMES], &time))
		return false;
	if (op & OP_THREAD && !cursor_get(r->columns[STREAM_COLUMN_CONTEXTS], &context))
		return false;
	if (context >= STREAM_MAX_THREADS || !read_addr(r, op, &is_guess))
		return false;
	r->state.time += time;
	r->state.context = (u32)context;
	c = &r->state.contexts[context];
	ev->addr = r->state.addr;
	if ((op & 7) == OP_REALLOC_END && !(op & OP_STACK)) {
		ev->old_addr = c->old_addr;
		ev->size = c->size;
		ev->stack = c->stack;
		ev->h.fn = c->fn;
		return c->has_begun;
	}
	if ((op & 7) == OP_REALLOC_BEGIN) {
		ev->old_addr = ev->addr;
		ev->addr = 0;
	}
	if (!read_rest(r, op, ev))
		return false;
	if (is_guess) {
		ev->addr = stream_guess_addr(r->state.guess, ev->size);
		stream_state_add_addr(&r->state, ev->addr);
	}
	return true;
}

static bool read_full(struct stream_reader *r, u8 op, struct heap_event *ev)
{
	struct cursor *in = r->columns[STREAM_COLUMN_RECORDS];
	u64 time = 0, context = 0, fn = 0, distance = 0;

	if (in->end - in->p < 2)
		return false;
	ev->h.kind = *in->p++;
	ev->h.flags = *in->p++;
	if (!cursor_get(in, &time) || !cursor_get(in, &context) || !cursor_get(in, &fn) ||
	    !cursor_get(in, &ev->addr) || !cursor_get(in, &ev->old_addr) || !cursor_get(in, &ev->size) ||
	    !cursor_get(in, &ev->stack))
		return false;
	if ((op & 7) == OP_SAMPLED && (!cursor_get(in, &distance) || distance >= SAMPLE_MARKS_END))
		return false;
	if (context >= STREAM_MAX_THREADS || fn >= MAX_FNS || !place_stack(r, &ev->stack))
		return false;
	if (ev->h.kind < EVENT_ALLOC || ev->h.kind > EVENT_REALLOC_END)
		return false;
	r->state.time += time;
	r->state.context = (u32)context;
	ev->h.fn = (u16)fn;
	ev->h.distance = (u32)distance;
	return true;
}

static int read_event(struct stream_reader *r, u8 op)
{
	struct heap_event ev = { 0 };
	const struct stream_context *c;
	bool is_good = false;

	if ((op & 7) >= OP_SAMPLED)
		is_good = read_full(r, op, &ev);
	else
		is_good = read_short(r, op, &ev);
	c = &r->state.contexts[r->state.context];
	if (!is_good || !c->is_known || !r->has_fn[ev.h.fn])
		return stream_read_damaged(r, "an event cannot be understood");
	stream_state_end_event(&r->state, &ev, ev.stack);
	ev.stack = r->state.stacks[ev.stack].id;
	ev.h.pid = c->pid;
	ev.h.tid = c->tid;
	ev.time_ns = r->state.time << r->state.time_shift;
	r->progress.nr_events++;
	return stream_read_hand_out(r, STREAM_EVENT, &ev);
}

/* Read all records of the columns. */
static int read_records(struct stream_reader *r)
{
	struct cursor *ops = r->columns[STREAM_COLUMN_OPS];

	while (ops->p < ops->end) {
		u8 op = *ops->p++;
		int err;

		if (r->is_over)
			return stream_read_damaged(r, "more records behind the end");
		if (!(op & 7))
			err = op ? stream_read_damaged(r, "no record begins like this") : read_record(r);
		else
			err = r->has_hello ? read_event(r, op)
					   : stream_read_damaged(r, "no record begins like this");
		if (err)
			return err;
	}
	for (u32 i = 0; i < NR_STREAM_COLUMNS; i++)
		if (r->columns[i]->p != r->columns[i]->end)
			return stream_read_damaged(r, "its columns do not fit together");
	return 0;
}

/* Read @len bytes of records that follow one another. */
static int stream_read_rows(struct stream_reader *r, const u8 *data, size_t len)
{
	r->cursors[0] = (struct cursor){ data, data + len };
	for (u32 i = 0; i < NR_STREAM_COLUMNS; i++)
		r->columns[i] = &r->cursors[0];
	return read_records(r);
}

/* Read records that are sorted by field; @len bytes of lengths and columns. */
static int read_columns(struct stream_reader *r, const u8 *data, size_t len)
{
	size_t at = STREAM_SPLIT_HEAD;

	for (u32 i = 0; i < NR_STREAM_COLUMNS; i++) {
		u32 n = le32_get(data + 4 * i);

		if (n > len - at)
			return stream_read_damaged(r, "its columns do not fit together");
		r->cursors[i] = (struct cursor){ data + at, data + at + n };
		r->columns[i] = &r->cursors[i];
		at += n;
	}
	return at == len ? read_records(r) : stream_read_damaged(r, "its columns do not fit together");
}

/* Unpack @stored bytes at *@data, which have @flags, into @len bytes, and set *@data to them. */
static int stream_read_unpack(struct stream_reader *r, u8 flags, const u8 **data, size_t stored, size_t len)
{
	bool is_coded = flags & STREAM_CODED;

	if (!is_coded && !r->codec)
		return stream_read_fail(r, -EOPNOTSUPP, "it is packed, and this program cannot unpack");
	if (!r->raw)
		r->raw = malloc(STREAM_MAX_RAW + STREAM_SPLIT_HEAD);
	if (is_coded && !r->coder)
		r->coder = calloc(1, sizeof(*r->coder));
	if (!r->raw || (is_coded && !r->coder))
		return stream_read_fail(r, -ENOMEM, "out of memory");
	if (is_coded) {
		stream_coder_unpack(r->coder, r->raw, len, *data, stored);
		*data = r->raw;
		return 0;
	}
	errno = 0;
	if (r->codec->unpack(r->raw, len, *data, stored) != len)
		return errno == ENOMEM ? stream_read_fail(r, -ENOMEM, "out of memory")
				       : stream_read_damaged(r, "it cannot be unpacked");
	*data = r->raw;
	return 0;
}

/* Reading the records of the chunk in the input buffer has ended with @err. */
static int end_chunk(struct stream_reader *r, int err)
{
	r->is_halted = err == STREAM_HALT;
	if (r->is_halted)
		return err;
	if (err)
		return r->err ? r->err : stream_read_fail(r, err, "%s", strerror(-err));
	r->progress.nr_chunks++;
	r->progress.bytes += STREAM_HEADER_LEN + le32_get(r->input + 4);
	r->nr_input = 0;
	return 0;
}

/* Read the whole chunk in the input buffer, whose header has been checked. */
static int stream_read_chunk(struct stream_reader *r)
{
	const u8 *head = r->input, *data = r->input + STREAM_HEADER_LEN;
	size_t stored = le32_get(head + 4), len = le32_get(head + 8);
	int err = 0;

	if (le32_get(head) != crc32c(0, head + 4, STREAM_HEADER_LEN - 4 + stored))
		return stream_read_damaged(r, "its checksum does not match");
	if (le32_get(head + 12) != (u32)r->progress.nr_chunks)
		return stream_read_damaged(r, "it is out of order");
	len += head[17] & STREAM_SPLIT ? STREAM_SPLIT_HEAD : 0;
	if (head[17] && stream_read_unpack(r, head[17], &data, stored, len))
		return r->err;
	if (head[16] == STREAM_CHUNK_RECORDS && !(head[17] & STREAM_CODED))
		stream_read_forget(r);
	if (r->is_over)
		return stream_read_damaged(r, "it comes behind the end");
	if (head[16] == STREAM_CHUNK_RECORDS)
		err = head[17] & STREAM_SPLIT ? read_columns(r, data, len) : stream_read_rows(r, data, len);
	else if (head[16] == STREAM_CHUNK_STATE || head[16] == STREAM_CHUNK_SEEK)
		err = 0;
	else if (r->handler.chunk)
		err = r->handler.chunk(r->handler.ctx, head[16], data, len);
	else
		r->progress.nr_unknown++;
	return end_chunk(r, err);
}

/* Check the header of a chunk in the input buffer. Returns the number of bytes behind it, or -errno. */
static ssize_t check_header(struct stream_reader *r)
{
	static const bool is_flags[] = { [0] = true,
					 [STREAM_PACKED] = true,
					 [STREAM_PACKED | STREAM_SPLIT] = true,
					 [STREAM_CODED] = true };
	u32 stored = le32_get(r->input + 4), len = le32_get(r->input + 8);

	if (stored > STREAM_MAX_RAW || len > STREAM_MAX_RAW ||
	    !(r->input[17] < ARRAY_SIZE(is_flags) && is_flags[r->input[17]]) ||
	    (!r->input[17] && stored != len))
		return stream_read_damaged(r, "its header cannot be one");
	return stored;
}

int stream_reader_resume(struct stream_reader *r, const struct stream_cut *cut, u64 nr_chunks, u64 offset)
{
	u64 shift = r->state.time_shift;

	if (r->err)
		return r->err;
	if (!r->is_over || r->nr_input || cut->nr_stacks < STACK_FIRST_ID ||
	    cut->nr_stacks - STACK_FIRST_ID > STREAM_MAX_STACKS)
		return stream_read_damaged(r, "its seek point cannot be one");
	r->is_over = false;
	stream_state_reset(&r->state);
	r->state.time_shift = shift;
	r->state.time = cut->time;
	r->state.addr = cut->addr;
	r->nr_absent = cut->nr_stacks - STACK_FIRST_ID;
	r->nr_ips = 0;
	r->progress = (struct stream_progress){ .bytes = offset, .nr_chunks = nr_chunks };
	return 0;
}

static int read_preamble(struct stream_reader *r)
{
	const u8 *p = r->input;

	if (memcmp(p, STREAM_MAGIC, STREAM_MAGIC_LEN))
		return stream_read_fail(r, -EBADMSG, "is no recording of heaptap");
	if (le32_get(p + 12) != crc32c(0, p, 12))
		return stream_read_fail(r, -EBADMSG, "its first 16 bytes are damaged");
	if (!le16_get(p + 8) || le16_get(p + 8) > STREAM_MAJOR)
		return stream_read_fail(
			r, -EPROTONOSUPPORT, "is in format %u, this heaptap reads format %d: use a %s one",
			le16_get(p + 8), STREAM_MAJOR, le16_get(p + 8) > STREAM_MAJOR ? "newer" : "older");
	r->has_preamble = true;
	r->progress.bytes = STREAM_PREAMBLE_LEN;
	r->nr_input = 0;
	return 0;
}

/* Length of the unit that begins in the input buffer: a preamble, a header, or a whole chunk; or -errno. */
static ssize_t unit_len(struct stream_reader *r)
{
	ssize_t len;

	if (!r->has_preamble)
		return STREAM_PREAMBLE_LEN;
	if (r->nr_input < STREAM_HEADER_LEN)
		return STREAM_HEADER_LEN;
	len = check_header(r);
	return len < 0 ? len : STREAM_HEADER_LEN + len;
}

int stream_feed(struct stream_reader *r, const void *data, size_t len)
{
	const u8 *p = data;

	while (len && !r->err && !r->is_halted) {
		ssize_t unit = unit_len(r);
		size_t take;

		if (unit < 0)
			break;
		take = (size_t)unit - r->nr_input < len ? (size_t)unit - r->nr_input : len;
		memcpy(r->input + r->nr_input, p, take);
		r->nr_input += take;
		p += take;
		len -= take;
		/* With a whole header, the unit is the whole chunk. */
		unit = unit_len(r);
		if (unit < 0 || r->nr_input < (size_t)unit)
			continue;
		if (r->has_preamble ? stream_read_chunk(r) : read_preamble(r))
			break;
	}
	return r->is_halted ? STREAM_HALT : r->err;
}

int stream_go_on(struct stream_reader *r, u64 *offset)
{
	int err = r->is_halted ? end_chunk(r, read_records(r)) : r->err;

	*offset = r->progress.bytes;
	return err;
}

int stream_finish(struct stream_reader *r)
{
	if (r->err)
		return r->err;
	if (r->is_over && !r->nr_input)
		return 0;
	if (!r->has_preamble && !r->nr_input)
		return stream_read_fail(r, -ENODATA, "is empty");
	if (!r->has_preamble)
		return stream_read_fail(r, -ENODATA, "is too short to be a recording");
	return stream_read_fail(r, -ENODATA,
				r->nr_input ? "it breaks off in the middle" : "it breaks off without an end");
}

const char *stream_why(const struct stream_reader *r)
{
	return r->why;
}

struct stream_progress stream_progress(const struct stream_reader *r)
{
	return r->progress;
}
