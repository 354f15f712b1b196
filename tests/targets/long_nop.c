/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Allocator functions that begin with a nop of five bytes (--alloc malloc=my_alloc,free=my_free). For each line that it
 * reads it makes and frees 1000 blocks, and prints how many it has made, and the first byte of my_alloc in memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __x86_64__
void *my_alloc(size_t size);
void my_free(void *p);

__asm__(".text\n.globl my_alloc\n.type my_alloc,@function\n"
	"my_alloc: .byte 0x0f,0x1f,0x44,0,0\n jmp malloc@PLT\n.size my_alloc, . - my_alloc\n"
	".globl my_free\n.type my_free,@function\n"
	"my_free: .byte 0x0f,0x1f,0x44,0,0\n jmp free@PLT\n.size my_free, . - my_free\n");

int main(void)
{
	static char line[16], out[1 << 12];
	size_t nr = 0;

	setvbuf(stdout, out, _IOLBF, sizeof(out));
	puts("ready");
	while (read(0, line, sizeof(line)) > 0) {
		for (int i = 0; i < 1000; i++, nr++)
			my_free(my_alloc(48));
		printf("made %zu %02x\n", nr, *(volatile unsigned char *)my_alloc);
	}
	return 0;
}
#else
int main(void)
{
	puts("skip: the nop is that of x86_64");
	return 0;
}
#endif
