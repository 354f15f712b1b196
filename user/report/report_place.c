/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names addresses of a process, for the contents of blocks and for memory that is printed. */
#include "user/report/report_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/escape.h"
#include "user/lib/path.h"
#include "user/names/data_ref.h"
#include "user/names/symbolize.h"
#include "user/report/report_parts.h"
#include "user/report/report_text.h"
#include "user/target/target.h"

enum { MAX_NAME = 200 };

struct wanted {
	struct place_block *list;
	size_t nr;
};

static int report_place_by_addr(const void *pa, const void *pb)
{
	const struct place_block *a = pa, *b = pb;

	return (a->addr > b->addr) - (a->addr < b->addr);
}

/* The index of the first address that is not below @addr. */
static size_t first_from(const struct wanted *w, taddr_t addr)
{
	return array_search(i, 0, w->nr, w->list[i].addr < addr);
}

/* A pointer to a block of size 0 points to its start. */
static int report_place_visit_block(void *ctx, const struct heap_block *block)
{
	const struct wanted *w = ctx;
	u64 size = block->size ? block->size : 1;

	for (size_t i = first_from(w, block->addr); i < w->nr && w->list[i].addr - block->addr < size; i++) {
		struct place_block *b = &w->list[i];

		if (b->is_found && b->block.size <= block->size)
			continue;
		b->block = *block;
		b->is_found = true;
	}
	return 0;
}

void report_place_blocks(const struct heap *heap, struct place_block *list, size_t nr)
{
	struct wanted w = { list, nr };

	if (!nr)
		return;
	qsort(list, nr, sizeof(*list), report_place_by_addr);
	heap_for_each_block(heap, report_place_visit_block, &w);
}

static int name_block(const struct report *r, const struct report_process *p, const struct place_block *b,
		      char text[PLACE_MAX])
{
	u64 offset = b->addr - b->block.addr;
	char names[MAX_NAME], inside[32] = "";
	int err = report_callers(r, p, b->block.row, names, sizeof(names));

	if (offset)
		snprintf(inside, sizeof(inside), "byte %llu of ", (unsigned long long)offset);
	snprintf(text, PLACE_MAX, "%s%s%s%s (0x%llx)", inside, human_bytes(b->block.size).text,
		 *names ? " of " : "", names, (unsigned long long)b->block.addr);
	return err;
}

/* Append " in FILE" to the name of a place. */
static void report_place_add_file(char text[PLACE_MAX], const char *path)
{
	size_t used = strlen(text);
	char file[MAX_NAME];

	snprintf(text + used, PLACE_MAX - used, " in %s", escape_buf(file, sizeof(file), path_name(path)));
}

/* The symbolizer takes an address of code for a return address: it names the call before it. */
static int name_code(const struct report *r, const struct mapping *m, taddr_t addr, char text[PLACE_MAX])
{
	struct code_ref ref = { .module = m->module->id, .offset = addr - m->bias + 1 };
	const struct symbol *symbols;
	char name[MAX_NAME];
	size_t nr;
	int err = report_symbols(r, ref, &symbols, &nr);

	if (err)
		return err;
	/* The last one is the function that the others were inlined into. */
	if (symbols[nr - 1].function)
		snprintf(text, PLACE_MAX, "%s", escape_buf(name, sizeof(name), symbols[nr - 1].function));
	else
		snprintf(text, PLACE_MAX, "code (+0x%llx)", (unsigned long long)(addr - m->bias));
	report_place_add_file(text, module_name(m->module));
	return 0;
}

static void report_place_open_file(void *ctx, struct module *m)
{
	symbolizer_open(ctx, m);
}

/* Name a variable; "" if @addr is in no file's data. */
static int report_place_name_data(const struct report *r, const struct report_process *p, taddr_t addr,
				  char text[PLACE_MAX])
{
	const struct mapping_list *maps = &p->target->maps;
	const char *variable = NULL;
	const struct module *m;
	struct code_ref ref;
	char name[MAX_NAME], inside[32] = "";
	u64 offset;
	int err = 0;

	if (r->symbolizer)
		data_ref_open(maps, p->target->exe, addr, report_place_open_file, r->symbolizer);
	ref = data_ref(maps, addr);
	m = module_get(r->modules, ref.module);
	if (!m)
		return 0;
	offset = ref.offset;
	if (r->symbolizer)
		err = symbolize_data(r->symbolizer, ref, false, &variable, &offset);
	if (!variable)
		snprintf(text, PLACE_MAX, "data (+0x%llx)", (unsigned long long)ref.offset);
	else if (offset)
		snprintf(inside, sizeof(inside), "+0x%llx", (unsigned long long)offset);
	if (variable)
		snprintf(text, PLACE_MAX, "%s%s", escape_buf(name, sizeof(name), variable), inside);
	report_place_add_file(text, module_name(m));
	return err;
}

static void name_map(const struct snapshot_map *map, taddr_t addr, char text[PLACE_MAX])
{
	u64 offset = addr - map->start + map->file_offset;

	if (!strcmp(map->path, "[heap]"))
		snprintf(text, PLACE_MAX, "the heap, in no live block");
	else if (!strcmp(map->path, "[stack]"))
		snprintf(text, PLACE_MAX, "the stack of the main thread");
	else if (!*map->path)
		snprintf(text, PLACE_MAX, "memory in no live block");
	else
		snprintf(text, PLACE_MAX, "byte 0x%llx", (unsigned long long)offset);
	if (*map->path && *map->path != '[')
		report_place_add_file(text, map->path);
}

int report_place(const struct report *r, const struct report_process *p, const struct memory_view *v,
		 const struct place_block *b, char text[PLACE_MAX])
{
	const struct snapshot_map *map = memory_view_map(v, b->addr);
	const struct mapping *code = mapping_find(&p->target->maps, b->addr);
	int err = 0;

	*text = '\0';
	if (b->is_found)
		return name_block(r, p, b, text);
	if (!map)
		return 0;
	if (code && code->module)
		return name_code(r, code, b->addr, text);
	err = report_place_name_data(r, p, b->addr, text);
	if (!err && !*text)
		name_map(map, b->addr, text);
	return err;
}
