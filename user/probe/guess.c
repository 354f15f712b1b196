/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compare the code of a program with the signatures of known allocators. */
#include "user/probe/guess.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/cleanup.h"
#include "user/lib/elf.h"

enum { MOST_BYTES = 160, CHUNK = 1 << 20, MAX_PATTERNS = 128 };

/* A signature, made ready for comparing. */
struct code_pattern {
	const struct signature *signature, *build;
	u8 bytes[MOST_BYTES], mask[MOST_BYTES]; /* mask 0: any byte */
	size_t len;
	u32 nr_found;
	u64 start; /* of the first one that was found */
};

struct code_search {
	struct code_pattern *patterns; /* owned */
	size_t nr;
	bool begins[256]; /* by the first byte of a pattern, which is never masked */
};

static u8 guess_digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void guess_parse(struct code_pattern *p, const char *text)
{
	for (p->len = 0; *text && p->len < MOST_BYTES; text += 2, p->len++) {
		if (*text == '?')
			continue;
		p->bytes[p->len] = guess_digit(text[0]) << 4 | guess_digit(text[1]);
		p->mask[p->len] = 0xff;
	}
}

static int search_init(struct code_search *s)
{
	const struct signature *build = NULL;

	s->patterns = calloc(MAX_PATTERNS, sizeof(*s->patterns));
	if (!s->patterns)
		return -ENOMEM;
	for (const struct signature *sig = signatures; sig->fn || sig->build; sig++) {
		struct code_pattern *p = &s->patterns[s->nr];

		if (sig->build) {
			build = sig;
			continue;
		}
		if (s->nr == MAX_PATTERNS)
			break;
		p->signature = sig;
		p->build = build;
		guess_parse(p, sig->bytes);
		s->begins[p->bytes[0]] = true;
		s->nr++;
	}
	return 0;
}

static bool is_like(const struct code_pattern *p, const u8 *code)
{
	for (size_t i = 0; i < p->len; i++)
		if ((code[i] ^ p->bytes[i]) & p->mask[i])
			return false;
	return true;
}

/* Functions that begin in the first @nr of @len bytes of code at @vaddr. */
static void search_code(struct code_search *s, const u8 *code, size_t nr, size_t len, u64 vaddr)
{
	for (size_t at = 0; at < nr; at++) {
		if (!s->begins[code[at]])
			continue;
		for (struct code_pattern *p = s->patterns; p < s->patterns + s->nr; p++) {
			if (p->bytes[0] != code[at] || p->len > len - at || !is_like(p, code + at))
				continue;
			if (!p->nr_found++)
				p->start = vaddr + at;
		}
	}
}

static int search_segment(struct code_search *s, const struct elf *elf, const struct elf_segment *seg)
{
	auto_free u8 *buf = malloc(CHUNK + MOST_BYTES);

	if (!buf)
		return -ENOMEM;
	for (u64 done = 0; done < seg->filesz; done += CHUNK) {
		u64 left = seg->filesz - done;
		size_t nr = left < CHUNK ? left : CHUNK;
		size_t len = left < CHUNK + MOST_BYTES ? left : CHUNK + MOST_BYTES;
		int err = elf_read_offset(elf, seg->offset + done, buf, len);

		if (err)
			return err;
		search_code(s, buf, nr, len, seg->vaddr + done);
	}
	return 0;
}

static void guess_add(struct guess *g, const struct code_pattern *p)
{
	if (g->nr == GUESS_MAX_FNS)
		return;
	g->fns[g->nr].signature = p->signature;
	g->fns[g->nr++].start = p->start;
}

/* The functions of @build that were found. Empty without malloc and free. */
static void guess_collect(struct guess *g, const struct code_search *s, const struct signature *build)
{
	bool has_malloc = false, has_free = false;

	*g = (struct guess){ .build = build->build };
	g->kind = strncmp(build->build, "musl", 4) ? "guessed glibc" : "guessed musl";
	for (const struct code_pattern *p = s->patterns; p < s->patterns + s->nr; p++) {
		/* Code that is there twice could be either. */
		if (p->build != build || p->nr_found != 1)
			continue;
		has_malloc |= !strcmp(p->signature->fn, "malloc");
		has_free |= !strcmp(p->signature->fn, "free");
		guess_add(g, p);
	}
	if (!has_malloc || !has_free)
		*g = (struct guess){ 0 };
}

static bool is_static(struct elf *elf)
{
	char interp[PATH_MAX];

	return elf_interp(elf, interp, sizeof(interp)) && !elf_needed(elf, 0) && !elf_soname(elf);
}

int guess_find(struct guess *out, struct elf *elf)
{
	struct code_search s = { 0 };
	struct guess one;
	int err;

	*out = (struct guess){ 0 };
	if (elf->machine != EM_X86_64 || elf->word_size != 8 || !is_static(elf))
		return 0;
	err = search_init(&s);
	for (u32 i = 0; i < elf->nr_segments && !err; i++)
		if (elf->segments[i].type == PT_LOAD && elf->segments[i].flags & PF_X)
			err = search_segment(&s, elf, &elf->segments[i]);
	for (const struct signature *sig = signatures; !err && (sig->fn || sig->build); sig++) {
		if (!sig->build)
			continue;
		guess_collect(&one, &s, sig);
		if (one.nr > out->nr)
			*out = one;
	}
	free(s.patterns);
	return err;
}
