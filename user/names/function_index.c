/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names for modules without DWARF: symbol tables sorted once, searched often. */
#include "user/names/function_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/names/reader_jail.h"

enum { FUNCTIONS_MAX = 8 << 20, LOOK_BACK = 64, UNPACKED_MAX = 128 << 20 };

struct function {
	u64 start, size; /* size 0 = unknown */
	const char *name;
	u8 rank; /* the smallest rank wins among the names of one address */
};

struct function_index {
	Dwfl_Module *module;
	struct reader_jail *jail;   /* borrowed; NULL = no limit */
	struct function *functions; /* owned; by start; of one start, the best last */
	size_t nr, max;
	u64 longest; /* size */
};

/* The public name first: malloc, not __libc_malloc. */
static u8 rank_of(const GElf_Sym *sym, const char *name)
{
	size_t underscores = strspn(name, "_");
	u8 rank = underscores < 3 ? underscores * 4 : 12;

	/* Mangled names begin with an underscore, and are the public names of their language. */
	if (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0)
		rank = 0;
	if (GELF_ST_BIND(sym->st_info) == STB_LOCAL)
		return rank + 2;
	return rank + (GELF_ST_BIND(sym->st_info) == STB_WEAK);
}

static bool is_of_sort(unsigned int type, enum symbol_sort sort)
{
	if (sort == SYMBOL_DATA)
		return type == STT_OBJECT;
	if (sort == SYMBOL_TLS)
		return type == STT_TLS;
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

static bool function_index_is_wanted(const GElf_Sym *sym, GElf_Word section, const char *name,
				     enum symbol_sort sort)
{

	if (section == SHN_UNDEF || section == SHN_ABS || section == SHN_COMMON || section == (GElf_Word)-1)
		return false;
	if (name[0] == '\0' || name[0] == '$' || strncmp(name, ".L", 2) == 0)
		return false; /* marks of the assembler */
	return is_of_sort(GELF_ST_TYPE(sym->st_info), sort);
}

static int function_index_add(struct function_index *index, const struct function *f)
{
	if (array_reserve(index->functions, index->max, index->nr + 1))
		return -ENOMEM;
	index->functions[index->nr++] = *f;
	if (f->size > index->longest)
		index->longest = f->size;
	return 0;
}

static int function_index_compare(const void *a, const void *b)
{
	const struct function *f = a, *g = b;

	if (f->start != g->start)
		return f->start < g->start ? -1 : 1;
	if (!f->size != !g->size)
		return f->size ? 1 : -1;
	if (f->rank != g->rank)
		return f->rank > g->rank ? -1 : 1;
	return strcmp(g->name, f->name);
}

/* Bit 0 of the address of a Thumb function tells the instruction set. */
static u64 address_mask(Dwfl_Module *module)
{
	GElf_Addr bias;
	GElf_Ehdr ehdr;
	Elf *elf = dwfl_module_getelf(module, &bias);

	return elf && gelf_getehdr(elf, &ehdr) && ehdr.e_machine == EM_ARM ? ~1ULL : ~0ULL;
}

static bool has_packed_symbols(Dwfl_Module *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	Elf_Scn *scn = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;

		if (name && strcmp(name, ".gnu_debugdata") == 0)
			return true;
	}
	return false;
}

/*
 * libdw unpacks .gnu_debugdata of any size, but handles a lack of memory. The limit is needed: a few hundred bytes
 * may unpack to gigabytes.
 */
static int get_symbol_table(const struct function_index *index)
{
	bool is_packed = index->jail && has_packed_symbols(index->module);
	int nr;

	if (is_packed)
		reader_jail_tighten(index->jail, UNPACKED_MAX);
	nr = dwfl_module_getsymtab(index->module);
	if (is_packed)
		reader_jail_relax(index->jail);
	return nr;
}

static int function_index_fill(struct function_index *index, u64 mask, enum symbol_sort sort)
{
	int nr = get_symbol_table(index);

	for (int i = 1; i < nr && i < FUNCTIONS_MAX; i++) {
		GElf_Sym sym;
		GElf_Addr addr;
		GElf_Word section;
		const char *name =
			dwfl_module_getsym_info(index->module, i, &sym, &addr, &section, NULL, NULL);
		struct function f;

		if (!name || !function_index_is_wanted(&sym, section, name, sort))
			continue;
		f = (struct function){ .start = sort == SYMBOL_TLS ? sym.st_value : addr & mask,
				       .size = sym.st_size,
				       .name = name,
				       .rank = rank_of(&sym, name) };
		if (function_index_add(index, &f))
			return -ENOMEM;
	}
	return 0;
}

int function_index_new(struct function_index **out, Dwfl_Module *module, enum symbol_sort sort,
		       struct reader_jail *jail)
{
	struct function_index *index = calloc(1, sizeof(*index));
	int err;

	if (!index)
		return -ENOMEM;
	index->module = module;
	index->jail = jail;
	err = function_index_fill(index, sort == SYMBOL_FUNCTIONS ? address_mask(module) : ~0ULL, sort);
	if (!err && index->nr == 0)
		err = -ENOENT;
	if (err) {
		function_index_free(index);
		return err;
	}
	qsort(index->functions, index->nr, sizeof(*index->functions), function_index_compare);
	*out = index;
	return 0;
}

void function_index_free(struct function_index *index)
{
	if (!index)
		return;
	free(index->functions);
	free(index);
}

static bool is_same_section(Dwfl_Module *module, u64 a, u64 b)
{
	Dwarf_Addr x = a, y = b, bias;
	Elf_Scn *section = dwfl_module_address_section(module, &x, &bias);

	return section && section == dwfl_module_address_section(module, &y, &bias);
}

/* The number of functions that begin at or below @addr. */
static size_t function_index_count_below(const struct function_index *index, u64 addr)
{
	return array_search(i, 0, index->nr, index->functions[i].start <= addr);
}

const char *function_index_find_data(const struct function_index *index, u64 addr, u64 *offset)
{
	size_t low = function_index_count_below(index, addr);

	for (size_t i = low; i > 0 && low - i < LOOK_BACK; i--) {
		const struct function *f = &index->functions[i - 1];

		if (addr - f->start >= f->size)
			continue;
		*offset = addr - f->start;
		return f->name;
	}
	return NULL;
}

const char *function_index_find(const struct function_index *index, u64 addr)
{
	size_t low = function_index_count_below(index, addr);

	if (low == 0)
		return NULL;
	/* Functions may nest (one symbol for a whole file of assembly). The innermost one begins last. */
	for (size_t i = low; i > 0 && low - i < LOOK_BACK; i--) {
		const struct function *f = &index->functions[i - 1];

		if (addr - f->start < f->size)
			return f->name;
		if (addr - f->start >= index->longest)
			break;
	}
	low--;
	if (index->functions[low].size == 0 &&
	    is_same_section(index->module, index->functions[low].start, addr))
		return index->functions[low].name;
	return NULL;
}
