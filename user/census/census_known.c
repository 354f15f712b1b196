/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins the list of blocks of a trace with a census. */
#include "user/census/census_known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/escape.h"
#include "user/lib/human.h"
#include "user/lib/json.h"
#include "user/lib/parse.h"

#define HEAD "pid,address,size,age_ns,caller,function,stack,"

enum { MAX_CALLERS = 1 << 20, MAX_FIELDS = 16 };
/* The columns that are read. */
enum { OF_PID, OF_ADDRESS, OF_SIZE, OF_CALLER = 4, OF_FUNCTION, OF_STACK };

struct known_block {
	taddr_t addr;
	u64 size;
	u32 caller; /* index in callers */
};

struct known_caller {
	char *function, *stack; /* owned; not escaped; NULL: no block names it */
	u32 id;			/* as the list has it */
	struct census_sum live, lost;
};

struct census_known {
	struct known_block *blocks; /* owned */
	size_t nr, max;
	struct known_caller *callers; /* owned; by id, from 1 on; after the join by bytes */
	size_t nr_callers, max_callers;
	struct census_sum live, unknown; /* the census has them: the list, too; the list has not */
	u64 nr_gone;			 /* the list has them, and the census has no live block there */
	u64 nr_smaller;			 /* the census has less room than the program asked for */
};

void census_known_free(struct census_known *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->nr_callers; i++) {
		free(k->callers[i].function);
		free(k->callers[i].stack);
	}
	free(k->callers);
	free(k->blocks);
	free(k);
}

/* Cut @line into fields, in place. Quotes are doubled inside of quotes. Returns how many. */
static size_t census_known_split(char *line, char *fields[MAX_FIELDS])
{
	size_t nr = 0;
	char *to = line;
	bool is_quoted = false;

	fields[nr++] = to;
	for (const char *p = line; *p; p++) {
		if (is_quoted && *p == '"' && p[1] == '"') {
			*to++ = *p++;
		} else if (*p == '"') {
			is_quoted = !is_quoted;
		} else if (*p == ',' && !is_quoted) {
			*to++ = '\0';
			if (nr == MAX_FIELDS)
				return 0;
			fields[nr++] = to;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
	return nr;
}

static int census_known_add_caller(struct census_known *k, u64 id, char *const fields[MAX_FIELDS])
{
	size_t nr = (size_t)id + 1;
	int err = id > MAX_CALLERS ? -EFBIG : array_reserve(k->callers, k->max_callers, nr);
	struct known_caller *c;

	if (err)
		return err;
	if (nr > k->nr_callers) {
		memset(k->callers + k->nr_callers, 0, (nr - k->nr_callers) * sizeof(*k->callers));
		k->nr_callers = nr;
	}
	c = &k->callers[id];
	if (c->function)
		return 0;
	c->id = (u32)id;
	c->function = strdup(fields[OF_FUNCTION]);
	c->stack = strdup(fields[OF_STACK]);
	return c->function && c->stack ? 0 : -ENOMEM;
}

static int census_known_add_line(struct census_known *k, char *line, pid_t pid)
{
	char *fields[MAX_FIELDS];
	struct known_block b = { 0 };
	u64 of, id;
	int err;

	if (census_known_split(line, fields) <= OF_STACK || parse_u64(fields[OF_PID], &of) ||
	    parse_hex(fields[OF_ADDRESS], &b.addr) || parse_u64(fields[OF_SIZE], &b.size) ||
	    parse_u64(fields[OF_CALLER], &id))
		return -EBADMSG;
	if (of != (u64)pid)
		return 0;
	err = census_known_add_caller(k, id, fields);
	if (!err)
		err = array_reserve(k->blocks, k->max, k->nr + 1);
	if (err)
		return err;
	b.caller = (u32)id;
	k->blocks[k->nr++] = b;
	return 0;
}

static int read_list(struct census_known *k, FILE *f, pid_t pid)
{
	auto_free char *line = NULL;
	size_t size = 0;
	int err = 0;

	if (getline(&line, &size, f) < 0 || strncmp(line, HEAD, strlen(HEAD)) != 0)
		return -EBADMSG;
	while (!err && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		err = census_known_add_line(k, line, pid);
	}
	if (!err && ferror(f))
		err = -EIO;
	return err ? err : k->nr ? 0 : -ENODATA;
}

int census_known_new(struct census_known **out, const char *path, pid_t pid)
{
	struct census_known *k = calloc(1, sizeof(*k));
	auto_fclose FILE *f = fopen(path, "re");
	int err = !k ? -ENOMEM : !f ? -errno : read_list(k, f, pid);

	if (err) {
		census_known_free(k);
		return err;
	}
	*out = k;
	return 0;
}

/* Does the census call the block lost? */
static bool census_known_is_lost(const struct census *c, taddr_t addr)
{
	struct scan_block_info info = { .verdict = SCAN_NONE };

	return c->scan && scan_find(c->scan, addr, &info) &&
	       (info.verdict == SCAN_DEFINITE || info.verdict == SCAN_INDIRECT);
}

static void join_block(struct census_known *k, const struct census *c, const struct known_block *b)
{
	const struct census_block *found = census_find(&c->blocks, b->addr);
	struct known_caller *caller = &k->callers[b->caller];

	if (!found || found->state != CENSUS_LIVE) {
		k->nr_gone++;
		return;
	}
	k->nr_smaller += found->size < b->size;
	k->live.blocks++;
	k->live.bytes += found->size;
	caller->live.blocks++;
	caller->live.bytes += found->size;
	if (!census_known_is_lost(c, b->addr))
		return;
	caller->lost.blocks++;
	caller->lost.bytes += found->size;
}

static int census_known_by_bytes(const void *a, const void *b)
{
	const struct known_caller *x = a, *y = b;

	if (x->live.bytes != y->live.bytes)
		return x->live.bytes < y->live.bytes ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

void census_known_join(struct census_known *k, const struct census *c)
{
	struct census_sum all = census_live(&c->blocks);

	for (size_t i = 0; i < k->nr; i++)
		join_block(k, c, &k->blocks[i]);
	k->unknown.blocks = all.blocks - k->live.blocks;
	k->unknown.bytes = all.bytes - k->live.bytes;
	if (k->nr_callers)
		qsort(k->callers, k->nr_callers, sizeof(*k->callers), census_known_by_bytes);
}

void census_known_text(FILE *out, const struct census_known *k, u32 top)
{
	size_t nr = 0;

	fprintf(out, "\nCallers that the trace knows: %s in %s of the live blocks\n",
		human_bytes(k->live.bytes).text, human_count(k->live.blocks).text);
	fputs("       bytes    blocks        lost  by\n", out);
	for (size_t i = 0; i < k->nr_callers && k->callers[i].live.blocks && (!top || nr < top); i++, nr++) {
		const struct known_caller *c = &k->callers[i];

		fprintf(out, "  %10s  %8s  %10s  ", human_bytes(c->live.bytes).text,
			human_count(c->live.blocks).text,
			c->lost.blocks ? human_count(c->lost.blocks).text : "");
		escape_text(out, c->function);
		if (c->stack[0])
			fputs(" < ", out);
		escape_text(out, c->stack);
		putc('\n', out);
	}
	fprintf(out, "  not known, from before the trace or after the list: %s in %s blocks\n",
		human_bytes(k->unknown.bytes).text, human_count(k->unknown.blocks).text);
	if (k->nr_gone)
		fprintf(out, "  released since the list was made: %s blocks\n", human_count(k->nr_gone).text);
	if (k->nr_smaller)
		fprintf(out, "  of another size than the trace has: %s blocks\n",
			human_count(k->nr_smaller).text);
}

void census_known_json(struct json *j, const struct census_known *k)
{
	json_object_begin(j, "known");
	census_sum_json(j, "live", k->live);
	census_sum_json(j, "unknown", k->unknown);
	json_u64(j, "gone_blocks", k->nr_gone);
	json_u64(j, "smaller_blocks", k->nr_smaller);
	json_array_begin(j, "callers");
	for (size_t i = 0; i < k->nr_callers && k->callers[i].live.blocks; i++) {
		json_object_begin(j, NULL);
		json_u64(j, "caller", k->callers[i].id);
		json_string(j, "function", k->callers[i].function);
		json_string(j, "stack", k->callers[i].stack);
		census_sum_json(j, "live", k->callers[i].live);
		census_sum_json(j, "lost", k->callers[i].lost);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}
