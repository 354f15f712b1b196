/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who holds a block, as bytes: a chain found where the process is. */
#pragma once

#include "user/scan_why.h"
#include "user/wire.h"

/*
 * WIRE_CHAIN: steps from the root on, each three varints: signed, address against the step before, also the one in the
 * frame before; size; offset. WIRE_CHAIN_END: u8 1 = there is a chain, u8 enum scan_root_kind, u64 addr, u64 tp, u32
 * tid, u32 where, u64 steps, and a text: the mapping's path or the register's name.
 */
enum { WIRE_STEP_MAX = 30, WIRE_CHAIN_END_MAX = 32 + WIRE_MAX_TEXT };

void wire_put_step(struct wire_body *b, taddr_t *at, const struct scan_step *step);
/* 0 or -EPROTO. */
int wire_get_step(struct wire_view *v, taddr_t *at, struct scan_step *step) __must_check;

/* A root and how many steps there are; @chain NULL: none is known. */
void wire_put_chain_end(struct wire_body *b, const struct scan_chain *chain, u8 word_size);

/*
 * The same into @chain, whose steps are there: root and nr. @name gets the text, for what root.map would say. 1, 0 =
 * there is no chain, -EPROTO.
 */
int wire_get_chain_end(struct wire_view *v, struct scan_chain *chain, char *name, size_t size) __must_check;
