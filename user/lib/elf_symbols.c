/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols, relocations and names of ELF files, with and without section headers. */
#include "user/lib/elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/elf_field.h"

enum { CHUNK_BYTES = 16 << 10, HASH_CHUNK = 1024, MAX_CHAIN = 1 << 16, VERSYM_HIDDEN = 0x8000 };

/* Entries of one size in the file. */
struct table {
	u64 offset, nr;
	size_t entry_size;
	bool has_addend; /* relocations: RELA */
};

bool elf_dynamic(const struct elf *elf, u64 tag, u64 *value)
{
	for (u32 i = 0; i < elf->nr_dyns; i++)
		if (elf->dyns[i].tag == tag) {
			*value = elf->dyns[i].value;
			return true;
		}
	return false;
}

static const struct elf_section *section_of_type(const struct elf *elf, u32 type)
{
	for (u32 i = 0; i < elf->nr_sections; i++)
		if (elf->sections[i].type == type)
			return &elf->sections[i];
	return NULL;
}

static int load_section_strings(struct elf *elf, u32 index, struct elf_strings *strings)
{
	if (strings->data || index >= elf->nr_sections || elf->sections[index].type != SHT_STRTAB)
		return 0;
	return elf_strings_read(elf, elf->sections[index].offset, elf->sections[index].size,
				ELF_MAX_STRING_BYTES, strings);
}

static int load_dynstr(struct elf *elf)
{
	const struct elf_section *section = section_of_type(elf, SHT_DYNSYM);
	u64 vaddr, size, offset, backed;

	if (elf->dynstr.data)
		return 0;
	if (!elf_dynamic(elf, DT_STRTAB, &vaddr) || !elf_dynamic(elf, DT_STRSZ, &size))
		return section ? load_section_strings(elf, section->link, &elf->dynstr) : 0;
	backed = elf_backed(elf, vaddr, &offset);
	if (!backed)
		return 0;
	return elf_strings_read(elf, offset, size < backed ? size : backed, ELF_MAX_STRING_BYTES,
				&elf->dynstr);
}

static const char *dynamic_string(struct elf *elf, u64 index)
{
	if (load_dynstr(elf))
		return NULL;
	return elf_string(&elf->dynstr, index);
}

const char *elf_soname(struct elf *elf)
{
	u64 index;

	return elf_dynamic(elf, DT_SONAME, &index) ? dynamic_string(elf, index) : NULL;
}

const char *elf_needed(struct elf *elf, u32 nth)
{
	for (u32 i = 0; i < elf->nr_dyns; i++)
		if (elf->dyns[i].tag == DT_NEEDED && nth-- == 0)
			return dynamic_string(elf, elf->dyns[i].value);
	return NULL;
}

/* The highest symbol index in the buckets of a GNU hash table; 0 if the table is unusable. */
static u32 highest_bucket(const struct elf *elf, u64 buckets, u32 nr_buckets)
{
	u8 chunk[HASH_CHUNK * 4];
	u32 highest = 0;

	for (u32 i = 0; i < nr_buckets; i += HASH_CHUNK) {
		u32 nr = nr_buckets - i < HASH_CHUNK ? nr_buckets - i : HASH_CHUNK;

		if (elf_read_vaddr(elf, buckets + i * 4ULL, chunk, nr * 4))
			return 0;
		for (u32 j = 0; j < nr; j++) {
			u32 index = elf_u32(elf, chunk + j * 4);

			highest = index > highest ? index : highest;
		}
	}
	return highest;
}

/* The number of symbols by DT_GNU_HASH, from the end of the last chain; 0 if unknown. */
static u64 gnu_hash_count(const struct elf *elf, u64 vaddr)
{
	u32 nr_buckets, first, bloom_words, index;
	u8 header[16], word[4];
	u64 buckets;

	if (elf_read_vaddr(elf, vaddr, header, sizeof(header)))
		return 0;
	nr_buckets = elf_u32(elf, header);
	first = elf_u32(elf, header + 4);
	bloom_words = elf_u32(elf, header + 8);
	if (nr_buckets > ELF_MAX_SYMBOLS || bloom_words > ELF_MAX_SYMBOLS)
		return 0;
	buckets = vaddr + sizeof(header) + (u64)bloom_words * elf->word_size;
	index = highest_bucket(elf, buckets, nr_buckets);
	if (index < first) /* the file defines no symbol; the hash table leaves out undefined ones */
		return first;
	for (u32 end = index + MAX_CHAIN; index < end && index < ELF_MAX_SYMBOLS; index++) {
		if (elf_read_vaddr(elf, buckets + nr_buckets * 4ULL + (index - first) * 4ULL, word, 4))
			return 0;
		if (elf_u32(elf, word) & 1)
			return index + 1ULL;
	}
	return 0;
}

static u64 dynsym_count(const struct elf *elf, u64 vaddr, u64 strtab)
{
	const struct elf_section *section = section_of_type(elf, SHT_DYNSYM);
	u64 hash, nr = 0;
	u8 header[8];

	if (section && section->addr == vaddr)
		return section->size / ELF_SIZEOF(elf, Sym);
	if (elf_dynamic(elf, DT_HASH, &hash) && !elf_read_vaddr(elf, hash, header, sizeof(header)))
		return elf_u32(elf, header + 4);
	if (elf_dynamic(elf, DT_GNU_HASH, &hash))
		nr = gnu_hash_count(elf, hash);
	/* Linkers place the strings directly behind the symbols. */
	if (!nr && strtab > vaddr)
		nr = (strtab - vaddr) / ELF_SIZEOF(elf, Sym);
	return nr;
}

static void clamp_table(struct elf *elf, struct table *t, u64 max_nr, u64 max_bytes)
{
	u64 nr = t->nr;

	if (t->offset >= elf->file_size)
		t->nr = 0;
	else if (t->nr > (elf->file_size - t->offset) / t->entry_size)
		t->nr = (elf->file_size - t->offset) / t->entry_size;
	if (t->nr > max_nr)
		t->nr = max_nr;
	if (t->nr > max_bytes / t->entry_size)
		t->nr = max_bytes / t->entry_size;
	elf->nr_skipped += nr - t->nr;
}

static void table_of_section(const struct elf_section *section, struct table *t)
{
	if (!section || section->type == SHT_NOBITS)
		return;
	t->offset = section->offset;
	t->nr = section->size / t->entry_size;
}

static struct table find_dynsym(struct elf *elf)
{
	struct table t = { .entry_size = ELF_SIZEOF(elf, Sym) };
	u64 vaddr, strtab = 0;

	elf_dynamic(elf, DT_STRTAB, &strtab);
	if (!elf_dynamic(elf, DT_SYMTAB, &vaddr))
		table_of_section(section_of_type(elf, SHT_DYNSYM), &t);
	else if (elf_backed(elf, vaddr, &t.offset))
		t.nr = dynsym_count(elf, vaddr, strtab);
	clamp_table(elf, &t, ELF_MAX_DYNSYMS, UINT64_MAX);
	return t;
}

/* The symbol at @p. False if its name is outside of @strings. */
static bool decode_symbol(const struct elf *elf, const u8 *p, const struct elf_strings *strings,
			  struct elf_symbol *sym)
{
	u8 symbol_info = (u8)ELF_FIELD(elf, p, Sym, st_info);

	sym->name = elf_string(strings, ELF_FIELD(elf, p, Sym, st_name));
	sym->value = ELF_FIELD(elf, p, Sym, st_value);
	sym->size = ELF_FIELD(elf, p, Sym, st_size);
	sym->shndx = (u16)ELF_FIELD(elf, p, Sym, st_shndx);
	sym->type = ELF64_ST_TYPE(symbol_info);
	sym->bind = ELF64_ST_BIND(symbol_info);
	return sym->name;
}

struct symbol_visit {
	int (*fn)(void *ctx, const struct elf_symbol *sym);
	void *ctx;
	const struct elf_strings *strings;
	u64 versions; /* vaddr of the version words, 0 = none */
	bool is_dynamic;
};

static int visit_chunk(struct elf *elf, const struct symbol_visit *v, const u8 *chunk, u64 first, u64 nr)
{
	size_t entry_size = ELF_SIZEOF(elf, Sym);
	u8 versions[2 * CHUNK_BYTES / sizeof(Elf32_Sym)];
	bool has_versions = v->versions && !elf_read_vaddr(elf, v->versions + 2 * first, versions, 2 * nr);

	for (u64 i = 0; i < nr; i++) {
		struct elf_symbol sym = { .is_dynamic = v->is_dynamic };
		u16 version = has_versions ? elf_u16(elf, versions + 2 * i) : 0;
		int ret;

		sym.version = version & ~VERSYM_HIDDEN;
		sym.is_hidden = version & VERSYM_HIDDEN;
		if (!decode_symbol(elf, chunk + i * entry_size, v->strings, &sym)) {
			elf->nr_skipped++;
			continue;
		}
		ret = v->fn(v->ctx, &sym);
		if (ret)
			return ret;
	}
	return 0;
}

static int visit_symbols(struct elf *elf, const struct symbol_visit *v, const struct table *t)
{
	auto_free u8 *chunk = malloc(CHUNK_BYTES);
	u64 per_chunk = CHUNK_BYTES / t->entry_size;

	if (!chunk)
		return -ENOMEM;
	for (u64 i = 1; i < t->nr; i += per_chunk) { /* symbol 0 means no symbol */
		u64 nr = t->nr - i < per_chunk ? t->nr - i : per_chunk;
		int ret = elf_read_offset(elf, t->offset + i * t->entry_size, chunk, nr * t->entry_size);

		if (!ret)
			ret = visit_chunk(elf, v, chunk, i, nr);
		if (ret)
			return ret;
	}
	return 0;
}

int elf_each_symbol(struct elf *elf, int tables, int (*fn)(void *ctx, const struct elf_symbol *sym),
		    void *ctx)
{
	struct symbol_visit v = { .fn = fn, .ctx = ctx, .strings = &elf->dynstr, .is_dynamic = true };
	const struct elf_section *symtab = section_of_type(elf, SHT_SYMTAB);
	struct table t;
	int ret;

	if (tables & ELF_DYNSYM) {
		ret = load_dynstr(elf);
		if (ret)
			return ret;
		t = find_dynsym(elf);
		elf_dynamic(elf, DT_VERSYM, &v.versions);
		ret = visit_symbols(elf, &v, &t);
		if (ret)
			return ret;
	}
	if (!(tables & ELF_SYMTAB) || !symtab)
		return 0;
	ret = load_section_strings(elf, symtab->link, &elf->strtab);
	if (ret)
		return ret;
	t = (struct table){ .entry_size = ELF_SIZEOF(elf, Sym) };
	table_of_section(symtab, &t);
	clamp_table(elf, &t, ELF_MAX_SYMBOLS, UINT64_MAX);
	v.strings = &elf->strtab;
	v.versions = 0;
	v.is_dynamic = false;
	return visit_symbols(elf, &v, &t);
}

/* Relocation types by meaning; 0 = this machine has no such type. */
static const struct {
	u16 machine, jump_slot, glob_dat, absolute, irelative;
} reloc_types[] = {
	{ EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64, R_X86_64_IRELATIVE },
	{ EM_386, R_386_JMP_SLOT, R_386_GLOB_DAT, R_386_32, R_386_IRELATIVE },
	{ EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64, R_AARCH64_IRELATIVE },
	{ EM_ARM, R_ARM_JUMP_SLOT, R_ARM_GLOB_DAT, R_ARM_ABS32, R_ARM_IRELATIVE },
	{ EM_PPC, R_PPC_JMP_SLOT, R_PPC_GLOB_DAT, R_PPC_ADDR32, R_PPC_IRELATIVE },
	{ EM_PPC64, R_PPC64_JMP_SLOT, R_PPC64_GLOB_DAT, R_PPC64_ADDR64, R_PPC64_IRELATIVE },
	{ EM_RISCV, R_RISCV_JUMP_SLOT, 0, R_RISCV_64, R_RISCV_IRELATIVE },
	{ EM_MIPS, R_MIPS_JUMP_SLOT, R_MIPS_GLOB_DAT, R_MIPS_REL32, 0 },
};

static enum elf_reloc_kind reloc_kind(const struct elf *elf, u32 type)
{
	for (size_t i = 0; i < ARRAY_SIZE(reloc_types); i++) {
		if (reloc_types[i].machine != elf->machine || type == 0)
			continue;
		if (type == reloc_types[i].jump_slot)
			return ELF_RELOC_JUMP_SLOT;
		if (type == reloc_types[i].glob_dat)
			return ELF_RELOC_GLOB_DAT;
		if (type == reloc_types[i].absolute)
			return ELF_RELOC_ABSOLUTE;
		if (type == reloc_types[i].irelative)
			return ELF_RELOC_IRELATIVE;
	}
	return ELF_RELOC_OTHER;
}

struct reloc_visit {
	int (*fn)(void *ctx, const struct elf_reloc *reloc);
	void *ctx;
	u8 *symbols; /* raw .dynsym */
	u64 nr_symbols;
};

/* Sign-extended addend of the file's word size. */
static s64 reloc_addend(const struct elf *elf, const u8 *p)
{
	u64 value = ELF_FIELD(elf, p, Rela, r_addend);

	return elf->word_size == 8 ? (s64)value : (s32)value;
}

static int visit_reloc(struct elf *elf, const struct reloc_visit *v, const u8 *p, bool has_addend)
{
	u64 reloc_info = ELF_FIELD(elf, p, Rel, r_info), index;
	struct elf_reloc r = { .symbol = "", .offset = ELF_FIELD(elf, p, Rel, r_offset) };
	struct elf_symbol sym;

	r.type = (u32)(elf->word_size == 8 ? ELF64_R_TYPE(reloc_info) : ELF32_R_TYPE(reloc_info));
	index = elf->word_size == 8 ? ELF64_R_SYM(reloc_info) : ELF32_R_SYM(reloc_info);
	r.kind = reloc_kind(elf, r.type);
	if (!index && r.kind != ELF_RELOC_IRELATIVE)
		return 0;
	if (has_addend)
		r.addend = reloc_addend(elf, p);
	if (index) {
		if (index >= v->nr_symbols ||
		    !decode_symbol(elf, v->symbols + index * ELF_SIZEOF(elf, Sym), &elf->dynstr, &sym)) {
			elf->nr_skipped++;
			return 0;
		}
		r.symbol = sym.name;
	}
	return v->fn(v->ctx, &r);
}

static int visit_relocs(struct elf *elf, const struct reloc_visit *v, struct table *t)
{
	auto_free u8 *chunk = malloc(CHUNK_BYTES);
	u64 per_chunk = CHUNK_BYTES / t->entry_size;

	if (!chunk)
		return -ENOMEM;
	clamp_table(elf, t, ELF_MAX_RELOCS, UINT64_MAX);
	for (u64 i = 0; i < t->nr; i += per_chunk) {
		u64 nr = t->nr - i < per_chunk ? t->nr - i : per_chunk;
		int ret = elf_read_offset(elf, t->offset + i * t->entry_size, chunk, nr * t->entry_size);

		for (u64 j = 0; j < nr && !ret; j++)
			ret = visit_reloc(elf, v, chunk + j * t->entry_size, t->has_addend);
		if (ret)
			return ret;
	}
	return 0;
}

/* The relocations at DT_ tag @where, with @bytes in all. Relocations from @until on belong to another table. */
static int visit_dynamic_relocs(struct elf *elf, const struct reloc_visit *v, u64 where, u64 bytes,
				bool has_addend, u64 until)
{
	struct table t = { .has_addend = has_addend,
			   .entry_size = has_addend ? ELF_SIZEOF(elf, Rela) : ELF_SIZEOF(elf, Rel) };
	u64 vaddr, size, backed;

	if (!elf_dynamic(elf, where, &vaddr) || !elf_dynamic(elf, bytes, &size))
		return 0;
	if (until > vaddr && until - vaddr < size)
		size = until - vaddr;
	backed = elf_backed(elf, vaddr, &t.offset);
	t.nr = (size < backed ? size : backed) / t.entry_size;
	return visit_relocs(elf, v, &t);
}

/* Static programs have no PT_DYNAMIC, but may have IRELATIVE slots, which only a section lists. */
static int visit_section_relocs(struct elf *elf, const struct reloc_visit *v)
{
	int ret = 0;

	for (u32 i = 0; i < elf->nr_sections && !ret; i++) {
		const struct elf_section *s = &elf->sections[i];
		struct table t = { .has_addend = s->type == SHT_RELA };

		if ((s->type != SHT_RELA && s->type != SHT_REL) || !(s->flags & SHF_ALLOC))
			continue;
		t.entry_size = t.has_addend ? ELF_SIZEOF(elf, Rela) : ELF_SIZEOF(elf, Rel);
		table_of_section(s, &t);
		ret = visit_relocs(elf, v, &t);
	}
	return ret;
}

int elf_each_reloc(struct elf *elf, int (*fn)(void *ctx, const struct elf_reloc *reloc), void *ctx)
{
	struct table dynsym = find_dynsym(elf);
	auto_free u8 *symbols = NULL;
	struct reloc_visit v = { .fn = fn, .ctx = ctx };
	u64 jmprel = 0, plt_form = DT_REL;
	int ret;

	ret = load_dynstr(elf);
	if (ret)
		return ret;
	clamp_table(elf, &dynsym, ELF_MAX_DYNSYMS, ELF_MAX_DYNSYM_BYTES);
	symbols = malloc(dynsym.nr * dynsym.entry_size + 1);
	if (!symbols)
		return -ENOMEM;
	if (dynsym.nr) {
		ret = elf_read_offset(elf, dynsym.offset, symbols, dynsym.nr * dynsym.entry_size);
		if (ret)
			return ret;
	}
	v.symbols = symbols;
	v.nr_symbols = dynsym.nr;
	if (!elf->nr_dyns)
		return visit_section_relocs(elf, &v);
	elf_dynamic(elf, DT_JMPREL, &jmprel);
	elf_dynamic(elf, DT_PLTREL, &plt_form);
	ret = visit_dynamic_relocs(elf, &v, DT_JMPREL, DT_PLTRELSZ, plt_form == DT_RELA, 0);
	/* Some linkers count the PLT's relocations among the others. */
	if (!ret)
		ret = visit_dynamic_relocs(elf, &v, DT_RELA, DT_RELASZ, true, jmprel);
	if (!ret)
		ret = visit_dynamic_relocs(elf, &v, DT_REL, DT_RELSZ, false, jmprel);
	return ret;
}
