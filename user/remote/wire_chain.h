/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer to WIRE_WHY as bytes: the chain of blocks and the root that hold a block. */
#pragma once

#include "user/scan/scan_why.h"
#include "user/remote/wire.h"

/*
 * WIRE_CHAIN: steps, beginning at the root. Each is three varints: signed difference to the address of the step before,
 * which may be in the frame before; size; offset. WIRE_CHAIN_END: u8 1 = there is a chain, u8 enum scan_root_kind, u64
 * addr, u64 tp, u32 tid, u32 where, u64 number of steps, and a text: path of the mapping or name of the register.
 */
enum { WIRE_CHAIN_BODY = 16384, WIRE_STEP_MAX = 30, WIRE_CHAIN_END_MAX = 34 + WIRE_MAX_TEXT };

void wire_put_step(struct wire_body *b, taddr_t *at, const struct scan_step *step);
/* 0 or -EPROTO. */
int wire_get_step(struct wire_view *v, taddr_t *at, struct scan_step *step) __must_check;

/* WIRE_CHAIN_END: the root and the number of steps; @chain NULL: no chain is known. */
void wire_put_chain_end(struct wire_body *b, const struct scan_chain *chain, u8 word_size);

/*
 * Read WIRE_CHAIN_END: sets root and nr of @chain, and copies the text into @name. 1; 0 = there is no chain; or
 * -EPROTO.
 */
int wire_get_chain_end(struct wire_view *v, struct scan_chain *chain, char *name, size_t size) __must_check;
