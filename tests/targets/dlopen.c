/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dlopen FOLDER: loads and unloads a library that allocates and one that brings an allocator of its own. */
#include "tests/targets/truth.h"

#include <dlfcn.h>

enum { NR_ROUNDS = 10 };

static void use(const char *folder, const char *name, const char *function)
{
	char path[4096];
	void *lib, *(*f)(int);

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	f = (void *(*)(int))dlsym(lib, function);
	if (!f || !f(5))
		exit(1);
	dlclose(lib);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	truth_begin();
	for (int i = 0; i < NR_ROUNDS; i++) {
		use(argv[1], "plug_alloc.so", "plug_allocates");
		use(argv[1], "plug_own.so", "plug_own_allocates");
	}
	expect("live %d %d plug_allocates", NR_ROUNDS * 5, NR_ROUNDS * 5 * 72);
	expect("allocs %d %d plug_own_allocates", NR_ROUNDS * 5, NR_ROUNDS * 5 * 56);
	expect("live 0 0 plug_own_allocates");
	return 0;
}
