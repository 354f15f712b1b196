/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads two JSON reports into one table of callers. Callers are equal if the names of all their frames are equal. */
#include "user/report/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/lib/hash_index.h"
#include "user/lib/json_read.h"

enum { MAX_ROWS = 1 << 22, MAX_FRAMES_TEXT = 1 << 18 };

struct diff {
	struct diff_row *rows; /* owned */
	size_t nr, max;
	struct hash_index by_names; /* rows by function and frames */
	u64 seed;		    /* random, so that a report cannot choose names whose hashes are equal */
	const struct diff_row **sorted; /* owned */
	struct diff_totals totals[2];
};

/* A frame as a report has it. */
struct frame {
	char function[512], module[512], offset[32];
};

/* The reading of one of the two reports. */
struct reading {
	struct diff *diff;
	u32 side;
	struct json_reader json;
	const char *why;
	/* The caller that is being read. */
	struct diff_numbers numbers;
	char function[256];
	char *frames; /* owned; a line per frame */
	size_t used;  /* bytes of @frames */
	struct frame frame;
};

int diff_new(struct diff **out)
{
	struct diff *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	if (getrandom(&d->seed, sizeof(d->seed), 0) != sizeof(d->seed))
		d->seed = (uintptr_t)d;
	*out = d;
	return 0;
}

void diff_free(struct diff *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nr; i++) {
		free(d->rows[i].function);
		free(d->rows[i].frames);
	}
	free(d->rows);
	hash_index_fini(&d->by_names);
	free(d->sorted);
	free(d);
}

static u64 hash_of(const struct diff *d, const char *function, const char *frames)
{
	return hash_bytes(frames, strlen(frames), hash_bytes(function, strlen(function), d->seed));
}

/* The row with these names and this @hash of them, or NULL. */
static struct diff_row *find_row(const struct diff *d, u64 hash, const char *function, const char *frames)
{
	u32 item, at = 0;

	while ((item = hash_index_next(&d->by_names, hash, &at)) != HASH_NO_ITEM) {
		struct diff_row *row = &d->rows[item];

		if (!strcmp(row->frames, frames) && !strcmp(row->function, function))
			return row;
	}
	return NULL;
}

/* Add a row without numbers to *@out. 0 or -ENOMEM. */
static int new_row(struct diff *d, u64 hash, const struct reading *r, struct diff_row **out)
{
	auto_free char *function = strdup(r->function), *frames = strdup(r->frames);

	if (!function || !frames || d->nr == MAX_ROWS || array_reserve(d->rows, d->max, d->nr + 1) ||
	    hash_index_add(&d->by_names, hash, (u32)d->nr))
		return -ENOMEM;
	*out = &d->rows[d->nr++];
	**out = (struct diff_row){ .function = take_ptr(function), .frames = take_ptr(frames) };
	return 0;
}

static void add_numbers(struct diff_numbers *to, const struct diff_numbers *n)
{
	to->live_bytes += n->live_bytes;
	to->live_blocks += n->live_blocks;
	to->alloc_bytes += n->alloc_bytes;
	to->allocs += n->allocs;
	to->leaked_bytes += n->leaked_bytes;
	to->leaked_blocks += n->leaked_blocks;
	to->peak_bytes += n->peak_bytes;
}

/* Add the caller that was read to the table. */
static int add_row(struct reading *r)
{
	struct diff *d = r->diff;
	u64 hash = hash_of(d, r->function, r->frames);
	struct diff_row *row = find_row(d, hash, r->function, r->frames);
	int err = row ? 0 : new_row(d, hash, r, &row);

	if (!err)
		add_numbers(&row->of[r->side], &r->numbers);
	return err;
}

static int wrong(struct reading *r, const char *why)
{
	if (!r->why)
		r->why = why;
	return -EBADMSG;
}

/* Copy as much of @text as fits. */
static void copy_text(char *out, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	memcpy(out, text, len);
	out[len] = '\0';
}

/* Read the value of member @key of an object, or skip the value; @token is its first one. 0 or -errno. */
typedef int (*member_fn)(struct reading *r, const char *key, enum json_token token);

static int read_object(struct reading *r, enum json_token token, member_fn member)
{
	char key[64];

	if (token != JSON_OBJECT_BEGIN)
		return wrong(r, "an object was expected");
	while ((token = json_next(&r->json)) == JSON_KEY) {
		int err;

		copy_text(key, sizeof(key), r->json.text);
		err = member(r, key, json_next(&r->json));
		if (err)
			return err;
	}
	return token == JSON_OBJECT_END ? 0 : wrong(r, "not well-formed");
}

static int read_array(struct reading *r, enum json_token token,
		      int (*item)(struct reading *, enum json_token))
{
	if (token != JSON_ARRAY_BEGIN)
		return wrong(r, "an array was expected");
	while ((token = json_next(&r->json)) != JSON_ARRAY_END) {
		int err = token == JSON_ERROR ? wrong(r, "not well-formed") : item(r, token);

		if (err)
			return err;
	}
	return 0;
}

static int skip(struct reading *r, enum json_token token)
{
	return json_skip(&r->json, token) == JSON_ERROR ? wrong(r, "not well-formed") : 0;
}

static int read_number(struct reading *r, enum json_token token, u64 *value)
{
	return token == JSON_NUMBER && json_number(&r->json, value) ? 0 : wrong(r, "a number was expected");
}

static int on_frame_member(struct reading *r, const char *key, enum json_token token)
{
	static const struct {
		const char *key;
		size_t at, size;
	} fields[] = {
		{ "function", offsetof(struct frame, function), sizeof(r->frame.function) },
		{ "module", offsetof(struct frame, module), sizeof(r->frame.module) },
		{ "offset", offsetof(struct frame, offset), sizeof(r->frame.offset) },
	};

	for (size_t i = 0; token == JSON_STRING && i < ARRAY_SIZE(fields); i++)
		if (!strcmp(key, fields[i].key)) {
			copy_text((char *)&r->frame + fields[i].at, fields[i].size, r->json.text);
			return 0;
		}
	return skip(r, token);
}

static int on_frame(struct reading *r, enum json_token token)
{
	struct frame *f = &r->frame;
	const char *slash, *base;
	int err, n;

	*f = (struct frame){ .function = "" };
	err = read_object(r, token, on_frame_member);
	if (err)
		return err;
	slash = strrchr(f->module, '/');
	base = slash ? slash + 1 : f->module;
	n = snprintf(r->frames + r->used, MAX_FRAMES_TEXT - r->used, f->function[0] ? "%s\n" : "%s%s%s\n",
		     f->function[0] ? f->function : base, *base ? "+" : "", f->offset);
	if (n < 0 || (size_t)n >= MAX_FRAMES_TEXT - r->used)
		return wrong(r, "a stack is too long");
	r->used += (size_t)n;
	return 0;
}

static int on_leaked_member(struct reading *r, const char *key, enum json_token token)
{
	u64 value = 0;
	int err = read_number(r, token, &value);

	if (!strcmp(key, "blocks"))
		r->numbers.leaked_blocks += value;
	else if (!strcmp(key, "bytes"))
		r->numbers.leaked_bytes += value;
	return err;
}

static int on_stack_member(struct reading *r, const char *key, enum json_token token)
{
	static const struct {
		const char *key;
		size_t at;
	} fields[] = {
		{ "live_bytes", offsetof(struct diff_numbers, live_bytes) },
		{ "live_blocks", offsetof(struct diff_numbers, live_blocks) },
		{ "alloc_bytes", offsetof(struct diff_numbers, alloc_bytes) },
		{ "allocs", offsetof(struct diff_numbers, allocs) },
		{ "peak_bytes", offsetof(struct diff_numbers, peak_bytes) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(key, fields[i].key))
			return read_number(r, token, (u64 *)((char *)&r->numbers + fields[i].at));
	if (!strcmp(key, "definite") || !strcmp(key, "indirect"))
		return read_object(r, token, on_leaked_member);
	if (!strcmp(key, "frames"))
		return read_array(r, token, on_frame);
	if (!strcmp(key, "function") && token == JSON_STRING) {
		copy_text(r->function, sizeof(r->function), r->json.text);
		return 0;
	}
	return skip(r, token);
}

static int on_stack(struct reading *r, enum json_token token)
{
	int err;

	r->numbers = (struct diff_numbers){ 0 };
	r->function[0] = r->frames[0] = '\0';
	r->used = 0;
	err = read_object(r, token, on_stack_member);
	if (err)
		return err;
	add_numbers(&r->diff->totals[r->side].numbers, &r->numbers);
	return add_row(r);
}

static int on_lost_member(struct reading *r, const char *key, enum json_token token)
{
	u64 value = 0;
	int err = read_number(r, token, &value);

	r->diff->totals[r->side].lost += strcmp(key, "stacks") ? value : 0;
	return err;
}

static int on_process_member(struct reading *r, const char *key, enum json_token token)
{
	if (!strcmp(key, "stacks"))
		return read_array(r, token, on_stack);
	if (!strcmp(key, "lost"))
		return read_object(r, token, on_lost_member);
	if (!strcmp(key, "scan"))
		r->diff->totals[r->side].nr_scanned += token == JSON_OBJECT_BEGIN;
	if (!strcmp(key, "comm") && token == JSON_STRING && r->diff->totals[r->side].nr_processes == 1)
		copy_text(r->diff->totals[r->side].comm, sizeof(r->diff->totals[r->side].comm), r->json.text);
	return skip(r, token);
}

static int on_process(struct reading *r, enum json_token token)
{
	r->diff->totals[r->side].nr_processes++;
	return read_object(r, token, on_process_member);
}

static int on_report_member(struct reading *r, const char *key, enum json_token token)
{
	if (!strcmp(key, "schema") && (token != JSON_STRING || strcmp(r->json.text, "heaptap-report/1")))
		return wrong(r, "is no report of the schema heaptap-report/1");
	if (!strcmp(key, "processes"))
		return read_array(r, token, on_process);
	if (!strcmp(key, "duration_ns"))
		return read_number(r, token, &r->diff->totals[r->side].duration_ns);
	return skip(r, token);
}

int diff_add(struct diff *d, u32 side, const char *text, size_t len, const char **why, size_t *at)
{
	auto_free struct reading *r = calloc(1, sizeof(*r));
	auto_free char *frames = malloc(MAX_FRAMES_TEXT);
	int err;

	if (!r || !frames)
		return -ENOMEM;
	r->diff = d;
	r->side = side;
	r->frames = frames;
	json_reader_init(&r->json, text, len);
	err = read_object(r, json_next(&r->json), on_report_member);
	if (!err && json_next(&r->json) != JSON_END)
		err = wrong(r, "more follows the report");
	if (!err && !d->totals[side].nr_processes)
		err = wrong(r, "is no report of heaptap");
	*why = r->why;
	*at = json_position(&r->json);
	return err;
}

int diff_all(const struct diff *d, const struct diff_row ***rows, size_t *nr)
{
	*rows = calloc(d->nr + 1, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	for (size_t i = 0; i < d->nr; i++)
		(*rows)[i] = &d->rows[i];
	*nr = d->nr;
	return 0;
}

struct diff_totals diff_totals(const struct diff *d, u32 side)
{
	return d->totals[side];
}

static const struct {
	const char *name;
	size_t at;
} keys[NR_DIFF_KEYS] = {
	[DIFF_LIVE_BYTES] = { "live-bytes", offsetof(struct diff_numbers, live_bytes) },
	[DIFF_LIVE_BLOCKS] = { "live-blocks", offsetof(struct diff_numbers, live_blocks) },
	[DIFF_TOTAL_BYTES] = { "total-bytes", offsetof(struct diff_numbers, alloc_bytes) },
	[DIFF_TOTAL_BLOCKS] = { "total-blocks", offsetof(struct diff_numbers, allocs) },
	[DIFF_LEAKED_BYTES] = { "leaked-bytes", offsetof(struct diff_numbers, leaked_bytes) },
	[DIFF_PEAK] = { "peak", offsetof(struct diff_numbers, peak_bytes) },
};

enum diff_key diff_key_find(const char *name)
{
	u32 key = 0;

	while (key < NR_DIFF_KEYS && strcmp(keys[key].name, name))
		key++;
	return key;
}

s64 diff_change(const struct diff_row *row, enum diff_key key)
{
	u64 before = *(const u64 *)((const char *)&row->of[0] + keys[key].at);
	u64 after = *(const u64 *)((const char *)&row->of[1] + keys[key].at);

	return (s64)(after - before);
}

static int compare(const void *a, const void *b, void *key)
{
	const struct diff_row *x = *(const struct diff_row *const *)a,
			      *y = *(const struct diff_row *const *)b;
	s64 cx = diff_change(x, *(enum diff_key *)key), cy = diff_change(y, *(enum diff_key *)key);
	int order = (cx < cy) - (cx > cy);

	/* Names decide among equals, so that two runs give one order. */
	if (!order)
		order = strcmp(x->frames, y->frames);
	return order ? order : strcmp(x->function, y->function);
}

const struct diff_row *const *diff_rows(struct diff *d, enum diff_key key, size_t *nr)
{
	const struct diff_row **list = reallocarray(d->sorted, d->nr + 1, sizeof(*list));

	*nr = 0;
	if (!list)
		return d->sorted;
	d->sorted = list;
	for (size_t i = 0; i < d->nr; i++)
		if (diff_change(&d->rows[i], key))
			list[(*nr)++] = &d->rows[i];
	qsort_r(list, *nr, sizeof(*list), compare, &key);
	return list;
}

enum diff_key diff_key_for(struct diff *d, enum diff_key key)
{
	size_t nr;

	diff_rows(d, key, &nr);
	if (nr || key != DIFF_LIVE_BYTES)
		return key;
	diff_rows(d, DIFF_LIVE_BLOCKS, &nr);
	return nr ? DIFF_LIVE_BLOCKS : DIFF_TOTAL_BYTES;
}
