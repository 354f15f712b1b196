/* SPDX-License-Identifier: GPL-2.0-or-later */
/* malloc by its other names, in a second C library, and by names that only old programs know. */
#include <dlfcn.h>

#include "tests/targets/truth.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nmemb, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static void *kept[60];

FN static void by_libc_names(void)
{
	void *p = __libc_malloc(100);

	p = __libc_realloc(p, 200);
	keep(p);
	__libc_free(p);
	kept[0] = __libc_calloc(3, 7);
	kept[1] = __libc_memalign(64, 100);
}

FN static void of_second_libc(void)
{
	void *second = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	void *(*other_malloc)(size_t);
	void (*other_free)(void *);

	if (!second)
		return;
	other_malloc = (void *(*)(size_t))dlsym(second, "malloc");
	other_free = (void (*)(void *))dlsym(second, "free");
	for (int i = 0; i < 50; i++) {
		kept[10 + i] = other_malloc(1000);
		keep(kept[10 + i]);
	}
	for (int i = 0; i < 30; i++)
		other_free(kept[10 + i]);
}

int main(void)
{
	truth_begin();
	by_libc_names();
	expect("live 2 121 by_libc_names");
	expect("allocs 4 421 by_libc_names");
	of_second_libc();
	return 0;
}
