/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects of GLib with private data, and blocks in a hash table of GLib, some held and some lost. The libraries are
 * loaded by name, so that no header of GLib is needed; without them it exits with 77. G_SLICE=always-malloc gives each
 * object a block of its own. At a fixed address the heap lies below 4 GiB, and the hash table packs its pointers.
 */
#include <dlfcn.h>

#include "tests/targets/truth.h"

enum { NR = 20, NR_LOST = 7, PRIVATE = 40, G_TYPE_OBJECT = 80 };

/* GTypeQuery */
struct type_query {
	size_t type;
	const char *name;
	unsigned int class_size, instance_size;
};

static void (*query_type)(size_t type, struct type_query *query);
static size_t (*register_type)(size_t parent, const char *name, unsigned int class_size, void *class_init,
			       unsigned int instance_size, void *instance_init, unsigned int flags);
static int (*add_private)(size_t type, size_t bytes);
static void (*adjust_private)(void *class, int *offset);
static void *(*new_object)(size_t type, const char *first, ...);
static void *(*new_table)(void *hash, void *equal);
static int (*insert)(void *table, void *key, void *value);

static void *volatile objects[NR];
static void *volatile table;
static int private_offset;
static size_t type;

FN static void *held_object(void)
{
	return new_object(type, NULL);
}

FN static void *lost_object(void)
{
	return new_object(type, NULL);
}

FN static void *in_table(void)
{
	return malloc(48);
}

static void init_class(void *class)
{
	adjust_private(class, &private_offset);
}

FN static void warm_up(void)
{
	struct type_query query;

	query_type(G_TYPE_OBJECT, &query);
	type = register_type(G_TYPE_OBJECT, "Held", query.class_size, init_class, query.instance_size, NULL,
			     0);
	private_offset = add_private(type, PRIVATE);
	objects[0] = new_object(type, NULL);
	table = new_table(NULL, NULL);
}

FN static void run(void)
{
	for (int i = 1; i < NR; i++)
		objects[i] = held_object();
	for (int i = 0; i < NR_LOST; i++)
		lost_object();
	for (int i = 0; i < NR; i++) {
		void *p = in_table();

		insert(table, p, p);
	}
}

int main(void)
{
	void *lib = dlopen("libgobject-2.0.so.0", RTLD_NOW | RTLD_GLOBAL);

	if (!lib)
		return 77;
	truth_begin();
	*(void **)&query_type = dlsym(RTLD_DEFAULT, "g_type_query");
	*(void **)&register_type = dlsym(RTLD_DEFAULT, "g_type_register_static_simple");
	*(void **)&add_private = dlsym(RTLD_DEFAULT, "g_type_add_instance_private");
	*(void **)&adjust_private = dlsym(RTLD_DEFAULT, "g_type_class_adjust_private_offset");
	*(void **)&new_object = dlsym(RTLD_DEFAULT, "g_object_new");
	*(void **)&new_table = dlsym(RTLD_DEFAULT, "g_hash_table_new");
	*(void **)&insert = dlsym(RTLD_DEFAULT, "g_hash_table_insert");
	warm_up();
	run();
	scrub();
	expect("reachable %d held_object", NR - 1);
	expect("definite %d lost_object", NR_LOST);
	expect("reachable %d in_table", NR);
	fflush(stdout);
	return 0;
}
