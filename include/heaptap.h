/* SPDX-License-Identifier: GPL-2.0-or-later OR MIT */
/* Markers of a program for heaptap: each is one nop, with a note in the file that says where the nop is. */
#pragma once

/*
 * Programs include this header; there is no library. Without heaptap a marker costs one nop and the registers of its
 * arguments. heaptap-mark(1) has the details.
 *
 *   HEAPTAP_MARK(name)        a name for this moment: heaptap report --between FROM,TO
 *   HEAPTAP_PAUSE()           allocations of this process are not counted from here on; releases still are
 *   HEAPTAP_RESUME()          allocations are counted again
 *   HEAPTAP_ALLOC(ptr, size)  a pool hands out the block of @size bytes at @ptr
 *   HEAPTAP_FREE(ptr)         the pool takes it back
 *   HEAPTAP_LEAK_CHECK()      report here, with leak verdicts
 *
 * Arguments are evaluated once. HEAPTAP_MARK reads the first byte of its string, so that the page of it is in memory.
 * Where the compiler, the format of object files or the CPU is not known, markers evaluate their arguments and do
 * nothing else.
 */
#if defined(__GNUC__) && defined(__ELF__) && !defined(__s390__) && !defined(HEAPTAP_NO_MARKERS)

#if __SIZEOF_POINTER__ == 8
#define HEAPTAP_WORD_ ".8byte "
#define HEAPTAP_SIZE_ "8"
#else
#define HEAPTAP_WORD_ ".4byte "
#define HEAPTAP_SIZE_ "4"
#endif

/*
 * A nop at 771, and its note in the form of SystemTap, version 3: the lengths of owner and description, the type, the
 * owner; then the addresses of the nop, of .stapsdt.base and of a semaphore (none); provider, name and arguments as
 * strings. "?" puts the note into the section group of the code around it, with which the linker may drop both.
 */
#define HEAPTAP_NOTE_(name, arguments)                                                                       \
	"771:\tnop\n"                                                                                        \
	"\t.pushsection .note.stapsdt,\"?\",\"note\"\n"                                                      \
	"\t.balign 4\n"                                                                                      \
	"\t.4byte 773f-772f, 775f-774f, 3\n"                                                                 \
	"772:\t.asciz \"stapsdt\"\n"                                                                         \
	"773:\t.balign 4\n"                                                                                  \
	"774:\t" HEAPTAP_WORD_ "771b, _.stapsdt.base, 0\n"                                                   \
	"\t.asciz \"heaptap\", \"" name "\", \"" arguments "\"\n"                                            \
	"775:\t.balign 4\n"                                                                                  \
	"\t.popsection\n"                                                                                    \
	"\t.ifndef _.stapsdt.base\n"                                                                         \
	"\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                            \
	"\t.weak _.stapsdt.base\n"                                                                           \
	"\t.hidden _.stapsdt.base\n"                                                                         \
	"_.stapsdt.base:\t.space 1\n"                                                                        \
	"\t.size _.stapsdt.base, 1\n"                                                                        \
	"\t.popsection\n"                                                                                    \
	"\t.endif\n"

/* The note makes no code: a compiler that counts lines would think it large, and would not inline its function. */
#if (defined(__clang__) && __clang_major__ >= 11) || (!defined(__clang__) && __GNUC__ >= 9)
#define HEAPTAP_ASM_ __asm__ __volatile__ __inline__
#else
#define HEAPTAP_ASM_ __asm__ __volatile__
#endif

#define HEAPTAP_NOTE_0_(name)	 HEAPTAP_ASM_(HEAPTAP_NOTE_(name, "") : : : "memory")
#define HEAPTAP_NOTE_1_(name, a) HEAPTAP_ASM_(HEAPTAP_NOTE_(name, HEAPTAP_SIZE_ "@%0") : : "r"(a) : "memory")
#define HEAPTAP_NOTE_2_(name, a, b)                                                                          \
	HEAPTAP_ASM_(HEAPTAP_NOTE_(name, HEAPTAP_SIZE_ "@%0 " HEAPTAP_SIZE_ "@%1")                           \
		     :                                                                                       \
		     : "r"(a), "r"(b)                                                                        \
		     : "memory")

#define HEAPTAP_MARK(name)                                                                                   \
	do {                                                                                                 \
		const char *heaptap_name_ = (name);                                                          \
		(void)*(const volatile char *)heaptap_name_;                                                 \
		HEAPTAP_NOTE_1_("mark", heaptap_name_);                                                      \
	} while (0)
#define HEAPTAP_PAUSE()	 HEAPTAP_NOTE_0_("pause")
#define HEAPTAP_RESUME() HEAPTAP_NOTE_0_("resume")
#define HEAPTAP_ALLOC(ptr, size)                                                                             \
	do {                                                                                                 \
		const volatile void *heaptap_ptr_ = (ptr);                                                   \
		__SIZE_TYPE__ heaptap_size_ = (size);                                                        \
		HEAPTAP_NOTE_2_("alloc", heaptap_ptr_, heaptap_size_);                                       \
	} while (0)
#define HEAPTAP_FREE(ptr)                                                                                    \
	do {                                                                                                 \
		const volatile void *heaptap_ptr_ = (ptr);                                                   \
		HEAPTAP_NOTE_1_("free", heaptap_ptr_);                                                       \
	} while (0)
#define HEAPTAP_LEAK_CHECK() HEAPTAP_NOTE_0_("leak_check")

#else

#define HEAPTAP_MARK(name)	 ((void)(name))
#define HEAPTAP_PAUSE()		 ((void)0)
#define HEAPTAP_RESUME()	 ((void)0)
#define HEAPTAP_ALLOC(ptr, size) ((void)(ptr), (void)(size))
#define HEAPTAP_FREE(ptr)	 ((void)(ptr))
#define HEAPTAP_LEAK_CHECK()	 ((void)0)

#endif
