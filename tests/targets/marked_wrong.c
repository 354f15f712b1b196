/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notes that lie: places in data, in an instruction, on no nop; and one behind a semaphore. The program goes on. */
#include <stdio.h>
#include <stdlib.h>

#include "include/heaptap.h"

/* A note by hand. */
#define NOTE(place, semaphore, provider, name)                                                               \
	__asm__(".pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 8, 782f-781f, 3\n"            \
		" .asciz \"stapsdt\"\n781: " HEAPTAP_WORD_ place ", _.stapsdt.base, " semaphore              \
		"\n .asciz \"" provider "\", \"" name "\", \"\"\n782: .balign 4\n .popsection\n")

unsigned short guard;
unsigned long data = 0x90909090;

__asm__(".text\n.globl wrong_code\n.type wrong_code,%function\nwrong_code:\n"
#ifdef __x86_64__
	" movabs $0x9090909090909090,%rax\n"
#else
	" nop\n nop\n"
#endif
	"wrong_nop: nop\n ret\n.size wrong_code, . - wrong_code\n");
#ifdef __x86_64__
NOTE("wrong_code + 4", "0", "heaptap", "pause"); /* inside an instruction */
#else
NOTE("data", "0", "heaptap", "pause");
#endif
NOTE("data", "0", "heaptap", "pause");
NOTE("wrong_nop", "0", "heaptap", "nonsense");
NOTE("wrong_nop", "guard", "other", "guarded");

extern unsigned long wrong_code(void);

static void *kept;

int main(void)
{
	wrong_code();
	kept = malloc(10);
	HEAPTAP_MARK("right");
	printf("%d\n", kept && data);
	return guard;
}
