/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arguments of markers: from the words of an assembler to a register, a constant, or a place in memory. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/native.h"
#include "user/probe/notes.h"

enum { MAX_TEXT = 64, NAME_BYTES = 8 };

/* Names of a register, by size, and its number in the kernel's order. */
struct reg_names {
	u8 reg;
	const char *names[4];
};

#ifdef HAS_X86
static const struct reg_names x86_64_regs[] = {
	{ 0, { "r15", "r15d", "r15w", "r15b" } }, { 1, { "r14", "r14d", "r14w", "r14b" } },
	{ 2, { "r13", "r13d", "r13w", "r13b" } }, { 3, { "r12", "r12d", "r12w", "r12b" } },
	{ 4, { "rbp", "ebp", "bp", "bpl" } },	  { 5, { "rbx", "ebx", "bx", "bl" } },
	{ 6, { "r11", "r11d", "r11w", "r11b" } }, { 7, { "r10", "r10d", "r10w", "r10b" } },
	{ 8, { "r9", "r9d", "r9w", "r9b" } },	  { 9, { "r8", "r8d", "r8w", "r8b" } },
	{ 10, { "rax", "eax", "ax", "al" } },	  { 11, { "rcx", "ecx", "cx", "cl" } },
	{ 12, { "rdx", "edx", "dx", "dl" } },	  { 13, { "rsi", "esi", "si", "sil" } },
	{ 14, { "rdi", "edi", "di", "dil" } },	  { 19, { "rsp", "esp", "sp", "spl" } },
};

static const struct reg_names i386_regs[] = {
	{ 0, { "ebx", "bx", "bl" } }, { 1, { "ecx", "cx", "cl" } }, { 2, { "edx", "dx", "dl" } },
	{ 3, { "esi", "si" } },	      { 4, { "edi", "di" } },	    { 5, { "ebp", "bp" } },
	{ 6, { "eax", "ax", "al" } }, { 15, { "esp", "sp" } },
};

#endif

#ifdef HAS_ARM
/* Registers with a name of their own, beside x0, w0, ... */
static const struct reg_names aarch64_regs[] = {
	{ 29, { "fp" } },
	{ 30, { "lr" } },
	{ 31, { "sp", "wsp" } },
};

static const struct reg_names arm_regs[] = {
	{ 9, { "sb" } },  { 10, { "sl" } }, { 11, { "fp" } }, { 12, { "ip" } },
	{ 13, { "sp" } }, { 14, { "lr" } }, { 15, { "pc" } },
};

#endif

#ifdef HAS_RISCV
static const struct reg_names riscv_regs[] = {
	{ 1, { "ra" } },   { 2, { "sp" } },   { 3, { "gp" } },	     { 4, { "tp" } },  { 5, { "t0" } },
	{ 6, { "t1" } },   { 7, { "t2" } },   { 8, { "s0", "fp" } }, { 9, { "s1" } },  { 10, { "a0" } },
	{ 11, { "a1" } },  { 12, { "a2" } },  { 13, { "a3" } },	     { 14, { "a4" } }, { 15, { "a5" } },
	{ 16, { "a6" } },  { 17, { "a7" } },  { 18, { "s2" } },	     { 19, { "s3" } }, { 20, { "s4" } },
	{ 21, { "s5" } },  { 22, { "s6" } },  { 23, { "s7" } },	     { 24, { "s8" } }, { 25, { "s9" } },
	{ 26, { "s10" } }, { 27, { "s11" } }, { 28, { "t3" } },	     { 29, { "t4" } }, { 30, { "t5" } },
	{ 31, { "t6" } },
};

#endif

#ifdef HAS_MIPS
static const struct reg_names mips_regs[] = {
	{ 34, { "gp" } },
	{ 35, { "sp" } },
	{ 36, { "fp" } },
	{ 37, { "ra" } },
};
#endif

/* The language of an assembler: names of registers, and marks around them. */
struct dialect {
	u16 machine;
	const struct reg_names *regs;
	size_t nr_regs;
	const char *numbered; /* first letters of names like x12; "" = names are bare numbers */
	u8 nr_numbered;
	u8 first;	   /* number of the register that has number 0 in its name */
	char mark;	   /* before a register, or not */
	char constant;	   /* before a constant; 0 = nothing */
	bool has_brackets; /* memory is [reg, offset]; else offset(reg) */
};

/* The kernel has six words before the registers of MIPS. */
static const struct dialect dialects[] = {
#ifdef HAS_X86
	{ EM_X86_64, x86_64_regs, ARRAY_SIZE(x86_64_regs), "", 0, 0, '%', '$', false },
	{ EM_386, i386_regs, ARRAY_SIZE(i386_regs), "", 0, 0, '%', '$', false },
#endif
#ifdef HAS_ARM
	{ EM_AARCH64, aarch64_regs, ARRAY_SIZE(aarch64_regs), "xw", 31, 0, 0, 0, true },
	{ EM_ARM, arm_regs, ARRAY_SIZE(arm_regs), "r", 16, 0, 0, '#', true },
#endif
#ifdef HAS_RISCV
	{ EM_RISCV, riscv_regs, ARRAY_SIZE(riscv_regs), "", 0, 0, 0, 0, false },
#endif
#ifdef HAS_MIPS
	{ EM_MIPS, mips_regs, ARRAY_SIZE(mips_regs), "", 32, 6, '$', 0, false },
#endif
#ifdef HAS_POWERPC
	{ EM_PPC, NULL, 0, "", 32, 0, '%', 'i', false },
	{ EM_PPC64, NULL, 0, "", 32, 0, '%', 'i', false },
#endif
	{ EM_NONE }, /* so that the table is never empty */
};

static const struct dialect *find_dialect(u16 machine)
{
	for (size_t i = 0; i < ARRAY_SIZE(dialects); i++)
		if (dialects[i].machine == machine)
			return &dialects[i];
	return NULL;
}

static bool note_args_is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* The number of register @name, or -1. */
static int find_reg(const struct dialect *d, const char *name)
{
	char *end;
	long nr;

	for (size_t i = 0; i < d->nr_regs; i++)
		for (size_t k = 0; k < ARRAY_SIZE(d->regs[i].names) && d->regs[i].names[k]; k++)
			if (!strcmp(d->regs[i].names[k], name))
				return d->regs[i].reg;
	if (*d->numbered && !strchr(d->numbered, name[0]))
		return -1;
	name += *d->numbered != '\0';
	if (*name < '0' || *name > '9')
		return -1;
	nr = strtol(name, &end, 10);
	return *end || nr >= d->nr_numbered ? -1 : d->first + (int)nr;
}

/* A register at @text: its number, and *@text behind it; or -1. */
static int take_reg(const struct dialect *d, const char **text)
{
	bool has_mark = d->mark && **text == d->mark;
	const char *s = *text + has_mark;
	char name[NAME_BYTES];
	size_t len = 0;

	/* A bare number is a constant, where constants have no mark. */
	if (d->mark && !has_mark && !d->constant && *s >= '0' && *s <= '9')
		return -1;
	while (note_args_is_name(s[len]))
		len++;
	if (!len || len >= sizeof(name))
		return -1;
	memcpy(name, s, len);
	name[len] = '\0';
	*text = s + len;
	return find_reg(d, name);
}

/* A number at @text, and *@text behind it. False if there is none. */
static bool note_args_take_number(const struct dialect *d, const char **text, s64 *value)
{
	const char *s = *text + (d->constant && **text == d->constant);
	char *end;

	if (*s != '-' && (*s < '0' || *s > '9'))
		return false;
	errno = 0;
	*value = strtoll(s, &end, 0);
	if (errno || end == s)
		return false;
	*text = end;
	return true;
}

/* "[reg]", "[reg, offset]" */
static bool parse_brackets(struct note_arg *out, const struct dialect *d, const char *text)
{
	int reg;

	text++;
	reg = take_reg(d, &text);
	if (reg < 0)
		return false;
	if (*text == ',') {
		text += 1 + strspn(text + 1, " ");
		if (!note_args_take_number(d, &text, &out->value))
			return false;
	}
	out->kind = NOTE_ARG_MEMORY;
	out->reg = (u8)reg;
	return !strcmp(text, "]");
}

/* "(reg)", "offset(reg)"; an index beside the register is not known. */
static bool parse_memory(struct note_arg *out, const struct dialect *d, const char *text)
{
	int reg;

	if (*text != '(' && !note_args_take_number(d, &text, &out->value))
		return false;
	if (*text++ != '(')
		return false;
	reg = take_reg(d, &text);
	out->kind = NOTE_ARG_MEMORY;
	out->reg = (u8)reg;
	return reg >= 0 && !strcmp(text, ")");
}

static bool parse_place(struct note_arg *out, const struct dialect *d, const char *text)
{
	const char *s = text;
	int reg;

	if (*text == '[')
		return d->has_brackets && parse_brackets(out, d, text);
	reg = take_reg(d, &s);
	if (reg >= 0 && !*s) {
		out->kind = NOTE_ARG_REG;
		out->reg = (u8)reg;
		return true;
	}
	s = text;
	if (note_args_take_number(d, &s, &out->value) && !*s) {
		out->kind = NOTE_ARG_CONST;
		return true;
	}
	out->value = 0;
	return !d->has_brackets && parse_memory(out, d, text);
}

/* "8@", "-4@": bytes, negative for signed numbers. */
static const char *note_args_parse_size(struct note_arg *out, const char *text)
{
	out->is_signed = *text == '-';
	text += out->is_signed;
	if (!*text || !strchr("1248", *text) || text[1] != '@')
		return NULL;
	out->size = (u8)(*text - '0');
	return text + 2;
}

/* The end of the argument at @text: a blank outside of brackets, or the end of the text. */
static const char *find_end(const char *text)
{
	bool is_inside = false;

	for (; *text && (is_inside || *text != ' '); text++)
		is_inside = *text == '[' || (is_inside && *text != ']');
	return text;
}

const char *note_arg_parse(struct note_arg *out, u16 elf_machine, const char *text)
{
	const struct dialect *d = find_dialect(elf_machine);
	const char *end = find_end(text), *place;
	char copy[MAX_TEXT];

	*out = (struct note_arg){ .kind = NOTE_ARG_UNKNOWN };
	if (d && (size_t)(end - text) < sizeof(copy)) {
		memcpy(copy, text, (size_t)(end - text));
		copy[end - text] = '\0';
		place = note_args_parse_size(out, copy);
		if (!place || !parse_place(out, d, place))
			*out = (struct note_arg){ .kind = NOTE_ARG_UNKNOWN };
	}
	end += strspn(end, " ");
	return *end ? end : NULL;
}
