/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares a census with an earlier one. Types are compared by name, because addresses change with each start. */
#include "user/census/census_baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/census/census_owners.h"
#include "user/census/census_sizes.h"
#include "user/census/census_types.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/lib/json_read.h"

enum { MAX_FILE = 256 << 20, MAX_KEY = 300 };

/* One size or one type: what it had before, and what it has now. */
struct baseline_row {
	char *key; /* owned */
	struct census_sum before, now;
};

struct growth_list {
	struct baseline_row *rows; /* owned */
	size_t nr, max;
};

/* The sums that are compared. */
enum { BY_TYPE, BY_SIZE, BY_OWNER, NR_LISTS };

static const struct {
	const char *key;  /* in JSON */
	const char *sum;  /* key of the sum in a row */
	const char *what; /* before a row in text */
} lists[NR_LISTS] = {
	[BY_TYPE] = { "types", "live", "" },
	[BY_SIZE] = { "sizes", "live", "of size " },
	[BY_OWNER] = { "owners", "held", "held by " },
};

struct census_baseline {
	struct census_sum live;
	struct growth_list lists[NR_LISTS];
};

static void list_fini(struct growth_list *l)
{
	for (size_t i = 0; i < l->nr; i++)
		free(l->rows[i].key);
	free(l->rows);
}

static void lists_fini(struct growth_list *all)
{
	for (int i = 0; i < NR_LISTS; i++)
		list_fini(&all[i]);
}

void census_baseline_free(struct census_baseline *b)
{
	if (!b)
		return;
	lists_fini(b->lists);
	free(b);
}

static int census_baseline_add(struct growth_list *l, const char *key, struct census_sum before,
			       struct census_sum now)
{
	int err = array_reserve(l->rows, l->max, l->nr + 1);
	char *copy = err ? NULL : strdup(key);

	if (!copy)
		return -ENOMEM;
	l->rows[l->nr++] = (struct baseline_row){ .key = copy, .before = before, .now = now };
	return 0;
}

/* ---- reading ---- */

/* Read an object of blocks and bytes. */
static int read_sum(struct json_reader *r, struct census_sum *sum)
{
	enum json_token token = json_next(r);

	if (token != JSON_OBJECT_BEGIN)
		return -EBADMSG;
	while ((token = json_next(r)) == JSON_KEY) {
		u64 *to = !strcmp(r->text, "blocks")  ? &sum->blocks
			  : !strcmp(r->text, "bytes") ? &sum->bytes
						      : NULL;

		token = json_next(r);
		if (to && (token != JSON_NUMBER || !json_number(r, to)))
			return -EBADMSG;
		if (!to && json_skip(r, token) == JSON_ERROR)
			return -EBADMSG;
	}
	return token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

/* The texts of one row. */
struct row_texts {
	char size[MAX_KEY], kind[MAX_KEY], name[MAX_KEY], object[MAX_KEY], offset[MAX_KEY];
};

/* The name of a row, the same for rows of a file and of the present census. */
static void make_key(int list, const struct row_texts *t, char *key, size_t size)
{
	struct census_owner_row owner = { .name = { .kind = t->kind } };

	if (list == BY_OWNER) {
		snprintf(owner.name.text, sizeof(owner.name.text), "%.*s", (int)sizeof(owner.name.text) - 1,
			 t->name);
		snprintf(owner.name.object, sizeof(owner.name.object), "%.*s",
			 (int)sizeof(owner.name.object) - 1, t->object);
		census_owner_text(&owner, key);
	} else if (*t->size || *t->name) {
		snprintf(key, size, "%s", *t->size ? t->size : t->name);
	} else {
		snprintf(key, size, "%s+%s", t->object, t->offset);
	}
}

/* Read one object of a list, whose first token was read. */
static int read_row(struct json_reader *r, struct growth_list *l, int list)
{
	struct row_texts t = { 0 };
	const struct {
		const char *key;
		char *to;
	} texts[] = { { "size", t.size },
		      { "kind", t.kind },
		      { "name", t.name },
		      { "object", t.object },
		      { "offset", t.offset } };
	struct census_sum sum = { 0 };
	char key[2 * MAX_KEY + 4];
	enum json_token token;

	_Static_assert(sizeof(key) >= CENSUS_OWNER_TEXT, "room for an owner");
	while ((token = json_next(r)) == JSON_KEY) {
		char *to = NULL;

		if (!strcmp(r->text, lists[list].sum)) {
			if (read_sum(r, &sum))
				return -EBADMSG;
			continue;
		}
		for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
			to = !strcmp(r->text, texts[i].key) ? texts[i].to : to;
		token = json_next(r);
		if (to && (token == JSON_STRING || token == JSON_NUMBER))
			snprintf(to, MAX_KEY, "%.*s", MAX_KEY - 1, r->text);
		else if (json_skip(r, token) == JSON_ERROR)
			return -EBADMSG;
	}
	if (token != JSON_OBJECT_END)
		return -EBADMSG;
	make_key(list, &t, key, sizeof(key));
	return census_baseline_add(l, key, sum, (struct census_sum){ 0 });
}

static int census_baseline_read_rows(struct json_reader *r, struct growth_list *l, int list)
{
	enum json_token token = json_next(r);
	int err = 0;

	if (token != JSON_ARRAY_BEGIN)
		return -EBADMSG;
	while (!err && (token = json_next(r)) == JSON_OBJECT_BEGIN)
		err = read_row(r, l, list);
	return err ? err : token == JSON_ARRAY_END ? 0 : -EBADMSG;
}

/* The list with the key that was read, or NR_LISTS. */
static int list_of(const struct json_reader *r)
{
	int list = 0;

	while (list < NR_LISTS && strcmp(r->text, lists[list].key) != 0)
		list++;
	return list;
}

static int read_census(struct census_baseline *b, struct json_reader *r)
{
	enum json_token token = json_next(r);
	bool is_census = false;
	int err = token == JSON_OBJECT_BEGIN ? 0 : -EBADMSG;

	while (!err && (token = json_next(r)) == JSON_KEY) {
		if (!strcmp(r->text, "live")) {
			err = read_sum(r, &b->live);
		} else if (list_of(r) < NR_LISTS) {
			int list = list_of(r);

			err = census_baseline_read_rows(r, &b->lists[list], list);
		} else {
			bool is_schema = !strcmp(r->text, "schema");

			token = json_next(r);
			is_census |= is_schema && !strncmp(r->text, "heaptap-census/", 15);
			err = json_skip(r, token) == JSON_ERROR ? -EBADMSG : 0;
		}
	}
	return err ? err : is_census && token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

int census_baseline_new(struct census_baseline **out, const char *path)
{
	struct census_baseline *b = calloc(1, sizeof(*b));
	auto_free struct json_reader *r = malloc(sizeof(*r));
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	auto_free char *text = NULL;
	struct stat st = { 0 };
	int err = !b || !r ? -ENOMEM : fd < 0 || fstat(fd, &st) ? -errno : st.st_size > MAX_FILE ? -EFBIG : 0;

	if (!err) {
		text = malloc((size_t)st.st_size + 1);
		err = !text ? -ENOMEM : read(fd, text, (size_t)st.st_size) != st.st_size ? -EIO : 0;
	}
	if (!err) {
		json_reader_init(r, text, (size_t)st.st_size);
		err = read_census(b, r);
	}
	if (err) {
		census_baseline_free(b);
		return err;
	}
	*out = b;
	return 0;
}

/* ---- comparing ---- */

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct baseline_row *)a)->key, ((const struct baseline_row *)b)->key);
}

/* Several types may have one name: add them up. */
static void join_equal(struct growth_list *l)
{
	size_t nr = 0;

	if (!l->nr)
		return;
	qsort(l->rows, l->nr, sizeof(*l->rows), by_key);
	for (size_t i = 1; i < l->nr; i++) {
		struct baseline_row *to = &l->rows[nr], *from = &l->rows[i];

		if (strcmp(to->key, from->key) != 0) {
			l->rows[++nr] = *from;
			continue;
		}
		to->before.blocks += from->before.blocks;
		to->before.bytes += from->before.bytes;
		to->now.blocks += from->now.blocks;
		to->now.bytes += from->now.bytes;
		free(from->key);
	}
	l->nr = nr + 1;
}

static s64 census_baseline_bytes_of(const struct baseline_row *g)
{
	return (s64)(g->now.bytes - g->before.bytes);
}

static int by_growth(const void *a, const void *b)
{
	s64 x = census_baseline_bytes_of(a), y = census_baseline_bytes_of(b);

	return (x < y) - (x > y);
}

static int copy_before(struct growth_list *to, const struct growth_list *from)
{
	int err = 0;

	for (size_t i = 0; i < from->nr && !err; i++)
		err = census_baseline_add(to, from->rows[i].key, from->rows[i].before,
					  (struct census_sum){ 0 });
	return err;
}

static int add_sizes(struct growth_list *l, const struct census *c, struct census_names *names)
{
	auto_free struct census_size *sizes = NULL;
	size_t nr = 0;
	int err = census_sizes(&sizes, &nr, c);
	char key[32];

	(void)names;
	for (size_t i = 0; i < nr && !err; i++) {
		snprintf(key, sizeof(key), "%llu", (unsigned long long)sizes[i].size);
		err = census_baseline_add(l, key, (struct census_sum){ 0 }, sizes[i].live);
	}
	return err;
}

static int add_types(struct growth_list *l, const struct census *c, struct census_names *names)
{
	auto_free struct census_type_row *rows = NULL;
	size_t nr = 0;
	int err = census_type_rows(&rows, &nr, c, true);

	for (size_t i = 0; i < nr && !err; i++) {
		struct census_name name;
		char key[MAX_KEY + 32];

		err = census_name_type(names, rows[i].word, &name);
		if (err)
			break;
		if (name.text[0])
			snprintf(key, sizeof(key), "%s", name.text);
		else
			snprintf(key, sizeof(key), "%s+0x%llx", name.object, (unsigned long long)name.offset);
		err = census_baseline_add(l, key, (struct census_sum){ 0 }, rows[i].live);
	}
	return err;
}

static int add_owners(struct growth_list *l, const struct census *c, struct census_names *names)
{
	auto_free struct census_owner_row *rows = NULL;
	size_t nr = 0;
	int err = census_owner_rows(&rows, &nr, c, names, NULL);

	for (size_t i = 0; i < nr && !err; i++) {
		char key[CENSUS_OWNER_TEXT];

		census_owner_text(&rows[i], key);
		err = census_baseline_add(l, key, (struct census_sum){ 0 }, rows[i].held);
	}
	return err;
}

/*
 * Fill @all, of NR_LISTS, with the rows of both, those that grew most first. Without a verdict, or with a baseline
 * without one, there are no owners to compare. @all is freed by the caller in any case.
 */
static int make_lists(struct growth_list *all, const struct census_baseline *b, const struct census *c,
		      struct census_names *names)
{
	static int (*const adders[NR_LISTS])(struct growth_list *, const struct census *,
					     struct census_names *) = { add_types, add_sizes, add_owners };
	int err = 0;

	for (int i = 0; i < NR_LISTS && !err; i++) {
		if (i == BY_OWNER && (!c->scan || !b->lists[i].nr))
			continue;
		err = copy_before(&all[i], &b->lists[i]);
		if (!err)
			err = adders[i](&all[i], c, names);
		join_equal(&all[i]);
		if (all[i].nr)
			qsort(all[i].rows, all[i].nr, sizeof(*all[i].rows), by_growth);
	}
	return err;
}

static void census_baseline_print_change(FILE *out, struct census_sum before, struct census_sum now)
{
	fprintf(out, "%s, from %s to %s blocks", human_change((s64)(now.bytes - before.bytes)).text,
		human_count(before.blocks).text, human_count(now.blocks).text);
}

static void print_growth(FILE *out, const struct growth_list *l, const char *what, u32 top)
{
	for (size_t i = 0; i < l->nr && (!top || i < top) && census_baseline_bytes_of(&l->rows[i]) > 0; i++) {
		fputs("  ", out);
		census_baseline_print_change(out, l->rows[i].before, l->rows[i].now);
		fprintf(out, ": %s", what);
		escape_text(out, l->rows[i].key);
		putc('\n', out);
	}
}

int census_baseline_text(FILE *out, const struct census_baseline *b, const struct census *c,
			 struct census_names *names, u32 top)
{
	struct growth_list all[NR_LISTS] = { 0 };
	int err = make_lists(all, b, c, names);

	if (!err) {
		fputs("\nGrowth since the baseline\n  ", out);
		census_baseline_print_change(out, b->live, census_live(&c->blocks));
		fputs(": all live blocks\n", out);
	}
	for (int i = 0; i < NR_LISTS && !err; i++)
		print_growth(out, &all[i], lists[i].what, top);
	if (!err && !b->lists[BY_OWNER].nr)
		fputs("  The baseline has no owners, because it has no verdict or is of an older version.\n",
		      out);
	lists_fini(all);
	return err;
}

int census_baseline_json(struct json *j, const struct census_baseline *b, const struct census *c,
			 struct census_names *names)
{
	struct growth_list all[NR_LISTS] = { 0 };
	int err = make_lists(all, b, c, names);

	json_object_begin(j, "growth");
	census_sum_json(j, "before", b->live);
	census_sum_json(j, "now", census_live(&c->blocks));
	for (int list = 0; list < NR_LISTS && !err; list++) {
		json_array_begin(j, lists[list].key);
		for (size_t i = 0; i < all[list].nr; i++) {
			const struct baseline_row *row = &all[list].rows[i];

			if (row->now.bytes == row->before.bytes && row->now.blocks == row->before.blocks)
				continue;
			json_object_begin(j, NULL);
			json_string(j, "name", row->key);
			census_sum_json(j, "before", row->before);
			census_sum_json(j, "now", row->now);
			json_object_end(j);
		}
		json_array_end(j);
	}
	json_object_end(j);
	lists_fini(all);
	return err;
}
