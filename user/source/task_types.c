/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offsets of fields of a task, from the kernel's description of its types. */
#include "user/source/task_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/btf.h>

#include "bpf/task_fields.h"
#include "user/lib/cleanup.h"

enum { MAX_NESTED = 4, MAX_BYTES = 64 << 20 };

/*
 * All of the description, some 5 MB. libbpf would read it by stdio, copy it and index each of its 10^5 types, which
 * takes ten times as long as to look through them.
 */
struct task_types {
	void *data; /* owned */
	size_t size;
	const u8 *types, *types_end;
	const char *names;
	u32 names_len;
};

/* The bytes behind a struct btf_type; -1: a kind that is newer than heaptap. */
static ssize_t tail_of(const struct btf_type *type)
{
	u32 vlen = btf_vlen(type);

	switch (btf_kind(type)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return vlen * 12;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return vlen * 8;
	default:
		return btf_kind(type) <= BTF_KIND_ENUM64 ? 0 : -1;
	}
}

/* The type behind @type, which may be NULL for the first one. NULL: there is none. */
static const struct btf_type *next_type(const struct task_types *t, const struct btf_type *type)
{
	const u8 *at = type ? (const u8 *)(type + 1) + tail_of(type) : t->types;
	const struct btf_type *next = (const void *)at;
	size_t left = at < t->types_end ? (size_t)(t->types_end - at) : 0;
	ssize_t tail = left >= sizeof(*next) ? tail_of(next) : -1;

	return tail >= 0 && (size_t)tail <= left - sizeof(*next) ? next : NULL;
}

static const char *name_at(const struct task_types *t, u32 offset)
{
	return offset < t->names_len ? t->names + offset : "";
}

/* The type with this name and kind, and its number. NULL: there is none. */
static const struct btf_type *find_type(const struct task_types *t, const char *name, u32 kind, u32 *id)
{
	const struct btf_type *type = NULL;

	for (*id = 1; (type = next_type(t, type)); ++*id)
		if (btf_kind(type) == kind && !strcmp(name_at(t, type->name_off), name))
			return type;
	return NULL;
}

static const struct btf_type *type_of_id(const struct task_types *t, u32 id)
{
	const struct btf_type *type = NULL;

	for (u32 i = 0; i < id; i++)
		if (!(type = next_type(t, type)))
			return NULL;
	return type;
}

/* The offset of member @name of @type, also in members without a name. 0, or -ENOENT. */
static int find_member(const struct task_types *t, const struct btf_type *type, const char *name, u32 depth,
		       u32 *offset)
{
	const struct btf_member *m;

	if (!type || !btf_is_composite(type) || depth == MAX_NESTED)
		return -ENOENT;
	m = btf_members(type);
	for (u32 i = 0; i < btf_vlen(type); i++, m++) {
		const char *found = name_at(t, m->name_off);
		u32 at = btf_member_bit_offset(type, i) / 8, inner;

		if (!strcmp(found, name)) {
			*offset = at;
			return 0;
		}
		if (!*found && !find_member(t, type_of_id(t, m->type), name, depth + 1, &inner)) {
			*offset = at + inner;
			return 0;
		}
	}
	return -ENOENT;
}

/* An offset in a struct. */
struct wanted_field {
	const char *name;
	u32 *offset;
};

static int find_fields_of(const struct task_types *t, const char *name, const struct wanted_field *fields,
			  size_t nr)
{
	u32 id;
	const struct btf_type *type = find_type(t, name, BTF_KIND_STRUCT, &id);
	int err = type ? 0 : -ENOENT;

	for (size_t i = 0; i < nr && !err; i++)
		err = find_member(t, type, fields[i].name, 0, fields[i].offset);
	return err;
}

static int find_fields(const struct task_types *t, const struct wanted_field *fields, size_t nr)
{
	return find_fields_of(t, "task_struct", fields, nr);
}

/* Read all of @fd, which gives a page at a time. */
static int read_types(struct task_types *t, int fd)
{
	struct stat st;
	size_t done = 0;
	ssize_t nr = 1;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size <= 0 || st.st_size > MAX_BYTES)
		return -EINVAL;
	t->size = (size_t)st.st_size;
	t->data = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
		       0);
	if (t->data == MAP_FAILED)
		return -ENOMEM;
	while (done < t->size && (nr = read(fd, (u8 *)t->data + done, t->size - done)) > 0)
		done += (size_t)nr;
	if (nr < 0)
		return -errno;
	return done == t->size ? 0 : -EIO;
}

/* Find the parts, which must lie within the data. */
static int find_parts(struct task_types *t)
{
	const struct btf_header *h = t->data;
	u64 types, names;

	if (t->size < sizeof(*h) || h->magic != BTF_MAGIC || h->hdr_len > t->size)
		return -EINVAL;
	types = (u64)h->hdr_len + h->type_off;
	names = (u64)h->hdr_len + h->str_off;
	if (types + h->type_len > t->size || names + h->str_len > t->size || types % 4 || !h->str_len)
		return -EINVAL;
	t->types = (const u8 *)t->data + types;
	t->types_end = t->types + h->type_len;
	t->names = (const char *)t->data + names;
	t->names_len = h->str_len;
	return t->names[t->names_len - 1] ? -EINVAL : 0;
}

int task_types_new(struct task_types **out, const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct task_types *t = fd < 0 ? NULL : calloc(1, sizeof(*t));
	int err = fd < 0 ? -errno : t ? 0 : -ENOMEM;

	*out = NULL;
	if (!err)
		err = read_types(t, fd);
	if (!err)
		err = find_parts(t);
	if (err)
		task_types_free(t);
	else
		*out = t;
	return err;
}

void task_types_free(struct task_types *t)
{
	if (t && t->data && t->data != MAP_FAILED)
		munmap(t->data, t->size);
	free(t);
}

int task_types_task(const struct task_types *t, struct task_fields *out)
{
	struct task_fields f = { 0 };
	const struct wanted_field fields[] = { { "mm", &f.mm },
					       { "vfork_done", &f.vfork_done },
					       { "utask", &f.utask },
					       { "real_parent", &f.real_parent },
					       { "tgid", &f.tgid } };
	int err = t ? find_fields(t, fields, ARRAY_SIZE(fields)) : -ENOENT;

	memset(out, 0, sizeof(*out));
	if (!err)
		*out = f;
	return err;
}

int task_types_alt_stack(const struct task_types *t, struct alt_stack_fields *out)
{
	const struct wanted_field fields[] = { { "sas_ss_sp", &out->start }, { "tgid", &out->tgid } };
	int err;

	if (!t || !find_type(t, "bpf_iter_task", BTF_KIND_FUNC, &out->iterator))
		return -ENOENT;
	err = find_fields(t, fields, ARRAY_SIZE(fields));
	return err || (out->start <= INT16_MAX && out->tgid <= INT16_MAX) ? err : -ERANGE;
}

int task_types_pending(const struct task_types *t, struct pending_fields *out)
{
	struct pending_fields f = { 0 };
	u32 set = 0;
	const struct wanted_field of_task[] = { { "pending", &f.of_thread }, { "signal", &f.shared } };
	const struct wanted_field of_process = { "shared_pending", &f.of_process },
				  of_pending = { "signal", &set };
	int err = t ? find_fields(t, of_task, ARRAY_SIZE(of_task)) : -ENOENT;

	if (!err)
		err = find_fields_of(t, "signal_struct", &of_process, 1);
	if (!err)
		err = find_fields_of(t, "sigpending", &of_pending, 1);
	f.of_thread += set;
	f.of_process += set;
	if (!err)
		*out = f;
	return err;
}
