/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of a process in heaptap's own memory. */
#include "user/scan/page_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "user/lib/array.h"

void page_copy_fini(struct page_copy *c)
{
	for (size_t i = 0; i < c->nr; i++)
		if (!c->runs[i].is_part)
			free((void *)c->runs[i].data);
	free(c->runs);
	for (size_t i = 0; i < c->nr_areas; i++)
		munmap(c->areas[i].data, c->areas[i].len);
	free(c->areas);
	free(c->wholes);
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
	c->runs[c->nr++] = (struct kept_run){ addr, addr + len, copy, false };
	c->bytes += len;
	return 0;
}

int page_copy_add_part(struct page_copy *c, taddr_t addr, const u8 *data, size_t len)
{
	struct kept_run *last = c->nr ? &c->runs[c->nr - 1] : NULL;
	int err;

	c->bytes += len;
	if (c->nr && last->is_part && last->end == addr && last->data + (last->end - last->start) == data) {
		last->end += len;
		return 0;
	}
	err = array_reserve(c->runs, c->max, c->nr + 1);
	if (!err)
		c->runs[c->nr++] = (struct kept_run){ addr, addr + len, data, true };
	return err;
}

int page_copy_own(struct page_copy *c, void *data, size_t len)
{
	int err = array_reserve(c->areas, c->max_areas, c->nr_areas + 1);

	if (!err)
		c->areas[c->nr_areas++] = (struct kept_area){ data, len };
	return err;
}

int page_copy_whole(struct page_copy *c, taddr_t start, taddr_t end)
{
	int err = array_reserve(c->wholes, c->max_wholes, c->nr_wholes + 1);

	if (!err)
		c->wholes[c->nr_wholes++] = (struct kept_whole){ start, end };
	return err;
}

static int page_copy_by_start(const void *a, const void *b)
{
	const struct kept_run *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

void page_copy_sort(struct page_copy *c)
{
	if (c->nr)
		qsort(c->runs, c->nr, sizeof(*c->runs), page_copy_by_start);
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

const u8 *page_copy_at(const struct page_copy *c, taddr_t addr, size_t *len)
{
	size_t at = page_copy_find(c, addr);
	const struct kept_run *run = &c->runs[at];

	if (at == c->nr || addr < run->start)
		return NULL;
	*len = run->end - addr < *len ? run->end - addr : *len;
	return run->data + (addr - run->start);
}

/* How many of @len bytes from @addr on, where no run is, lie in a part that is kept as a whole. */
static size_t count_zeros(const struct page_copy *c, taddr_t addr, size_t len)
{
	size_t at = array_search(i, 0, c->nr_wholes, c->wholes[i].end <= addr);
	size_t next = page_copy_find(c, addr);
	u64 room;

	if (at == c->nr_wholes || addr < c->wholes[at].start)
		return 0;
	room = c->wholes[at].end - addr;
	if (next < c->nr && c->runs[next].start - addr < room)
		room = c->runs[next].start - addr;
	return room < len ? (size_t)room : len;
}

size_t page_copy_read(const struct page_copy *c, taddr_t addr, void *buf, size_t len)
{
	size_t done = 0, nr = len;

	for (; done < len && nr; done += nr) {
		const u8 *data;

		nr = len - done;
		data = page_copy_at(c, addr + done, &nr);
		if (!data)
			nr = count_zeros(c, addr + done, len - done);
		if (data)
			memcpy((u8 *)buf + done, data, nr);
		else
			memset((u8 *)buf + done, 0, nr);
	}
	return done;
}
