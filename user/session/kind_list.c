/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of kinds of allocator that a recording or a list of events gives. */
#include "user/session/kind_list.h"

#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

const char *kind_list_keep(struct kind_list *list, const char *kind)
{
	char *copy;

	for (size_t i = 0; i < list->nr; i++)
		if (!strcmp(list->names[i], kind))
			return list->names[i];
	if (array_extend(list->names, list->nr))
		return NULL;
	copy = strdup(kind);
	if (copy)
		list->names[list->nr++] = copy;
	return copy;
}

void kind_list_fini(struct kind_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		free(list->names[i]);
	free(list->names);
	*list = (struct kind_list){ 0 };
}
