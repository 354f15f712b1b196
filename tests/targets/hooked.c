/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hooks free by writing a jump over its first bytes, as profilers and sandboxes do, and goes on allocating. Ends by
 * SIGTERM with status 0 if each release came through the hook.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;
static volatile unsigned long nr_hooked;

static void end(int sig)
{
	(void)sig;
	is_over = 1;
}

/* Forgets the block: the bytes of the function itself are gone. */
static void my_free(void *block)
{
	nr_hooked += block != NULL;
}

/* movabs $hook,%rax; jmp *%rax */
static void hook(void *function, void (*with)(void *))
{
	unsigned char code[12] = { 0x48, 0xb8, [10] = 0xff, 0xe0 };
	uintptr_t page = (uintptr_t)function & ~4095UL, target = (uintptr_t)with;

	memcpy(code + 2, &target, sizeof(target));
	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		perror("mprotect");
		exit(1);
	}
	memcpy(function, code, sizeof(code));
	mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
}

int main(void)
{
	unsigned long nr = 0;

	signal(SIGTERM, end);
	hook((void *)(uintptr_t)free, my_free);
	puts("ready");
	fflush(stdout);
	while (!is_over) {
		for (int i = 0; i < 10; i++, nr++)
			free(malloc(32));
		usleep(1000);
	}
	printf("hooked %lu of %lu\n", nr_hooked, nr);
	return nr_hooked == nr ? 0 : 1;
}
