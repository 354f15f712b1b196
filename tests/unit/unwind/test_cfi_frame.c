/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One frame: where a function saves each register, at each of its instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "tests/unit/cfi_image.h"
#include "user/lib/elf.h"
#include "user/unwind/cfi_frame.h"

enum { RBX = 3, RBP = 6, RIP = 16, FIRST = 0x100, LENGTH = 0x40 };

struct bytes {
	u8 data[256];
	size_t size;
};

static void put(struct bytes *b, u64 value, size_t size)
{
	image_put(b->data + b->size, value, size);
	b->size += size;
}

static void put_text(struct bytes *b, const char *text, size_t size)
{
	memcpy(b->data + b->size, text, size);
	b->size += size;
}

/* End the entry that began at @start: its length. */
static void end_entry(struct bytes *b, size_t start)
{
	while ((b->size - start) % 8)
		put(b, 0, 1);
	image_put(b->data + start, b->size - start - 4, 4);
}

/* A CIE of x86_64. */
static void put_cie(struct bytes *b)
{
	put(b, 0, 4);
	put(b, 0, 4);
	put_text(b, "\1zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1", 14);
	end_entry(b, 0);
}

/* A function of LENGTH bytes at @at in the text. */
static void put_function(struct bytes *b, u32 at, const char *program, size_t size)
{
	size_t start = b->size;

	put(b, 0, 4);
	put(b, start + 4, 4);
	put(b, IMAGE_TEXT + at - (IMAGE_FRAME + b->size), 4);
	put(b, LENGTH, 4);
	put(b, 0, 1);
	put_text(b, program, size);
	end_entry(b, start);
}

static void open_frames(struct cfi_frames **frames, struct elf **elf, const struct bytes *b, int *fd)
{
	const struct cfi_image im = { .machine = EM_X86_64, .frame = b->data, .frame_size = b->size };

	*fd = cfi_image_open(&im);
	assert_true(*fd >= 0);
	assert_int_equal(elf_open(elf, *fd), 0);
	assert_int_equal(cfi_frames_new(frames, *elf), 0);
}

static void close_frames(struct cfi_frames *frames, struct elf *elf, int fd)
{
	cfi_frames_free(frames);
	elf_close(elf);
	close(fd);
}

/* push rbp; mov rsp,rbp; push rbx; ...; pop rbx */
static const char pushes[] = "\x41\x0e\x10\x86\2\x43\x0d\6\x41\x83\3\x50\xc3";

static void each_instruction(void **state)
{
	static const struct {
		u32 at;
		bool is_fp;
		s64 cfa;
		s16 fp, rbx;
	} wants[] = {
		{ 0, false, 8, 0, 0 },	   { 1, false, 16, -16, 0 },   { 4, true, 16, -16, 0 },
		{ 5, true, 16, -16, -24 }, { 0x15, true, 16, -16, 0 }, { LENGTH - 1, true, 16, -16, 0 }
	};
	struct bytes b = { .size = 0 };
	struct cfi_frames *frames;
	struct cfi_frame frame;
	struct elf *elf;
	int fd;

	(void)state;
	put_cie(&b);
	put_function(&b, 0, "", 0);
	put_function(&b, FIRST, pushes, sizeof(pushes) - 1);
	put(&b, 0, 4);
	open_frames(&frames, &elf, &b, &fd);
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++) {
		assert_int_equal(cfi_frames_find(frames, IMAGE_TEXT + FIRST + wants[i].at, &frame), 0);
		assert_int_equal(frame.start, IMAGE_TEXT + FIRST);
		assert_int_equal(frame.is_cfa_of_fp, wants[i].is_fp);
		assert_int_equal(frame.cfa_offset, wants[i].cfa);
		assert_int_equal(frame.ra, -8);
		assert_int_equal(frame.fp, wants[i].fp);
		assert_int_equal(frame.saved[RBP], wants[i].fp);
		assert_int_equal(frame.saved[RBX], wants[i].rbx);
		assert_int_equal(frame.saved[RIP], -8);
	}
	assert_int_equal(cfi_frames_find(frames, IMAGE_TEXT + FIRST + LENGTH, &frame), -ENOENT);
	assert_int_equal(cfi_frames_find(frames, IMAGE_TEXT + FIRST - 1, &frame), -ENOENT);
	close_frames(frames, elf, fd);
}

/* Where a register or the CFA is computed, the frame is not told. */
static void not_told(void **state)
{
	static const struct {
		const char *program;
		size_t size;
	} cases[] = { { "\x10\3\2\x77\x08", 5 }, /* rbx by an expression */
		      { "\x09\3\1", 3 },	 /* in another register */
		      { "\x0f\2\x77\x08", 4 },	 /* the CFA by an expression */
		      { "\x0c\x0a\x08", 3 },	 /* the CFA by r10 */
		      { "\x07\x10", 2 },	 /* no caller */
		      { "\x3f", 1 } };		 /* damaged */

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bytes b = { .size = 0 };
		struct cfi_frames *frames;
		struct cfi_frame frame;
		struct elf *elf;
		int fd;

		put_cie(&b);
		put_function(&b, FIRST, cases[i].program, cases[i].size);
		open_frames(&frames, &elf, &b, &fd);
		assert_int_equal(cfi_frames_find(frames, IMAGE_TEXT + FIRST + 3, &frame), -ENOTSUP);
		close_frames(frames, elf, fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_instruction), cmocka_unit_test(not_told) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
