/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins the roots that are words of one variable, one stack, or registers of one thread. */
#include "user/census/census_owners.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"

enum { MAX_ROOTS = 1 << 17 }; /* that are named: a row of each is in memory until they are joined */

static int by_name(const void *a, const void *b)
{
	const struct census_owner_row *x = a, *y = b;
	int order = strcmp(x->name.kind, y->name.kind);

	if (!order)
		order = strcmp(x->name.text, y->name.text);
	return order ? order : strcmp(x->name.object, y->name.object);
}

static int census_owners_by_bytes(const void *a, const void *b)
{
	const struct census_owner_row *x = a, *y = b;

	if (x->held.bytes != y->held.bytes)
		return x->held.bytes < y->held.bytes ? 1 : -1;
	return by_name(a, b);
}

/* One row for all words of a variable, and for all registers of a thread. */
static int name_owner(struct census_names *names, const struct scan_owner *owner, struct census_name *out)
{
	int err = census_name_root(names, &owner->root, false, out);

	out->offset = 0;
	if (owner->root.tid)
		snprintf(out->text, sizeof(out->text), "of thread %d", (int)owner->root.tid);
	return err;
}

/* Owners while they are named. */
struct owner_naming {
	struct census_owner_row *rows;
	const struct scan_owner *owners;
	struct census_names *names;
	u32 *order; /* owners that are words of memory in no thread, by address */
	size_t nr;
};

static int owner_compare(const void *a, const void *b, void *ctx)
{
	const struct scan_owner *owners = ctx;
	taddr_t x = owners[*(const u32 *)a].root.addr, y = owners[*(const u32 *)b].root.addr;

	return (x > y) - (x < y);
}

static const struct scan_root *owner_root(const struct owner_naming *n, size_t i)
{
	return &n->owners[n->order[i]].root;
}

static struct census_name *owner_name(const struct owner_naming *n, size_t i)
{
	return &n->rows[n->order[i]].name;
}

/* Do two words lie in one variable, or in memory of one mapping that has no name? */
static bool owner_is_same(const struct owner_naming *n, size_t a, size_t b)
{
	const struct census_name *x = owner_name(n, a), *y = owner_name(n, b);
	taddr_t start_x = owner_root(n, a)->addr - x->offset, start_y = owner_root(n, b)->addr - y->offset;

	if (owner_root(n, a)->map != owner_root(n, b)->map || strcmp(x->kind, y->kind) != 0 ||
	    strcmp(x->text, y->text) != 0 || strcmp(x->object, y->object) != 0)
		return false;
	return *x->text && start_x == start_y;
}

/* Words @first and @last have names: name those between them. A table of a million words takes two look-ups. */
static int owner_name_between(struct owner_naming *n, size_t first, size_t last)
{
	size_t middle = first + (last - first) / 2;
	int err;

	if (last - first < 2)
		return 0;
	if (owner_is_same(n, first, last)) {
		for (size_t i = first + 1; i < last; i++) {
			*owner_name(n, i) = *owner_name(n, first);
			owner_name(n, i)->offset += owner_root(n, i)->addr - owner_root(n, first)->addr;
		}
		return 0;
	}
	err = census_name_root(n->names, owner_root(n, middle), false, owner_name(n, middle));
	if (!err)
		err = owner_name_between(n, first, middle);
	return err ? err : owner_name_between(n, middle, last);
}

static int owner_name_words(struct owner_naming *n)
{
	int err;

	if (!n->nr)
		return 0;
	qsort_r(n->order, n->nr, sizeof(*n->order), owner_compare, (void *)n->owners);
	err = census_name_root(n->names, owner_root(n, 0), false, owner_name(n, 0));
	if (!err)
		err = census_name_root(n->names, owner_root(n, n->nr - 1), false, owner_name(n, n->nr - 1));
	if (!err)
		err = owner_name_between(n, 0, n->nr - 1);
	for (size_t i = 0; i < n->nr; i++)
		owner_name(n, i)->offset = 0;
	return err;
}

static int census_owners_fill(struct census_owner_row *rows, const struct scan_owner *owners, size_t nr,
			      struct census_names *names)
{
	auto_free u32 *order = calloc(nr + 1, sizeof(*order));
	struct owner_naming n = { rows, owners, names, order, 0 };
	int err = order ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && !err; i++) {
		const struct scan_root *root = &owners[i].root;

		rows[i].held = (struct census_sum){ owners[i].blocks, owners[i].bytes };
		rows[i].number = (u32)i;
		if (i >= MAX_ROOTS)
			rows[i].name = (struct census_name){ .kind = "unknown" };
		else if (root->kind == ROOT_MEMORY && !root->tid)
			order[n.nr++] = (u32)i;
		else
			err = name_owner(names, &owners[i], &rows[i].name);
	}
	return err ? err : owner_name_words(&n);
}

/* Join the rows of one name. @places: for each number, which of the joined rows it is in; that is the new number. */
static size_t census_owners_join(struct census_owner_row *rows, size_t nr, u32 *places)
{
	size_t to = 0;

	for (size_t i = 0; i < nr; i++) {
		u32 number = rows[i].number;

		if (to && !by_name(&rows[to - 1], &rows[i])) {
			rows[to - 1].held.blocks += rows[i].held.blocks;
			rows[to - 1].held.bytes += rows[i].held.bytes;
		} else {
			rows[to] = rows[i];
			rows[to].number = (u32)to;
			to++;
		}
		places[number] = (u32)to - 1;
	}
	return to;
}

/* Join roots without a name, so that a table of a million roots takes no row for each. */
static size_t join_rest(struct scan_owner *owners, size_t nr)
{
	for (size_t i = MAX_ROOTS + 1; i < nr; i++) {
		owners[MAX_ROOTS].blocks += owners[i].blocks;
		owners[MAX_ROOTS].bytes += owners[i].bytes;
	}
	return nr > MAX_ROOTS ? MAX_ROOTS + 1 : nr;
}

/* The rows of @owners by bytes. @of has indexes of @owners, and then of the rows; it may be NULL. */
static int make_rows(struct census_owner_row *rows, const struct scan_owner *owners, size_t *nr, u32 *of,
		     u32 nr_blocks, struct census_names *names)
{
	auto_free u32 *places = calloc(*nr + 1, sizeof(*places));
	auto_free u32 *sorted = calloc(*nr + 1, sizeof(*sorted));
	size_t nr_owners = *nr;
	int err = places && sorted ? census_owners_fill(rows, owners, *nr, names) : -ENOMEM;

	if (err)
		return err;
	qsort(rows, *nr, sizeof(*rows), by_name);
	*nr = census_owners_join(rows, *nr, places);
	qsort(rows, *nr, sizeof(*rows), census_owners_by_bytes);
	for (size_t i = 0; i < *nr; i++)
		sorted[rows[i].number] = (u32)i;
	for (u32 i = 0; of && i < nr_blocks; i++) {
		/* Owners beyond the limit are joined in the last one. */
		u32 owner = of[i] < nr_owners ? of[i] : (u32)nr_owners - 1;

		if (of[i] != SCAN_NO_OWNER)
			of[i] = sorted[places[owner]];
	}
	return 0;
}

int census_owner_rows(struct census_owner_row **out, size_t *nr, const struct census *c,
		      struct census_names *names, u32 **of)
{
	auto_free struct scan_owner *owners = NULL;
	auto_free struct census_owner_row *rows = NULL;
	auto_free u32 *owner_of = NULL;
	int err;

	*nr = 0;
	*out = NULL;
	if (of)
		*of = NULL;
	if (!c->scan)
		return 0;
	err = scan_owners(c->scan, &owners, nr, MAX_ROOTS, of ? &owner_of : NULL);
	if (err)
		return err;
	*nr = join_rest(owners, *nr);
	rows = calloc(*nr + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	err = make_rows(rows, owners, nr, owner_of, scan_count(c->scan), names);
	if (err)
		return err;
	*out = take_ptr(rows);
	if (of)
		*of = take_ptr(owner_of);
	return 0;
}

void census_owner_text(const struct census_owner_row *row, char *text)
{
	const char *kind = row->name.kind;

	if (!strcmp(kind, "unknown"))
		kind = "roots that are not known or too many to name";
	else if (!strcmp(kind, "memory") && !row->name.text[0] && !row->name.object[0])
		kind = "memory mapped by the program";
	snprintf(text, CENSUS_OWNER_TEXT, "%s%s%s%s%s", kind, row->name.text[0] ? " " : "", row->name.text,
		 row->name.object[0] ? " in " : "", row->name.object);
}
