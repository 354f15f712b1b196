/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the call frame information of large files in a thread, while its caller has other work to do. */
#include "user/unwind/cfi_ahead.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/thread.h"

enum {
	MIN_BYTES = 4 << 20,	  /* of files: reading fewer takes not much longer than a thread does */
	MAX_HELD_ROWS = 16 << 20, /* that nobody has asked for yet */
};

enum ahead_state { ITEM_TODO, ITEM_BUSY, ITEM_DONE, ITEM_TAKEN };

struct ahead_item {
	const struct module *module;
	enum ahead_state state;
	struct cfi_table *table; /* owned while the item is done */
	int err;
};

struct cfi_ahead {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t is_done;
	bool is_ending;
	u64 nr_held; /* rows */
	size_t nr;
	struct ahead_item items[];
};

static int unwind_cfi_ahead_load(const struct module *m, struct cfi_table **out)
{
	struct elf *elf;
	int err = m->fd < 0 ? -ENOENT : elf_open(&elf, m->fd);

	if (err)
		return err;
	err = cfi_load(out, elf);
	elf_close(elf);
	return err;
}

/* The first item that nobody has begun with, or NULL. The lock is held. */
static struct ahead_item *next_item(struct cfi_ahead *a)
{
	for (size_t i = 0; i < a->nr && !a->is_ending && a->nr_held < MAX_HELD_ROWS; i++)
		if (a->items[i].state == ITEM_TODO)
			return &a->items[i];
	return NULL;
}

static void *cfi_ahead_read_ahead(void *ctx)
{
	struct cfi_ahead *a = ctx;
	struct ahead_item *item;

	pthread_mutex_lock(&a->lock);
	while ((item = next_item(a))) {
		item->state = ITEM_BUSY;
		pthread_mutex_unlock(&a->lock);
		item->err = unwind_cfi_ahead_load(item->module, &item->table);
		pthread_mutex_lock(&a->lock);
		item->state = ITEM_DONE;
		a->nr_held += item->err ? 0 : item->table->nr_rows;
		pthread_cond_broadcast(&a->is_done);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

static struct ahead_item *find_item(struct cfi_ahead *a, const struct module *m)
{
	for (size_t i = 0; a && i < a->nr; i++)
		if (a->items[i].module == m)
			return &a->items[i];
	return NULL;
}

/* Returns the bytes of the files. */
static u64 cfi_ahead_list_files(struct cfi_ahead *a, const struct mapping_list *list,
				bool (*is_known)(const void *ctx, const struct module *m), const void *ctx)
{
	u64 bytes = 0;

	for (size_t i = 0; i < list->nr; i++) {
		const struct module *m = list->maps[i].module;
		struct stat st;

		if (!m || m->fd < 0 || is_known(ctx, m) || find_item(a, m) || fstat(m->fd, &st))
			continue;
		a->items[a->nr++] = (struct ahead_item){ .module = m };
		bytes += (u64)st.st_size;
	}
	return bytes;
}

/* On one CPU the thread would only take turns with its caller. */
static bool has_other_cpu(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) > 1;
}

struct cfi_ahead *cfi_ahead_start(const struct mapping_list *list,
				  bool (*is_known)(const void *ctx, const struct module *m), const void *ctx)
{
	struct cfi_ahead *a = calloc(1, sizeof(*a) + list->nr * sizeof(*a->items));

	if (!a || !has_other_cpu() || cfi_ahead_list_files(a, list, is_known, ctx) < MIN_BYTES) {
		free(a);
		return NULL;
	}
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->is_done, NULL);
	if (!thread_start(&a->thread, "heaptap-unwind", cfi_ahead_read_ahead, a))
		return a;
	pthread_cond_destroy(&a->is_done);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return NULL;
}

/* Take the item of @m, as soon as it is not busy. NULL: the caller reads the file. */
static struct ahead_item *take_item(struct cfi_ahead *a, const struct module *m)
{
	struct ahead_item *item = find_item(a, m);
	bool is_read;

	if (!item)
		return NULL;
	pthread_mutex_lock(&a->lock);
	while (item->state == ITEM_BUSY)
		pthread_cond_wait(&a->is_done, &a->lock);
	is_read = item->state == ITEM_DONE;
	item->state = ITEM_TAKEN;
	a->nr_held -= is_read && !item->err ? item->table->nr_rows : 0;
	pthread_mutex_unlock(&a->lock);
	return is_read ? item : NULL;
}

int cfi_ahead_load(struct cfi_ahead *a, const struct module *m, struct cfi_table **out)
{
	struct ahead_item *item = take_item(a, m);

	if (!item)
		return unwind_cfi_ahead_load(m, out);
	*out = take_ptr(item->table);
	return item->err;
}

void cfi_ahead_end(struct cfi_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->is_ending = true;
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	for (size_t i = 0; i < a->nr; i++)
		cfi_free(a->items[i].table);
	pthread_cond_destroy(&a->is_done);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
