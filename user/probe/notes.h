/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Markers in a file: its notes in the form of SystemTap (.note.stapsdt), each with a place in its code. */
#pragma once

#include "call/note.h"

struct elf;

/* A note. Strings are cut if they are longer. */
struct note {
	u64 vaddr;     /* ELF virtual address of the marker's instruction; bit 0 set for Thumb code */
	u64 semaphore; /* of a counter that the program looks at before it comes to the marker; 0 = none */
	char provider[24], name[40];
	u8 nr_args; /* also those that args has no room for */
	struct note_arg args[NOTE_MAX_ARGS];
};

struct note_list {
	struct note *notes; /* owned */
	size_t nr, max;
	size_t nr_damaged; /* notes that make no sense, and are left out */
	size_t nr_more;	   /* notes beyond the most that are read */
};

/*
 * Read the notes of @elf that @is_wanted chooses by their provider and name; those whose place is no code of the file,
 * or no nop in 32-bit ARM code, count as damaged. *@out is owned by the caller: notes_fini(). A file without notes is
 * no error. 0 or -ENOMEM.
 */
int notes_read(struct note_list *out, struct elf *elf,
	       bool (*is_wanted)(void *ctx, const char *provider, const char *name), void *ctx) __must_check;
void notes_fini(struct note_list *list);

/*
 * May a probe lie at @vaddr? Only if there is a nop, and decoding from the beginning of its function does not show that
 * the nop is inside another instruction. On CPUs whose instructions are not known here: always.
 */
bool note_is_probed(struct elf *elf, u64 vaddr);

/*
 * Parse the first argument of @text in the form of the assembler of @elf_machine: "8@%rdi", "-4@$5", "8@-16(%rbp)",
 * "8@[sp, 8]". *@out is of kind NOTE_ARG_UNKNOWN if its form is not known. Returns the text behind it, NULL behind the
 * last one.
 */
const char *note_arg_parse(struct note_arg *out, u16 elf_machine, const char *text);
