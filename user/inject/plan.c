/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plans the stubs and jumps of a file's functions. */
#include "user/inject/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/insn.h"
#include "user/inject/code.h"

enum { MAX_SHARING = 16 };

/* The making of a plan. */
struct planner {
	struct inject_plan *plan;
	const struct inject_site *sites;
	size_t nr;
	const struct inject_island *island;
	bool is_sampled;
	inject_read_code *read;
	void *ctx;
	char *why;
};

static int plan_refuse(const struct planner *p, const struct inject_site *site, int err, const char *why)
{
	snprintf(p->why, INJECT_WHY_LEN, "%s: %s", site->name, why);
	return err;
}

/* Functions may return at the same instruction: the stub of the first site tells of all of them. */
static bool is_same_ret(const struct inject_site *a, const struct inject_site *b)
{
	return a->kind == PIECE_RET && b->kind == PIECE_RET && a->addr == b->addr;
}

static bool has_earlier(const struct planner *p, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_same_ret(&p->sites[i], &p->sites[at]))
			return true;
	return false;
}

/* List the indexes that the stub of site @at tells the piece. Returns their number, which may be more than fit. */
static u32 list_indexes(const struct planner *p, size_t at, u32 indexes[MAX_SHARING])
{
	u32 nr = 0;

	for (size_t i = at; i < p->nr; i++) {
		const struct inject_site *site = &p->sites[i];

		if (i != at && !is_same_ret(site, &p->sites[at]))
			continue;
		if (nr < MAX_SHARING)
			indexes[nr] = site->index | site->kind << PIECE_KIND_SHIFT;
		nr++;
	}
	return nr;
}

/* How many of the @room bytes at @code are padding that no code runs? */
static size_t padding_of(const u8 *code, size_t room)
{
	const struct code_cpu *cpu = code_native();
	struct insn insn;
	size_t at = 0;

	while (at < room && !insn_decode(&insn, cpu->machine, 0, code + at, room - at) &&
	       (insn.kind == INSN_NOP || cpu->is_breakpoint(code + at)))
		at += insn.length;
	return at;
}

/* Read the code of @site, and the padding behind it. */
static int read_body(const struct planner *p, const struct inject_site *site, u8 *body, struct code_site *out)
{
	bool is_whole = site->len <= INJECT_MAX_BODY && site->room <= INJECT_MAX_ROOM;
	size_t room = is_whole ? site->room : 0, known = code_native()->jump_bytes;
	int err;

	out->len = site->len < INJECT_MAX_BODY ? site->len : INJECT_MAX_BODY;
	known = out->len < known ? out->len : known;
	err = p->read(p->ctx, site->start, body, out->len + room);
	if (err)
		return plan_refuse(p, site, err, "its code cannot be read");
	if (memcmp(body, site->code, known))
		return plan_refuse(p, site, -EOPNOTSUPP, "its code was changed in memory (another tracer?)");
	out->padding = padding_of(body + out->len, room);
	return 0;
}

/* Read the bytes at the hop of @site, if it has one. */
static int read_hop(const struct planner *p, const struct inject_site *site, u8 *bytes)
{
	const size_t len = code_native()->jump_bytes;
	int err = site->hop ? p->read(p->ctx, site->hop, bytes, len) : 0;

	if (err)
		return plan_refuse(p, site, err, "the padding near it cannot be read");
	if (site->hop && memcmp(bytes, site->hop_code, len))
		return plan_refuse(p, site, -EOPNOTSUPP,
				   "the padding near it was changed in memory (another tracer?)");
	return 0;
}

/* Make the hook of site @at. */
static int make_hook(const struct planner *p, size_t at, taddr_t stub, struct code_hook *out)
{
	static const enum code_kind kinds[] = { [PIECE_ALLOC] = CODE_ENTRY,
						[PIECE_FREE] = CODE_ENTRY,
						[PIECE_INTERNAL_CALL] = CODE_CALL,
						[PIECE_RET] = CODE_RET,
						[PIECE_END] = CODE_ENTRY };
	u8 body[INJECT_MAX_BODY + INJECT_MAX_ROOM];
	const struct inject_site *site = &p->sites[at];
	u32 indexes[MAX_SHARING];
	struct code_site code = { .kind = kinds[site->kind],
				  .addr = site->addr,
				  .start = site->start,
				  .body = body,
				  .hop = site->hop,
				  .sampled = p->is_sampled && site->kind <= PIECE_FREE ? &site->call : NULL,
				  .indexes = indexes,
				  .nr_indexes = list_indexes(p, at, indexes) };
	int err = read_body(p, site, body, &code);
	const char *why;

	if (err)
		return err;
	if (code.nr_indexes > MAX_SHARING)
		return plan_refuse(p, site, -EOPNOTSUPP, "too many functions return there");
	err = code_hook(out, &code, stub, p->island->start, &why);
	return err ? plan_refuse(p, site, -EOPNOTSUPP, why) : 0;
}

static u64 changed_bytes(const struct inject_patch *p)
{
	return p->displaced > p->len ? p->displaced : p->len;
}

/* Does @p change bytes that another patch changes? */
static bool plan_overlaps(const struct inject_plan *plan, const struct inject_patch *p)
{
	for (size_t i = 0; i < plan->nr; i++) {
		const struct inject_patch *q = &plan->patches[i];

		if (p->addr < q->addr + changed_bytes(q) && q->addr < p->addr + changed_bytes(p))
			return true;
	}
	return false;
}

/* False: another patch changes bytes that this one changes. */
static bool add_patch(struct inject_plan *plan, const struct inject_patch *patch)
{
	if (plan_overlaps(plan, patch))
		return false;
	plan->patches[plan->nr++] = *patch;
	return true;
}

static int plan_add_site(const struct planner *p, size_t at)
{
	u64 offset = (at + 1) * CODE_STUB_BYTES;
	const struct inject_site *site = &p->sites[at];
	struct inject_plan *plan = p->plan;
	struct inject_patch hop = { .addr = site->hop, .len = code_native()->jump_bytes, .is_hop = 1 };
	struct inject_patch patch = { 0 };
	struct code_hook hook = { 0 };
	int err = read_hop(p, site, hop.old);

	if (!err)
		err = make_hook(p, at, p->island->start + offset, &hook);
	if (err)
		return err;
	memcpy(plan->stubs + offset, hook.stub, sizeof(hook.stub));
	memcpy(hop.new, hook.from_hop, sizeof(hop.new));
	patch.addr = hook.addr;
	patch.displaced = (u16)hook.displaced;
	patch.closed = patch.displaced > site->seen_at ? patch.displaced : site->seen_at + 1;
	patch.len = hook.len;
	memcpy(patch.old, hook.old, sizeof(patch.old));
	memcpy(patch.new, hook.new, sizeof(patch.new));
	/* The jump that a hop leads to is there first. */
	if ((site->hop && !add_patch(plan, &hop)) || !add_patch(plan, &patch))
		return plan_refuse(p, site, -EOPNOTSUPP, "it is too short");
	return 0;
}

int inject_plan_make(struct inject_plan *plan, const struct inject_site *sites, size_t nr,
		     const struct inject_island *island, const struct code_ways *ways, inject_read_code *read,
		     void *ctx, char why[INJECT_WHY_LEN])
{
	const struct planner p = { plan, sites, nr, island, ways->counters != 0, read, ctx, why };
	int err = 0;

	*plan = (struct inject_plan){ .stubs = calloc(1, island->bytes),
				      .patches = calloc(2 * nr + 1, sizeof(*plan->patches)) };
	if (!plan->stubs || !plan->patches)
		return -ENOMEM;
	memcpy(plan->stubs, ways, sizeof(*ways));
	for (size_t i = 0; i < nr && !err; i++) {
		plan->bad = i;
		err = has_earlier(&p, i) ? 0 : plan_add_site(&p, i);
	}
	return err;
}

void inject_plan_fini(struct inject_plan *plan)
{
	free(plan->stubs);
	free(plan->patches);
	*plan = (struct inject_plan){ 0 };
}

u64 inject_plan_bytes(size_t nr)
{
	return ((nr + 1) * CODE_STUB_BYTES + PIECE_PAGE - 1) & ~(u64)(PIECE_PAGE - 1);
}
