/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the chain of pointers that leads to one block. */
#include "user/census/census_why.h"

#include <errno.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/human.h"

enum { MAX_SHOWN = 4, MAX_LISTED = 32 }; /* steps at each end of a chain: for people, for scripts */

/* The owner of @addr in the allocator's words: "live", "free, in the cache of a thread", ... NULL = no block. */
static const char *census_state_of(const struct census *c, taddr_t addr)
{
	static const char *const states[] = {
		[CENSUS_LIVE] = "live",
		[CENSUS_CACHED] = "free, in the cache of a thread",
		[CENSUS_FAST] = "free, in a small list",
		[CENSUS_OWN] = "a table of the allocator",
	};
	const struct census_blocks *b = &c->blocks;
	size_t at = array_search(i, 0, b->nr, b->blocks[i].addr <= addr);

	if (at && addr - b->blocks[at - 1].addr < b->blocks[at - 1].size)
		return states[b->blocks[at - 1].state];
	return census_segment_at(b, addr) ? "free, or a header" : NULL;
}

/* The chain to @addr. *@info is the verdict. 0; -ENOENT no live block, or no chain is known; -ENOMEM. */
static int census_why_find_chain(const struct census *c, taddr_t addr, struct scan_block_info *info,
				 struct scan_chain **chain)
{
	*chain = NULL;
	if (!c->scan || !scan_find_around(c->scan, addr, info))
		return -ENOENT;
	return scan_why(c->scan, addr, chain);
}

static void census_why_print_root(FILE *out, const struct scan_root *root, const struct census_name *name)
{
	if (!strcmp(name->kind, "lost")) {
		fputs("nothing any more", out);
		return;
	}
	fprintf(out, "%s%s%s", name->kind, name->text[0] ? " " : "", name->text);
	if (name->offset)
		fprintf(out, "+0x%llx", (unsigned long long)name->offset);
	if (name->object[0])
		fprintf(out, " in %s", name->object);
	if (root->tid)
		fprintf(out, ", thread %d", (int)root->tid);
	if (root->kind == ROOT_MEMORY)
		fprintf(out, " (0x%llx)", (unsigned long long)root->addr);
}

static void print_step(FILE *out, const struct scan_step *step)
{
	fprintf(out, "  -> 0x%llx, %s", (unsigned long long)step->addr, human_bytes(step->size).text);
	if (step->offset)
		fprintf(out, ", by a pointer to its byte %llu", (unsigned long long)step->offset);
	putc('\n', out);
}

/* Is step @i none of the first @max, and none of the last? */
static bool census_why_is_left_out(const struct scan_chain *chain, size_t i, size_t max)
{
	return i >= max && i + max < chain->nr;
}

int census_why_text(FILE *out, const struct census *c, struct census_names *n, taddr_t addr)
{
	auto_free struct scan_chain *chain = NULL;
	struct scan_block_info info = { 0 };
	const char *state = census_state_of(c, addr);
	struct census_name name;
	int err = census_why_find_chain(c, addr, &info, &chain);

	if (err == -ENOMEM)
		return err;
	if (err) {
		fprintf(out, "0x%llx is %s\n", (unsigned long long)addr,
			!state			 ? "in no block of the allocator"
			: !strcmp(state, "live") ? "in a live block; no chain to it is known"
						 : state);
		return 0;
	}
	err = census_name_root(n, &chain->root, info.verdict >= SCAN_DEFINITE, &name);
	if (err)
		return err;
	fprintf(out, "0x%llx is in a block of %s, %s: held by ", (unsigned long long)addr,
		human_bytes(info.size).text, scan_verdict_name(info.verdict));
	census_why_print_root(out, &chain->root, &name);
	putc('\n', out);
	for (size_t i = 0; i < chain->nr; i++) {
		if (i == MAX_SHOWN && census_why_is_left_out(chain, i, MAX_SHOWN))
			fprintf(out, "  -> (%s more)\n", human_count(chain->nr - 2 * MAX_SHOWN).text);
		if (!census_why_is_left_out(chain, i, MAX_SHOWN))
			print_step(out, &chain->steps[i]);
	}
	return 0;
}

static void census_why_json_root(struct json *j, const struct scan_root *root, const struct census_name *name)
{
	json_object_begin(j, "root");
	json_string(j, "kind", name->kind);
	json_string(j, "name", name->text[0] ? name->text : NULL);
	json_string(j, "object", name->object[0] ? name->object : NULL);
	json_hex(j, "offset", name->offset);
	if (root->kind == ROOT_MEMORY)
		json_hex(j, "address", root->addr);
	if (root->tid)
		json_u64(j, "thread", (u64)root->tid);
	json_object_end(j);
}

int census_why_json(struct json *j, const struct census *c, struct census_names *n, taddr_t addr)
{
	auto_free struct scan_chain *chain = NULL;
	struct scan_block_info info = { 0 };
	struct census_name name;
	int err = census_why_find_chain(c, addr, &info, &chain);

	if (err == -ENOMEM)
		return err;
	json_object_begin(j, "why");
	json_hex(j, "address", addr);
	json_string(j, "state", census_state_of(c, addr));
	json_string(j, "verdict", info.verdict ? scan_verdict_name(info.verdict) : NULL);
	if (chain) {
		err = census_name_root(n, &chain->root, info.verdict >= SCAN_DEFINITE, &name);
		if (err)
			return err;
		census_why_json_root(j, &chain->root, &name);
		json_u64(j, "left_out", chain->nr > 2 * MAX_LISTED ? chain->nr - 2 * MAX_LISTED : 0);
	}
	json_array_begin(j, "chain");
	for (size_t i = 0; chain && i < chain->nr; i++) {
		if (census_why_is_left_out(chain, i, MAX_LISTED))
			continue;
		json_object_begin(j, NULL);
		json_hex(j, "address", chain->steps[i].addr);
		json_u64(j, "size", chain->steps[i].size);
		json_u64(j, "offset", chain->steps[i].offset);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
	return 0;
}
