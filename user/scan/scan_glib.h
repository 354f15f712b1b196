/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pointers of GLib: objects begin behind their private data, and hash tables keep pointers below 4 GiB in
 * 32 bits. For user/scan/scan*.c only.
 */
#pragma once

#include "user/scan/scan_state.h"

enum {
	GLIB_FILTER_BITS = 12,
	GLIB_MAX_PRIVATE = 1 << 16, /* bytes before an object */
	GLIB_MAX_FUNDAMENTAL = 256, /* types */
};

struct glib_facts {
	u64 *classes; /* owned; a bit for each block: it is a class of GObject. NULL = no class is known */
	u64 filter[(1 << GLIB_FILTER_BITS) / 64]; /* has the bits of both */
	size_t nr_classes;
	u32 fundamental[GLIB_MAX_FUNDAMENTAL]; /* blocks of types that begin behind one word */
	size_t nr_fundamental;
	bool has_packed; /* hash tables may hold pointers in 32 bits */
};

/*
 * Find the facts of the stopped process; none if it has no GLib, or if it is linked statically. The blocks of @s are
 * sorted and do not change any more. Reads some words for each registered type. 0 or -ENOMEM.
 */
int glib_find(struct glib_facts *g, const struct scan *s) __must_check;
void glib_fini(struct glib_facts *g);
/* True if a class of GObject is at @addr. */
bool glib_is_class(const struct glib_facts *g, const struct scan *s, taddr_t addr);
/* True if @block holds a fundamental type, to which pointers lead behind the first word. */
bool glib_is_fundamental(const struct glib_facts *g, const struct scan *s, u32 block);
/* True if @block may be an array of pointers in 32 bits. Its size may be @slack bytes more than was asked for. */
bool glib_is_packed(const struct scan *s, u32 block, u32 slack);

/* The bit of @addr in the filter. */
static inline u32 glib_filter_bit(taddr_t addr)
{
	return (u32)((addr >> 4) * 0x9e3779b97f4a7c15ULL >> (64 - GLIB_FILTER_BITS));
}

/* False if no class is at @addr. */
static inline bool glib_may_be_class(const struct glib_facts *g, taddr_t addr)
{
	u32 bit = glib_filter_bit(addr);

	return g->filter[bit / 64] >> (bit % 64) & 1;
}
