/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the reader of a stream to the one who keeps the records: recordings and connections have the same checks. */
#include "user/stream/stream_take.h"

#include <errno.h>

/* A field of a record: its offset, if the kind has one. */
struct taken_field {
	bool is_there;
	u8 offset;
};

#define FIELD(type, member)                                                                                  \
	{                                                                                                    \
		true, offsetof(struct type, member)                                                          \
	}

static const struct taken_kind {
	struct taken_field pid, time;
	const char *why; /* a record of a process that is not there is refused; NULL = it is left out */
} taken_kinds[NR_STREAM_KINDS] = {
	[STREAM_HELLO] = { .time = FIELD(stream_hello, mono_ns) },
	[STREAM_THREAD] = { FIELD(stream_thread, pid) },
	[STREAM_EXEC] = { FIELD(process_event, h.pid), FIELD(process_event, time_ns) },
	[STREAM_EXIT] = { FIELD(process_event, h.pid), FIELD(process_event, time_ns) },
	[STREAM_FORK] = { FIELD(process_event, h.pid), FIELD(process_event, time_ns),
			  "a child of a process that is not there" },
	[STREAM_LOSSES] = { .pid = FIELD(stream_losses, pid),
			    .why = "losses of a process that is not there" },
	[STREAM_SCAN] = { .pid = FIELD(stream_scan, pid), .why = "verdicts on a process that is not there" },
	[STREAM_MARK] = { .time = FIELD(stream_mark_record, time_ns) },
	[STREAM_END] = { .time = FIELD(stream_end, time_ns) },
};

static int stream_take_name(struct stream_taker *t, enum stream_kind kind, const void *rec)
{
	struct target *changed;
	int err = stream_names_take(&t->names, kind, rec, &changed);

	if (err == -EBADMSG && t->names.why)
		return stream_refuse(t->reader, err, true, "%s", t->names.why);
	return err || !changed ? err : t->changed(t->names.owner.ctx, changed);
}

static void stream_take_time(struct stream_taker *t, enum stream_kind kind, u64 time_ns)
{
	if (time_ns > t->last_ns || kind == STREAM_HELLO || kind == STREAM_END)
		t->last_ns = time_ns;
}

static int stream_take_event(struct stream_taker *t, const struct heap_event *rec)
{
	struct heap_event ev = *rec;

	stream_take_time(t, STREAM_EVENT, ev.time_ns);
	ev.h.fn = t->names.fn_of[ev.h.fn];
	return t->takers[STREAM_EVENT](t->names.owner.ctx, &ev);
}

int stream_take(struct stream_taker *t, enum stream_kind kind, const void *rec)
{
	const struct taken_kind *k = &taken_kinds[kind];
	const struct stream_names_owner *owner = &t->names.owner;

	if (kind == STREAM_EVENT && !t->names.is_mapping)
		return stream_take_event(t, rec);
	if (stream_names_takes(&t->names, kind))
		return stream_take_name(t, kind, rec);
	if (!t->takers[kind])
		return 0;
	if (k->pid.is_there && !owner->find(owner->ctx, *(const u32 *)((const u8 *)rec + k->pid.offset))) {
		t->nr_strays += k->time.is_there;
		return k->why ? stream_refuse(t->reader, -EBADMSG, true, "%s", k->why) : 0;
	}
	if (k->time.is_there)
		stream_take_time(t, kind, *(const u64 *)((const u8 *)rec + k->time.offset));
	return t->takers[kind](owner->ctx, rec);
}
