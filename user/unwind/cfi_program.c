/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the instructions of call frame information, for the three registers that matter. */
#include "user/unwind/cfi_parse.h"

#include <errno.h>

/* The state of a running program. */
struct machine {
	struct cfi_run *run;
	struct cfi_cursor c;
	struct cfi_state *state;
	struct cfi_state remembered[CFI_MAX_REMEMBERED];
	unsigned int nr_remembered;
	bool is_changed; /* since the last row */
};

struct operands {
	u64 a, b;
	struct cfi_expression block;
};

/* The state of DWARF register @number, or NULL for a register that is not needed. */
static struct cfi_register *find_register(const struct machine *m, struct cfi_state *state, u64 number)
{
	const struct unwind_arch *arch = m->run->arch;

	if (number == arch->fp)
		return &state->regs[REG_FP];
	if (number == arch->ra)
		return &state->regs[REG_RA];
	if (number == arch->sp)
		return &state->regs[REG_SP];
	return NULL;
}

static void note_saved(struct cfi_state *state, u64 number, const struct cfi_register *value)
{
	bool is_saved = value->how == HOW_OFFSET;

	if (value->how == HOW_EXPRESSION || value->how == HOW_OTHER ||
	    (is_saved && value->offset != (s16)value->offset))
		state->is_elsewhere = true;
	else if (number < CFI_MAX_SAVED)
		state->saved[number] = is_saved ? (s16)value->offset : 0;
}

static void set_register(struct machine *m, u64 number, struct cfi_register value)
{
	struct cfi_register *reg = find_register(m, m->state, number);

	note_saved(m->state, number, &value);
	if (!reg)
		return;
	*reg = value;
	m->is_changed = true;
}

static void tell_row(struct machine *m)
{
	if (m->is_changed && m->run->row)
		m->run->row(m->run->ctx, m->run->pc, m->state);
	m->is_changed = false;
}

static int cfi_program_move_to(struct machine *m, u64 pc)
{
	if (pc < m->run->pc || !m->run->row) /* backwards, or in a CIE */
		return -EINVAL;
	if (pc == m->run->pc)
		return 0;
	tell_row(m);
	m->run->pc = pc;
	return 0;
}

static int op_nop(struct machine *m, const struct operands *o)
{
	(void)m;
	(void)o;
	return 0;
}

static int op_set_loc(struct machine *m, const struct operands *o)
{
	return cfi_program_move_to(m, o->a);
}

static int op_advance(struct machine *m, const struct operands *o)
{
	u64 delta, pc;

	if (__builtin_mul_overflow(o->a, m->run->cie->code_align, &delta) ||
	    __builtin_add_overflow(m->run->pc, delta, &pc))
		return -EINVAL;
	return cfi_program_move_to(m, pc);
}

static int op_offset(struct machine *m, const struct operands *o)
{
	set_register(m, o->a, (struct cfi_register){ .how = HOW_OFFSET, .offset = (s64)o->b });
	return 0;
}

static int op_negative_offset(struct machine *m, const struct operands *o)
{
	set_register(m, o->a, (struct cfi_register){ .how = HOW_OFFSET, .offset = (s64)(0 - o->b) });
	return 0;
}

static int op_restore(struct machine *m, const struct operands *o)
{
	const struct cfi_state *initial = &m->run->cie->initial;
	const struct cfi_register *reg = find_register(m, (struct cfi_state *)(uintptr_t)initial, o->a);

	if (reg)
		set_register(m, o->a, *reg);
	else if (o->a < CFI_MAX_SAVED)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a machine has the CIE of its program. */
		m->state->saved[o->a] = initial->saved[o->a];
	return m->run->row ? 0 : -EINVAL; /* a CIE has no initial state yet */
}

static int op_undefined(struct machine *m, const struct operands *o)
{
	set_register(m, o->a, (struct cfi_register){ .how = HOW_UNDEFINED });
	return 0;
}

static int op_same(struct machine *m, const struct operands *o)
{
	set_register(m, o->a, (struct cfi_register){ .how = HOW_SAME });
	return 0;
}

static int op_other(struct machine *m, const struct operands *o)
{
	set_register(m, o->a, (struct cfi_register){ .how = HOW_OTHER });
	return 0;
}

static int op_expression(struct machine *m, const struct operands *o)
{
	set_register(m, o->a, (struct cfi_register){ .how = HOW_EXPRESSION, .expression = o->block });
	return 0;
}

static int op_remember(struct machine *m, const struct operands *o)
{
	(void)o;
	if (m->nr_remembered == CFI_MAX_REMEMBERED)
		return -EINVAL;
	m->remembered[m->nr_remembered++] = *m->state;
	return 0;
}

static int op_recall(struct machine *m, const struct operands *o)
{
	(void)o;
	if (m->nr_remembered == 0)
		return -EINVAL;
	*m->state = m->remembered[--m->nr_remembered];
	m->is_changed = true;
	return 0;
}

static int op_def_cfa(struct machine *m, const struct operands *o)
{
	m->state->cfa_register = o->a;
	m->state->cfa_offset = (s64)o->b;
	m->state->cfa_expression.size = 0;
	m->is_changed = true;
	return 0;
}

static int op_def_cfa_register(struct machine *m, const struct operands *o)
{
	if (m->state->cfa_expression.size)
		return -EINVAL;
	m->state->cfa_register = o->a;
	m->is_changed = true;
	return 0;
}

static int op_def_cfa_offset(struct machine *m, const struct operands *o)
{
	if (m->state->cfa_expression.size)
		return -EINVAL;
	m->state->cfa_offset = (s64)o->a;
	m->is_changed = true;
	return 0;
}

static int op_def_cfa_expression(struct machine *m, const struct operands *o)
{
	if (!o->block.size)
		return -EINVAL;
	m->state->cfa_expression = o->block;
	m->is_changed = true;
	return 0;
}

/*
 * Operands: u, s = LEB128; f, g = LEB128 times the data alignment; 1, 2, 4, 8 = bytes; a = encoded address; b =
 * block. An opcode without a row is damage.
 */
struct op {
	const char *operands;
	int (*apply)(struct machine *m, const struct operands *o);
};

static const struct op ops[0x40] = {
	[0x00] = { "", op_nop },
	[0x01] = { "a", op_set_loc },
	[0x02] = { "1", op_advance },
	[0x03] = { "2", op_advance },
	[0x04] = { "4", op_advance },
	[0x05] = { "uf", op_offset },
	[0x06] = { "u", op_restore },
	[0x07] = { "u", op_undefined },
	[0x08] = { "u", op_same },
	[0x09] = { "uu", op_other }, /* in another register */
	[0x0a] = { "", op_remember },
	[0x0b] = { "", op_recall },
	[0x0c] = { "uu", op_def_cfa },
	[0x0d] = { "u", op_def_cfa_register },
	[0x0e] = { "u", op_def_cfa_offset },
	[0x0f] = { "b", op_def_cfa_expression },
	[0x10] = { "ub", op_expression },
	[0x11] = { "ug", op_offset },
	[0x12] = { "ug", op_def_cfa },
	[0x13] = { "g", op_def_cfa_offset },
	[0x14] = { "uf", op_other }, /* val_offset, val_offset_sf, val_expression */
	[0x15] = { "ug", op_other },
	[0x16] = { "ub", op_other },
	[0x1d] = { "8", op_advance },
	[0x2c] = { "", op_nop }, /* aarch64: negate_ra_state_with_pc, negate_ra_state */
	[0x2d] = { "", op_nop },
	[0x2e] = { "u", op_nop }, /* GNU_args_size */
	[0x2f] = { "uf", op_negative_offset },
};

/* Opcodes that have their first operand in the low six bits. */
static const struct op packed_ops[4] = {
	[1] = { "", op_advance },
	[2] = { "f", op_offset },
	[3] = { "", op_restore },
};

static u64 read_operand(struct machine *m, char kind, struct operands *o)
{
	u64 factor = (u64)m->run->cie->data_align;

	switch (kind) {
	case 'u':
		return cursor_uleb(&m->c);
	case 'f':
		return cursor_uleb(&m->c) * factor;
	case 'g':
		return (u64)cursor_sleb(&m->c) * factor;
	case 'a':
		return cursor_pointer(&m->c, m->run->cie->pointer_encoding);
	case 'b':
		o->block.size = cursor_uleb(&m->c);
		o->block.p = cursor_skip(&m->c, o->block.size);
		return 0;
	default:
		return cursor_fixed(&m->c, (size_t)(kind - '0'));
	}
}

static int cfi_program_step(struct machine *m)
{
	u8 code = (u8)cursor_fixed(&m->c, 1);
	const struct op *op = code >> 6 ? &packed_ops[code >> 6] : &ops[code];
	struct operands o = { .a = code & 0x3f };
	u64 *to = code >> 6 ? &o.b : &o.a;

	if (!op->apply)
		return -EINVAL;
	for (const char *kind = op->operands; *kind; kind++, to = &o.b)
		*to = read_operand(m, *kind, &o);
	if (m->c.is_bad)
		return -EINVAL;
	return op->apply(m, &o);
}

int cfi_program_run(struct cfi_run *run, struct cfi_cursor program, struct cfi_state *state)
{
	struct machine m;
	int err = 0;

	m.run = run;
	m.c = program;
	m.state = state;
	m.nr_remembered = 0;
	m.is_changed = true; /* the state at the start is a row */
	while (!err && m.c.p < m.c.end && (!run->row || run->pc < run->end))
		err = cfi_program_step(&m);
	if (!err && run->pc < run->end)
		tell_row(&m);
	return err;
}
