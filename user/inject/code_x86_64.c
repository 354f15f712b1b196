/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code of x86_64: makes the jump at the entry of a function, and the stub that it leads to. */
#include "user/inject/code.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "arch/insn.h"
#include "inline/layout.h"

enum { OPCODE_PUSH = 0x68, OPCODE_CALL = 0xe8, OPCODE_JUMP = 0xe9, OPCODE_HOP = 0xeb, OPCODE_INT3 = 0xcc };
enum { JUMP_BYTES = 5, HOP_BYTES = 2, REACH = 1 << 30 /* jumps reach 2 GiB */ };

static const char far[] = "no room for code is near it";

/* The bytes of a stub, as they are written. */
struct stub_writer {
	u8 *bytes;
	taddr_t addr; /* of bytes[0] */
	size_t len;
	bool is_full;
};

/* Bytes without room are left out, and is_full says so. */
static void code_x86_64_put(struct stub_writer *w, const void *bytes, size_t len)
{
	w->is_full |= len > CODE_STUB_BYTES - w->len;
	if (w->is_full)
		return;
	memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
}

/* The distance from the end of the four bytes at @at to @target. */
static bool code_x86_64_distance_to(taddr_t at, taddr_t target, s32 *out)
{
	*out = (s32)(target - (at + sizeof(*out)));
	return (s64)(target - (at + sizeof(*out))) == *out;
}

static bool put_distance(struct stub_writer *w, taddr_t target)
{
	s32 distance;

	if (!code_x86_64_distance_to(w->addr + w->len, target, &distance))
		return false;
	code_x86_64_put(w, &distance, sizeof(distance));
	return true;
}

static bool code_x86_64_put_jump(struct stub_writer *w, taddr_t target)
{
	code_x86_64_put(w, &(u8){ OPCODE_JUMP }, 1);
	return put_distance(w, target);
}

static void put_push(struct stub_writer *w, u32 number)
{
	code_x86_64_put(w, &(u8){ OPCODE_PUSH }, 1);
	code_x86_64_put(w, &number, sizeof(number));
}

/* Push the number of each probe, call the piece, drop the number again. No flag and no register is changed. */
static bool code_x86_64_put_visits(struct stub_writer *w, const struct code_site *site, taddr_t ways)
{
	const taddr_t way_in = ways + offsetof(struct code_ways, enter);
	static const u8 call[] = { 0xff, 0x15 }, drop[] = { 0x48, 0x8d, 0x64, 0x24, 0x08 };

	for (u32 i = 0; i < site->nr_indexes; i++) {
		put_push(w, site->indexes[i]);
		code_x86_64_put(w, call, sizeof(call));
		if (!put_distance(w, way_in))
			return false;
		code_x86_64_put(w, drop, sizeof(drop));
	}
	return true;
}

/* Go to @target, which will return to @ret; 0 = to behind all this. */
static bool put_call(struct stub_writer *w, const u8 *go, size_t len, taddr_t target, taddr_t ret)
{
	enum { PUSH_BYTES = 6 };
	static const u8 between[] = { OPCODE_INT3, OPCODE_INT3, OPCODE_INT3, OPCODE_INT3,
				      OPCODE_INT3, OPCODE_INT3, OPCODE_INT3 };
	/* A program may forbid accesses that are not aligned. */
	const size_t padding = -(w->addr + w->len + PUSH_BYTES + len + sizeof(s32)) % sizeof(u64);
	/* push of the word behind the instruction that goes */
	const u8 push[PUSH_BYTES] = { 0xff, 0x35, (u8)(len + sizeof(s32) + padding), 0, 0, 0 };

	code_x86_64_put(w, push, sizeof(push));
	code_x86_64_put(w, go, len);
	if (!put_distance(w, target))
		return false;
	code_x86_64_put(w, between, padding);
	ret = ret ? ret : w->addr + w->len + sizeof(ret);
	code_x86_64_put(w, &ret, sizeof(ret));
	return true;
}

static const u8 jump_through[] = { 0xff, 0x25 };

/*
 * Push the number of the function, and jump to the piece, which goes on behind this. It is no call, because the CPU
 * would then guess that the next ret goes to here.
 */
static bool put_visit_of_entry(struct stub_writer *w, const struct code_site *site, taddr_t ways)
{
	put_push(w, site->indexes[0]);
	return put_call(w, jump_through, sizeof(jump_through), ways + offsetof(struct code_ways, enter_call),
			0);
}

/* How many bytes of a function become the jump? */
static size_t jump_bytes(const struct code_site *site)
{
	return site->hop ? HOP_BYTES : JUMP_BYTES;
}

/* Does a jump in the function lead into [@from, @to)? Also if it has jumps whose targets are not known. */
static bool is_jumped_into(const struct code_site *site, taddr_t from, taddr_t to, bool wants_all)
{
	struct insn insn;

	for (size_t at = 0; at < site->len; at += insn.length) {
		if (insn_decode(&insn, EM_X86_64, site->start + at, site->body + at, site->len - at))
			return wants_all;
		if (insn.target >= from && insn.target < to)
			return true;
		if (wants_all && insn.kind == INSN_JUMP && !insn.target && !insn.slot)
			return true;
	}
	return false;
}

/*
 * Move the call at @at. The called function still returns to where it did: an unwinder knows that code, and not ours.
 * So the call must be the last instruction that is moved. -ENOTSUP if it is not, or calls through a register.
 */
static int move_call(struct stub_writer *w, const struct code_site *site, size_t at, const struct insn *insn)
{
	static const u8 jump[] = { OPCODE_JUMP };
	bool is_direct = insn->target && site->body[at] == OPCODE_CALL;
	taddr_t target = is_direct ? insn->target : insn->slot;

	if (!target || at + insn->length < jump_bytes(site))
		return -ENOTSUP;
	return put_call(w, is_direct ? jump : jump_through, is_direct ? sizeof(jump) : sizeof(jump_through),
			target, site->addr + at + insn->length)
		       ? 0
		       : -ENOTSUP;
}

/* Move the instruction @insn at offset @at from the entry. */
static int move_one(struct stub_writer *w, const struct code_site *site, size_t at, const struct insn *insn)
{
	u8 moved[INSN_MAX_MOVED];
	int len;

	if (insn->kind == INSN_CALL)
		return move_call(w, site, at, insn);
	len = insn_move(EM_X86_64, site->addr + at, site->body + at, site->len - at, w->addr + w->len, moved);
	if (len < 0 || insn->kind == INSN_TRAP)
		return -ENOTSUP;
	code_x86_64_put(w, moved, (size_t)len);
	return 0;
}

/* Move the instructions that the jump takes the place of. The jump may reach into the padding behind a function. */
static int move_entry(struct stub_writer *w, const struct code_site *site, u32 *displaced, const char **why)
{
	bool is_end = false;
	struct insn insn;
	size_t at = 0;

	for (; at < jump_bytes(site) && !is_end; at += insn.length) {
		*why = "its first instructions cannot be decoded";
		if (at >= site->len ||
		    insn_decode(&insn, EM_X86_64, site->addr + at, site->body + at, site->len - at))
			return -ENOTSUP;
		*why = "its first instructions cannot be moved";
		if (move_one(w, site, at, &insn))
			return -ENOTSUP;
		is_end = insn.kind == INSN_RETURN || insn.kind == INSN_JUMP;
	}
	*why = "it is too short";
	if (at < jump_bytes(site) && (at < site->len || at + site->padding < jump_bytes(site)))
		return -ENOTSUP;
	*displaced = (u32)at;
	*why = "it jumps to its first instructions";
	return is_jumped_into(site, site->addr + 1, site->addr + at, false) ? -ENOTSUP : 0;
}

/* ---- ret instructions ---- */

enum { MAX_BLOCK = 16, RET_BYTES = 8 };

/* Instructions that run one after the other, up to a ret; the last one is the ret. */
struct ret_block {
	size_t at[MAX_BLOCK]; /* offsets in the body */
	u32 nr;
	size_t end; /* behind the ret, and behind padding that no code runs */
};

static bool goes_on(const struct insn *insn)
{
	return insn->kind == INSN_OTHER || insn->kind == INSN_NOP || insn->kind == INSN_PUSH ||
	       insn->kind == INSN_BRANCH;
}

/* Find the instructions before the ret at offset @ret. False: the function cannot be decoded up to there. */
static bool find_block(const struct code_site *site, size_t ret, struct ret_block *b)
{
	struct insn insn;
	size_t at = 0;

	b->nr = 0;
	for (; at <= ret; at += insn.length) {
		if (insn_decode(&insn, EM_X86_64, site->start + at, site->body + at, site->len - at))
			return false;
		if (b->nr == MAX_BLOCK)
			memmove(b->at, b->at + 1, --b->nr * sizeof(b->at[0]));
		b->at[b->nr++] = at;
		if (!goes_on(&insn) && at < ret)
			b->nr = 0;
	}
	if (insn.kind != INSN_RETURN || !b->nr || b->at[b->nr - 1] != ret)
		return false;
	for (; at < site->len; at += insn.length)
		if (insn_decode(&insn, EM_X86_64, site->start + at, site->body + at, site->len - at) ||
		    insn.kind != INSN_NOP)
			break;
	b->end = at < site->len ? at : site->len + site->padding;
	return true;
}

/* Drop instructions from the front of @b that the jump does not need. False: it needs more than there are. */
static bool trim_block(const struct code_site *site, struct ret_block *b)
{
	u32 first = b->nr;

	while (first-- > 0) {
		if (b->end - b->at[first] >= jump_bytes(site)) {
			b->nr -= first;
			memmove(b->at, b->at + first, b->nr * sizeof(b->at[0]));
			return !is_jumped_into(site, site->start + b->at[0] + 1, site->start + b->end, true);
		}
	}
	return false;
}

/* Write the stub of a ret: the instructions before it, the visit, the ret itself. */
static int code_x86_64_hook_ret(struct code_hook *out, struct stub_writer *w, const struct code_site *site,
				taddr_t ways, const char **why)
{
	size_t ret = site->addr - site->start;
	u8 moved[INSN_MAX_MOVED];
	struct ret_block b;

	*why = "a jump leads to where it returns, or no room is there";
	if (ret >= site->len || !find_block(site, ret, &b) || !trim_block(site, &b))
		return -ENOTSUP;
	out->addr = site->start + b.at[0];
	out->displaced = (u32)(ret + 1 - b.at[0]);
	*why = "the instructions before it returns cannot be moved";
	for (u32 i = 0; i + 1 < b.nr; i++) {
		int len = insn_move(EM_X86_64, site->start + b.at[i], site->body + b.at[i],
				    site->len - b.at[i], w->addr + w->len, moved);

		if (len < 0)
			return -ENOTSUP;
		code_x86_64_put(w, moved, (size_t)len);
	}
	if (!code_x86_64_put_visits(w, site, ways))
		return -ENOTSUP;
	code_x86_64_put(w, site->body + ret, b.end - ret < RET_BYTES ? b.end - ret : RET_BYTES);
	*why = "too many functions return there";
	return w->is_full ? -ENOTSUP : 0;
}

/* ---- entries and calls ---- */

static int code_x86_64_hook_entry(struct code_hook *out, struct stub_writer *w, const struct code_site *site,
				  taddr_t ways, const char **why)
{
	int err;

	*why = far;
	if (!put_visit_of_entry(w, site, ways))
		return -ENOTSUP;
	err = move_entry(w, site, &out->displaced, why);
	if (err)
		return err;
	*why = far;
	return code_x86_64_put_jump(w, site->addr + out->displaced) && !w->is_full ? 0 : -ENOTSUP;
}

static int code_x86_64_hook_call(struct code_hook *out, struct stub_writer *w, const struct code_site *site,
				 taddr_t ways, const char **why)
{
	s32 distance;

	*why = "it is no call";
	if (site->len < JUMP_BYTES || site->body[0] != OPCODE_CALL)
		return -ENOTSUP;
	memcpy(&distance, site->body + 1, sizeof(distance));
	out->displaced = JUMP_BYTES;
	*why = far;
	if (!code_x86_64_put_visits(w, site, ways) ||
	    !code_x86_64_put_jump(w, site->addr + JUMP_BYTES + (u64)(s64)distance))
		return -ENOTSUP;
	return 0;
}

/* Write the jump to @stub: at the function, or at the padding that a hop leads to. */
static int put_jumps(struct code_hook *out, const struct code_site *site, taddr_t stub)
{
	taddr_t from = site->hop ? site->hop : out->addr;
	u8 *jump = site->hop ? out->from_hop : out->new;
	s64 hop = (s64)(site->hop - (out->addr + HOP_BYTES));
	s32 distance;

	if (!code_x86_64_distance_to(from + 1, stub, &distance))
		return -ENOTSUP;
	jump[0] = site->kind == CODE_CALL ? OPCODE_CALL : OPCODE_JUMP;
	memcpy(jump + 1, &distance, sizeof(distance));
	if (!site->hop)
		return 0;
	out->new[0] = OPCODE_HOP;
	out->new[1] = (u8)hop;
	return hop == (s8)hop ? 0 : -ENOTSUP;
}

static int code_x86_64_hook(struct code_hook *out, const struct code_site *site, taddr_t stub, taddr_t ways,
			    const char **why)
{
	static int (*const kinds[])(struct code_hook *, struct stub_writer *, const struct code_site *,
				    taddr_t, const char **) = { [CODE_ENTRY] = code_x86_64_hook_entry,
								[CODE_CALL] = code_x86_64_hook_call,
								[CODE_RET] = code_x86_64_hook_ret };
	struct stub_writer w = { .bytes = out->stub, .addr = stub };
	int err;

	memset(out, 0, sizeof(*out));
	memset(out->stub, OPCODE_INT3, sizeof(out->stub));
	out->addr = site->addr;
	err = kinds[site->kind](out, &w, site, ways, why);
	if (err)
		return err;
	out->len = (u8)jump_bytes(site);
	*why = "its code crosses a page";
	if (out->addr / 4096 != (out->addr + out->len - 1) / 4096)
		return -ENOTSUP;
	memcpy(out->old, site->body + (out->addr - site->start), out->len);
	*why = far;
	return put_jumps(out, site, stub);
}

/* ---- what is there ---- */

static taddr_t code_x86_64_jump_target(taddr_t addr, const u8 *code)
{
	s32 distance;

	memcpy(&distance, code + 1, sizeof(distance));
	return addr + JUMP_BYTES + (u64)(s64)distance;
}

static bool code_x86_64_is_breakpoint(const u8 *code)
{
	return code[0] == OPCODE_INT3;
}

static bool code_x86_64_is_under_breakpoint(const u8 *now, const u8 *jump, size_t len)
{
	return !memcmp(now + 1, jump + 1, len - 1);
}

/* The flags, of which bit 1 is always set, and the segment of 64-bit code (struct sigcontext of x86_64). */
static bool code_x86_64_is_saved_pc(const u64 *word)
{
	enum { FLAG_ALWAYS = 2, USER_CODE = 0x33 };

	return word[1] <= UINT32_MAX && word[1] & FLAG_ALWAYS && (u16)word[2] == USER_CODE;
}

const struct code_cpu code_x86_64 = {
	.machine = EM_X86_64,
	.jump_bytes = JUMP_BYTES,
	.hop_bytes = HOP_BYTES,
	.step = 1,
	.nr_pc_words = 2,
	.below_stack = PIECE_BELOW_STACK,
	.reach = REACH,
	.address_mask = UINT64_MAX,
	.hook = code_x86_64_hook,
	.jump_target = code_x86_64_jump_target,
	.is_breakpoint = code_x86_64_is_breakpoint,
	.is_under_breakpoint = code_x86_64_is_under_breakpoint,
	.is_saved_pc = code_x86_64_is_saved_pc,
};
