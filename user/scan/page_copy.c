/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of a process in heaptap's own memory. */
#include "user/scan/page_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"

void page_copy_fini(struct page_copy *c)
{
	for (size_t i = 0; i < c->nr; i++)
		free((void *)c->runs[i].data);
	free(c->runs);
	*c = (struct page_copy){ 0 };
}

int page_copy_add(struct page_copy *c, taddr_t addr, const u8 *data, size_t len)
{
	u8 *copy = malloc(len);
	int err = copy ? array_reserve(c->runs, c->max, c->nr + 1) : -ENOMEM;

	if (err) {
		free(copy);
		return err;
	}
	memcpy(copy, data, len);
	c->runs[c->nr++] = (struct kept_run){ addr, addr + len, copy };
	c->bytes += len;
	return 0;
}

int page_copy_move(struct page_copy *c, struct page_copy *from)
{
	int err = array_reserve(c->runs, c->max, c->nr + from->nr);

	if (err || !from->nr)
		return err;
	memcpy(&c->runs[c->nr], from->runs, from->nr * sizeof(*from->runs));
	c->nr += from->nr;
	c->bytes += from->bytes;
	from->nr = 0;
	from->bytes = 0;
	return 0;
}

size_t page_copy_find(const struct page_copy *c, taddr_t addr)
{
	return array_search(i, 0, c->nr, c->runs[i].end <= addr);
}

size_t page_copy_read(const struct page_copy *c, taddr_t addr, void *buf, size_t len)
{
	size_t at = page_copy_find(c, addr);
	const struct kept_run *run = &c->runs[at];

	if (at == c->nr || addr < run->start)
		return 0;
	len = run->end - addr < len ? run->end - addr : len;
	memcpy(buf, run->data + (addr - run->start), len);
	return len;
}
