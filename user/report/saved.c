/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a JSON report token by token, and its file, which may be compressed. Keeps no report. */
#include "user/report/saved_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/path.h"

enum { MAX_FRAMES_TEXT = 1 << 18, PORTION = 65536 };

static const u64 MAX_REPORT = 1ULL << 30; /* bytes of a JSON report */

void saved_add(struct saved_numbers *to, const struct saved_numbers *n)
{
	to->live_bytes += n->live_bytes;
	to->live_blocks += n->live_blocks;
	to->alloc_bytes += n->alloc_bytes;
	to->allocs += n->allocs;
	to->leaked_bytes += n->leaked_bytes;
	to->leaked_blocks += n->leaked_blocks;
	to->definite_bytes += n->definite_bytes;
	to->definite_blocks += n->definite_blocks;
	to->lost_bytes += n->lost_bytes;
	to->peak_bytes += n->peak_bytes;
	to->variance += n->variance;
}

const char saved_no_report[] = "is no report of heaptap";

int saved_wrong(struct saved_reading *r, const char *why)
{
	if (!r->why)
		r->why = why;
	return -EBADMSG;
}

void saved_copy_text(char *out, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	memcpy(out, text, len);
	out[len] = '\0';
}

int saved_object(struct saved_reading *r, enum json_token token, saved_member_fn member)
{
	char key[64];

	if (token != JSON_OBJECT_BEGIN)
		return saved_wrong(r, "an object was expected");
	while ((token = json_next(&r->json)) == JSON_KEY) {
		int err;

		saved_copy_text(key, sizeof(key), r->json.text);
		err = member(r, key, json_next(&r->json));
		if (err)
			return err;
	}
	return token == JSON_OBJECT_END ? 0 : saved_wrong(r, "not well-formed");
}

int saved_array(struct saved_reading *r, enum json_token token,
		int (*item)(struct saved_reading *, enum json_token))
{
	if (token != JSON_ARRAY_BEGIN)
		return saved_wrong(r, "an array was expected");
	while ((token = json_next(&r->json)) != JSON_ARRAY_END) {
		int err = token == JSON_ERROR ? saved_wrong(r, "not well-formed") : item(r, token);

		if (err)
			return err;
	}
	return 0;
}

int saved_skip(struct saved_reading *r, enum json_token token)
{
	return json_skip(&r->json, token) == JSON_ERROR ? saved_wrong(r, "not well-formed") : 0;
}

int saved_number(struct saved_reading *r, enum json_token token, u64 *value)
{
	return token == JSON_NUMBER && json_number(&r->json, value) ? 0
								    : saved_wrong(r, "a number was expected");
}

int saved_add_frame(struct saved_reading *r, const struct saved_frame *f)
{
	const char *base = path_name(f->module);
	int n = snprintf(r->frames + r->used, MAX_FRAMES_TEXT - r->used, f->function[0] ? "%s\n" : "%s%s%s\n",
			 f->function[0] ? f->function : base, *base ? "+" : "", f->offset);
	if (n < 0 || (size_t)n >= MAX_FRAMES_TEXT - r->used)
		return saved_wrong(r, "a stack is too long");
	r->used += (size_t)n;
	return 0;
}

static int on_leaked_member(struct saved_reading *r, const char *key, enum json_token token)
{
	u64 value = 0;
	int err = saved_number(r, token, &value);

	if (!strcmp(key, "blocks"))
		r->caller.numbers.leaked_blocks += value;
	else if (!strcmp(key, "bytes"))
		r->caller.numbers.leaked_bytes += value;
	return err;
}

static int on_definite_member(struct saved_reading *r, const char *key, enum json_token token)
{
	struct saved_numbers *n = &r->caller.numbers;
	u64 bytes = n->leaked_bytes, blocks = n->leaked_blocks;
	int err = on_leaked_member(r, key, token);

	n->definite_bytes += n->leaked_bytes - bytes;
	n->lost_bytes += n->leaked_bytes - bytes;
	n->definite_blocks += n->leaked_blocks - blocks;
	return err;
}

static int on_through_member(struct saved_reading *r, const char *key, enum json_token token)
{
	u64 value = 0;
	int err = saved_number(r, token, &value);

	if (!strcmp(key, "bytes"))
		r->caller.numbers.lost_bytes += value;
	return err;
}

static int on_backtrace(struct saved_reading *r, enum json_token token)
{
	u64 number = 0;
	int err = saved_number(r, token, &number);

	return err ? err : saved_tables_stack(r, number);
}

static int on_low_member(struct saved_reading *r, const char *key, enum json_token token)
{
	return strcmp(key, "live_bytes") != 0 ? saved_skip(r, token) : saved_number(r, token, &r->live_low);
}

static int on_high_member(struct saved_reading *r, const char *key, enum json_token token)
{
	return strcmp(key, "live_bytes") != 0 ? saved_skip(r, token) : saved_number(r, token, &r->live_high);
}

/* An interval of 95 of 100 runs is 2 * 1.96 standard deviations wide. */
static double variance_by(u64 low, u64 high)
{
	double deviation = high > low ? (double)(high - low) / (2 * 1.96) : 0;

	return deviation * deviation;
}

static int on_stack_member(struct saved_reading *r, const char *key, enum json_token token)
{
	static const struct {
		const char *key;
		size_t at;
	} fields[] = {
		{ "live_bytes", offsetof(struct saved_numbers, live_bytes) },
		{ "live_blocks", offsetof(struct saved_numbers, live_blocks) },
		{ "alloc_bytes", offsetof(struct saved_numbers, alloc_bytes) },
		{ "allocs", offsetof(struct saved_numbers, allocs) },
		{ "peak_bytes", offsetof(struct saved_numbers, peak_bytes) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(key, fields[i].key))
			return saved_number(r, token, (u64 *)((char *)&r->caller.numbers + fields[i].at));
	if (!strcmp(key, "definite"))
		return saved_object(r, token, on_definite_member);
	if (!strcmp(key, "indirect_through"))
		return saved_object(r, token, on_through_member);
	if (!strcmp(key, "indirect"))
		return saved_object(r, token, on_leaked_member);
	if (!strcmp(key, "low"))
		return saved_object(r, token, on_low_member);
	if (!strcmp(key, "high"))
		return saved_object(r, token, on_high_member);
	if (!strcmp(key, "backtrace"))
		return on_backtrace(r, token);
	if (!strcmp(key, "function") && token == JSON_STRING) {
		saved_copy_text(r->function, sizeof(r->function), r->json.text);
		return 0;
	}
	if (!strcmp(key, "place") && token == JSON_STRING) {
		saved_copy_text(r->place, sizeof(r->place), r->json.text);
		return 0;
	}
	return saved_skip(r, token);
}

static int saved_on_stack(struct saved_reading *r, enum json_token token)
{
	int err;

	r->caller.numbers = (struct saved_numbers){ 0 };
	r->function[0] = r->place[0] = r->frames[0] = '\0';
	r->used = 0;
	r->live_low = r->live_high = 0;
	err = saved_object(r, token, on_stack_member);
	if (err)
		return err;
	r->caller.numbers.variance = variance_by(r->live_low, r->live_high);
	saved_add(&r->totals->numbers, &r->caller.numbers);
	saved_add(&r->process.numbers, &r->caller.numbers);
	return r->sink->caller(r->sink->ctx, &r->process, &r->caller);
}

static int on_lost_member(struct saved_reading *r, const char *key, enum json_token token)
{
	u64 value = 0;
	int err = saved_number(r, token, &value);

	r->totals->lost += strcmp(key, "stacks") ? value : 0;
	return err;
}

static int on_process_member(struct saved_reading *r, const char *key, enum json_token token)
{
	if (!strcmp(key, "stacks"))
		return saved_array(r, token, saved_on_stack);
	if (!strcmp(key, "lost"))
		return saved_object(r, token, on_lost_member);
	if (!strcmp(key, "scan"))
		r->totals->nr_scanned += token == JSON_OBJECT_BEGIN;
	if (!strcmp(key, "pid"))
		return saved_number(r, token, &r->process.pid);
	if (!strcmp(key, "comm") && token == JSON_STRING)
		saved_copy_text(r->process.comm, sizeof(r->process.comm), r->json.text);
	if (!strcmp(key, "verdict") && token == JSON_STRING)
		saved_copy_text(r->process.verdict, sizeof(r->process.verdict), r->json.text);
	return saved_skip(r, token);
}

static int saved_on_process(struct saved_reading *r, enum json_token token)
{
	int err;

	r->process = (struct saved_process){ .pid = 0 };
	r->totals->nr_processes++;
	err = saved_object(r, token, on_process_member);
	if (err)
		return err;
	if (r->totals->nr_processes == 1)
		saved_copy_text(r->totals->comm, sizeof(r->totals->comm), r->process.comm);
	return r->sink->process ? r->sink->process(r->sink->ctx, &r->process) : 0;
}

static int saved_on_report_member(struct saved_reading *r, const char *key, enum json_token token)
{
	if (!strcmp(key, "processes"))
		return saved_array(r, token, saved_on_process);
	if (!strcmp(key, "time_ns"))
		return saved_number(r, token, &r->totals->time_ns);
	if (!strcmp(key, "duration_ns"))
		return saved_number(r, token, &r->totals->duration_ns);
	return saved_skip(r, token);
}

int saved_read(const char *text, size_t len, const struct saved_sink *sink, struct saved_totals *totals,
	       const char **why, size_t *at)
{
	auto_free struct saved_reading *r = calloc(1, sizeof(*r));
	auto_free char *frames = malloc(MAX_FRAMES_TEXT);
	int err;

	if (!r || !frames)
		return -ENOMEM;
	r->sink = sink;
	r->totals = totals;
	r->frames = frames;
	r->caller.function = r->function;
	r->caller.frames = frames;
	r->caller.place = r->place;
	err = saved_tables_read(r, text, len);
	if (!err) {
		json_reader_init(&r->json, text, len);
		err = saved_object(r, json_next(&r->json), saved_on_report_member);
	}
	if (!err && json_next(&r->json) != JSON_END)
		err = saved_wrong(r, "more follows the report");
	if (!err && !totals->nr_processes)
		err = saved_wrong(r, saved_no_report);
	saved_tables_free(r->tables);
	*why = r->why;
	*at = r->why == saved_no_report ? 0 : json_position(&r->json);
	return err;
}

/* The error of the last call on @in, as -errno. */
static int saved_error_of(gzFile in)
{
	int err = 0;

	gzerror(in, &err);
	if (err == Z_ERRNO)
		return errno ? -errno : -EIO;
	return err == Z_OK || err == Z_STREAM_END ? 0 : err == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

int saved_is_json(const char *path)
{
	gzFile in;
	int c, err;

	errno = 0;
	in = gzopen(path, "re");
	if (!in)
		return errno ? -errno : -ENOMEM;
	do
		c = gzgetc(in);
	while (c == ' ' || c == '\n' || c == '\t' || c == '\r');
	err = c < 0 ? saved_error_of(in) : 0;
	gzclose_r(in);
	return err ? err : c == '{';
}

/* Read @in to its end. */
static int saved_read_all(gzFile in, char **text, size_t *len)
{
	auto_free char *buf = NULL;
	size_t used = 0, room = 0;
	int n;

	do {
		if (used > MAX_REPORT)
			return -EFBIG;
		if (array_reserve(buf, room, used + PORTION))
			return -ENOMEM;
		errno = 0;
		n = gzread(in, buf + used, PORTION);
		used += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	if (n < 0)
		return saved_error_of(in);
	*text = take_ptr(buf);
	*len = used;
	return 0;
}

int saved_load(const char *path, char **text, size_t *len)
{
	gzFile in;
	int err;

	errno = 0;
	in = gzopen(path, "re");
	if (!in)
		return errno ? -errno : -ENOMEM;
	err = saved_read_all(in, text, len);
	/* A file that was cut is only found when it is closed. */
	if (gzclose_r(in) == Z_BUF_ERROR && !err) {
		free(take_ptr(*text));
		err = -EBADMSG;
	}
	return err;
}
