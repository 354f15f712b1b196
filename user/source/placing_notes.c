/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which notes of a file are markers: those of heaptap.h, those that --mark-usdt names, and those of programs that
 * sample their blocks themselves.
 */
#include "user/source/placing_notes.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/probe/notes.h"
#include "user/probe/own_sampler.h"

/* The notes of include/heaptap.h, and those of a sampler: block, bytes, and the bytes that it stands for; block. */
/* clang-format off */
static const struct {
	const char *name;
	u8 what; /* enum note_what */
	u8 nr_args;
	bool is_sampler;
	const char *symbol; /* row of the table of allocator functions */
} known_notes[] = {
	{ "mark", NOTE_MARK, 1, false, NULL },
	{ "pause", NOTE_PAUSE, 0, false, NULL },
	{ "resume", NOTE_RESUME, 0, false, NULL },
	{ "alloc", NOTE_ALLOC, 2, false, "heaptap:alloc" },
	{ "free", NOTE_FREE, 1, false, "heaptap:free" },
	{ "leak_check", NOTE_LEAK_CHECK, 0, false, NULL },
	OF_HOST({ "alloc", NOTE_ALLOC, 3, true, "otel_memory:alloc" })
	OF_HOST({ "free", NOTE_FREE, 1, true, "otel_memory:free" })
};
/* clang-format on */

static bool is_own(const char *provider)
{
	return !strcmp(provider, "heaptap");
}

static bool is_of_sampler(const char *provider)
{
	return !IS_AGENT && !strcmp(provider, OWN_SAMPLER_PROVIDER);
}

/* Is the note named by --mark-usdt? */
static bool placing_notes_is_named(struct placing *p, const char *provider, const char *name)
{
	const char *const *usdt = p->options.usdt;
	size_t len = strlen(provider);

	for (size_t i = 0; usdt && usdt[i]; i++) {
		if (strncmp(usdt[i], provider, len) || usdt[i][len] != ':' || strcmp(usdt[i] + len + 1, name))
			continue;
		p->usdt_found |= i < 64 ? 1ULL << i : 0;
		return true;
	}
	return false;
}

static bool placing_notes_is_wanted(void *ctx, const char *provider, const char *name)
{
	const struct placing *p = ctx;

	if (is_of_sampler(provider))
		return p->options.probes.only_sampler;
	return is_own(provider) || placing_notes_is_named(ctx, provider, name);
}

static bool describe_known(struct note_probe *out, const struct note *note)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_notes); i++) {
		u8 nr = known_notes[i].nr_args;

		if (known_notes[i].is_sampler != is_of_sampler(note->provider) ||
		    strcmp(known_notes[i].name, note->name))
			continue;
		for (u8 k = 0; k < nr; k++)
			if (note->nr_args <= k || note->args[k].kind == NOTE_ARG_UNKNOWN)
				return false;
		if (!IS_AGENT)
			memset(out->args + nr, 0, (NOTE_MAX_ARGS - nr) * sizeof(*out->args));
		out->what = known_notes[i].what;
		out->fn = known_notes[i].symbol ? alloc_fn_find(NULL, known_notes[i].symbol) : 0;
		return true;
	}
	return false;
}

/* The marker that @note asks for. False: its name or arguments are not known. */
static bool placing_notes_describe(struct note_probe *out, const struct note *note, const struct elf *elf)
{
	*out = (struct note_probe){ .flags = elf->word_size == 4 ? PROBE_32BIT : 0 };
	memcpy(out->args, note->args, sizeof(out->args));
	if (is_own(note->provider) || is_of_sampler(note->provider))
		return describe_known(out, note);
	out->what = NOTE_MARK;
	snprintf(out->name, sizeof(out->name), "%s:%s", note->provider, note->name);
	return true;
}

/* The first argument at the entry of a function, as notes say it; NULL = not known. */
static const char *first_argument(u16 machine)
{
	static const struct {
		u16 machine;
		const char *text;
	} rows[] = {
		{ EM_X86_64, "8@%rdi" }, { EM_386, "4@4(%esp)" }, { EM_AARCH64, "8@x0" },
		{ EM_ARM, "4@r0" },	 { EM_RISCV, "8@a0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].machine == machine)
			return rows[i].text;
	return NULL;
}

/*
 * Functions of LeakSanitizer that say what is no leak, and those that execute a program: markers at their first
 * instructions. Only the first argument of execve() is the name of the file.
 */
static void add_marked(struct probed_file *f, const struct elf *elf)
{
	static const u8 kinds[] = { NOTE_IGNORE, NOTE_DISABLE, NOTE_ENABLE,
				    OF_HOST(NOTE_EXEC, NOTE_EXEC, NOTE_EXEC) };
	const char *arg = first_argument(elf->machine);

	for (size_t i = 0; arg && i < ARRAY_SIZE(kinds); i++) {
		struct note_probe *n = &f->notes[f->nr_notes];

		if (!f->list.marked[i])
			continue;
		*n = (struct note_probe){ .what = kinds[i], .flags = elf->word_size == 4 ? PROBE_32BIT : 0 };
		if (IS_AGENT || !i || kinds[i - 1] != NOTE_EXEC)
			note_arg_parse(&n->args[0], elf->machine, arg);
		f->note_places[f->nr_notes++] = f->list.marked[i];
	}
}

/* The kernel counts up a word of the file's data only. */
static bool placing_notes_is_data(const struct elf *elf, u64 vaddr)
{
	const struct elf_segment *s = elf_segment_at(elf, vaddr);
	u64 offset;

	return s && s->flags & PF_W && !elf_vaddr_to_offset(elf, vaddr, &offset);
}

/* Take over those of @list that can be markers. Returns how many cannot. */
static size_t placing_notes_choose(const struct placing *p, struct probed_file *f,
				   const struct note_list *list, struct elf *elf)
{
	size_t nr_bad = 0;

	for (size_t i = 0; i < list->nr; i++) {
		const struct note *note = &list->notes[i];

		if (note->semaphore && (IS_AGENT || !p->ops->has_semaphores))
			continue;
		if (!placing_notes_describe(&f->notes[f->nr_notes], note, elf) ||
		    !note_is_probed(elf, note->vaddr) ||
		    (!IS_AGENT && note->semaphore && !placing_notes_is_data(elf, note->semaphore))) {
			nr_bad++;
			continue;
		}
		if (!IS_AGENT)
			f->note_semaphores[f->nr_notes] = note->semaphore;
		f->note_places[f->nr_notes++] = note->vaddr;
	}
	return nr_bad;
}

/* Markers behind a counter that the source does not increase. */
static void warn_silent(const struct placing *p, const struct note_list *list, const char *path)
{
	for (size_t i = 0; i < list->nr && (IS_AGENT || !p->ops->has_semaphores); i++) {
		if (!list->notes[i].semaphore)
			continue;
		warn("probe: %s: %s:%s: guarded by a semaphore, so it makes markers by BPF only", path,
		     list->notes[i].provider, list->notes[i].name);
		return;
	}
}

int placing_find_notes(struct placing *p, struct probed_file *f, struct elf *elf, const char *path)
{
	const size_t nr_marked = ARRAY_SIZE(f->list.marked);
	struct note_list list;
	bool is_any = false;
	size_t nr_bad;
	int err = notes_read(&list, elf, placing_notes_is_wanted, p);

	if (err)
		return err;
	nr_bad = list.nr_damaged + list.nr_more;
	for (size_t i = 0; i < nr_marked; i++)
		is_any |= f->list.marked[i] != 0;
	if (!list.nr && !nr_bad && !is_any)
		return 0;
	f->notes = calloc(list.nr + nr_marked, sizeof(*f->notes));
	f->note_places = calloc(list.nr + nr_marked, sizeof(*f->note_places));
	f->note_semaphores = IS_AGENT ? NULL : calloc(list.nr + nr_marked, sizeof(u64));
	err = f->notes && f->note_places && (IS_AGENT || f->note_semaphores) ? 0 : -ENOMEM;
	if (!err) {
		nr_bad += placing_notes_choose(p, f, &list, elf);
		add_marked(f, elf);
	}
	if (!err && p->nr_notes + f->nr_notes > p->ops->max_probes)
		err = -ENOSPC;
	if (!err) {
		warn_silent(p, &list, path);
		f->first_note = p->nr_notes;
		p->nr_notes += f->nr_notes;
	}
	if (!err && nr_bad)
		warn("probe: %s: %zu marker%s left out: no probe can lie there, or the note is damaged", path,
		     nr_bad, nr_bad == 1 ? "" : "s");
	if (!err && f->nr_notes)
		err = p->ops->add_notes(p->ctx, f->first_note, f->notes, f->nr_notes);
	notes_fini(&list);
	return err;
}

void placing_report_missing(const struct placing *p)
{
	const char *const *usdt = p->options.usdt, *const *omit = p->options.omit;

	for (size_t i = 0; usdt && usdt[i] && i < 64; i++)
		if (!(p->usdt_found >> i & 1))
			warn("probe: --mark-usdt: %s: no mapped file has such a probe", usdt[i]);
	for (size_t i = 0; omit && omit[i] && i < 64; i++)
		if (!(p->omit_found >> i & 1))
			warn("probe: --omit: %s: no file of this name is mapped", omit[i]);
}
