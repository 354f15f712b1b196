/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn numbers of a stream into functions, modules, mappings and allocators of this heaptap. Nothing is believed. */
#include "user/stream/stream_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/target/target.h"

enum {
	NAME_COST = 64, /* bytes, beside the text */
	MAX_ALLOCATORS = 256,
	MAX_KINDS = 64, /* of allocators, of all processes */
	MAX_KIND = 32,	/* bytes of its name */
};

static void forget_mappings(struct stream_names *n)
{
	mapping_list_fini(&n->coming);
	n->is_mapping = false;
	n->nr_expected = 0;
}

void stream_names_fini(struct stream_names *n)
{
	for (u32 i = 0; i < n->nr_kinds; i++)
		free(n->kinds[i]);
	free(n->kinds);
	free(n->numbered);
	mapping_list_fini(&n->coming);
}

static int names_charge(const struct stream_names *n, enum stream_kind kind, s64 bytes)
{
	return n->owner.charge(n->owner.ctx, kind, bytes);
}

void stream_names_clear(struct stream_names *n)
{
	/* Giving back is never refused. */
	if (n->is_mapping)
		(void)!names_charge(n, STREAM_MAPS, -(s64)(n->nr_expected * sizeof(struct mapping)));
	memset(n->fn_of, 0, sizeof(n->fn_of));
	n->nr_numbered = 0;
	n->is_later = true;
	n->why = NULL;
	forget_mappings(n);
}

static int names_refuse(struct stream_names *n, const char *why)
{
	n->why = why;
	return -EBADMSG;
}

/* Has @text no control characters? */
static bool is_name(const char *text)
{
	while ((u8)*text >= ' ' && *text != 0x7f)
		text++;
	return !*text;
}

static int stream_names_take_function(struct stream_names *n, const struct stream_function *f)
{
	const struct alloc_fn row = {
		.symbol = f->symbol, .name = f->name, .kind = f->kind, .family = f->family
	};
	bool is_named = *f->symbol && is_name(f->symbol) && is_name(f->name);
	int fn = is_named ? alloc_fn_find(n->fns, f->symbol) : 0;

	n->fn_of[f->fn] = 0;
	if (f->kind >= NR_ALLOC_KINDS || f->family >= NR_FAMILIES)
		return names_refuse(n, "an allocator function of a kind that is not known");
	if (is_named && (!fn || alloc_fn(n->fns, (u16)fn)->kind != row.kind))
		fn = alloc_fn_add(n->fns, &row);
	if (fn < 0)
		return fn == -ENOSPC ? names_refuse(n, "too many allocator functions") : fn;
	n->fn_of[f->fn] = (u16)fn;
	return 0;
}

/* A module that an earlier stream has introduced. */
static struct module *find_module(const struct stream_names *n, const struct stream_module *in)
{
	for (u32 id = n->is_later ? (u32)module_count(n->modules) : 0; id > 0; id--) {
		struct module *m = module_get(n->modules, id);

		if (m->build_id_len == in->build_id_len && m->ino == in->ino && m->dev == in->dev &&
		    !memcmp(m->build_id, in->build_id, in->build_id_len) && !strcmp(m->path, in->path))
			return m;
	}
	return NULL;
}

static int add_module(const struct stream_names *n, const struct stream_module *in, struct module **out)
{
	struct module known = { .path = (char *)in->path,
				.dev = in->dev,
				.ino = in->ino,
				.build_id_len = in->build_id_len,
				.is_deleted = in->is_deleted };
	int err = names_charge(n, STREAM_MODULE, (s64)(NAME_COST + strlen(in->path) + strlen(in->link)));

	memcpy(known.build_id, in->build_id, sizeof(known.build_id));
	if (!err)
		err = module_add_known(n->modules, &known, out);
	return err ? err : module_set_link(*out, in->link);
}

static int take_module(struct stream_names *n, const struct stream_module *in)
{
	struct module *m = find_module(n, in);
	int err = 0;

	if (n->nr_numbered == n->max_modules || (!m && module_count(n->modules) >= n->max_modules))
		return names_refuse(n, "too many files");
	if (!m)
		err = add_module(n, in, &m);
	if (!err)
		err = array_reserve(n->numbered, n->max_numbered, n->nr_numbered + 1);
	if (!err)
		n->numbered[n->nr_numbered++] = m;
	return err;
}

/* The module of @number, NULL for 0. */
static struct module *module_of(const struct stream_names *n, u32 number)
{
	return number && number <= n->nr_numbered ? n->numbered[number - 1] : NULL;
}

/* All mappings have come: they take the place of those before. */
static int install_mappings(struct stream_names *n, struct target **changed)
{
	struct target *t = n->owner.find(n->owner.ctx, n->mapped);
	struct mapping_list old;
	int err;

	if (!t)
		return names_refuse(n, "mappings of a process that is not there");
	old = t->maps;
	t->maps = n->coming;
	t->maps.epoch = old.epoch + 1;
	err = names_charge(n, STREAM_MAPS, -(s64)(old.nr * sizeof(*old.maps)));
	n->coming = old;
	forget_mappings(n);
	*changed = t;
	return err;
}

static int take_maps(struct stream_names *n, const struct stream_maps *in, struct target **changed)
{
	int err;

	if (in->nr > STREAM_MAX_MAPPINGS)
		return names_refuse(n, "too many mappings");
	if (!n->owner.find(n->owner.ctx, in->pid))
		return names_refuse(n, "mappings of a process that is not there");
	err = names_charge(n, STREAM_MAPS, (s64)(in->nr * sizeof(struct mapping)));
	if (err)
		return err;
	n->coming.maps = calloc(in->nr + 1, sizeof(*n->coming.maps));
	if (!n->coming.maps)
		return -ENOMEM;
	n->mapped = in->pid;
	n->nr_expected = in->nr;
	n->is_mapping = true;
	return in->nr ? 0 : install_mappings(n, changed);
}

static int take_mapping(struct stream_names *n, const struct stream_mapping *in, struct target **changed)
{
	struct mapping_list *list = &n->coming;

	if (!n->is_mapping || in->start >= in->end || (list->nr && in->start < list->maps[list->nr - 1].end))
		return names_refuse(n, "a mapping out of place");
	list->maps[list->nr++] = (struct mapping){ .start = in->start,
						   .end = in->end,
						   .file_offset = in->file_offset,
						   .bias = in->bias,
						   .module = module_of(n, in->module) };
	return list->nr == n->nr_expected ? install_mappings(n, changed) : 0;
}

/* The one copy of @kind, which is a plain word or two, whatever a stream says. NULL without memory. */
static const char *keep_kind(struct stream_names *n, const char *kind)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-_. ";
	size_t len = strlen(kind);

	for (u32 i = 0; i < n->nr_kinds; i++)
		if (!strcmp(n->kinds[i], kind))
			return n->kinds[i];
	if (!len || len > MAX_KIND || n->nr_kinds == MAX_KINDS || strspn(kind, letters) != len)
		return "other";
	if (array_extend(n->kinds, n->nr_kinds))
		return NULL;
	n->kinds[n->nr_kinds] = strdup(kind);
	return n->kinds[n->nr_kinds] ? n->kinds[n->nr_kinds++] : NULL;
}

static int take_allocator(struct stream_names *n, const struct stream_allocator *in, struct target **changed)
{
	struct target *t = n->owner.find(n->owner.ctx, in->pid);
	const struct module *m = module_of(n, in->module);
	const char *kind = keep_kind(n, in->kind);
	size_t nr;
	int err;

	if (!t || !m || t->nr_allocators == MAX_ALLOCATORS)
		return names_refuse(n, t && m ? "too many allocators"
					      : "an allocator of a process that is not there");
	nr = t->nr_allocators;
	err = kind ? target_add_allocator(t, m, kind) : -ENOMEM;
	if (!err && t->nr_allocators > nr) {
		*changed = t;
		err = names_charge(n, STREAM_ALLOCATOR, NAME_COST);
	}
	return err;
}

int stream_names_take(struct stream_names *n, enum stream_kind kind, const void *rec, struct target **changed)
{
	*changed = NULL;
	n->why = NULL;
	if (n->is_mapping && kind != STREAM_MAPPING)
		return names_refuse(n, "something else between mappings");
	switch (kind) {
	case STREAM_FUNCTION:
		return stream_names_take_function(n, rec);
	case STREAM_MODULE:
		return take_module(n, rec);
	case STREAM_MAPS:
		return take_maps(n, rec, changed);
	case STREAM_MAPPING:
		return take_mapping(n, rec, changed);
	default:
		return take_allocator(n, rec, changed);
	}
}
