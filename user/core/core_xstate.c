/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moves the parts of an XSAVE area to where gdb looks for them. */
#include "user/core/core_xstate.h"

#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

enum {
	AT_MASK = 464, /* the kernel says here which parts the area has */
	HEAD_BYTES = 576,
	CPUID_XSAVE = 0xd,
};

/* A part, by its bit in the mask: where Intel's CPUs have it. */
static const struct xstate_part {
	u32 bit, offset, bytes;
} xstate_parts[] = {
	{ 2, 576, 256 },   /* upper halves of ymm */
	{ 5, 1088, 64 },   /* k0 to k7 */
	{ 6, 1152, 512 },  /* upper halves of zmm0 to zmm15 */
	{ 7, 1664, 1024 }, /* zmm16 to zmm31 */
	{ 9, 2688, 8 },	   /* pkru */
};

size_t core_xstate(const u8 *state, size_t len, u8 out[CORE_XSTATE_MAX])
{
	size_t end = HEAD_BYTES;
	u64 mask;

	if (len < HEAD_BYTES)
		return 0;
	memset(out, 0, CORE_XSTATE_MAX);
	memcpy(out, state, HEAD_BYTES);
	memcpy(&mask, state + AT_MASK, sizeof(mask));
	for (size_t i = 0; i < ARRAY_SIZE(xstate_parts); i++) {
		const struct xstate_part *part = &xstate_parts[i];
		u32 bytes, from, c, d;

		if (!(mask >> part->bit & 1))
			continue;
		end = part->offset + part->bytes;
		if (__get_cpuid_count(CPUID_XSAVE, part->bit, &bytes, &from, &c, &d) &&
		    bytes == part->bytes && from + bytes <= len)
			memcpy(out + part->offset, state + from, bytes);
	}
	return end;
}

#else

size_t core_xstate(const u8 *state, size_t len, u8 out[CORE_XSTATE_MAX])
{
	(void)state;
	(void)len;
	(void)out;
	return 0;
}

#endif
