/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names from DWARF, the most exact source. Limits on depth and number of entries are our own. */
#include "user/names/dwarf_names.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

/* Limits against hostile data. Real units are far smaller. */
enum { DEPTH_MAX = 64, ENTRIES_MAX = 4 << 20, RANGES_MAX = 16 << 20 };

struct dwarf_range {
	u64 start, end;
	u64 die;  /* offset in .debug_info */
	u32 unit; /* index, in the table of units */
};

struct range_table {
	struct dwarf_range *ranges; /* owned; by start; they may overlap or nest in odd files */
	u64 *reach; /* owned; the highest end of the ranges up to this one: where a search backwards may stop */
	size_t nr, max;
};

struct dwarf_unit {
	u64 die;
	bool is_indexed;
	struct range_table functions;
};

struct dwarf_names {
	Dwarf *dwarf;
	struct dwarf_unit *units; /* owned */
	size_t nr_units, max_units;
	struct range_table addresses; /* of the units */
};

static int range_add(struct range_table *t, const struct dwarf_range *range)
{
	if (array_reserve(t->ranges, t->max, t->nr + 1))
		return -ENOMEM;
	t->ranges[t->nr++] = *range;
	return 0;
}

static int dwarf_names_compare(const void *a, const void *b)
{
	const struct dwarf_range *r = a, *s = b;

	if (r->start != s->start)
		return r->start < s->start ? -1 : 1;
	if (r->end != s->end)
		return r->end > s->end ? -1 : 1; /* the inner one last */
	return r->die < s->die ? -1 : r->die > s->die;
}

static int range_sort(struct range_table *t)
{
	u64 reach = 0;

	if (t->nr == 0)
		return 0;
	t->reach = malloc(t->nr * sizeof(*t->reach));
	if (!t->reach)
		return -ENOMEM;
	qsort(t->ranges, t->nr, sizeof(*t->ranges), dwarf_names_compare);
	for (size_t i = 0; i < t->nr; i++) {
		if (t->ranges[i].end > reach)
			reach = t->ranges[i].end;
		t->reach[i] = reach;
	}
	return 0;
}

static void range_fini(struct range_table *t)
{
	free(t->ranges);
	free(t->reach);
	*t = (struct range_table){ 0 };
}

/* The innermost range with @addr, or NULL. */
static const struct dwarf_range *range_find(const struct range_table *t, u64 addr)
{
	size_t end = array_search(i, 0, t->nr, t->ranges[i].start <= addr);

	for (size_t i = end; i > 0 && t->reach[i - 1] > addr; i--)
		if (addr < t->ranges[i - 1].end)
			return &t->ranges[i - 1];
	return NULL;
}

/* Add every address range of @die. */
static int add_ranges(struct range_table *t, Dwarf_Die *die, u32 unit)
{
	struct dwarf_range range = { .die = dwarf_dieoffset(die), .unit = unit };
	Dwarf_Addr base, start, end;
	ptrdiff_t next = 0;

	while ((next = dwarf_ranges(die, next, &base, &start, &end)) > 0) {
		/* Code that the linker dropped has its ranges at 0. */
		if (start == 0 || start >= end)
			continue;
		if (t->nr >= RANGES_MAX)
			return 0;
		range.start = start;
		range.end = end;
		if (range_add(t, &range))
			return -ENOMEM;
	}
	return 0;
}

static int add_unit(struct dwarf_names *names, Dwarf_Die *die)
{
	if (array_reserve(names->units, names->max_units, names->nr_units + 1))
		return -ENOMEM;
	names->units[names->nr_units] = (struct dwarf_unit){ .die = dwarf_dieoffset(die) };
	return add_ranges(&names->addresses, die, names->nr_units++);
}

/* .debug_aranges would be faster, but clang and Rust do not write it. */
static int add_units(struct dwarf_names *names)
{
	Dwarf_CU *unit = NULL;
	uint8_t type;
	Dwarf_Die die;
	int err = 0;

	while (!err && names->nr_units < ENTRIES_MAX &&
	       dwarf_get_units(names->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			err = add_unit(names, &die);
	if (!err && names->addresses.nr == 0)
		err = -ENOENT;
	return err ? err : range_sort(&names->addresses);
}

int dwarf_names_new(struct dwarf_names **out, Dwarf *dwarf)
{
	struct dwarf_names *names = calloc(1, sizeof(*names));
	int err;

	if (!names)
		return -ENOMEM;
	names->dwarf = dwarf;
	err = add_units(names);
	if (err) {
		dwarf_names_free(names);
		return err;
	}
	*out = names;
	return 0;
}

void dwarf_names_free(struct dwarf_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->nr_units; i++)
		range_fini(&names->units[i].functions);
	free(names->units);
	range_fini(&names->addresses);
	free(names);
}

/* True if functions may be defined inside. */
static bool is_scope(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

/*
 * Add the functions of a unit. Walks its tree as deep as functions can be (a lambda in a function in a namespace).
 * @path[n] is the place of the walk at depth n.
 */
static int add_functions(struct dwarf_names *names, struct dwarf_unit *unit)
{
	Dwarf_Die path[DEPTH_MAX];
	size_t entries = 0;
	int depth = 0;

	if (!dwarf_offdie(names->dwarf, unit->die, &path[0]) || dwarf_child(&path[0], &path[1]) != 0)
		return 0;
	depth = 1;
	while (depth > 0 && entries++ < ENTRIES_MAX) {
		int tag = dwarf_tag(&path[depth]);

		if (tag == DW_TAG_subprogram && add_ranges(&unit->functions, &path[depth], 0))
			return -ENOMEM;
		if (is_scope(tag) && depth < DEPTH_MAX - 1 &&
		    dwarf_child(&path[depth], &path[depth + 1]) == 0) {
			depth++;
			continue;
		}
		while (depth > 0 && dwarf_siblingof(&path[depth], &path[depth]) != 0)
			depth--;
	}
	return 0;
}

/* Index the functions of a unit. Without memory the index stays empty, and the next search tries again. */
static int index_functions(struct dwarf_names *names, struct dwarf_unit *unit)
{
	int err = add_functions(names, unit);

	if (!err)
		err = range_sort(&unit->functions);
	if (err)
		range_fini(&unit->functions);
	unit->is_indexed = !err;
	return err;
}

/* The linker symbol if the entry has one, because it contains parameters and scopes. */
static const char *dwarf_names_name_of(Dwarf_Die *die)
{
	static const unsigned int attributes[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };

	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
		Dwarf_Attribute attr;
		const char *name = dwarf_formstring(dwarf_attr_integrate(die, attributes[i], &attr));

		if (name && *name)
			return name;
	}
	return NULL;
}

/* The inlined call or block among the children of @die that holds @addr. */
static bool find_child(Dwarf_Die *die, u64 addr, size_t *entries, Dwarf_Die *child)
{
	if (dwarf_child(die, child) != 0)
		return false;
	do {
		int tag = dwarf_tag(child);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
		     tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
		    dwarf_haspc(child, addr) > 0)
			return true;
	} while ((*entries)++ < ENTRIES_MAX && dwarf_siblingof(child, child) == 0);
	return false;
}

static u32 unsigned_attr(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value) != 0 || value > UINT32_MAX)
		return 0;
	return value;
}

/* The line of the declaration, which a function without a place of its own has from another entry. */
static u32 start_line_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_line, &attr), &value) != 0 ||
	    value > UINT32_MAX)
		return 0;
	return value;
}

/* Set the source line of the call that was inlined as @die. */
static void set_call_site(struct dwarf_frame *frame, Dwarf_Die *unit_die, Dwarf_Die *die)
{
	Dwarf_Files *files;
	size_t nr;

	frame->line = unsigned_attr(die, DW_AT_call_line);
	if (dwarf_getsrcfiles(unit_die, &files, &nr) == 0)
		frame->file = dwarf_filesrc(files, unsigned_attr(die, DW_AT_call_file), NULL, NULL);
}

static void set_line(struct dwarf_frame *frame, Dwarf_Die *unit_die, u64 addr)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit_die, addr);
	int number;

	if (!line)
		return;
	frame->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		frame->line = number;
}

/* Fill @chain with the function and the inlined calls that hold @addr, from the function inwards. */
static size_t dwarf_names_find_chain(Dwarf_Die *function, u64 addr, Dwarf_Die chain[DWARF_FRAMES_MAX])
{
	Dwarf_Die at = *function, child;
	size_t nr = 0, entries = 0;

	chain[nr++] = at;
	for (int depth = 0; depth < 4 * DEPTH_MAX && find_child(&at, addr, &entries, &child); depth++) {
		at = child;
		if (dwarf_tag(&at) == DW_TAG_inlined_subroutine && nr < DWARF_FRAMES_MAX)
			chain[nr++] = at;
	}
	return nr;
}

static const char *directory_of(Dwarf_Die *unit_die)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr(unit_die, DW_AT_comp_dir, &attr));
}

size_t dwarf_names_find(struct dwarf_names *names, u64 addr, struct dwarf_frame frames[DWARF_FRAMES_MAX])
{
	const struct dwarf_range *range = range_find(&names->addresses, addr);
	Dwarf_Die unit_die, function, chain[DWARF_FRAMES_MAX];
	struct dwarf_unit *unit;
	size_t nr = 0;

	if (!range)
		return 0;
	unit = &names->units[range->unit];
	if (!dwarf_offdie(names->dwarf, unit->die, &unit_die))
		return 0;
	if (!unit->is_indexed && index_functions(names, unit))
		return 0;
	range = range_find(&unit->functions, addr);
	if (range && dwarf_offdie(names->dwarf, range->die, &function))
		nr = dwarf_names_find_chain(&function, addr, chain);
	memset(frames, 0, (nr ? nr : 1) * sizeof(*frames));
	set_line(&frames[0], &unit_die, addr);
	for (size_t i = 0; i < nr; i++) {
		frames[i].function = dwarf_names_name_of(&chain[nr - 1 - i]);
		frames[i].start_line = start_line_of(&chain[nr - 1 - i]);
		if (i > 0)
			set_call_site(&frames[i], &unit_die, &chain[nr - i]);
	}
	for (size_t i = 0; i < nr; i++)
		frames[i].directory = directory_of(&unit_die);
	if (nr == 0)
		frames[0].directory = directory_of(&unit_die);
	return nr ? nr : frames[0].file != NULL;
}
