/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the notes of a file. All numbers and texts in them may be anything. */
#include "user/probe/notes.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/insn.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/probe/probe_place.h"

enum { NOTE_TYPE = 3, HEADER_BYTES = 12, MAX_SECTION = 16 << 20, MAX_NOTES = 4096 };

static const char owner[] = "stapsdt";

struct reader {
	struct elf *elf;
	struct note_list *list;
	bool (*is_wanted)(void *ctx, const char *provider, const char *name);
	void *ctx;
	u64 base; /* address of .stapsdt.base; 0 = the file has none */
};

static size_t notes_padded(u32 len)
{
	return ((size_t)len + 3) & ~(size_t)3;
}

/* Is there code of the file at @vaddr? */
static bool notes_is_code(const struct elf *elf, u64 vaddr)
{
	const struct elf_segment *s = elf_segment_at(elf, vaddr);

	return s && s->flags & PF_X && vaddr - s->vaddr < s->filesz;
}

/*
 * The nop at *@vaddr of 32-bit ARM code says its instruction set, which the note does not: the assembler leaves bit 0
 * of a label clear. Sets that bit for Thumb code. False: this is neither nop, and no breakpoint may lie there. Code is
 * little endian on each ARM CPU that Linux still runs on (BE8).
 */
static bool arm_nop(struct elf *elf, u64 *vaddr)
{
	static const u8 thumb[][2] = { { 0x00, 0xbf }, { 0xc0, 0x46 } }; /* nop; mov r8, r8 */
	static const u8 arm[][4] = { { 0x00, 0xf0, 0x20, 0xe3 },
				     { 0x00, 0x00, 0xa0, 0xe1 } }; /* nop; mov r0, r0 */
	u64 at = *vaddr & ~1ULL;
	u8 code[4];

	if (elf_read_vaddr(elf, at, code, 2))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(thumb); i++) {
		if (!memcmp(code, thumb[i], sizeof(thumb[i]))) {
			*vaddr = at | 1;
			return true;
		}
	}
	if (at % 4 || elf_read_vaddr(elf, at, code, sizeof(code)))
		return false;
	return !memcmp(code, arm[0], sizeof(code)) || !memcmp(code, arm[1], sizeof(code));
}

static void parse_args(struct note *note, u16 machine, const char *text)
{
	struct note_arg arg;

	if (!*text)
		text = NULL;
	while (text && note->nr_args < UINT8_MAX) {
		text = note_arg_parse(&arg, machine, text);
		if (note->nr_args < NOTE_MAX_ARGS)
			note->args[note->nr_args] = arg;
		note->nr_args++;
	}
}

/* The string at *@at, before @end; *@at is then behind it. NULL if it does not end. */
static const char *take_string(const char **at, const char *end)
{
	const char *text = *at;
	const char *nul = memchr(text, '\0', (size_t)(end - text));

	if (nul)
		*at = nul + 1;
	return nul ? text : NULL;
}

static void copy_text(char *to, size_t size, const char *from)
{
	size_t len = strnlen(from, size - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

static int add_note(const struct reader *r, const struct note *note)
{
	struct note_list *list = r->list;
	int err;

	if (list->nr == MAX_NOTES) {
		list->nr_more++;
		return 0;
	}
	err = array_reserve(list->notes, list->max, list->nr + 1);
	if (!err)
		list->notes[list->nr++] = *note;
	return err;
}

/* @desc: addresses of the place, of .stapsdt.base when the file was linked, of the semaphore; then three strings. */
static int see_note(const struct reader *r, const char *desc, size_t len)
{
	size_t word = r->elf->word_size;
	const char *at = desc + 3 * word, *end = desc + len;
	const char *provider, *name, *args;
	struct note note = { 0 };
	u64 base;

	if (len < 3 * word)
		goto damaged;
	provider = take_string(&at, end);
	name = provider ? take_string(&at, end) : NULL;
	args = name ? take_string(&at, end) : NULL;
	if (!args)
		goto damaged;
	if (!r->is_wanted(r->ctx, provider, name))
		return 0;
	note.vaddr = elf_word(r->elf, desc);
	base = elf_word(r->elf, desc + word);
	note.semaphore = elf_word(r->elf, desc + 2 * word);
	/* Somebody may have moved the file's addresses, and left this section as it was (prelink). */
	if (r->base && base) {
		note.vaddr += r->base - base;
		note.semaphore += note.semaphore ? r->base - base : 0;
	}
	if (!notes_is_code(r->elf, note.vaddr) ||
	    (r->elf->machine == EM_ARM && !arm_nop(r->elf, &note.vaddr)))
		goto damaged;
	copy_text(note.provider, sizeof(note.provider), provider);
	copy_text(note.name, sizeof(note.name), name);
	parse_args(&note, r->elf->machine, args);
	return add_note(r, &note);
damaged:
	r->list->nr_damaged++;
	return 0;
}

static int read_section(const struct reader *r, const char *data, size_t size)
{
	size_t at = 0;
	int err = 0;

	while (!err && size - at >= HEADER_BYTES) {
		u32 name_len = elf_u32(r->elf, data + at), len = elf_u32(r->elf, data + at + 4);
		u32 type = elf_u32(r->elf, data + at + 8);
		size_t desc = at + HEADER_BYTES + notes_padded(name_len);

		if (desc > size || len > size - desc) {
			r->list->nr_damaged++;
			return 0;
		}
		if (type == NOTE_TYPE && name_len == sizeof(owner) &&
		    !memcmp(data + at + HEADER_BYTES, owner, sizeof(owner)))
			err = see_note(r, data + desc, len);
		at = desc + notes_padded(len);
		if (at > size)
			break;
	}
	return err;
}

int notes_read(struct note_list *out, struct elf *elf,
	       bool (*is_wanted)(void *ctx, const char *provider, const char *name), void *ctx)
{
	const struct elf_section *s = elf_section(elf, ".note.stapsdt");
	const struct elf_section *base = elf_section(elf, ".stapsdt.base");
	const struct reader r = { elf, out, is_wanted, ctx, base ? base->addr : 0 };
	auto_free void *data = NULL;
	size_t size;
	int err;

	*out = (struct note_list){ .notes = NULL };
	if (!s || s->type != SHT_NOTE)
		return 0;
	err = elf_read_section(elf, s, MAX_SECTION, &data, &size);
	if (err == -ENOMEM)
		return err;
	if (err) {
		out->nr_damaged++;
		return 0;
	}
	err = read_section(&r, data, size);
	if (err)
		notes_fini(out);
	return err;
}

void notes_fini(struct note_list *list)
{
	free(list->notes);
	*list = (struct note_list){ .notes = NULL };
}

bool note_is_probed(struct elf *elf, u64 vaddr)
{
	const struct elf_segment *s = elf_segment_at(elf, vaddr);
	u8 code[INSN_MAX_LENGTH] = { 0 };
	struct insn insn;
	size_t len;

	if (!insn_is_supported(elf->machine))
		return true;
	len = s && vaddr - s->vaddr < s->filesz ? s->filesz - (vaddr - s->vaddr) : 0;
	len = len < sizeof(code) ? len : sizeof(code);
	if (!len || elf_read_vaddr(elf, vaddr, code, len) ||
	    insn_decode(&insn, elf->machine, vaddr, code, len) || insn.kind != INSN_NOP)
		return false;
	return probe_is_instruction(elf, vaddr);
}
