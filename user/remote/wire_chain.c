/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each step is the difference to the step before; the root has the name that the other machine uses. */
#include "user/remote/wire_chain.h"

#include <errno.h>
#include <string.h>

#include "arch/regs.h"
#include "user/scan/snapshot.h"

void wire_put_step(struct wire_body *b, taddr_t *at, const struct scan_step *step)
{
	wire_put_signed(b, (s64)(step->addr - *at));
	wire_put_varint(b, step->size);
	wire_put_varint(b, step->offset);
	*at = step->addr;
}

int wire_get_step(struct wire_view *v, taddr_t *at, struct scan_step *step)
{
	*at += (u64)wire_get_signed(v);
	step->addr = *at;
	step->size = wire_get_varint(v);
	step->offset = wire_get_varint(v);
	return v->is_bad || step->addr >> 56 || step->size >> 48 ? -EPROTO : 0;
}

void wire_put_chain_end(struct wire_body *b, const struct scan_chain *chain, u8 word_size)
{
	const struct scan_root *root = chain ? &chain->root : NULL;
	const char *name = "";
	char reg[64];

	wire_put_number(b, chain != NULL, 1);
	if (!chain)
		return;
	wire_put_number(b, root->kind, 1);
	wire_put_number(b, root->addr, 8);
	wire_put_number(b, root->tp, 8);
	wire_put_number(b, root->tid, 4);
	wire_put_number(b, root->where, 4);
	wire_put_number(b, chain->nr, 8);
	if (root->kind == ROOT_MEMORY && root->map)
		name = root->map->path;
	if (root->kind == ROOT_REGISTER)
		name = arch_reg_name(word_size, root->where, reg, sizeof(reg));
	for (size_t i = 0; i < WIRE_MAX_TEXT - 1 && name[i]; i++)
		wire_put_number(b, (u8)name[i], 1);
}

int wire_get_chain_end(struct wire_view *v, struct scan_chain *chain, char *name, size_t size)
{
	bool is_known = wire_get_number(v, 1);
	struct scan_root *root = &chain->root;
	u64 kind;

	if (v->is_bad || !is_known)
		return v->is_bad ? -EPROTO : 0;
	kind = wire_get_number(v, 1);
	root->kind = kind <= ROOT_KERNEL ? kind : ROOT_NONE;
	root->addr = wire_get_number(v, 8);
	root->tp = wire_get_number(v, 8);
	root->tid = (pid_t)wire_get_number(v, 4);
	root->where = wire_get_number(v, 4);
	chain->nr = wire_get_number(v, 8);
	if (v->is_bad || kind > ROOT_KERNEL)
		return -EPROTO;
	wire_get_text(v, name, size);
	return 1;
}
