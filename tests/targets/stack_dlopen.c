/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_dlopen: calls through libraries that take turns at the same address, and tells its call chains.
 * stack_dlopen wait: waits for a line before it does, and for another one before it ends.
 * stack_dlopen many LIBRARY...: loads these, waits for a line, calls through each.
 */
#include <dlfcn.h>
#include <libgen.h>

#include "tests/targets/stack_truth.h"

enum { NR_ROUNDS = 25 };

typedef void back_fn(size_t bytes);
typedef void plug_fn(back_fn *back, size_t bytes);

FN void t_allocates(size_t bytes)
{
	ENTER();
	ALLOCATE(bytes);
	LEAVE();
}

static char *folder;

static void *load(const char *name, int flags)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	library = dlopen(name[0] == '/' ? name : path, RTLD_LAZY | flags);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return library;
}

FN static void t_calls(void *library, const char *name, size_t bytes)
{
	plug_fn *plug = (plug_fn *)dlsym(library, name);

	ENTER();
	shadow_push(name);
	plug(t_allocates, bytes);
	shadow_pop();
	LEAVE();
}

/* Tells how often both were at the same place. */
__attribute__((always_inline)) static inline int take_turns(void)
{
	static const char *const names[] = { "t_plug_a", "t_plug_b" };
	static const char *const files[] = { "stack_plug_a.so", "stack_plug_b.so" };
	void *last = NULL;
	int nr_same = 0;

	for (int i = 0; i < NR_ROUNDS; i++) {
		void *library = load(files[i % 2], 0);
		void *at = dlsym(library, names[i % 2]);

		t_calls(library, names[i % 2], 100 + i);
		t_calls(library, names[i % 2], 100 + i);
		nr_same += at == last;
		last = at;
		dlclose(library);
	}
	return nr_same;
}

/* How it gets to us has no rule that a row holds: its frame begins with rbx. */
FN static void t_resolves(void (*lazy)(void))
{
	static struct shadow resolving = { .end = "unsupported" };

	shadow = &resolving;
	shadow_push("t_indirect");
	lazy();
	shadow_pop();
	shadow = &main_shadow;
}

/* The dynamic linker looks a function up when it is called for the first time, and calls us while it does. */
static void bind_late(void)
{
	void *indirect = load("stack_indirect.so", RTLD_GLOBAL), *lazy = load("stack_lazy.so", 0);
	void (*set_back)(back_fn *) = (void (*)(back_fn *))dlsym(indirect, "set_back");

	set_back(t_allocates);
	t_resolves((void (*)(void))dlsym(lazy, "t_lazy"));
}

/* Until the test has answered. */
static void say(const char *word)
{
	puts(word);
	fflush(stdout);
	getchar();
}

static void call_many(char **paths)
{
	static void *libraries[4096];
	int nr = 0;

	while (paths[nr] && nr < 4096) {
		libraries[nr] = load(paths[nr], 0);
		nr++;
	}
	say("ready");
	for (int i = 0; i < nr; i++)
		t_calls(libraries[i], "t_plug_a", 10);
	say("done");
}

int main(int argc, char **argv)
{
	folder = dirname(strdup(argv[0]));
	chains_begin();
	ENTER();
	if (argc > 2) {
		call_many(argv + 2);
	} else if (argc > 1) {
		void *first = load("stack_plug_a.so", 0);

		say("ready");
		dlclose(first);
		printf("same %d\n", take_turns());
		say("done");
	} else {
		printf("same %d\n", take_turns());
		bind_late();
	}
	chains_print();
	return 0;
}
