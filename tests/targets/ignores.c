/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loses blocks, some of which it has declared to be no leaks: it calls functions of LeakSanitizer, and has ones of its
 * own that do nothing if it was built without.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tests/targets/truth.h"

void __lsan_ignore_object(const void *p);
void __lsan_disable(void);
void __lsan_enable(void);

#ifndef HAS_LSAN
FN void __lsan_ignore_object(const void *p)
{
	keep(p);
}
FN void __lsan_disable(void)
{
	__asm__ volatile("" : : : "memory");
}
FN void __lsan_enable(void)
{
	__asm__ volatile("" : : : "memory");
}
#endif

FN static void *known(size_t size)
{
	return malloc(size);
}

FN static void *unknown(size_t size)
{
	return calloc(1, size);
}

/* The block that an ignored one leads to is not lost either. */
FN static void ignored(void)
{
	void **p = known(100);

	*p = known(50);
	__lsan_ignore_object(p);
	p = NULL;
	keep(p);
}

/* Another block at the address of an ignored one is not ignored. */
FN static void released(void)
{
	void *p = known(3000);

	__lsan_ignore_object(p);
	free(p);
	p = unknown(3000);
	keep(p);
	p = NULL;
	keep(p);
}

FN static void *meanwhile(void *arg)
{
	void *p = unknown(30);

	keep(p);
	return arg;
}

FN static void disabled(void)
{
	pthread_t thread;
	void *p;

	__lsan_disable();
	__lsan_disable();
	p = known(10);
	keep(p);
	__lsan_enable();
	p = realloc(known(20), 40);
	keep(p);
	pthread_create(&thread, NULL, meanwhile, NULL);
	pthread_join(thread, NULL);
	__lsan_enable();
	p = unknown(60);
	keep(p);
	p = NULL;
	keep(p);
}

int main(void)
{
	truth_begin();
	ignored();
	disabled();
	released();
	expect("definite 1 3000 released");
	expect("definite 1 60 disabled");
	expect("definite 1 30 meanwhile");
	return 0;
}
