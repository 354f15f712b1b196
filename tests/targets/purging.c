/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands in the middle of giving free pages back, as a thread of jemalloc's does after a mass delete: its hook waits.
 * Prints "purging" there. Says on standard error if the allocator has no such hooks.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NR = 512, BYTES = 20000, NR_HOOKS = 9, HOOK_DALLOC = 1 };

typedef bool (*dalloc_fn)(void *hooks, void *addr, size_t size, bool is_committed, unsigned int arena);
typedef int (*mallctl_fn)(const char *name, void *old, size_t *old_len, void *new, size_t new_len);

static void *blocks[NR];

static bool wait_in_hook(void *hooks, void *addr, size_t size, bool is_committed, unsigned int arena)
{
	static const char text[] = "purging\n";

	(void)hooks, (void)addr, (void)size, (void)is_committed, (void)arena;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) != (ssize_t)sizeof(text) - 1)
		_exit(1);
	for (;;)
		pause();
}

int main(void)
{
	mallctl_fn control = (mallctl_fn)dlsym(RTLD_DEFAULT, "mallctl");
	void *own[NR_HOOKS], *hooks;
	size_t len = sizeof(hooks);

	if (!control || control("arena.0.extent_hooks", &hooks, &len, NULL, 0)) {
		fputs("no hooks of jemalloc\n", stderr);
		return 1;
	}
	memcpy(own, hooks, sizeof(own));
	own[HOOK_DALLOC] = (void *)(dalloc_fn)wait_in_hook;
	hooks = own;
	for (int i = 0; i < NR; i++) {
		blocks[i] = malloc(BYTES);
		memset(blocks[i], 1, BYTES);
	}
	/* Each second one stays, so that its neighbours are extents of their own. */
	for (int i = 0; i < NR; i += 2)
		free(blocks[i]);
	control("thread.tcache.flush", NULL, NULL, NULL, 0);
	if (control("arena.0.extent_hooks", NULL, NULL, &hooks, sizeof(hooks)) ||
	    control("arena.0.purge", NULL, NULL, NULL, 0))
		return 1;
	fputs("nothing was purged\n", stderr);
	return 1;
}
