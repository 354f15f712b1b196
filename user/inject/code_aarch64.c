/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code of aarch64: makes the jump at the entry of a function, and the stub that it leads to. Stubs may change x16 and
 * x17, which linkers use for long jumps between functions.
 */
#include "user/inject/code.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "arch/insn.h"

enum { INSN_BYTES = 4, REACH = 100 << 20 /* jumps reach 128 MiB */ };

static const u32 OPCODE_JUMP = 0x14000000, OPCODE_CALL = 0x94000000, OPCODE_MASK = 0xfc000000;

static const char far[] = "no room for code is near it";

/* The instructions of a stub, as they are written. */
struct stub_words {
	u8 *bytes;
	taddr_t addr; /* of bytes[0] */
	size_t len;
	bool is_full, is_far; /* an instruction had no room; or what it names is out of its reach */
};

static u32 code_aarch64_word_at(const u8 *code)
{
	return code[0] | (u32)code[1] << 8 | (u32)code[2] << 16 | (u32)code[3] << 24;
}

static void set_word(u8 *code, u32 word)
{
	for (u32 i = 0; i < INSN_BYTES; i++)
		code[i] = (u8)(word >> 8 * i);
}

/* The @bits low bits of the distance from @from to @to, in instructions. False: they are too few. */
static bool code_aarch64_distance_to(taddr_t from, taddr_t to, u32 bits, u32 *out)
{
	s64 words = (s64)(to - from) / INSN_BYTES, most = 1LL << (bits - 1);

	*out = (u32)words & ((1U << bits) - 1);
	return !((to - from) % INSN_BYTES) && words >= -most && words < most;
}

/* The jump, or call, from @from to @to. False: it does not reach so far. */
static bool make_jump(u8 *code, u32 opcode, taddr_t from, taddr_t to)
{
	u32 distance;
	bool is_near = code_aarch64_distance_to(from, to, 26, &distance);

	set_word(code, opcode | distance);
	return is_near;
}

static void code_aarch64_put(struct stub_words *w, const void *bytes, size_t len)
{
	w->is_full |= len > CODE_STUB_BYTES - w->len;
	if (w->is_full)
		return;
	memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
}

static void code_aarch64_put_word(struct stub_words *w, u32 word)
{
	u8 code[INSN_BYTES];

	set_word(code, word);
	code_aarch64_put(w, code, sizeof(code));
}

static taddr_t code_aarch64_here(const struct stub_words *w)
{
	return w->addr + w->len;
}

/* ldr x16, from the word of 64 bits at @addr; br x16 */
static void put_load_and_jump(struct stub_words *w, taddr_t addr)
{
	u32 distance;

	w->is_far |= !code_aarch64_distance_to(code_aarch64_here(w), addr, 19, &distance);
	code_aarch64_put_word(w, 0x58000010 | distance << 5);
	code_aarch64_put_word(w, 0xd61f0200);
}

/* Go to @target, however far away it is. */
static void code_aarch64_put_jump(struct stub_words *w, taddr_t target)
{
	u8 jump[INSN_BYTES];

	if (make_jump(jump, OPCODE_JUMP, code_aarch64_here(w), target)) {
		code_aarch64_put(w, jump, sizeof(jump));
		return;
	}
	put_load_and_jump(w, code_aarch64_here(w) + 2 * INSN_BYTES);
	code_aarch64_put(w, &target, sizeof(target));
}

/* Go to the piece, whose address is at @way, with x17 = address of @index, which it comes back behind. */
static void put_visit(struct stub_words *w, u32 index, taddr_t way)
{
	/* adr x17, 3 instructions further */
	code_aarch64_put_word(w, 0x10000000 | 3 << 5 | 17);
	put_load_and_jump(w, way);
	code_aarch64_put_word(w, index);
}

static void code_aarch64_put_visits(struct stub_words *w, const struct code_site *site, taddr_t ways)
{
	for (u32 i = 0; i < site->nr_indexes; i++)
		put_visit(w, site->indexes[i], ways + offsetof(struct code_ways, enter));
}

/* The stub of a function: the visit, and the first instruction of the function. */
static int code_aarch64_hook_entry(struct stub_words *w, const struct code_site *site,
				   const struct insn *insn, taddr_t ways, const char **why)
{
	u8 moved[INSN_MAX_MOVED];
	int len;

	put_visit(w, site->indexes[0], ways + offsetof(struct code_ways, enter_call));
	*why = "its first instruction cannot be moved";
	if (insn->kind == INSN_CALL || insn->kind == INSN_TRAP)
		return -ENOTSUP;
	len = insn_move(EM_AARCH64, site->addr, site->body, site->len, code_aarch64_here(w), moved);
	if (len < 0)
		return -ENOTSUP;
	code_aarch64_put(w, moved, (size_t)len);
	code_aarch64_put_jump(w, site->addr + INSN_BYTES);
	return 0;
}

/* The stub of a call: the visit, and the function that is called. It returns to behind the call. */
static int code_aarch64_hook_call(struct stub_words *w, const struct code_site *site, const struct insn *insn,
				  taddr_t ways, const char **why)
{
	*why = "it is no call";
	if ((code_aarch64_word_at(site->body) & OPCODE_MASK) != OPCODE_CALL)
		return -ENOTSUP;
	code_aarch64_put_visits(w, site, ways);
	code_aarch64_put_jump(w, insn->target);
	return 0;
}

/* The stub of a ret: the visits, and the ret. */
static int code_aarch64_hook_ret(struct stub_words *w, const struct code_site *site, const struct insn *insn,
				 taddr_t ways, const char **why)
{
	*why = "it does not return there";
	if (insn->kind != INSN_RETURN)
		return -ENOTSUP;
	code_aarch64_put_visits(w, site, ways);
	code_aarch64_put(w, site->body + (site->addr - site->start), INSN_BYTES);
	*why = "too many functions return there";
	return w->is_full ? -ENOTSUP : 0;
}

static int code_aarch64_hook(struct code_hook *out, const struct code_site *site, taddr_t stub, taddr_t ways,
			     const char **why)
{
	static int (*const kinds[])(struct stub_words *, const struct code_site *, const struct insn *,
				    taddr_t, const char **) = { [CODE_ENTRY] = code_aarch64_hook_entry,
								[CODE_CALL] = code_aarch64_hook_call,
								[CODE_RET] = code_aarch64_hook_ret };
	struct stub_words w = { .bytes = out->stub, .addr = stub };
	u64 at = site->addr - site->start;
	struct insn insn;
	int err;

	/* Zeros are instructions that trap. */
	memset(out, 0, sizeof(*out));
	out->addr = site->addr;
	out->len = INSN_BYTES;
	out->displaced = INSN_BYTES;
	*why = "its code cannot be decoded";
	if (at >= site->len || insn_decode(&insn, EM_AARCH64, site->addr, site->body + at, site->len - at))
		return -ENOTSUP;
	err = kinds[site->kind](&w, site, &insn, ways, why);
	if (err)
		return err;
	memcpy(out->old, site->body + at, INSN_BYTES);
	*why = far;
	if (!make_jump(out->new, site->kind == CODE_CALL ? OPCODE_CALL : OPCODE_JUMP, site->addr, stub))
		return -ENOTSUP;
	return w.is_full || w.is_far ? -ENOTSUP : 0;
}

/* ---- what is there ---- */

static taddr_t code_aarch64_jump_target(taddr_t addr, const u8 *code)
{
	u32 word = code_aarch64_word_at(code), opcode = word & OPCODE_MASK;

	if (opcode != OPCODE_JUMP && opcode != OPCODE_CALL)
		return 0;
	return addr + (u64)((s64)((u64)word << 38) >> 38) * INSN_BYTES;
}

/* brk with any number: gdb has 0, the kernel 4 and 5. */
static bool code_aarch64_is_breakpoint(const u8 *code)
{
	return (code_aarch64_word_at(code) & 0xffe0001f) == 0xd4200000;
}

static bool code_aarch64_is_under_breakpoint(const u8 *now, const u8 *jump, size_t len)
{
	(void)jump;
	(void)len;
	return code_aarch64_is_breakpoint(now);
}

/* Behind it are the flags, a word that is not used, and the head of the first record (struct sigcontext). */
static bool code_aarch64_is_saved_pc(const u64 *word)
{
	const u32 fpsimd_magic = 0x46508001, fpsimd_bytes = 0x210;

	return word[3] == ((u64)fpsimd_bytes << 32 | fpsimd_magic);
}

const struct code_cpu code_aarch64 = {
	.machine = EM_AARCH64,
	.jump_bytes = INSN_BYTES,
	.step = INSN_BYTES,
	.nr_pc_words = 3,
	.saved_link = -2,
	.saved_sp = -1,
	.scratch = { 16, 17 },
	.has_link = true,
	.reorders = true,
	.has_guards = true,
	.reach = REACH,
	.address_mask = 0xffffffffffffULL,
	.hook = code_aarch64_hook,
	.jump_target = code_aarch64_jump_target,
	.is_breakpoint = code_aarch64_is_breakpoint,
	.is_under_breakpoint = code_aarch64_is_under_breakpoint,
	.is_saved_pc = code_aarch64_is_saved_pc,
};
