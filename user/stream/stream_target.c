/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn a target into records of a stream, and a record into the identity of a target. */
#include "user/stream/stream_target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/stream/stream_write.h"
#include "user/target/target.h"

void stream_modules_fini(struct stream_modules *m)
{
	free(m->numbers);
	free(m->list);
	*m = (struct stream_modules){ 0 };
}

void stream_modules_clear(struct stream_modules *m)
{
	m->nr = 0;
	if (m->numbers)
		memset(m->numbers, 0, m->max_numbers * sizeof(*m->numbers));
}

struct stream_process stream_process_of(const struct target *t, u64 time_ns)
{
	const u16 one = 1;
	u8 order = *(const u8 *)&one ? 0 : STREAM_BIG_ENDIAN;

	return (struct stream_process){ .pid = (u32)t->pid,
					.flags = order | (t->is_started ? STREAM_STARTED : 0),
					.word_size = t->is_32bit ? 4 : 8,
					.time_ns = time_ns,
					.start_time = t->start_time,
					.comm = t->comm,
					.exe = t->exe };
}

int stream_process_take(struct target *t, const struct stream_process *rec)
{
	char *exe = strdup(rec->exe);

	if (!exe)
		return -ENOMEM;
	free(t->exe);
	t->exe = exe;
	snprintf(t->comm, sizeof(t->comm), "%s", rec->comm);
	t->start_time = rec->start_time;
	t->is_started = rec->flags & STREAM_STARTED;
	t->is_32bit = rec->word_size == 4;
	return 0;
}

static int write_module(struct stream_writer *w, const struct module *module, u32 number)
{
	struct stream_module rec = { .module = number,
				     .is_deleted = module->is_deleted,
				     .dev = module->dev,
				     .ino = module->ino,
				     .build_id_len = module->build_id_len,
				     .path = module->path,
				     .link = module->link ? module->link : "" };

	memcpy(rec.build_id, module->build_id, module->build_id_len);
	return stream_write(w, STREAM_MODULE, &rec);
}

static int stream_target_introduce(struct stream_writer *w, struct stream_modules *m,
				   const struct module *module)
{
	size_t had = m->max_numbers;

	if (array_reserve(m->numbers, m->max_numbers, module->id + 1UL))
		return -ENOMEM;
	if (m->max_numbers > had)
		memset(m->numbers + had, 0, (m->max_numbers - had) * sizeof(*m->numbers));
	if (m->numbers[module->id])
		return 0;
	if (array_reserve(m->list, m->max, m->nr + 1))
		return -ENOMEM;
	m->list[m->nr] = module;
	m->numbers[module->id] = ++m->nr;
	return write_module(w, module, m->nr);
}

int stream_write_modules(struct stream_writer *w, const struct stream_modules *m)
{
	int err = 0;

	for (u32 i = 0; i < m->nr && !err; i++)
		err = write_module(w, m->list[i], i + 1);
	return err;
}

int stream_introduce(struct stream_writer *w, struct stream_modules *m, const struct target *t)
{
	int err = 0;

	for (size_t i = 0; i < t->maps.nr && !err; i++)
		if (t->maps.maps[i].module)
			err = stream_target_introduce(w, m, t->maps.maps[i].module);
	for (size_t i = 0; i < t->nr_allocators && !err; i++)
		err = stream_target_introduce(w, m, t->allocators[i].module);
	return err;
}

int stream_write_maps(struct stream_writer *w, struct stream_modules *m, const struct target *t)
{
	const struct mapping_list *list = &t->maps;
	const struct stream_maps maps = { (u32)t->pid, list->epoch, (u32)list->nr };
	int err = stream_introduce(w, m, t);

	if (!err)
		err = stream_write(w, STREAM_MAPS, &maps);
	for (size_t i = 0; i < list->nr && !err; i++) {
		const struct mapping *map = &list->maps[i];
		const struct stream_mapping rec = { map->start, map->end, map->file_offset, map->bias,
						    map->module ? m->numbers[map->module->id] : 0 };

		err = stream_write(w, STREAM_MAPPING, &rec);
	}
	for (size_t i = 0; i < t->nr_allocators && !err; i++) {
		const struct target_allocator *a = &t->allocators[i];
		const struct stream_allocator rec = { (u32)t->pid, m->numbers[a->module->id], a->kind };

		err = stream_write(w, STREAM_ALLOCATOR, &rec);
	}
	return err;
}
