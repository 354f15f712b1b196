/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of the fields of records, and the functions that write and read records by it. */
#include "user/stream/stream_layout.h"

#include <string.h>

#include "user/lib/varint.h"

#define NUMBER(type, member)                                                                                 \
	{                                                                                                    \
		offsetof(struct type, member), STREAM_FIELD_NUMBER, sizeof(((struct type *)0)->member)       \
	}
#define STRING(type, member)                                                                                 \
	{                                                                                                    \
		offsetof(struct type, member), STREAM_FIELD_STRING, 0                                        \
	}
#define BYTES(type, member)                                                                                  \
	{                                                                                                    \
		offsetof(struct type, member), STREAM_FIELD_BYTES, sizeof(((struct type *)0)->member)        \
	}
#define SUM(type, member) NUMBER(type, member.blocks), NUMBER(type, member.bytes)
#define SUMS(type, member)                                                                                   \
	SUM(type, member.of[0]), SUM(type, member.of[1]), SUM(type, member.of[2]), SUM(type, member.of[3]),  \
		SUM(type, member.of[4]), SUM(type, member.of[5])

_Static_assert((int)NR_SCAN_VERDICTS == 6, "as many as SUMS has");
_Static_assert(offsetof(struct stream_module, build_id_len) ==
		       offsetof(struct stream_module, build_id) + STREAM_BUILD_ID_MAX,
	       "bytes and their number");

/* Fields are written in this order, which is part of the format: append only. */

static const struct stream_field hello_fields[] = {
	NUMBER(stream_hello, id),	    NUMBER(stream_hello, part),	      NUMBER(stream_hello, role),
	NUMBER(stream_hello, features),	    NUMBER(stream_hello, time_shift), NUMBER(stream_hello, mono_ns),
	NUMBER(stream_hello, real_ns),	    NUMBER(stream_hello, start_ns),   NUMBER(stream_hello, depth),
	NUMBER(stream_hello, wants_scan),   STRING(stream_hello, producer),   STRING(stream_hello, backend),
	STRING(stream_hello, machine),	    STRING(stream_hello, release),
#if !IS_AGENT
	NUMBER(stream_hello, sample_bytes),
#endif
};

static const struct stream_field function_fields[] = {
	NUMBER(stream_function, fn),	 NUMBER(stream_function, kind), NUMBER(stream_function, family),
	STRING(stream_function, symbol), STRING(stream_function, name),
};

static const struct stream_field process_fields[] = {
	NUMBER(stream_process, pid),	 NUMBER(stream_process, ppid),	     NUMBER(stream_process, uid),
	NUMBER(stream_process, flags),	 NUMBER(stream_process, word_size),  NUMBER(stream_process, machine),
	NUMBER(stream_process, time_ns), NUMBER(stream_process, start_time), STRING(stream_process, comm),
	STRING(stream_process, exe),
};

static const struct stream_field module_fields[] = {
	NUMBER(stream_module, module), NUMBER(stream_module, is_deleted), NUMBER(stream_module, dev),
	NUMBER(stream_module, ino),    BYTES(stream_module, build_id),	  STRING(stream_module, path),
	STRING(stream_module, link),
};

static const struct stream_field maps_fields[] = {
	NUMBER(stream_maps, pid),
	NUMBER(stream_maps, epoch),
	NUMBER(stream_maps, nr),
};

static const struct stream_field mapping_fields[] = {
	NUMBER(stream_mapping, start), NUMBER(stream_mapping, end),    NUMBER(stream_mapping, file_offset),
	NUMBER(stream_mapping, bias),  NUMBER(stream_mapping, module),
};

static const struct stream_field allocator_fields[] = {
	NUMBER(stream_allocator, pid),
	NUMBER(stream_allocator, module),
	STRING(stream_allocator, kind),
};

static const struct stream_field thread_fields[] = {
	NUMBER(stream_thread, pid),
	NUMBER(stream_thread, tid),
	STRING(stream_thread, comm),
};

static const struct stream_field life_fields[] = {
	NUMBER(process_event, h.pid),	  NUMBER(process_event, h.tid),	      NUMBER(process_event, time_ns),
	NUMBER(process_event, child_pid), NUMBER(process_event, exit_status), NUMBER(process_event, h.flags),
};

static const struct stream_field losses_fields[] = {
	NUMBER(stream_losses, pid),
	NUMBER(stream_losses, flags),
	NUMBER(stream_losses, l.allocs),
	NUMBER(stream_losses, l.frees),
	NUMBER(stream_losses, l.stacks),
	NUMBER(stream_losses, l.other),
	NUMBER(stream_losses, l.abandoned),
	NUMBER(stream_losses, l.unfollowed),
	NUMBER(stream_losses, l.sharers),
	NUMBER(stream_losses, l.overwritten),
	NUMBER(stream_losses, l.tracers),
	NUMBER(stream_losses, l.by_probes),
	NUMBER(stream_losses, l.late),
	NUMBER(stream_losses, l.left_out),
	NUMBER(stream_losses, l.cramped),
	NUMBER(stream_losses, l.twins),
	NUMBER(stream_losses, l.unseen_frees),
};

static const struct stream_field scan_fields[] = {
	NUMBER(stream_scan, pid),
	NUMBER(stream_scan, flags),
	NUMBER(stream_scan, pause_ns),
	NUMBER(stream_scan, max_pause_ns),
	NUMBER(stream_scan, scanned_bytes),
	NUMBER(stream_scan, skipped_bytes),
	NUMBER(stream_scan, nr_unstopped),
	NUMBER(stream_scan, nr_overlaps),
	SUMS(stream_scan, sums),
	SUM(stream_scan, left_out),
	SUM(stream_scan, fresh),
	SUM(stream_scan, again),
	STRING(stream_scan, why),
	NUMBER(stream_scan, word_size),
#if !IS_AGENT
	SUM(stream_scan, behind),
	NUMBER(stream_scan, headers),
	SUM(stream_scan, tagged),
	NUMBER(stream_scan, tag_mask),
	STRING(stream_scan, books_of),
	SUMS(stream_scan, books),
	NUMBER(stream_scan, nr_links),
#endif
};

static const struct stream_field scan_row_fields[] = {
	NUMBER(stream_scan_row, stack),
	NUMBER(stream_scan_row, fn),
	SUMS(stream_scan_row, sums),
	SUM(stream_scan_row, through),
};

static const struct stream_field scan_link_fields[] = {
	NUMBER(stream_scan_link, stack),
	NUMBER(stream_scan_link, fn),
	NUMBER(stream_scan_link, leader_stack),
	NUMBER(stream_scan_link, leader_fn),
	SUM(stream_scan_link, sum),
};

static const struct stream_field scan_why_fields[] = {
	NUMBER(stream_scan_why, stack),	      NUMBER(stream_scan_why, fn),
	NUMBER(stream_scan_why, flags),	      NUMBER(stream_scan_why, verdict),
	NUMBER(stream_scan_why, word_size),   NUMBER(stream_scan_why, root),
	NUMBER(stream_scan_why, addr),	      NUMBER(stream_scan_why, root_addr),
	NUMBER(stream_scan_why, root_tp),     NUMBER(stream_scan_why, root_tid),
	NUMBER(stream_scan_why, root_where),  NUMBER(stream_scan_why, nr_steps),
	NUMBER(stream_scan_why, nr_left_out), STRING(stream_scan_why, root_path),
};

static const struct stream_field scan_step_fields[] = {
	NUMBER(stream_scan_step, addr),	 NUMBER(stream_scan_step, size),  NUMBER(stream_scan_step, offset),
	NUMBER(stream_scan_step, nr),	 NUMBER(stream_scan_step, stack), NUMBER(stream_scan_step, fn),
	NUMBER(stream_scan_step, flags),
};

static const struct stream_field pid_fields[] = {
	NUMBER(stream_pid, pid),
};

static const struct stream_field mark_fields[] = {
	NUMBER(stream_mark_record, time_ns), NUMBER(stream_mark_record, what),
	STRING(stream_mark_record, text),    NUMBER(stream_mark_record, pid),
	NUMBER(stream_mark_record, tid),     NUMBER(stream_mark_record, addr),
};

static const struct stream_field end_fields[] = {
	NUMBER(stream_end, time_ns),   NUMBER(stream_end, duration_ns), NUMBER(stream_end, reason),
	NUMBER(stream_end, nr_events), STRING(stream_end, text),
};

#define LAYOUT(fields)                                                                                       \
	{                                                                                                    \
		fields, ARRAY_SIZE(fields)                                                                   \
	}

static const struct stream_layout layouts[NR_STREAM_RECORDS] = {
	[STREAM_HELLO] = LAYOUT(hello_fields),	       [STREAM_FUNCTION] = LAYOUT(function_fields),
	[STREAM_PROCESS] = LAYOUT(process_fields),     [STREAM_MODULE] = LAYOUT(module_fields),
	[STREAM_MAPS] = LAYOUT(maps_fields),	       [STREAM_MAPPING] = LAYOUT(mapping_fields),
	[STREAM_ALLOCATOR] = LAYOUT(allocator_fields), [STREAM_THREAD] = LAYOUT(thread_fields),
	[STREAM_EXEC] = LAYOUT(life_fields),	       [STREAM_FORK] = LAYOUT(life_fields),
	[STREAM_EXIT] = LAYOUT(life_fields),	       [STREAM_LOSSES] = LAYOUT(losses_fields),
	[STREAM_SCAN] = LAYOUT(scan_fields),	       [STREAM_SCAN_ROW] = LAYOUT(scan_row_fields),
	[STREAM_SCAN_LINK] = LAYOUT(scan_link_fields), [STREAM_SCAN_WHY] = LAYOUT(scan_why_fields),
	[STREAM_SCAN_STEP] = LAYOUT(scan_step_fields), [STREAM_SCAN_END] = LAYOUT(pid_fields),
	[STREAM_MARK] = LAYOUT(mark_fields),	       [STREAM_END] = LAYOUT(end_fields),
};

const struct stream_layout *stream_layout(u32 kind)
{
	return kind < NR_STREAM_RECORDS && layouts[kind].nr ? &layouts[kind] : NULL;
}

static u64 stream_layout_load(const void *at, u8 size)
{
	switch (size) {
	case 1:
		return *(const u8 *)at;
	case 2:
		return *(const u16 *)at;
	case 4:
		return *(const u32 *)at;
	default:
		return *(const u64 *)at;
	}
}

/* False if @value does not fit. */
static bool stream_layout_store(void *at, u8 size, u64 value)
{
	if (size < 8 && value >> 8 * size)
		return false;
	switch (size) {
	case 1:
		*(u8 *)at = (u8)value;
		break;
	case 2:
		*(u16 *)at = (u16)value;
		break;
	case 4:
		*(u32 *)at = (u32)value;
		break;
	default:
		*(u64 *)at = value;
	}
	return true;
}

static u8 *layout_put_bytes(u8 *out, const void *bytes, size_t len)
{
	out = varint_put(out, len);
	if (len)
		memcpy(out, bytes, len);
	return out + len;
}

u8 *stream_layout_put(const struct stream_layout *layout, u8 *out, const void *rec)
{
	for (u32 i = 0; i < layout->nr; i++) {
		const struct stream_field *f = &layout->fields[i];
		const u8 *at = (const u8 *)rec + f->offset;
		const char *string;

		if (f->type == STREAM_FIELD_NUMBER) {
			out = varint_put(out, stream_layout_load(at, f->size));
		} else if (f->type == STREAM_FIELD_STRING) {
			string = *(const char *const *)at;
			out = layout_put_bytes(out, string, string ? strnlen(string, STREAM_MAX_STRING) : 0);
		} else {
			out = layout_put_bytes(out, at, at[f->size] < f->size ? at[f->size] : f->size);
		}
	}
	return out;
}

/* Read a string or bytes into @at. Returns the first byte behind them, NULL if they are damaged. */
static const u8 *get_bytes(const struct stream_field *f, const u8 *p, const u8 *end, u8 *at, char **strings)
{
	u64 len = 0;

	p = varint_get(p, end, &len);
	if (!p || len > (size_t)(end - p))
		return NULL;
	if (f->type == STREAM_FIELD_BYTES) {
		if (len > f->size)
			return NULL;
		memcpy(at, p, len);
		at[f->size] = (u8)len;
		return p + len;
	}
	if (len > STREAM_MAX_STRING || memchr(p, 0, len))
		return NULL;
	memcpy(*strings, p, len);
	(*strings)[len] = '\0';
	*(const char **)at = *strings;
	*strings += len + 1;
	return p + len;
}

bool stream_layout_get(const struct stream_layout *layout, const u8 *body, size_t len, union stream_any *rec,
		       char *strings)
{
	const u8 *p = body, *end = body + len;

	memset(rec, 0, sizeof(*rec));
	for (u32 i = 0; i < layout->nr; i++) {
		const struct stream_field *f = &layout->fields[i];
		u8 *at = rec->room + f->offset;
		u64 value = 0;

		if (f->type == STREAM_FIELD_STRING)
			*(const char **)at = "";
		if (p == end)
			continue;
		if (f->type != STREAM_FIELD_NUMBER) {
			p = get_bytes(f, p, end, at, &strings);
			if (!p)
				return false;
			continue;
		}
		p = varint_get(p, end, &value);
		if (!p || !stream_layout_store(at, f->size, value))
			return false;
	}
	return true;
}
