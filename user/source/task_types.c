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

int task_types_read(struct task_fields *out)
{
	struct task_fields f = { 0 };
	const struct {
		const char *name;
		u32 *offset;
	} fields[] = { { "mm", &f.mm },
		       { "vfork_done", &f.vfork_done },
		       { "utask", &f.utask },
		       { "real_parent", &f.real_parent },
		       { "tgid", &f.tgid } };
	struct btf *btf = btf__load_vmlinux_btf();
	int err = btf ? 0 : -errno, id;

	memset(out, 0, sizeof(*out));
	if (err)
		return err;
	id = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);
	for (size_t i = 0; i < ARRAY_SIZE(fields) && !err; i++)
		err = id > 0 ? find_member(btf, (u32)id, fields[i].name, 0, fields[i].offset) : -ENOENT;
	btf__free(btf);
	if (!err)
		*out = f;
	return err;
}
