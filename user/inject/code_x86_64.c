/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code of x86_64: makes the jump at the entry of a function, and the stub that it leads to. */
#include "user/inject/code.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "arch/insn.h"
#include "inline/layout.h"
#include "inline/shape.h"

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

/* ---- entries that count bytes for samples ---- */

/* Jumps of a stub to its visit of the piece, whose distance is written when that place is known. */
struct stub_jumps {
	size_t at[4]; /* of the distances */
	u32 nr;
};

enum { MAX_ARG = 4, RM_ONE = 8 /* one register more, in a byte that names two */, GRAIN = PIECE_GRAIN_BITS };
enum { JUMP_IF_OVERFLOW = 0x80, JUMP_IF_BELOW = 0x82, JUMP_IF_NOT_EQUAL = 0x85 };
/* Registers of arguments, from the first. */
static const u8 arg_registers[MAX_ARG] = { 7, 6, 2, 1 };

static void put_visit_if(struct stub_writer *w, struct stub_jumps *jumps, u8 condition)
{
	const u8 jump[] = { 0x0f, condition, 0, 0, 0, 0 };

	code_x86_64_put(w, jump, sizeof(jump));
	jumps->at[jumps->nr++] = w->len - sizeof(s32);
}

/* The visit comes next: have the jumps lead to here. */
static void code_x86_64_end_jumps(struct stub_writer *w, const struct stub_jumps *jumps)
{
	for (u32 i = 0; i < jumps->nr && !w->is_full; i++) {
		s32 distance = (s32)(w->len - (jumps->at[i] + sizeof(distance)));

		memcpy(w->bytes + jumps->at[i], &distance, sizeof(distance));
	}
}

/* add @way(%rip), %rax */
static bool put_add_way(struct stub_writer *w, taddr_t way)
{
	static const u8 add[] = { 0x48, 0x03, 0x05 };

	code_x86_64_put(w, add, sizeof(add));
	return put_distance(w, way);
}

/* Visit if the block in argument @arg may be sampled: sample_may_have(). */
static bool put_look(struct stub_writer *w, struct stub_jumps *jumps, u8 arg, taddr_t ways)
{
	const u8 reg = arg_registers[arg - 1];
	const u8 index[] = { 0x48,  0x89, 0xc0 | reg << 3, /* mov %arg, %rax */
			     0x48,  0xc1, 0xe8,
			     16,			   /* shr, %rax */
			     0x48,  0x31, 0xc0 | reg << 3, /* xor %arg, %rax */
			     0x48,  0xc1, 0xe8,
			     GRAIN,			  /* shr, %rax */
			     0x0f,  0xb7, 0xc0 };	  /* movzwl %ax, %eax */
	static const u8 compare[] = { 0x80, 0x38, 0x00 }; /* cmpb $0, (%rax) */

	_Static_assert(PIECE_FILTER_BYTES == 1 << 16, "as %ax");
	code_x86_64_put(w, index, sizeof(index));
	if (!put_add_way(w, ways + offsetof(struct code_ways, counters)))
		return false;
	code_x86_64_put(w, compare, sizeof(compare));
	put_visit_if(w, jumps, JUMP_IF_NOT_EQUAL);
	return true;
}

/* Have %rax be the entry of this thread, by the word that its thread pointer leads to; visit if that is elsewhere. */
static bool put_find_thread(struct stub_writer *w, struct stub_jumps *jumps, taddr_t ways)
{
	enum { BYTES = 6, MASK = (PIECE_MAX_THREADS - 1) << BYTES };
	static const u8 load[] = { 0x64, 0x4c, 0x8b, 0x1c, 0x25, 0, 0, 0, 0 };	/* mov %fs:0, %r11 */
	static const u8 hash[] = { 0x49, 0x69, 0xc3 };				/* imul $..., %r11, %rax */
	static const u8 index[] = { 0x48, 0xc1, 0xe8, PIECE_HASH_SHIFT - BYTES, /* shr, %rax */
				    0x25 };					/* and $..., %eax */
	static const u8 compare[] = { 0x49, 0x83, 0xcb, 0x01,			/* or $1, %r11 */
				      0x4c, 0x39, 0x18 };			/* cmp %r11, (%rax) */
	const u32 factor = PIECE_HASH, mask = MASK;

	_Static_assert(sizeof(struct piece_key) == 1 << BYTES, "the index is in bytes");
	code_x86_64_put(w, load, sizeof(load));
	code_x86_64_put(w, hash, sizeof(hash));
	code_x86_64_put(w, &factor, sizeof(factor));
	code_x86_64_put(w, index, sizeof(index));
	code_x86_64_put(w, &mask, sizeof(mask));
	if (!put_add_way(w, ways + offsetof(struct code_ways, keys)))
		return false;
	code_x86_64_put(w, compare, sizeof(compare));
	put_visit_if(w, jumps, JUMP_IF_NOT_EQUAL);
	return true;
}

/* Count the bytes of a call, and one more, in the entry at %rax. Visit if a sample is due, or they are too many. */
static void put_count(struct stub_writer *w, struct stub_jumps *jumps, const struct call_probe *p)
{
	const u8 left = offsetof(struct piece_key, left);
	u8 size = arg_registers[p->size_arg - 1];
	/* mov %count, %r11; imul %size, %r11 */
	const u8 product[] = {
		0x49,	    0x89, 0xc3 | arg_registers[(p->count_arg + MAX_ARG - 1) % MAX_ARG] * RM_ONE,
		0x4c,	    0x0f, 0xaf,
		0xd8 | size
	};
	/* stc; sbb %size, left(%rax) */
	const u8 count[] = { 0xf9, 0x48, 0x19, 0x40 | size * RM_ONE, left };
	const u8 count_product[] = { 0xf9, 0x4c, 0x19, 0x58, left }; /* %r11 */

	if (p->count_arg) {
		code_x86_64_put(w, product, sizeof(product));
		put_visit_if(w, jumps, JUMP_IF_OVERFLOW);
		code_x86_64_put(w, count_product, sizeof(count_product));
	} else {
		code_x86_64_put(w, count, sizeof(count));
	}
	put_visit_if(w, jumps, JUMP_IF_BELOW);
}

/*
 * Note the call, because it may call another function: sample_is_inner(). Not if the note is of this call site: then
 * the function may have been jumped to by the noted one.
 */
static void put_note_call(struct stub_writer *w, u32 index)
{
	const u8 sp = offsetof(struct piece_key, outer_sp), ret = offsetof(struct piece_key, outer_ret);
	const u8 look[] = { 0x4c, 0x8b, 0x1c, 0x24, /* mov (%rsp), %r11 */
			    0x4c, 0x39, 0x58, ret,  /* cmp %r11, outer_ret(%rax) */
			    0x75, 0x06,		    /* jne, over the next two */
			    0x48, 0x39, 0x60, sp,   /* cmp %rsp, outer_sp(%rax) */
			    0x74, 0x0f };	    /* je, over the note */
	const u8 probe[] = { 0xc7, 0x40,
			     offsetof(struct piece_key, outer_probe) }; /* movl $..., outer_probe(%rax) */
	const u8 note[] = { 0x48, 0x89, 0x60, sp,			/* mov %rsp, outer_sp(%rax) */
			    0x4c, 0x89, 0x58, ret };			/* mov %r11, outer_ret(%rax) */

	_Static_assert(sizeof(probe) + sizeof(index) + sizeof(note) == 0x0f, "as je");
	code_x86_64_put(w, look, sizeof(look));
	code_x86_64_put(w, probe, sizeof(probe));
	code_x86_64_put(w, &index, sizeof(index));
	code_x86_64_put(w, note, sizeof(note));
}

/*
 * Decide, without a visit, that nothing of most calls is to be recorded. %rax and %r11 belong to code between a call
 * and the function. The steps are those of sample_choose() of the piece.
 */
static bool put_decision(struct stub_writer *w, struct stub_jumps *jumps, const struct code_site *site,
			 taddr_t ways)
{
	const u32 index = site->indexes[0] & ((1U << PIECE_KIND_SHIFT) - 1);
	const struct call_probe *p = site->sampled;

	if (p->size_arg && p->kind != ALLOC_FREE) {
		if (!put_find_thread(w, jumps, ways))
			return false;
		put_count(w, jumps, p);
		if (sample_has_inner(p))
			put_note_call(w, index);
	}
	return !p->old_arg || put_look(w, jumps, p->old_arg, ways);
}

/* ---- entries and calls ---- */

/* The functions whose calls are sampled, as far as their arguments are in registers. */
static bool code_x86_64_decides(const struct call_probe *p)
{
	return p && p->size_arg <= MAX_ARG && p->count_arg <= MAX_ARG && p->old_arg <= MAX_ARG &&
	       (p->kind == ALLOC_FREE ? p->old_arg : p->kind <= ALLOC_OUT && p->size_arg);
}

/* The moved instructions, and the jump back. */
static int put_function(struct code_hook *out, struct stub_writer *w, const struct code_site *site,
			const char **why)
{
	int err = move_entry(w, site, &out->displaced, why);

	if (err)
		return err;
	*why = far;
	return code_x86_64_put_jump(w, site->addr + out->displaced) && !w->is_full ? 0 : -ENOTSUP;
}

/* The decision, the function, and the visit, which goes on with the function. */
static int hook_sampled_entry(struct code_hook *out, struct stub_writer *w, const struct code_site *site,
			      taddr_t ways, const char **why)
{
	struct stub_jumps jumps = { 0 };
	taddr_t function;
	int err;

	*why = far;
	if (!put_decision(w, &jumps, site, ways))
		return -ENOTSUP;
	function = w->addr + w->len;
	err = put_function(out, w, site, why);
	if (err)
		return err;
	code_x86_64_end_jumps(w, &jumps);
	put_push(w, site->indexes[0]);
	return put_call(w, jump_through, sizeof(jump_through), ways + offsetof(struct code_ways, enter_call),
			function) &&
			       !w->is_full
		       ? 0
		       : -ENOTSUP;
}

static int code_x86_64_hook_entry(struct code_hook *out, struct stub_writer *w, const struct code_site *site,
				  taddr_t ways, const char **why)
{
	if (code_x86_64_decides(site->sampled))
		return hook_sampled_entry(out, w, site, ways, why);
	*why = far;
	return put_visit_of_entry(w, site, ways) ? put_function(out, w, site, why) : -ENOTSUP;
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
