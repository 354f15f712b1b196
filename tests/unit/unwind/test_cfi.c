/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call frame information: each instruction's rows, the structure around them, and what is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/unit/cfi_image.h"
#include "user/unwind/cfi.h"
#include "user/lib/elf.h"

/* Entries being written. */
struct frame {
	u8 bytes[8192];
	size_t size, entry; /* where the open entry began */
};

static void put(struct frame *f, u64 value, size_t size)
{
	image_put(f->bytes + f->size, value, size);
	f->size += size;
}

static void put_bytes(struct frame *f, const void *bytes, size_t size)
{
	memcpy(f->bytes + f->size, bytes, size);
	f->size += size;
}

static void begin_entry(struct frame *f, u64 id)
{
	f->entry = f->size;
	put(f, 0, 4);
	put(f, id, 4);
}

static void end_entry(struct frame *f)
{
	while ((f->size - f->entry) % 8)
		put(f, 0, 1); /* DW_CFA_nop */
	image_put(f->bytes + f->entry, f->size - f->entry - 4, 4);
}

/* Version 1, "zR" with @encoding; @tail: alignments, return address, length of augmentation. */
static size_t put_cie(struct frame *f, u16 machine, u8 encoding)
{
	static const struct {
		u16 machine;
		const char *head, *program;
		size_t program_size;
	} cies[] = { { EM_X86_64, "\1\x78\x10\1", "\x0c\7\10\x90\1", 5 },
		     { EM_386, "\1\x7c\10\1", "\x0c\4\4\x88\1", 5 },
		     { EM_AARCH64, "\4\x78\x1e\1", "\x0c\x1f\0", 3 } };
	size_t at = f->size;

	for (size_t i = 0; i < ARRAY_SIZE(cies); i++) {
		if (cies[i].machine != machine)
			continue;
		begin_entry(f, 0);
		put_bytes(f, "\1zR", 4);
		put_bytes(f, cies[i].head, 4);
		put(f, encoding, 1);
		put_bytes(f, cies[i].program, cies[i].program_size);
		end_entry(f);
	}
	return at;
}

/* With pcrel | sdata4 pointers. @start: in the text. */
static void put_fde(struct frame *f, size_t cie, u32 start, u32 length, const void *program, size_t size)
{
	begin_entry(f, f->size + 4 - cie);
	put(f, IMAGE_TEXT + start - (IMAGE_FRAME + f->size), 4);
	put(f, length, 4);
	put(f, 0, 1);
	put_bytes(f, program, size);
	end_entry(f);
}

static int build(struct cfi_table **out, const struct cfi_image *im)
{
	int fd = cfi_image_open(im), err;
	struct elf *elf;

	assert_true(fd >= 0);
	assert_int_equal(elf_open(&elf, fd), 0);
	err = cfi_build(out, elf);
	elf_close(elf);
	close(fd);
	return err;
}

static int build_frame(struct cfi_table **out, const struct frame *f, u16 machine)
{
	const struct cfi_image im = { .machine = machine, .frame = f->bytes, .frame_size = f->size };

	return build(out, &im);
}

struct want {
	u32 pc;
	u32 kind;
	s32 cfa_words;
	u32 save, save_words;
};

enum { MAX_WANT = 8 };

static void check_rows(const struct cfi_table *t, const struct want *want, size_t nr)
{
	for (size_t i = 0; i < nr && i < t->nr_rows; i++) {
		u32 rule = t->rows[i].rule;

		assert_int_equal(t->rows[i].pc, want[i].pc);
		assert_int_equal(cfi_kind(rule), want[i].kind);
		assert_int_equal(cfi_cfa_words(rule), want[i].cfa_words);
		assert_int_equal(cfi_save(rule), want[i].save);
		assert_int_equal(cfi_save_words(rule), want[i].save_words);
	}
	assert_int_equal(t->nr_rows, nr);
}

/* The instructions of one FDE of 0x100 bytes, and the rows that they make. */
struct program_case {
	const char *name;
	u16 machine;
	const char *program;
	size_t size;
	struct want want[MAX_WANT]; /* without the last one, which ends the FDE */
	size_t nr;
};

#define PROGRAM(bytes) bytes, sizeof(bytes) - 1

static const struct program_case program_cases[] = {
	{ "push rbp",
	  EM_X86_64,
	  PROGRAM("\x41\x0e\x10\x86\2\x43\x0d\6\x60\x0c\7\x08\xc6"),
	  { { 0, CFI_SP, 1, CFI_SAME, 0 },
	    { 1, CFI_SP, 2, CFI_FP_AT_CFA, 2 },
	    { 4, CFI_FP, 2, CFI_FP_AT_CFA, 2 },
	    { 0x24, CFI_SP, 1, CFI_SAME, 0 } },
	  4 },
	{ "remember",
	  EM_X86_64,
	  PROGRAM("\x41\x0e\x10\x0a\x41\x0e\x18\x86\3\x41\x0b"),
	  { { 0, CFI_SP, 1 }, { 1, CFI_SP, 2 }, { 2, CFI_SP, 3, CFI_FP_AT_CFA, 3 }, { 3, CFI_SP, 2 } },
	  4 },
	{ "advance 1 2 4",
	  EM_X86_64,
	  PROGRAM("\2\x10\x0e\x10\3\x20\0\x0e\x18\4\x30\0\0\0\x0e\x20"),
	  { { 0, CFI_SP, 1 }, { 0x10, CFI_SP, 2 }, { 0x30, CFI_SP, 3 }, { 0x60, CFI_SP, 4 } },
	  4 },
	{ "advance 8",
	  EM_X86_64,
	  PROGRAM("\x1d\x10\0\0\0\0\0\0\0\x0e\x10"),
	  { { 0, CFI_SP, 1 }, { 0x10, CFI_SP, 2 } },
	  2 },
	{ "signed forms",
	  EM_X86_64,
	  PROGRAM("\x12\7\x7e\x11\6\2\x41\x13\x7d"),
	  { { 0, CFI_SP, 2, CFI_FP_AT_CFA, 2 }, { 1, CFI_SP, 3, CFI_FP_AT_CFA, 2 } },
	  2 },
	{ "extended",
	  EM_X86_64,
	  PROGRAM("\5\6\4\x41\6\6\x41\5\6\4\x41\x08\6"),
	  { { 0, CFI_SP, 1, CFI_FP_AT_CFA, 4 },
	    { 1, CFI_SP, 1 },
	    { 2, CFI_SP, 1, CFI_FP_AT_CFA, 4 },
	    { 3, CFI_SP, 1 } },
	  4 },
	{ "other registers change nothing",
	  EM_X86_64,
	  PROGRAM("\x41\x83\3\x41\x8c\4\x41\x2e\x10\x41\x16\x0c\1\0"),
	  { { 0, CFI_SP, 1 } },
	  1 },
	{ "no row at the end", EM_X86_64, PROGRAM("\3\0\1\x0e\x10"), { { 0, CFI_SP, 1 } }, 1 },
	{ "value of rbp",
	  EM_X86_64,
	  PROGRAM("\x41\x14\6\2"),
	  { { 0, CFI_SP, 1 }, { 1, CFI_SP, 1, CFI_FP_LOST } },
	  2 },
	{ "rbp undefined", EM_X86_64, PROGRAM("\x07\6"), { { 0, CFI_SP, 1, CFI_FP_LOST } }, 1 },
	{ "negative offset", EM_X86_64, PROGRAM("\x2f\6\2"), { { 0, CFI_SP, 1, CFI_FP_LOST } }, 1 },
	{ "realigned main",
	  EM_X86_64,
	  PROGRAM("\x45\x0c\x0a\0\x49\x10\6\2\x76\0\x45\x0f\3\x76\x78\6"),
	  { { 0, CFI_SP, 1 }, { 5, CFI_UNSUPPORTED }, { 0x13, CFI_DEREF_FP, -1, CFI_FP_AT_BASE, 0 } },
	  3 },
	{ "assembly", EM_X86_64, PROGRAM("\x0f\5\x77\x10\6\x23\x08"), { { 0, CFI_DEREF_SP_WORD, 2 } }, 1 },
	{ "plain expression", EM_X86_64, PROGRAM("\x0f\4\x92\7\x18\x23"), { { 0, CFI_UNSUPPORTED } }, 1 },
	{ "register expression", EM_X86_64, PROGRAM("\x0f\5\x92\7\x18\x23\x08"), { { 0, CFI_SP, 4 } }, 1 },
	{ "plt",
	  EM_X86_64,
	  PROGRAM("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22"),
	  { { 0, CFI_PLT, 1, 0, 11 } },
	  1 },
	{ "plt like",
	  EM_X86_64,
	  PROGRAM("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x3b\x2b\x33\x24\x22"),
	  { { 0, CFI_UNSUPPORTED } },
	  1 },
	{ "outermost", EM_X86_64, PROGRAM("\7\x10"), { { 0, CFI_OUTERMOST } }, 1 },
	{ "return address elsewhere", EM_X86_64, PROGRAM("\x90\3"), { { 0, CFI_UNSUPPORTED } }, 1 },
	{ "return address in rdx", EM_X86_64, PROGRAM("\x09\x10\1"), { { 0, CFI_UNSUPPORTED } }, 1 },
	{ "rsp elsewhere", EM_X86_64, PROGRAM("\x09\7\6"), { { 0, CFI_UNSUPPORTED } }, 1 },
	{ "large frame", EM_X86_64, PROGRAM("\x0e\xf8\xff\x0f"), { { 0, CFI_SP, 32767 } }, 1 },
	{ "too large", EM_X86_64, PROGRAM("\x0e\x80\x80\x10"), { { 0, CFI_UNSUPPORTED } }, 1 },
	{ "odd", EM_X86_64, PROGRAM("\x0e\x0c"), { { 0, CFI_UNSUPPORTED } }, 1 },
	{ "rbp far below",
	  EM_X86_64,
	  PROGRAM("\x0e\x90\x2f\x86\x80\6"),
	  { { 0, CFI_SP, 754, CFI_FP_LOST } },
	  1 },
	{ "rbp far below, near rsp",
	  EM_X86_64,
	  PROGRAM("\x0e\x90\x2f\x86\xf0\5"),
	  { { 0, CFI_SP, 754, CFI_FP_AT_BASE, 2 } },
	  1 },
	{ "unknown opcode",
	  EM_X86_64,
	  PROGRAM("\x41\x0e\x10\x41\x3e"),
	  { { 0, CFI_SP, 1 }, { 1, CFI_SP, 2 }, { 2, CFI_UNSUPPORTED } },
	  3 },
	{ "nothing remembered", EM_X86_64, PROGRAM("\x0b"), { { 0, CFI_UNSUPPORTED } }, 1 },
	{ "offset of an expression",
	  EM_X86_64,
	  PROGRAM("\x0f\3\x76\0\6\x41\x0e\x10"),
	  { { 0, CFI_DEREF_FP, 0 }, { 1, CFI_UNSUPPORTED } },
	  2 },
	{ "endless LEB128",
	  EM_X86_64,
	  PROGRAM("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
	  { { 0, CFI_UNSUPPORTED } },
	  1 },
	{ "block beyond the end", EM_X86_64, PROGRAM("\x0f\x7f\x77"), { { 0, CFI_UNSUPPORTED } }, 1 },
	{ "i386",
	  EM_386,
	  PROGRAM("\x41\x0e\x08\x85\2\x42\x0d\5"),
	  { { 0, CFI_SP, 1 }, { 1, CFI_SP, 2, CFI_FP_AT_CFA, 2 }, { 3, CFI_FP, 2, CFI_FP_AT_CFA, 2 } },
	  3 },
	{ "i386 main",
	  EM_386,
	  PROGRAM("\x10\5\2\x75\0\x0f\3\x75\x7c\6"),
	  { { 0, CFI_DEREF_FP, -1, CFI_FP_AT_BASE, 0 } },
	  1 },
	{ "i386 plt",
	  EM_386,
	  PROGRAM("\x0f\x0b\x74\4\x78\0\x3f\x1a\x3b\x2a\x32\x24\x22"),
	  { { 0, CFI_PLT, 1, 0, 11 } },
	  1 },
	{ "aarch64",
	  EM_AARCH64,
	  PROGRAM("\x41\x2d\x0e\x20\x9d\4\x9e\3\x41\x0d\x1d\x44\xdd\xde\x0c\x1f\0"),
	  { { 0, CFI_SP, 0 },
	    { 4, CFI_SP, 4, CFI_PAIR_AT_CFA, 4 },
	    { 8, CFI_FP, 4, CFI_PAIR_AT_CFA, 4 },
	    { 24, CFI_SP, 0 } },
	  4 },
	{ "aarch64, ra alone",
	  EM_AARCH64,
	  PROGRAM("\x41\x0e\x10\x9e\2"),
	  { { 0, CFI_SP, 0 }, { 4, CFI_SP, 2, CFI_RA_AT_CFA, 2 } },
	  2 },
	{ "aarch64, apart",
	  EM_AARCH64,
	  PROGRAM("\x0e\x30\x9e\2\x9d\5"),
	  { { 0, CFI_SP, 6, CFI_RA_AT_CFA_FP_LOST, 2 } },
	  1 },
	{ "aarch64, far below",
	  EM_AARCH64,
	  PROGRAM("\x0e\x80\x40\x9d\x80\x08\x9e\xff\7"),
	  { { 0, CFI_SP, 1024, CFI_PAIR_AT_BASE, 0 } },
	  1 },
	{ "aarch64, ra alone far below",
	  EM_AARCH64,
	  PROGRAM("\x0e\x80\x40\x9e\xfe\7"),
	  { { 0, CFI_SP_RA_AT_SP, 1024, CFI_RA_AT_CFA, 2 } },
	  1 },
};

static void test_programs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(program_cases); i++) {
		const struct program_case *c = &program_cases[i];
		struct want want[MAX_WANT + 1];
		struct frame f = { .size = 0 };
		struct cfi_table *t;

		print_message("# %s\n", c->name);
		memcpy(want, c->want, sizeof(c->want));
		want[c->nr] = (struct want){ .pc = 0x100, .kind = CFI_NONE };
		put_fde(&f, put_cie(&f, c->machine, 0x1b), 0, 0x100, c->program, c->size);
		assert_int_equal(build_frame(&t, &f, c->machine), 0);
		check_rows(t, want, c->nr + 1);
		cfi_free(t);
	}
}

static void test_set_loc(void **state)
{
	static const struct want want[] = { { 0, CFI_SP, 1 }, { 0x20, CFI_SP, 2 }, { 0x100, CFI_NONE } };
	struct frame f = { .size = 0 };
	struct cfi_table *t;
	size_t cie = put_cie(&f, EM_X86_64, 0x1b);

	(void)state;
	begin_entry(&f, f.size + 4 - cie);
	put(&f, IMAGE_TEXT - (IMAGE_FRAME + f.size), 4);
	put(&f, 0x100, 4);
	put(&f, 0, 1);
	put(&f, 1, 1);
	put(&f, IMAGE_TEXT + 0x20 - (IMAGE_FRAME + f.size), 4);
	put_bytes(&f, "\x0e\x10", 2);
	end_entry(&f);
	assert_int_equal(build_frame(&t, &f, EM_X86_64), 0);
	check_rows(t, want, ARRAY_SIZE(want));
	cfi_free(t);
}

/* Order, gaps, overlaps, empty and foreign FDEs. */
static void test_places(void **state)
{
	/* 0x10..0x30 wins over 0x20..0x40 and over the second 0x10..0x18; gap; two that touch and are equal. */
	static const struct want want[] = { { 0x10, CFI_SP, 2 }, { 0x30, CFI_SP, 3 }, { 0x40, CFI_NONE },
					    { 0x80, CFI_SP, 1 }, { 0xa0, CFI_NONE },  { 0x3ff0, CFI_SP, 4 },
					    { 0x4000, CFI_NONE } };
	struct frame f = { .size = 0 };
	struct cfi_table *t;
	size_t cie = put_cie(&f, EM_X86_64, 0x1b);

	(void)state;
	put_fde(&f, cie, 0x90, 0x10, "", 0);
	put_fde(&f, cie, 0x20, 0x20, "\x0e\x20\x41\x0e\x18", 5);
	put_fde(&f, cie, 0x10, 0x20, "\x0e\x10", 2);
	put_fde(&f, cie, 0x80, 0x10, "", 0);
	put_fde(&f, cie, 0x10, 8, "\x0e\x28", 2);
	put_fde(&f, cie, 0x50, 0, "", 0);
	put_fde(&f, cie, 0x3ff0, 0x1000, "\x0e\x20", 2);
	put_fde(&f, cie, 0x4000, 0x10, "\x0e\x20", 2);
	put_fde(&f, cie, (u32)-IMAGE_TEXT, 0x10, "\x0e\x20", 2);
	assert_int_equal(build_frame(&t, &f, EM_X86_64), 0);
	check_rows(t, want, ARRAY_SIZE(want));
	assert_int_equal(t->stats.nr_fdes, 9);
	assert_int_equal(t->stats.nr_empty, 1);
	assert_int_equal(t->stats.nr_outside, 2);
	assert_int_equal(t->stats.nr_overlapping, 2);
	assert_int_equal(cfi_find(t, IMAGE_TEXT + 0xf), CFI_NONE);
	assert_int_equal(cfi_find(t, IMAGE_TEXT + 0x10), t->rows[0].rule);
	assert_int_equal(cfi_find(t, IMAGE_TEXT + 0x2f), t->rows[0].rule);
	assert_int_equal(cfi_find(t, IMAGE_TEXT + 0x30), t->rows[1].rule);
	assert_int_equal(cfi_find(t, IMAGE_TEXT + 0x5000), CFI_NONE);
	assert_int_equal(cfi_find(t, 0), CFI_NONE);
	assert_int_equal(cfi_find(t, UINT64_MAX), CFI_NONE);
	cfi_free(t);
}

/* Each way to write an address: the one FDE is found, or refused. */
static void test_encodings(void **state)
{
	static const struct {
		u8 encoding, size;
		bool is_relative, is_bad;
	} cases[] = {
		{ 0x00, 8, false, false }, { 0x03, 4, false, false }, { 0x04, 8, false, false },
		{ 0x0c, 8, false, false }, { 0x0b, 4, false, false }, { 0x10, 8, true, false },
		{ 0x13, 4, true, true },   { 0x1c, 8, true, false },  { 0x1b, 4, true, false },
		{ 0x30, 8, false, false }, { 0x9b, 4, true, true },   { 0x20, 8, false, true },
		{ 0x40, 8, false, true },  { 0xff, 0, false, true },  { 0x05, 4, false, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame f = { .size = 0 };
		struct cfi_table *t;
		size_t cie = put_cie(&f, EM_X86_64, cases[i].encoding);
		int err;

		print_message("# encoding %#x\n", cases[i].encoding);
		begin_entry(&f, f.size + 4 - cie);
		put(&f, IMAGE_TEXT + 0x10 - (cases[i].is_relative ? IMAGE_FRAME + f.size : 0), cases[i].size);
		put(&f, 0x20, cases[i].size);
		put(&f, 0, 1);
		end_entry(&f);
		err = build_frame(&t, &f, EM_X86_64);
		assert_int_equal(err, cases[i].is_bad ? -ENOENT : 0);
		if (err)
			continue;
		assert_int_equal(t->nr_rows, 2);
		assert_int_equal(t->rows[0].pc, 0x10);
		assert_int_equal(t->rows[1].pc, 0x30);
		cfi_free(t);
	}
}

static void test_64bit_length(void **state)
{
	struct frame f = { .size = 0 };
	struct cfi_table *t;
	size_t cie = put_cie(&f, EM_X86_64, 0x1b), start = f.size;

	(void)state;
	put(&f, 0xffffffff, 4);
	put(&f, 17, 8);
	put(&f, f.size - cie, 4);
	put(&f, IMAGE_TEXT - (IMAGE_FRAME + f.size), 4);
	put(&f, 0x10, 4);
	put(&f, 0, 1);
	put_bytes(&f, "\x41\x0e\x10\0", 4);
	assert_int_equal(build_frame(&t, &f, EM_X86_64), 0);
	assert_int_equal(t->nr_rows, 3);
	cfi_free(t);
	image_put(f.bytes + start + 4, UINT64_MAX, 8);
	assert_int_equal(build_frame(&t, &f, EM_X86_64), -ENOENT);
}

/* A .debug_frame of one function, version 4. */
static size_t make_debug_frame(struct frame *f)
{
	begin_entry(f, 0xffffffff);
	put_bytes(f, "\4\0\x08\0\1\x78\x10\x0c\7\x08\x90\1", 12);
	end_entry(f);
	begin_entry(f, 0);
	put(f, IMAGE_TEXT + 0x40, 8);
	put(f, 0x10, 8);
	put_bytes(f, "\x41\x0e\x10", 3);
	end_entry(f);
	return f->size;
}

static size_t compress_zlib(u8 *to, size_t room, const struct frame *f)
{
	uLongf size = room;

	assert_int_equal(compress(to, &size, f->bytes, f->size), Z_OK);
	return size;
}

static size_t compress_zstd(u8 *to, size_t room, const struct frame *f)
{
	size_t size = ZSTD_compress(to, room, f->bytes, f->size, 1);

	assert_false(ZSTD_isError(size));
	return size;
}

static void test_debug_frame(void **state)
{
	static const struct {
		const char *section;
		u64 flags, type, said_size; /* said_size 0: the true one */
		size_t (*compress)(u8 *to, size_t room, const struct frame *f);
		int err;
	} cases[] = {
		{ ".debug_frame", 0, 0, 0, NULL, 0 },
		{ ".debug_frame", SHF_COMPRESSED, 1, 0, compress_zlib, 0 },
		{ ".debug_frame", SHF_COMPRESSED, 2, 0, compress_zstd, 0 },
		{ ".debug_frame", SHF_COMPRESSED, 3, 0, compress_zstd, -ENOTSUP },
		{ ".debug_frame", SHF_COMPRESSED, 1, 8, compress_zlib, -EIO },
		{ ".debug_frame", SHF_COMPRESSED, 1, 1ULL << 40, compress_zlib, -EFBIG },
		{ ".debug_frame", SHF_COMPRESSED, 2, 1ULL << 40, compress_zstd, -EFBIG },
	};
	static const struct want want[] = { { 0x40, CFI_SP, 1 }, { 0x41, CFI_SP, 2 }, { 0x50, CFI_NONE } };
	struct frame f = { .size = 0 };
	size_t plain = make_debug_frame(&f);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		u8 packed[1024] = { (u8)cases[i].type };
		struct cfi_image im = { .machine = EM_X86_64, .frame = packed, .section = cases[i].section };
		struct cfi_table *t;

		im.section_flags = cases[i].flags;
		image_put(packed + 8, cases[i].said_size ? cases[i].said_size : plain, 8);
		if (cases[i].compress) {
			im.frame_size = 24 + cases[i].compress(packed + 24, sizeof(packed) - 24, &f);
		} else {
			im.frame = f.bytes;
			im.frame_size = plain;
		}
		assert_int_equal(build(&t, &im), cases[i].err);
		if (cases[i].err)
			continue;
		check_rows(t, want, ARRAY_SIZE(want));
		cfi_free(t);
	}
}

/* Both: .eh_frame wins where it says anything, and what the linker left out is at address 0. */
static void test_both_frames(void **state)
{
	static const struct want want[] = { { 0x3c, CFI_SP, 1 },
					    { 0x42, CFI_SP, 2 },
					    { 0x50, CFI_NONE },
					    { 0x60, CFI_SP, 1 },
					    { 0x70, CFI_NONE } };
	struct frame eh = { .size = 0 }, debug = { .size = 0 };
	struct cfi_image im = { .machine = EM_X86_64, .section = ".eh_frame", .section_flags = SHF_ALLOC };
	size_t cie = put_cie(&eh, EM_X86_64, 0x1b);
	struct cfi_table *t;

	(void)state;
	put_fde(&eh, cie, 0x3c, 6, "", 0);
	put_fde(&eh, cie, 0x60, 0x10, "", 0);
	im.frame = eh.bytes;
	im.frame_size = eh.size;
	make_debug_frame(&debug);
	begin_entry(&debug, 0);
	put(&debug, 0, 8);
	put(&debug, IMAGE_TEXT + 0x1000, 8);
	end_entry(&debug);
	im.debug = debug.bytes;
	im.debug_size = debug.size;
	assert_int_equal(build(&t, &im), 0);
	check_rows(t, want, ARRAY_SIZE(want));
	assert_int_equal(t->stats.nr_fdes, 4);
	assert_int_equal(t->stats.nr_outside, 1);
	assert_int_equal(t->stats.is_cut, 0);
	cfi_free(t);
	/* Of a section without a function nothing is missing; one that is only damage takes nothing away. */
	im.debug_size = 3;
	assert_int_equal(build(&t, &im), 0);
	assert_int_equal(t->nr_rows, 4);
	cfi_free(t);
	/* Go's .debug_frame is wrong for functions that change the stack. */
	im.debug_size = debug.size;
	im.section = ".gopclntab";
	assert_int_equal(build(&t, &im), 0);
	assert_int_equal(t->nr_rows, 4);
	cfi_free(t);
	im.section = ".other";
	assert_int_equal(build(&t, &im), 0);
	assert_int_equal(t->nr_rows, 5);
	cfi_free(t);
}

static void check_table(const struct cfi_table *t)
{
	assert_true(t->nr_rows > 0);
	assert_int_equal(cfi_kind(t->rows[t->nr_rows - 1].rule), CFI_NONE);
	for (size_t i = 0; i < t->nr_rows; i++) {
		assert_true(cfi_kind(t->rows[i].rule) < NR_CFI_KINDS);
		assert_true(i == 0 || t->rows[i].pc > t->rows[i - 1].pc);
		assert_true(i == 0 || t->rows[i].rule != t->rows[i - 1].rule);
	}
}

/* A real .eh_frame: this program's, or as much of it as @max. */
static u8 *own_frame(struct cfi_image *im, size_t max)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct elf_section *section;
	struct elf *elf;
	void *data;
	size_t size;

	assert_int_equal(elf_open(&elf, fd), 0);
	section = elf_section(elf, ".eh_frame");
	assert_non_null(section);
	assert_int_equal(elf_read_section(elf, section, IMAGE_MAX, &data, &size), 0);
	im->machine = elf->machine;
	im->frame = data;
	im->frame_size = size < max ? size : max;
	im->frame_vaddr = section->addr;
	im->text_vaddr = 0;
	im->text_size = section->addr; /* code lies before it, or after in some layouts: all of it then */
	if (elf->entry > section->addr)
		im->text_size = elf->entry + IMAGE_MAX;
	elf_close(elf);
	close(fd);
	return data;
}

static int build_and_check(const struct cfi_image *im)
{
	struct cfi_table *t;
	int err = build(&t, im);

	if (!err) {
		check_table(t);
		cfi_free(t);
	}
	return err;
}

/* A section that is cut off at any byte gives no wrong table (C4). */
static void test_truncated_at_every_byte(void **state)
{
	struct cfi_image im = { .section = NULL };
	u8 *frame = own_frame(&im, 1500);
	size_t size = im.frame_size;

	(void)state;
	assert_int_equal(build_and_check(&im), 0);
	for (im.frame_size = 0; im.frame_size < size; im.frame_size++) {
		int err = build_and_check(&im);

		assert_true(err == 0 || err == -ENOENT);
	}
	im.section = ".eh_frame";
	im.section_flags = SHF_ALLOC;
	for (im.frame_size = 0; im.frame_size < size; im.frame_size++)
		build_and_check(&im);
	free(frame);
}

/* A section with any byte changed gives no wrong table (C4). */
static void test_every_byte_changed(void **state)
{
	static const u8 masks[] = { 0x01, 0x80, 0xff };
	struct cfi_image im = { .section = ".eh_frame", .section_flags = SHF_ALLOC };
	u8 *frame = own_frame(&im, 1500);

	(void)state;
	for (size_t i = 0; i < im.frame_size * ARRAY_SIZE(masks); i++) {
		frame[i / ARRAY_SIZE(masks)] ^= masks[i % ARRAY_SIZE(masks)];
		build_and_check(&im);
		frame[i / ARRAY_SIZE(masks)] ^= masks[i % ARRAY_SIZE(masks)];
	}
	free(frame);
}

/* More DW_CFA_remember_state than there is room for ends the program of its FDE (C4). */
static void test_remember_overflow(void **state)
{
	u8 program[CFI_MAX_REMEMBERED + 1];
	struct frame f = { .size = 0 };
	struct cfi_table *t;

	(void)state;
	memset(program, 0x0a, sizeof(program));
	put_fde(&f, put_cie(&f, EM_X86_64, 0x1b), 0, 0x10, program, CFI_MAX_REMEMBERED);
	put_fde(&f, 0, 0x20, 0x10, program, sizeof(program));
	assert_int_equal(build_frame(&t, &f, EM_X86_64), 0);
	assert_int_equal(cfi_kind(cfi_find(t, IMAGE_TEXT)), CFI_SP);
	assert_int_equal(cfi_kind(cfi_find(t, IMAGE_TEXT + 0x20)), CFI_UNSUPPORTED);
	assert_int_equal(t->stats.unsupported[CFI_BAD_PROGRAM], 1);
	cfi_free(t);
}

/* FDEs whose CIE is themselves, another FDE, before the section, in the middle of one (C4). */
static void test_cie_loops(void **state)
{
	static const s64 distances[] = { 4, 0x1000, 0x7fffffff, -64, 3, 9, 28 };
	struct frame f = { .size = 0 };
	struct cfi_table *t;

	(void)state;
	put_fde(&f, put_cie(&f, EM_X86_64, 0x1b), 0, 0x10, "", 0);
	for (size_t i = 0; i < ARRAY_SIZE(distances); i++)
		put_fde(&f, f.size + 4 - (size_t)distances[i], 0x20 * (u32)i + 0x20, 0x10, "", 0);
	assert_int_equal(build_frame(&t, &f, EM_X86_64), 0);
	check_table(t);
	assert_int_equal(t->stats.nr_fdes, 1);
	assert_int_equal(t->stats.nr_bad_entries, ARRAY_SIZE(distances));
	cfi_free(t);
}

/* Many FDEs, each with a large CIE of its own place: the work is bounded (C4). */
static void test_work_is_bounded(void **state)
{
	enum { NR_CIES = 128, NR_FDES = 20000, CIE_BYTES = 4096 };
	size_t size = NR_CIES * (size_t)CIE_BYTES + NR_FDES * 24UL;
	struct frame *f = calloc(1, sizeof(*f));
	u8 *all = calloc(1, size), *p = all;
	struct cfi_image im = { .machine = EM_X86_64, .frame = all, .frame_size = size };
	struct cfi_table *t;

	(void)state;
	assert_non_null(f);
	assert_non_null(all);
	put_cie(f, EM_X86_64, 0x1b);
	memset(f->bytes + f->size, 0, CIE_BYTES - f->size);
	image_put(f->bytes, CIE_BYTES - 4, 4);
	for (int i = 0; i < NR_CIES; i++, p += CIE_BYTES)
		memcpy(p, f->bytes, CIE_BYTES);
	for (size_t i = 0; i < NR_FDES; i++, p += 24) {
		image_put(p, 20, 4);
		image_put(p + 4, (u64)(p + 4 - all) - i % NR_CIES * CIE_BYTES, 4);
		image_put(p + 8, IMAGE_TEXT + i % 0x3000 - (IMAGE_FRAME + (u64)(p + 8 - all)), 4);
		image_put(p + 12, 1, 4);
	}
	assert_int_equal(build(&t, &im), 0);
	assert_int_equal(t->stats.is_cut, 1);
	check_table(t);
	cfi_free(t);
	free(all);
	free(f);
}

static void test_nothing_there(void **state)
{
	struct cfi_table *t;
	struct frame f = { .size = 0 };

	(void)state;
	put_cie(&f, EM_X86_64, 0x1b);
	assert_int_equal(build_frame(&t, &f, EM_X86_64), -ENOENT);
	assert_int_equal(build_frame(&t, &f, EM_AARCH64), -ENOENT);
	assert_int_equal(build_frame(&t, &f, EM_SPARC), -ENOTSUP);
	put_fde(&f, 0, 0, 0x10, "", 0);
	assert_int_equal(build_frame(&t, &f, EM_AARCH64), 0);
	assert_int_equal(cfi_kind(cfi_find(t, IMAGE_TEXT)), CFI_UNSUPPORTED); /* return address in x16 */
	cfi_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_set_loc),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_64bit_length),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_both_frames),
		cmocka_unit_test(test_truncated_at_every_byte),
		cmocka_unit_test(test_every_byte_changed),
		cmocka_unit_test(test_remember_overflow),
		cmocka_unit_test(test_cie_loops),
		cmocka_unit_test(test_work_is_bounded),
		cmocka_unit_test(test_nothing_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
