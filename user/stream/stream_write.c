/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Write records in their short form, and gather them into chunks. */
#include "user/stream/stream_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/target/allocator.h"
#include "user/lib/array.h"
#include "user/lib/crc32c.h"
#include "user/lib/hash_index.h"
#include "user/lib/varint.h"
#include "user/stream/stream_coder.h"
#include "user/stream/stream_layout.h"
#include "user/stream/stream_split.h"
#include "user/stream/stream_state.h"

enum {
	DEFAULT_CHUNK = 128 * 1024,
	MIN_PACKED = 64,		/* bytes; shorter chunks are not worth packing */
	SEEN_BITS = 13,			/* guesses of recent addresses */
	THREAD_BITS = 11,		/* guesses of contexts */
	MAX_AGE_NS = 900 * 1000 * 1000, /* ticks come every few ms */
	FORGOTTEN_FN = 0xffff,
};

static const u32 FORGOTTEN_STACK = UINT32_MAX;

struct stream_writer {
	struct stream_writer_options options;
	int err; /* of the sink */
	bool is_begun;
	u32 nr_chunks;
	u64 oldest_ns; /* time of the first tick with an unwritten record; 0 = none */
	struct stream_written written;
	u8 *chunk;		    /* owned; room for a header, the chunk and one record */
	u8 *packed;		    /* owned; NULL where chunks are not packed */
	u8 *split;		    /* owned; room for columns, then for making them; NULL without a codec */
	struct stream_coder *coder; /* owned; NULL unless is_coded */
	size_t used;

	struct stream_state state;
	u32 nr_contexts;  /* numbers given out; starts again before it is twice STREAM_MAX_THREADS */
	bool has_context; /* an event has named state.context */
	u16 context_of[1 << THREAD_BITS]; /* guess of the context by hash of its thread; checked */
	u16 seen[1
		 << SEEN_BITS]; /* guess of the low bits of the number of a recent address, by its hash; checked */
	u64 first_recent;	/* number of the first address that may be referred to */
	struct hash_index stacks; /* of state.stacks, by id */
	u32 first_stack;	  /* number of the first stack that events may name */
	u64 latest;		  /* number of the stack that was asked for last; 0 = none */
	u16 nr_ips;
	u64 ips[STACK_MAX_FRAMES]; /* frames of the last stack */
	bool has_fn[ALLOC_MAX_FNS];
};

static u32 stream_write_hash(u64 value, u32 bits)
{
	return (u32)(value * 0x9e3779b97f4a7c15ULL >> (64 - bits));
}

int stream_writer_new(struct stream_writer **out, const struct stream_writer_options *o)
{
	struct stream_writer *w = calloc(1, sizeof(*w));
	size_t room;

	if (!w)
		return -ENOMEM;
	w->options = *o;
	if (!w->options.chunk_bytes)
		w->options.chunk_bytes = DEFAULT_CHUNK;
	if (w->options.chunk_bytes > STREAM_MAX_RAW - STREAM_MAX_RECORD)
		w->options.chunk_bytes = STREAM_MAX_RAW - STREAM_MAX_RECORD;
	room = STREAM_HEADER_LEN + w->options.chunk_bytes + STREAM_MAX_RECORD;
	w->chunk = malloc(room);
	w->packed = o->codec || o->is_coded ? malloc(room) : NULL;
	w->split = o->codec ? malloc(STREAM_SPLIT_HEAD + (1 + NR_STREAM_COLUMNS) * room) : NULL;
	w->coder = o->is_coded ? calloc(1, sizeof(*w->coder)) : NULL;
	if (!w->chunk || (o->codec && (!w->packed || !w->split)) ||
	    (o->is_coded && (!w->packed || !w->coder)) || stream_state_init(&w->state)) {
		stream_writer_free(w);
		return -ENOMEM;
	}
	stream_writer_restart(w);
	*out = w;
	return 0;
}

void stream_writer_free(struct stream_writer *w)
{
	if (!w)
		return;
	free(w->chunk);
	free(w->packed);
	free(w->split);
	free(w->coder);
	stream_state_fini(&w->state);
	hash_index_fini(&w->stacks);
	free(w);
}

void stream_writer_restart(struct stream_writer *w)
{
	w->err = 0;
	w->is_begun = false;
	w->nr_chunks = 0;
	w->oldest_ns = 0;
	w->written = (struct stream_written){ 0 };
	w->used = 0;
	stream_state_reset(&w->state);
	w->nr_contexts = 0;
	w->has_context = false;
	array_clear(w->context_of, sizeof(w->context_of));
	array_clear(w->seen, sizeof(w->seen));
	hash_index_clear(&w->stacks);
	w->first_recent = 0;
	w->first_stack = STACK_FIRST_ID;
	w->latest = 0;
	w->nr_ips = 0;
	memset(w->has_fn, 0, sizeof(w->has_fn));
	if (w->coder)
		array_clear(w->coder, sizeof(*w->coder));
}

static int stream_write_hand_out(struct stream_writer *w, const void *data, size_t len)
{
	if (!w->err)
		w->err = w->options.write(w->options.ctx, data, len);
	if (!w->err)
		w->written.bytes += len;
	return w->err;
}

static int write_preamble(struct stream_writer *w)
{
	u8 preamble[STREAM_PREAMBLE_LEN];

	if (w->is_begun)
		return w->err;
	w->is_begun = true;
	memcpy(preamble, STREAM_MAGIC, STREAM_MAGIC_LEN);
	le16_put(preamble + 8, STREAM_MAJOR);
	le16_put(preamble + 10, STREAM_MINOR);
	le32_put(preamble + 12, crc32c(0, preamble, 12));
	return stream_write_hand_out(w, preamble, sizeof(preamble));
}

/* Complete the header of @chunk, with @stored bytes behind it, and give it to the sink. */
static int send_chunk(struct stream_writer *w, u8 *chunk, u8 kind, u8 flags, size_t stored, size_t raw)
{
	le32_put(chunk + 4, (u32)stored);
	le32_put(chunk + 8, (u32)raw);
	le32_put(chunk + 12, w->nr_chunks);
	chunk[16] = kind;
	chunk[17] = flags;
	le16_put(chunk + 18, 0);
	le32_put(chunk, crc32c(0, chunk + 4, STREAM_HEADER_LEN - 4 + stored));
	if (stream_write_hand_out(w, chunk, STREAM_HEADER_LEN + stored))
		return w->err;
	w->nr_chunks++;
	w->written.raw_bytes += STREAM_HEADER_LEN + raw;
	return 0;
}

int stream_flush(struct stream_writer *w)
{
	u8 *packed = w->packed ? w->packed + STREAM_HEADER_LEN : NULL, *raw = w->chunk + STREAM_HEADER_LEN;
	size_t len = w->used, split = 0, stored = 0;
	u8 flags = STREAM_CODED;
	int err = w->err;

	if (err || !len)
		return err;
	w->used = 0;
	w->oldest_ns = 0;
	err = write_preamble(w);
	if (err)
		return err;
	/* Store the packed chunk only if it is shorter. */
	if (w->coder)
		stored = stream_coder_pack(w->coder, packed, len - 1, raw, len);
	if (w->coder && !stored)
		array_clear(w->coder, sizeof(*w->coder));
	if (!IS_AGENT && w->split && len >= MIN_PACKED)
		split = stream_split(w->split, w->split + STREAM_SPLIT_HEAD + len, raw, len);
	if (split) {
		stored = w->options.codec->pack(packed, len - 1, w->split, split);
		flags = STREAM_PACKED | STREAM_SPLIT;
	}
	return stored ? send_chunk(w, w->packed, STREAM_CHUNK_RECORDS, flags, stored, len)
		      : send_chunk(w, w->chunk, STREAM_CHUNK_RECORDS, 0, len, len);
}

int stream_tick(struct stream_writer *w, u64 now_ns)
{
	if (!w->used || w->err)
		return w->err;
	if (!w->oldest_ns)
		w->oldest_ns = now_ns;
	return now_ns - w->oldest_ns < MAX_AGE_NS ? 0 : stream_flush(w);
}

int stream_write_chunk(struct stream_writer *w, u8 kind, const void *data, size_t len)
{
	u8 *chunk;
	int err;

	if (len > STREAM_MAX_RAW || kind == STREAM_CHUNK_RECORDS)
		return -EINVAL;
	err = stream_flush(w);
	if (!err)
		err = write_preamble(w);
	if (err)
		return err;
	chunk = malloc(STREAM_HEADER_LEN + len);
	if (!chunk)
		return -ENOMEM;
	if (len)
		memcpy(chunk + STREAM_HEADER_LEN, data, len);
	err = send_chunk(w, chunk, kind, 0, len, len);
	free(chunk);
	return err;
}

/* The place of the next record, with room for STREAM_MAX_RECORD bytes. */
static u8 *begin_record(struct stream_writer *w)
{
	return w->chunk + STREAM_HEADER_LEN + w->used;
}

static int end_record(struct stream_writer *w, const u8 *end)
{
	w->used = (size_t)(end - w->chunk) - STREAM_HEADER_LEN;
	return w->used >= w->options.chunk_bytes ? stream_flush(w) : w->err;
}

/*
 * Put the head of a record of @kind before its body, which ends at @end and was written HEAD_ROOM bytes behind
 * begin_record().
 */
enum { HEAD_ROOM = 2 + 3 };

static int close_record(struct stream_writer *w, u8 kind, const u8 *end)
{
	u8 *head = begin_record(w);
	const u8 *body = head + HEAD_ROOM;
	size_t len = (size_t)(end - body);
	u8 *p = head;

	*p++ = OP_RECORD;
	*p++ = kind;
	p = varint_put(p, len);
	memmove(p, body, len);
	return end_record(w, p + len);
}

int stream_cut(struct stream_writer *w, struct stream_cut *out)
{
	struct stream_state *s = &w->state;
	int err = stream_flush(w);

	if (err)
		return err;
	/* No reader has these values, so all fields are written until both ends know them again. */
	for (size_t i = 0; i < s->nr_stacks; i++) {
		s->stacks[i].fn[0] = s->stacks[i].fn[1] = FORGOTTEN_FN;
		s->stacks[i].next[0] = s->stacks[i].next[1] = FORGOTTEN_STACK;
	}
	memset(s->contexts, 0, sizeof(s->contexts));
	s->context = 0;
	w->nr_contexts = 0;
	w->has_context = false;
	memset(w->context_of, 0, sizeof(w->context_of));
	memset(w->seen, 0, sizeof(w->seen));
	w->first_recent = s->nr_recent;
	w->first_stack = (u32)s->nr_stacks;
	w->nr_ips = 0;
	if (!IS_AGENT)
		stream_guess_begin(s->guess, s->guess->bits);
	err = close_record(w, STREAM_FORGET, begin_record(w) + HEAD_ROOM);
	*out = (struct stream_cut){ .time = s->time, .addr = s->addr, .nr_stacks = s->nr_stacks };
	return err;
}

int stream_write(struct stream_writer *w, enum stream_kind kind, const void *rec)
{
	const struct stream_layout *layout = stream_layout(kind);

	if (w->err)
		return w->err;
	if (!layout)
		return -EINVAL;
	if (kind == STREAM_HELLO)
		stream_state_begin(&w->state, rec);
	return close_record(w, kind, stream_layout_put(layout, begin_record(w) + HEAD_ROOM, rec));
}

/* Write STREAM_FUNCTION for @fn, once. */
static int introduce_fn(struct stream_writer *w, u16 fn)
{
	const struct alloc_fn *row = alloc_fn(w->options.fns, fn);
	const struct stream_function rec = {
		.fn = fn, .kind = row->kind, .family = row->family, .symbol = row->symbol, .name = row->name
	};

	if (fn >= ALLOC_MAX_FNS)
		return -EINVAL;
	if (w->has_fn[fn])
		return 0;
	w->has_fn[fn] = true;
	return stream_write(w, STREAM_FUNCTION, &rec);
}

static bool is_context(const struct stream_context *c, const struct event_header *h)
{
	return c->is_known && c->tid == h->tid && c->pid == h->pid;
}

/* Make the context of a thread the present one, and introduce it if the stream does not know it. */
static int find_context(struct stream_writer *w, const struct event_header *h)
{
	struct stream_state *s = &w->state;
	u16 *guess = &w->context_of[stream_write_hash((u64)h->pid << 32 | h->tid, THREAD_BITS)];
	u8 *p;

	if (is_context(&s->contexts[s->context], h))
		return 0;
	if (is_context(&s->contexts[*guess], h)) {
		s->context = *guess;
		return 0;
	}
	/* A new one takes the place of the oldest if there are too many. */
	s->context = w->nr_contexts++ % STREAM_MAX_THREADS;
	if (w->nr_contexts == 2 * STREAM_MAX_THREADS)
		w->nr_contexts = STREAM_MAX_THREADS;
	s->contexts[s->context] = (struct stream_context){ .pid = h->pid, .tid = h->tid, .is_known = true };
	*guess = (u16)s->context;
	p = varint_put(begin_record(w) + HEAD_ROOM, s->context);
	p = varint_put(p, h->pid);
	return close_record(w, STREAM_CONTEXT, varint_put(p, h->tid));
}

/* The number of the source's stack @id in the stream; 0 = the stack is not in the stream. */
static u64 stream_write_find_stack(const struct stream_writer *w, u64 id)
{
	u32 number, at = 0;

	while ((number = hash_index_next(&w->stacks, hash_u64(id), &at)) != HASH_NO_ITEM)
		if (w->state.stacks[number].id == id)
			return number;
	return 0;
}

u64 stream_stack_number(struct stream_writer *w, u64 id)
{
	if (id < STACK_FIRST_ID)
		return id;
	if (!w->latest || w->state.stacks[w->latest].id != id)
		w->latest = stream_write_find_stack(w, id);
	return w->latest ? w->latest : STACK_LOST;
}

bool stream_has_stack(struct stream_writer *w, u64 id)
{
	u64 number = stream_stack_number(w, id);

	return id < STACK_FIRST_ID || (number != STACK_LOST && number >= w->first_stack);
}

/* Give the source's stack @id a number, in place of @old (0 = none). False if there is no room for it. */
static bool stream_write_add_stack(struct stream_writer *w, u64 id, u64 old)
{
	u32 number = (u32)w->state.nr_stacks;

	if (hash_index_reserve(&w->stacks, w->stacks.nr + 1UL) || stream_state_add_stack(&w->state, id))
		return false;
	w->latest = 0;
	if (!old)
		return !hash_index_add(&w->stacks, hash_u64(id), number);
	hash_index_renumber(&w->stacks, hash_u64(id), (u32)old, number);
	return true;
}

/* Write how many outermost frames are those of the last stack, then the other frames from there inwards. */
static u8 *stream_write_put_frames(struct stream_writer *w, u8 *p, const struct stack_event *ev)
{
	u16 nr = ev->nr_frames, same = 0;
	u64 last;

	while (same < nr && same < w->nr_ips && ev->ips[nr - 1 - same] == w->ips[w->nr_ips - 1 - same])
		same++;
	p = varint_put(p, nr);
	p = varint_put(p, same);
	last = same ? ev->ips[nr - same] : 0;
	for (u16 i = nr - same; i-- > 0; last = ev->ips[i])
		p = varint_put(p, to_zigzag(ev->ips[i] - last));
	memcpy(w->ips, ev->ips, nr * sizeof(u64));
	w->nr_ips = nr;
	return p;
}

static int stream_write_put_stack(struct stream_writer *w, const struct stack_event *ev, size_t len, u64 id)
{
	u64 old;
	u8 *p;

	if (len < offsetof(struct stack_event, ips) || ev->nr_frames > STACK_MAX_FRAMES ||
	    len < offsetof(struct stack_event, ips) + ev->nr_frames * sizeof(u64))
		return -EINVAL;
	old = stream_write_find_stack(w, ev->id);
	if (ev->id < STACK_FIRST_ID || (old >= w->first_stack && (IS_AGENT || !w->options.repeats_stacks)))
		return 0;
	if (!stream_write_add_stack(w, ev->id, old)) {
		w->written.nr_dropped_stacks++;
		return 0;
	}
	w->written.nr_stacks++;
	p = varint_put(begin_record(w) + HEAD_ROOM, ev->h.pid);
	p = varint_put(p, ev->epoch);
	*p++ = ev->end;
	p = stream_write_put_frames(w, p, ev);
	/* The reader can compute the usual id. */
	if (id != stack_event_id(ev)) {
		le32_put(p, (u32)id);
		le32_put(p + 4, (u32)(id >> 32));
		p += 8;
	}
	return close_record(w, STREAM_STACK, p);
}

static int stream_write_stack(struct stream_writer *w, const struct event_header *h, size_t len)
{
	const struct stack_event *ev = (const struct stack_event *)h;

	return stream_write_put_stack(w, ev, len, ev->id);
}

int stream_write_stack_again(struct stream_writer *w, const struct stack_event *ev, size_t len)
{
	if (w->err)
		return w->err;
	return len < sizeof(ev->h) ? -EINVAL : stream_write_put_stack(w, ev, len, stack_event_id(ev));
}

/* A short event being written. */
struct short_event {
	u8 op; /* enum stream_op */
	u64 addr;
	u64 stack;
	bool is_of_begin; /* the end of a realloc whose beginning has all fields but the address */
};

/* Find the short form of @ev. False if @ev needs the full form. */
static bool stream_write_shorten(const struct stream_writer *w, const struct heap_event *ev,
				 struct short_event *out)
{
	static const u8 ops[] = { [EVENT_ALLOC] = OP_ALLOC,
				  [EVENT_FREE] = OP_FREE,
				  [EVENT_REALLOC_BEGIN] = OP_REALLOC_BEGIN,
				  [EVENT_REALLOC_END] = OP_REALLOC_END };
	const struct stream_context *c = &w->state.contexts[w->state.context];

	out->op = ops[ev->h.kind];
	out->addr = out->op == OP_REALLOC_BEGIN ? ev->old_addr : ev->addr;
	out->is_of_begin = false;
	if (!IS_AGENT && ev->h.distance)
		return false;
	if (!out->addr || (out->addr - w->state.addr) & 7)
		return false;
	if (out->op == OP_FREE) {
		out->op = ev->h.flags & EVENT_TEMPORARY ? OP_FREE_TEMPORARY : OP_FREE;
		return !(ev->h.flags & ~EVENT_TEMPORARY) && !ev->old_addr;
	}
	if (ev->h.flags)
		return false;
	if (out->op == OP_REALLOC_BEGIN)
		return !ev->addr;
	if (out->op == OP_ALLOC || !c->has_begun)
		return !ev->old_addr && (out->op == OP_ALLOC || out->stack);
	out->is_of_begin = c->old_addr == ev->old_addr && c->size == ev->size && c->stack == out->stack &&
			   c->fn == ev->h.fn;
	return out->is_of_begin || (!ev->old_addr && out->stack);
}

/* Write the address of @ev in the shortest of three ways. Returns the flag of that way. */
static u8 put_addr(struct stream_writer *w, u8 **p, const struct heap_event *ev, const struct short_event *s)
{
	const u64 addr = s->addr;
	u16 *seen = &w->seen[stream_write_hash(addr, SEEN_BITS)];
	u64 delta = to_zigzag((u64)((s64)(addr - w->state.addr) >> 3));
	u64 distance = (u16)(w->state.nr_recent - *seen), recent;
	u8 flag = 0;

	if (distance <= w->state.nr_recent - w->first_recent &&
	    stream_state_recent(&w->state, distance, &recent) && recent == addr &&
	    varint_len(distance) <= varint_len(delta)) {
		delta = distance;
		flag = OP_RECENT;
	}
	if (w->state.has_guess && s->op == OP_ALLOC && stream_guess_addr(w->state.guess, ev->size) == addr) {
		delta = 0;
		flag = OP_RECENT;
	}
	*p = varint_put(*p, delta);
	*seen = (u16)w->state.nr_recent;
	stream_state_add_addr(&w->state, addr);
	return flag;
}

/* Time since the last record, which never goes back. */
static u64 stream_write_elapse(struct stream_writer *w, u64 time_ns)
{
	u64 time = time_ns >> w->state.time_shift;
	u64 delta = time > w->state.time ? time - w->state.time : 0;

	w->state.time += delta;
	return delta;
}

static int write_short(struct stream_writer *w, const struct heap_event *ev, const struct short_event *s,
		       bool is_same_thread)
{
	u8 *op = begin_record(w);
	u8 *p = varint_put(op + 1, stream_write_elapse(w, ev->time_ns));
	bool is_free = s->op == OP_FREE || s->op == OP_FREE_TEMPORARY;
	struct stream_stack *m = &w->state.stacks[s->stack];
	struct stream_context *c = &w->state.contexts[w->state.context];
	u32 *guess = &w->state.stacks[c->last].next[!is_free];
	bool is_size_known = is_free || m->fn[1] != FORGOTTEN_FN;

	*op = s->op;
	if (!is_same_thread) {
		*op |= OP_THREAD;
		p = varint_put(p, w->state.context);
	}
	*op |= put_addr(w, &p, ev, s);
	if (s->is_of_begin)
		return end_record(w, p);
	/* OP_REALLOC_END without OP_STACK takes its fields from the beginning. */
	if (s->stack != *guess || s->op == OP_REALLOC_END) {
		*op |= OP_STACK;
		p = varint_put(p, s->stack);
		*guess = (u32)s->stack;
	}
	if (s->stack)
		c->last = (u32)s->stack;
	if (m->fn[!is_free] != ev->h.fn) {
		*op |= OP_FN;
		p = varint_put(p, ev->h.fn);
		m->fn[!is_free] = ev->h.fn;
	}
	if (is_free ? ev->size : ev->size != m->size || !is_size_known) {
		*op |= OP_SIZE;
		p = varint_put(p, ev->size);
		m->size = is_free ? m->size : ev->size;
	}
	return end_record(w, p);
}

static int write_full(struct stream_writer *w, const struct heap_event *ev, u64 stack)
{
	const u64 fields[] = { stream_write_elapse(w, ev->time_ns),
			       w->state.context,
			       ev->h.fn,
			       ev->addr,
			       ev->old_addr,
			       ev->size,
			       stack };
	u8 *p = begin_record(w);

	*p++ = !IS_AGENT && ev->h.distance ? OP_SAMPLED : OP_FULL;
	*p++ = ev->h.kind;
	*p++ = ev->h.flags;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		p = varint_put(p, fields[i]);
	if (!IS_AGENT && ev->h.distance)
		p = varint_put(p, ev->h.distance);
	return end_record(w, p);
}

static int write_heap(struct stream_writer *w, const struct event_header *h, size_t len)
{
	const struct heap_event *ev = (const struct heap_event *)h;
	struct short_event s = { 0 };
	u32 before = w->state.context;
	int err;

	if (len < sizeof(*ev))
		return -EINVAL;
	err = introduce_fn(w, h->fn);
	if (!err)
		err = find_context(w, h);
	if (err)
		return err;
	s.stack = stream_stack_number(w, ev->stack);
	if (s.stack >= STACK_FIRST_ID && s.stack < w->first_stack)
		s.stack = STACK_LOST;
	w->written.nr_events++;
	if (stream_write_shorten(w, ev, &s))
		err = write_short(w, ev, &s, w->state.context == before && w->has_context);
	else
		err = write_full(w, ev, s.stack);
	w->has_context = true;
	stream_state_end_event(&w->state, ev, s.stack);
	return err;
}

static int write_life(struct stream_writer *w, const struct event_header *h, size_t len)
{
	static const u8 kinds_of[] = {
		[EVENT_EXEC] = STREAM_EXEC, [EVENT_FORK] = STREAM_FORK, [EVENT_EXIT] = STREAM_EXIT
	};

	return len < sizeof(struct process_event) ? -EINVAL : stream_write(w, kinds_of[h->kind], h);
}

int stream_write_event(struct stream_writer *w, const struct event_header *rec, size_t len)
{
	static int (*const writers[NR_EVENT_KINDS])(struct stream_writer *, const struct event_header *,
						    size_t) = {
		[EVENT_ALLOC] = write_heap,	    [EVENT_FREE] = write_heap,
		[EVENT_REALLOC_BEGIN] = write_heap, [EVENT_REALLOC_END] = write_heap,
		[EVENT_STACK] = stream_write_stack, [EVENT_EXEC] = write_life,
		[EVENT_FORK] = write_life,	    [EVENT_EXIT] = write_life,
	};

	if (w->err)
		return w->err;
	if (len < sizeof(*rec) || rec->kind >= NR_EVENT_KINDS)
		return -EINVAL;
	return writers[rec->kind] ? writers[rec->kind](w, rec, len) : 0;
}

const struct alloc_table *stream_writer_functions(const struct stream_writer *w)
{
	return w->options.fns;
}

int stream_write_functions(struct stream_writer *w, const struct stream_writer *of)
{
	int err = 0;

	for (u32 fn = 0; fn < ALLOC_MAX_FNS && !err; fn++)
		if (of->has_fn[fn])
			err = introduce_fn(w, (u16)fn);
	return err;
}

void stream_writer_resume(struct stream_writer *w)
{
	w->err = 0;
	w->used = 0;
}

struct stream_written stream_written(const struct stream_writer *w)
{
	return w->written;
}
