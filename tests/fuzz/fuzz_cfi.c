/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as .eh_frame or .debug_frame: no crash, and a table that is in order (C4). */
#include "tests/fuzz/cfi_try.h"
#include "tests/fuzz/replay.h"
#include "tests/unit/cfi_image.h"

/* The first byte of the input chooses one of these. */
static const struct form {
	u16 machine;
	const char *section;
	u64 flags;
	bool has_both; /* the second half of the bytes is .debug_frame */
} forms[] = {
	{ EM_X86_64, ".eh_frame", SHF_ALLOC },
	{ EM_X86_64, NULL, 0 },
	{ EM_AARCH64, ".eh_frame", SHF_ALLOC },
	{ EM_386, ".eh_frame", SHF_ALLOC },
	{ EM_X86_64, ".debug_frame", 0 },
	{ EM_X86_64, ".debug_frame", SHF_COMPRESSED },
	{ EM_AARCH64, ".debug_frame", 0 },
	{ EM_X86_64, ".zdebug_frame", 0 },
	{ EM_X86_64, ".eh_frame", SHF_ALLOC, true },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct form *form = &forms[size ? data[0] % ARRAY_SIZE(forms) : 0];
	struct cfi_image im = { .machine = form->machine,
				.frame = data + 1,
				.frame_size = size ? size - 1 : 0,
				.section = form->section,
				.section_flags = form->flags };

	if (!size)
		return 0;
	if (form->has_both) {
		im.debug_size = im.frame_size / 2;
		im.frame_size -= im.debug_size;
		im.debug = data + 1 + im.frame_size;
	}
	cfi_try(cfi_image_open(&im));
	return 0;
}
