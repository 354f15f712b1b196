/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn numbers of a stream into functions, modules and mappings of this heaptap. */
#include "user/stream/stream_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

void stream_names_fini(struct stream_names *n)
{
	free(n->numbered);
	mapping_list_fini(&n->coming);
}

void stream_names_clear(struct stream_names *n)
{
	memset(n->fn_of, 0, sizeof(n->fn_of));
	n->nr_numbered = 0;
	mapping_list_fini(&n->coming);
	n->nr_expected = 0;
}

int stream_names_function(struct stream_names *n, const struct stream_function *f)
{
	const struct alloc_fn row = {
		.symbol = f->symbol, .name = f->name, .kind = f->kind, .family = f->family
	};
	int fn = *f->symbol ? alloc_fn_find(n->fns, f->symbol) : 0;

	n->fn_of[f->fn] = 0;
	if (f->kind >= NR_ALLOC_KINDS || f->family >= NR_FAMILIES)
		return -EINVAL;
	if (*f->symbol && (!fn || alloc_fn(n->fns, (u16)fn)->kind != row.kind))
		fn = alloc_fn_add(n->fns, &row);
	if (fn < 0)
		return fn;
	n->fn_of[f->fn] = (u16)fn;
	return 0;
}

int stream_names_module(struct stream_names *n, struct module *m)
{
	if (array_reserve(n->numbered, n->max_numbered, n->nr_numbered + 1))
		return -ENOMEM;
	n->numbered[n->nr_numbered++] = m;
	return 0;
}

struct module *stream_names_get(const struct stream_names *n, u32 number)
{
	return number && number <= n->nr_numbered ? n->numbered[number - 1] : NULL;
}

int stream_names_expect(struct stream_names *n, u32 nr)
{
	mapping_list_fini(&n->coming);
	n->nr_expected = nr;
	n->coming.maps = calloc(nr + 1, sizeof(*n->coming.maps));
	return n->coming.maps ? 0 : -ENOMEM;
}

int stream_names_mapping(struct stream_names *n, const struct stream_mapping *m)
{
	struct mapping_list *list = &n->coming;

	if (stream_names_have_all(n) || m->start >= m->end ||
	    (list->nr && m->start < list->maps[list->nr - 1].end))
		return -EINVAL;
	list->maps[list->nr++] = (struct mapping){ .start = m->start,
						   .end = m->end,
						   .file_offset = m->file_offset,
						   .bias = m->bias,
						   .module = stream_names_get(n, m->module) };
	return 0;
}

void stream_names_install(struct stream_names *n, struct mapping_list *list)
{
	u32 epoch = list->epoch;

	mapping_list_fini(list);
	*list = n->coming;
	list->epoch = epoch;
	n->coming = (struct mapping_list){ 0 };
	n->nr_expected = 0;
}
