/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the notes of markers: those of this program by heaptap.h, hostile ones, and damaged sections. */
#include "user/probe/notes.h"

#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "include/heaptap.h"
#include "user/lib/elf.h"

/* A note by hand: the place, then the strings. */
#define RAW_NOTE(place, strings)                                                                             \
	__asm__(".pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 8, 772f-771f, 3\n"            \
		" .asciz \"stapsdt\"\n771: " HEAPTAP_WORD_ place ", _.stapsdt.base, 0\n" strings             \
		"772: .balign 4\n .popsection\n")

#ifdef __x86_64__
/* The immediate operand has bytes that look like a nop. */
__asm__(".text\n.globl t_inside\n.type t_inside,@function\n"
	"t_inside: movabs $0x9090909090909090,%rax\nt_inside_nop: nop\nt_inside_ret: ret\n"
	".size t_inside, . - t_inside\n");
RAW_NOTE("t_inside + 4", ".asciz \"hostile\", \"inside\", \"\"\n");
RAW_NOTE("t_inside_nop", ".asciz \"hostile\", \"nop\", \"\"\n");
RAW_NOTE("t_inside_ret", ".asciz \"hostile\", \"ret\", \"8@%rdi -4@$5 8f@%xmm0\"\n");
#endif
__asm__(".data\nt_data: .8byte 0x9090909090909090\n.text\n");
RAW_NOTE("t_data", ".asciz \"hostile\", \"data\", \"\"\n");
RAW_NOTE("0x7fff0000", ".asciz \"hostile\", \"nowhere\", \"\"\n");
RAW_NOTE("t_data", ".ascii \"hostile\"\n");

__attribute__((noinline)) static void marked(const char *name, void *block)
{
	HEAPTAP_MARK(name);
	HEAPTAP_PAUSE();
	HEAPTAP_RESUME();
	HEAPTAP_ALLOC(block, 16);
	HEAPTAP_FREE(block);
	HEAPTAP_LEAK_CHECK();
}

static bool is_of(void *ctx, const char *provider, const char *name)
{
	(void)name;
	return !strcmp(provider, ctx);
}

static bool is_any(void *ctx, const char *provider, const char *name)
{
	(void)ctx;
	(void)provider;
	(void)name;
	return true;
}

static struct elf *open_self(void)
{
	struct elf *elf;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_open(&elf, fd), 0);
	return elf;
}

static void close_self(struct elf *elf)
{
	int fd = elf->fd;

	elf_close(elf);
	close(fd);
}

static const struct note *find(const struct note_list *list, const char *name)
{
	for (size_t i = 0; i < list->nr; i++)
		if (!strcmp(list->notes[i].name, name))
			return &list->notes[i];
	fail_msg("no note %s", name);
	return NULL;
}

static void test_own(void **state)
{
	static const struct {
		const char *name;
		int nr_args;
	} wanted[] = { { "mark", 1 },  { "pause", 0 }, { "resume", 0 },
		       { "alloc", 2 }, { "free", 1 },  { "leak_check", 0 } };
	struct elf *elf = open_self();
	struct note_list list;

	(void)state;
	marked("unit", &list);
	assert_int_equal(notes_read(&list, elf, is_of, "heaptap"), 0);
	assert_int_equal(list.nr, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		const struct note *n = find(&list, wanted[i].name);

		assert_int_equal(n->nr_args, wanted[i].nr_args);
		assert_int_equal(n->semaphore, 0);
		assert_true(note_is_probed(elf, n->vaddr));
		for (u8 k = 0; k < n->nr_args && (elf->machine == EM_X86_64 || elf->machine == EM_AARCH64);
		     k++) {
			assert_int_equal(n->args[k].kind, NOTE_ARG_REG);
			assert_int_equal(n->args[k].size, sizeof(void *));
		}
	}
	notes_fini(&list);
	close_self(elf);
}

static void test_hostile(void **state)
{
	struct elf *elf = open_self();
	struct note_list list;

	(void)state;
	assert_int_equal(notes_read(&list, elf, is_of, "hostile"), 0);
	/* In data, nowhere, and without an end of its strings. */
	assert_int_equal(list.nr_damaged, 3);
#ifdef __x86_64__
	assert_int_equal(list.nr, 3);
	assert_false(note_is_probed(elf, find(&list, "inside")->vaddr));
	assert_false(note_is_probed(elf, find(&list, "ret")->vaddr));
	assert_true(note_is_probed(elf, find(&list, "nop")->vaddr));
	assert_int_equal(find(&list, "ret")->nr_args, 3);
	assert_int_equal(find(&list, "ret")->args[1].value, 5);
#else
	assert_int_equal(list.nr, 0);
#endif
	notes_fini(&list);
	close_self(elf);
}

static void test_args(void **state)
{
	static const struct {
		u16 machine;
		const char *text;
		struct note_arg arg;
	} cases[] = {
		{ EM_X86_64, "8@%rdi", { NOTE_ARG_REG, 8, 0, 14, 0, 0 } },
		{ EM_X86_64, "8@rax", { NOTE_ARG_REG, 8, 0, 10, 0, 0 } },
		{ EM_X86_64, "-4@%r15d", { NOTE_ARG_REG, 4, 1, 0, 0, 0 } },
		{ EM_X86_64, "1@%al", { NOTE_ARG_REG, 1, 0, 10, 0, 0 } },
		{ EM_X86_64, "-4@$5", { NOTE_ARG_CONST, 4, 1, 0, 0, 5 } },
		{ EM_X86_64, "-8@$-0x10", { NOTE_ARG_CONST, 8, 1, 0, 0, -16 } },
		{ EM_X86_64, "8@-16(%rbp)", { NOTE_ARG_MEMORY, 8, 0, 4, 0, -16 } },
		{ EM_X86_64, "8@(%rsp)", { NOTE_ARG_MEMORY, 8, 0, 19, 0, 0 } },
		{ EM_X86_64, "8@8(%rax,%rbx,4)", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_X86_64, "8@global(%rip)", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_X86_64, "8f@%xmm0", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_X86_64, "3@%rax", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_X86_64, "8@%nosuchregister", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_X86_64, "8@", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_X86_64, "8@$99999999999999999999", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_386, "4@%eax", { NOTE_ARG_REG, 4, 0, 6, 0, 0 } },
		{ EM_386, "4@12(%esp)", { NOTE_ARG_MEMORY, 4, 0, 15, 0, 12 } },
		{ EM_386, "4@%rax", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_AARCH64, "8@x30", { NOTE_ARG_REG, 8, 0, 30, 0, 0 } },
		{ EM_AARCH64, "-4@w1", { NOTE_ARG_REG, 4, 1, 1, 0, 0 } },
		{ EM_AARCH64, "-4@5", { NOTE_ARG_CONST, 4, 1, 0, 0, 5 } },
		{ EM_AARCH64, "8@[sp, 8]", { NOTE_ARG_MEMORY, 8, 0, 31, 0, 8 } },
		{ EM_AARCH64, "8@[x0]", { NOTE_ARG_MEMORY, 8, 0, 0, 0, 0 } },
		{ EM_AARCH64, "8@[x0, x1]", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_AARCH64, "8@x31", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_AARCH64, "8@[", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_ARM, "4@[r0, #4]", { NOTE_ARG_MEMORY, 4, 0, 0, 0, 4 } },
		{ EM_RISCV, "8@-24(s0)", { NOTE_ARG_MEMORY, 8, 0, 8, 0, -24 } },
		{ EM_MIPS, "4@$4", { NOTE_ARG_REG, 4, 0, 10, 0, 0 } },
		{ EM_MIPS, "4@$31", { NOTE_ARG_REG, 4, 0, 37, 0, 0 } },
		{ EM_MIPS, "4@$32", { .kind = NOTE_ARG_UNKNOWN } },
		{ EM_MIPS, "-4@7", { NOTE_ARG_CONST, 4, 1, 0, 0, 7 } },
		{ EM_MIPS, "4@24($sp)", { NOTE_ARG_MEMORY, 4, 0, 35, 0, 24 } },
		{ EM_PPC, "4@3", { NOTE_ARG_REG, 4, 0, 3, 0, 0 } },
		{ EM_PPC, "-4@i7", { NOTE_ARG_CONST, 4, 1, 0, 0, 7 } },
		{ EM_PPC64, "8@-32(31)", { NOTE_ARG_MEMORY, 8, 0, 31, 0, -32 } },
		{ EM_SPARCV9, "8@%o0", { .kind = NOTE_ARG_UNKNOWN } },
	};
	struct note_arg arg;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_null(note_arg_parse(&arg, cases[i].machine, cases[i].text));
		if (memcmp(&arg, &cases[i].arg, sizeof(arg)))
			fail_msg("%s: kind %d size %d reg %d value %lld", cases[i].text, arg.kind, arg.size,
				 arg.reg, (long long)arg.value);
	}
	assert_string_equal(note_arg_parse(&arg, EM_AARCH64, "8@[sp, 8]  4@x1"), "4@x1");
	assert_int_equal(arg.value, 8);
}

/* A copy of this program whose section of notes is at *@at, of *@size bytes. */
static int copy_self(size_t *at, size_t *size, u8 **section)
{
	struct elf *elf = open_self();
	const struct elf_section *s = elf_section(elf, ".note.stapsdt");
	int fd = memfd_create("notes", MFD_CLOEXEC);
	struct stat st;
	u8 *data;

	assert_non_null(s);
	assert_int_equal(fstat(elf->fd, &st), 0);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, elf->fd, 0);
	assert_true(data != MAP_FAILED);
	assert_int_equal(write(fd, data, (size_t)st.st_size), st.st_size);
	*at = s->offset;
	*size = s->size;
	*section = malloc(s->size);
	assert_non_null(*section);
	memcpy(*section, data + s->offset, s->size);
	munmap(data, (size_t)st.st_size);
	close_self(elf);
	return fd;
}

/* Where the file of @elf has the byte at @vaddr. */
static off_t file_offset(const struct elf *elf, u64 vaddr)
{
	const struct elf_segment *s = elf_segment_at(elf, vaddr);

	assert_non_null(s);
	return (off_t)(vaddr - s->vaddr + s->offset);
}

/*
 * 32-bit ARM code: the nop tells Thumb code from ARM code, as the note does not. A breakpoint of the other instruction
 * set would end the program. The file is this program, called one for ARM, with another instruction at the marker.
 */
static void test_arm(void **state)
{
	static const struct {
		u8 code[4];
		size_t nr;
		int bit;
	} cases[] = {
		{ { 0x00, 0xbf, 0x12, 0x34 }, 1, 1 }, /* nop of Thumb code */
		{ { 0xc0, 0x46, 0x12, 0x34 }, 1, 1 }, /* mov r8, r8: the same before ARMv6T2 */
		{ { 0x00, 0xf0, 0x20, 0xe3 }, 1, 0 }, /* nop of ARM code */
		{ { 0x00, 0x00, 0xa0, 0xe1 }, 1, 0 }, /* mov r0, r0 */
		{ { 0x70, 0x47, 0x00, 0xbf }, 0, 0 }, /* bx lr, then a nop */
	};
	size_t at, size;
	u8 *section;
	int fd = copy_self(&at, &size, &section);
	const u16 arm = EM_ARM;
	struct note_list list;
	struct elf *elf;
	u64 place;

	(void)state;
	assert_int_equal(elf_open(&elf, fd), 0);
	assert_int_equal(notes_read(&list, elf, is_of, "heaptap"), 0);
	/* In code, behind all markers: some compilers place them beside each other. */
	place = (find(&list, "leak_check")->vaddr + 256) & ~3ULL;
	at += (size_t)((const u8 *)memmem(section, size, "leak_check", 10) - section) - 8 -
	      3 * elf->word_size;
	notes_fini(&list);
	assert_int_equal(pwrite(fd, &place, elf->word_size, (off_t)at), elf->word_size);
	assert_int_equal(pwrite(fd, &arm, sizeof(arm), offsetof(Elf64_Ehdr, e_machine)), sizeof(arm));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(pwrite(fd, cases[i].code, 4, file_offset(elf, place)), 4);
		elf_close(elf);
		assert_int_equal(elf_open(&elf, fd), 0);
		assert_int_equal(notes_read(&list, elf, is_of, "heaptap"), 0);
		/* The other markers lie on instructions of this CPU, which are no nops of ARM code. */
		assert_int_equal(list.nr, cases[i].nr);
		if (list.nr)
			assert_int_equal(find(&list, "leak_check")->vaddr, place | (u64)cases[i].bit);
		notes_fini(&list);
	}
	elf_close(elf);
	close(fd);
	free(section);
}

/* Bytes at random places are exchanged: what is read stays bounded, and its strings end. */
static void test_damaged(void **state)
{
	static const u8 values[] = { 0, 1, 3, 0x7f, 0x80, 0xfc, 0xff };
	size_t at, size, nr_read = 0, nr_damaged = 0;
	u8 *section, *copy;
	int fd = copy_self(&at, &size, &section);
	struct elf *elf;

	(void)state;
	copy = malloc(size);
	assert_non_null(copy);
	assert_int_equal(elf_open(&elf, fd), 0);
	srandom(1);
	for (int round = 0; round < 3000; round++) {
		struct note_list list;

		memcpy(copy, section, size);
		for (int i = random() % 8; i >= 0; i--)
			copy[(size_t)random() % size] = values[(size_t)random() % sizeof(values)];
		assert_int_equal(pwrite(fd, copy, size, (off_t)at), size);
		assert_int_equal(notes_read(&list, elf, is_any, NULL), 0);
		assert_true(list.nr <= size / 20);
		for (size_t i = 0; i < list.nr; i++) {
			assert_true(strnlen(list.notes[i].name, 40) < 40);
			note_is_probed(elf, list.notes[i].vaddr);
		}
		nr_read += list.nr;
		nr_damaged += list.nr_damaged;
		notes_fini(&list);
	}
	assert_true(nr_read && nr_damaged > 3000);
	elf_close(elf);
	close(fd);
	free(copy);
	free(section);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own), cmocka_unit_test(test_hostile), cmocka_unit_test(test_args),
		cmocka_unit_test(test_arm), cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
