/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offsets of fields of a task, from the kernel's description of its types. */
#include "user/source/task_types.h"

#include <errno.h>
#include <string.h>

#include <bpf/btf.h>

#include "user/lib/types.h"

enum { MAX_NESTED = 4 };

/* The offset of member @name of type @id, also in members without a name. 0, or -ENOENT. */
static int find_member(const struct btf *btf, u32 id, const char *name, u32 depth, u32 *offset)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	const struct btf_member *m;

	if (!type || !btf_is_composite(type) || depth == MAX_NESTED)
		return -ENOENT;
	m = btf_members(type);
	for (u32 i = 0; i < btf_vlen(type); i++, m++) {
		const char *found = btf__name_by_offset(btf, m->name_off);
		u32 at = btf_member_bit_offset(type, i) / 8, inner;

		if (found && !strcmp(found, name)) {
			*offset = at;
			return 0;
		}
		if (!(found && *found) && !find_member(btf, m->type, name, depth + 1, &inner)) {
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

static int find_fields_of(const struct btf *btf, const char *type, const struct wanted_field *fields,
			  size_t nr)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT), err = id > 0 ? 0 : -ENOENT;

	for (size_t i = 0; i < nr && !err; i++)
		err = find_member(btf, (u32)id, fields[i].name, 0, fields[i].offset);
	return err;
}

static int find_fields(const struct btf *btf, const struct wanted_field *fields, size_t nr)
{
	return find_fields_of(btf, "task_struct", fields, nr);
}

int task_types_read(struct task_fields *out)
{
	struct task_fields f = { 0 };
	const struct wanted_field fields[] = { { "mm", &f.mm },
					       { "vfork_done", &f.vfork_done },
					       { "utask", &f.utask },
					       { "real_parent", &f.real_parent },
					       { "tgid", &f.tgid } };
	struct btf *btf = btf__load_vmlinux_btf();
	int err = btf ? 0 : -errno;

	memset(out, 0, sizeof(*out));
	if (err)
		return err;
	err = find_fields(btf, fields, ARRAY_SIZE(fields));
	btf__free(btf);
	if (!err)
		*out = f;
	return err;
}

int task_types_alt_stack(struct alt_stack_fields *out)
{
	const struct wanted_field fields[] = { { "sas_ss_sp", &out->start }, { "tgid", &out->tgid } };
	struct btf *btf = btf__load_vmlinux_btf();
	int err = btf ? 0 : -errno, id;

	if (err)
		return err;
	id = btf__find_by_name_kind(btf, "bpf_iter_task", BTF_KIND_FUNC);
	out->iterator = id > 0 ? (u32)id : 0;
	err = id > 0 ? find_fields(btf, fields, ARRAY_SIZE(fields)) : -ENOENT;
	btf__free(btf);
	return err || (out->start <= INT16_MAX && out->tgid <= INT16_MAX) ? err : -ERANGE;
}

int task_types_pending(struct pending_fields *out)
{
	struct pending_fields f = { 0 };
	u32 set = 0;
	const struct wanted_field of_task[] = { { "pending", &f.of_thread }, { "signal", &f.shared } };
	const struct wanted_field of_process = { "shared_pending", &f.of_process },
				  of_pending = { "signal", &set };
	struct btf *btf = btf__load_vmlinux_btf();
	int err = btf ? find_fields(btf, of_task, ARRAY_SIZE(of_task)) : -errno;

	if (!err)
		err = find_fields_of(btf, "signal_struct", &of_process, 1);
	if (!err)
		err = find_fields_of(btf, "sigpending", &of_pending, 1);
	btf__free(btf);
	f.of_thread += set;
	f.of_process += set;
	if (!err)
		*out = f;
	return err;
}
