/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of classes and of variables, found when the process runs again. */
#include "user/census/census_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/regs.h"
#include "user/lib/elf.h"
#include "user/lib/escape.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "user/names/data_ref.h"
#include "user/names/demangle.h"
#include "user/scan/kernel_words.h"
#include "user/target/module.h"
#include "user/target/program_link.h"

/*
 * An object of a C++ class with virtual functions begins with the address of its table. Two words before that address
 * lies 0, the place of this part in the whole object; one word before, the address of the type information. This has a
 * pointer to its own table, then one to the mangled name. All of it lies in mapped files.
 */

enum { MAX_MANGLED = 1024 };

struct census_names {
	const struct census *census;
	struct module_table *modules;  /* owned */
	struct mapping_list maps;      /* owned */
	struct symbolizer *symbolizer; /* owned */
	char *exe;		       /* owned; NULL = unknown */
	char *link;		       /* owned; by which it was started, NULL = exe itself */
};

void census_names_free(struct census_names *n)
{
	if (!n)
		return;
	symbolizer_free(n->symbolizer);
	mapping_list_fini(&n->maps);
	module_table_free(n->modules);
	free(n->exe);
	free(n->link);
	free(n);
}

/* The executable mappings of a core, with the files that are here. */
static int read_core_maps(struct census_names *n)
{
	const struct snapshot *snap = n->census->snap;

	n->maps.maps = calloc(snap->nr_maps + 1, sizeof(*n->maps.maps));
	if (!n->maps.maps)
		return -ENOMEM;
	for (size_t i = 0; i < snap->nr_maps; i++) {
		const struct snapshot_map *m = &snap->maps[i];
		struct mapping *map = &n->maps.maps[n->maps.nr];
		struct elf *elf;
		int err;

		if (!m->is_executable || !m->ino || !m->path[0])
			continue;
		*map = (struct mapping){ .start = m->start, .end = m->end, .file_offset = m->file_offset };
		err = module_add(n->modules, m->path, NULL, 0, &map->module);
		if (err)
			return err;
		symbolizer_open(n->symbolizer, map->module);
		if (map->module->fd < 0 || elf_open(&elf, map->module->fd))
			continue;
		if (!elf_bias(elf, m->start, m->end, m->file_offset, &map->bias))
			n->maps.nr++;
		elf_close(elf);
	}
	return 0;
}

/* Of the program of a running process. 0 or -ENOMEM. */
static int read_program(struct census_names *n)
{
	struct proc_stat stat;
	pid_t pid = n->census->pid;

	if (proc_exe(&n->exe, pid)) {
		n->exe = NULL;
		return 0;
	}
	return proc_read_stat(&stat, pid) ? 0 : program_link(&n->link, pid, n->exe, stat.comm);
}

int census_names_new(struct census_names **out, const struct census *c,
		     const struct symbolizer_options *options)
{
	struct census_names *n = calloc(1, sizeof(*n));
	int err = n ? module_table_new(&n->modules) : -ENOMEM;

	if (!err)
		err = symbolizer_new(&n->symbolizer, n->modules, options);
	if (err) {
		census_names_free(n);
		return err;
	}
	n->census = c;
	err = c->is_core ? read_core_maps(n) : mapping_list_read(&n->maps, n->modules, c->pid);
	if (err < 0)
		debug("scan: PID %d: names of files: %s", (int)c->pid, strerror(-err));
	if (c->is_core) {
		n->exe = c->snap->nr_maps ? strdup(c->snap->maps[0].path) : NULL;
	} else if (read_program(n)) {
		census_names_free(n);
		return -ENOMEM;
	}
	*out = n;
	return 0;
}

static bool census_names_read_words(const struct census_names *n, taddr_t addr, u64 *words, u32 nr)
{
	struct snapshot *snap = n->census->snap;
	const struct snapshot_map *map = snapshot_map_find(snap, addr);
	u8 bytes[4 * 8];

	if (!map || !map->ino || !map->is_readable || addr % snap->word_size || nr > 4 ||
	    snapshot_fetch(snap, addr, bytes, (size_t)nr * snap->word_size) != 0)
		return false;
	for (u32 i = 0; i < nr; i++) {
		words[i] = 0;
		for (u8 b = 0; b < snap->word_size; b++)
			words[i] =
				words[i] << 8 | bytes[i * snap->word_size +
						      (snap->is_big_endian ? b : snap->word_size - 1U - b)];
	}
	return true;
}

/* Read the mangled name at @addr: letters, digits and a few signs. */
static bool census_names_read_name(const struct census_names *n, taddr_t addr, char *name, size_t size)
{
	const struct snapshot_map *map = snapshot_map_find(n->census->snap, addr);
	size_t len = 0;

	if (!map || !map->ino || !map->is_readable)
		return false;
	for (; len < size - 1 && addr + len < map->end; len++) {
		if (snapshot_fetch(n->census->snap, addr + len, name + len, 1) != 0)
			return false;
		if (!name[len])
			return len > 0;
		if (!isalnum((unsigned char)name[len]) && !strchr("_$.*", name[len]))
			return false;
	}
	return false;
}

/* The class whose table of virtual functions is at @addr. */
static bool name_class(struct census_names *n, taddr_t addr, struct census_name *out)
{
	static const char prefix[] = "typeinfo name for ";
	char mangled[MAX_MANGLED + 8] = "_ZTS", text[DEMANGLE_MAX], *name = mangled + 4;
	u8 w = n->census->snap->word_size;
	u64 before[2], info[2];

	if (!census_names_read_words(n, addr - 2U * w, before, 2) || before[0] ||
	    !census_names_read_words(n, before[1], info, 2) || !snapshot_map_find(n->census->snap, info[0]) ||
	    !census_names_read_name(n, info[1], name, MAX_MANGLED))
		return false;
	/* A star says that the name is unique to its file. */
	if (*name == '*')
		memmove(name, name + 1, strlen(name));
	symbolizer_demangle(n->symbolizer, text, sizeof(text), mangled);
	if (strncmp(text, prefix, sizeof(prefix) - 1) != 0)
		return false;
	out->kind = "class";
	escape_buf(out->text, sizeof(out->text), text + sizeof(prefix) - 1);
	return true;
}

static void census_names_open_file(void *ctx, struct module *m)
{
	symbolizer_open(ctx, m);
}

static void name_object(const struct census_names *n, const char *path, struct census_name *out)
{
	bool is_program = n->link && !strcmp(path, n->exe);

	escape_buf(out->object, sizeof(out->object), is_program ? n->link : path);
}

static void set_object(const struct census_names *n, taddr_t addr, struct census_name *out)
{
	const struct snapshot_map *map = snapshot_map_find(n->census->snap, addr);

	if (map && map->path[0])
		name_object(n, map->path, out);
}

static int name_variable(struct census_names *n, struct code_ref ref, bool is_tls, struct census_name *out)
{
	const struct module *m = module_get(n->modules, ref.module);
	const char *name;
	int err = symbolize_data(n->symbolizer, ref, is_tls, &name, &out->offset);

	if (err)
		return err;
	if (m)
		name_object(n, m->path, out);
	if (name)
		escape_buf(out->text, sizeof(out->text), name);
	else
		out->offset = ref.offset;
	return 0;
}

int census_name_type(struct census_names *n, taddr_t addr, struct census_name *out)
{
	const struct snapshot_map *map = snapshot_map_find(n->census->snap, addr);
	struct code_ref ref;

	*out = (struct census_name){ .kind = map && map->is_executable ? "code" : "data" };
	set_object(n, addr, out);
	if (map)
		out->offset = addr - map->start + map->file_offset;
	if (name_class(n, addr, out))
		return 0;
	data_ref_open(&n->maps, n->exe, addr, census_names_open_file, n->symbolizer);
	ref = data_ref(&n->maps, addr);
	return ref.module ? name_variable(n, ref, false, out) : 0;
}

static int census_names_name_memory(struct census_names *n, const struct scan_root *root,
				    struct census_name *out)
{
	struct code_ref ref = { 0 };
	bool is_tls;

	set_object(n, root->addr, out);
	data_ref_open(&n->maps, n->exe, root->addr, census_names_open_file, n->symbolizer);
	if (root->tid)
		ref = data_ref_tls(&n->maps, n->exe, root->tp, root->addr);
	is_tls = ref.module != 0;
	if (!is_tls)
		ref = data_ref(&n->maps, root->addr);
	if (ref.module) {
		out->kind = is_tls ? "tls" : "data";
		return name_variable(n, ref, is_tls, out);
	}
	if (root->tid)
		out->kind = "stack";
	return 0;
}

int census_name_root(struct census_names *n, const struct scan_root *root, bool is_lost,
		     struct census_name *out)
{
	*out = (struct census_name){ .kind = "memory" };
	switch (root->kind) {
	case ROOT_MEMORY:
		return census_names_name_memory(n, root, out);
	case ROOT_REGISTER:
		out->kind = "register";
		arch_reg_name(n->census->word_size, root->where, out->text, sizeof(out->text));
		return 0;
	case ROOT_KERNEL:
		out->kind = "kernel";
		if (root->where == KERNEL_SIGNAL_STACK)
			snprintf(out->text, sizeof(out->text), "signal stack");
		else if (root->where == KERNEL_REQUEST)
			snprintf(out->text, sizeof(out->text), "io_uring request");
		else if (root->where == KERNEL_TIMER)
			snprintf(out->text, sizeof(out->text), "timer");
		else
			snprintf(out->text, sizeof(out->text), "epoll, descriptor %u", root->where);
		return 0;
	default:
		out->kind = is_lost ? "lost" : "unknown";
		return 0;
	}
}
