/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the look-up of fields in the kernel's description of its types: libbpf finds the same. */
#include "user/source/task_types.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <cmocka.h>

#include "bpf/task_fields.h"
#include "tests/unit/skip.h"

/* The offset of @name, which is no member of a member, in struct @type. */
static u32 offset_of(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t = btf__type_by_id(btf, (u32)id);

	for (u32 i = 0; i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), name))
			return btf_member_bit_offset(t, i) / 8;
	fail();
	return 0;
}

/* The description of the kernel at hand. */
static void test_kernel(void **state)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct task_types *types;
	struct task_fields task;
	struct pending_fields pending;
	struct alt_stack_fields alt;

	(void)state;
	if (!btf)
		skip_because("this kernel does not describe its types");
	assert_int_equal(task_types_new(&types, TASK_TYPES_PATH), 0);
	assert_int_equal(task_types_task(types, &task), 0);
	assert_int_equal(task.mm, offset_of(btf, "task_struct", "mm"));
	assert_int_equal(task.vfork_done, offset_of(btf, "task_struct", "vfork_done"));
	assert_int_equal(task.tgid, offset_of(btf, "task_struct", "tgid"));
	assert_int_equal(task_types_pending(types, &pending), 0);
	assert_int_equal(pending.shared, offset_of(btf, "task_struct", "signal"));
	assert_int_equal(pending.of_process, offset_of(btf, "signal_struct", "shared_pending") +
						     offset_of(btf, "sigpending", "signal"));
	assert_int_equal(task_types_alt_stack(types, &alt), 0);
	assert_int_equal(alt.start, offset_of(btf, "task_struct", "sas_ss_sp"));
	assert_int_equal(alt.iterator, btf__find_by_name_kind(btf, "bpf_iter_task", BTF_KIND_FUNC));
	task_types_free(types);
	btf__free(btf);
}

/* A file of ours with the first @len bytes of @data. */
static const char *file_with(const void *data, size_t len)
{
	static char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/test_task_types.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	close(fd);
	return path;
}

/* A description whose task_struct has its fields in a member without a name. */
static struct btf *make_types(void)
{
	static const char *const names[] = { "mm", "vfork_done", "utask", "real_parent", "tgid" };
	struct btf *btf = btf__new_empty();
	int inner;

	assert_non_null(btf);
	assert_int_equal(btf__add_int(btf, "long", 8, 0), 1);
	inner = btf__add_struct(btf, NULL, 40);
	for (u32 i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(btf__add_field(btf, names[i], 1, i * 64, 0), 0);
	assert_true(btf__add_enum(btf, "e", 4) > 0 && !btf__add_enum_value(btf, "v", 1));
	assert_true(btf__add_array(btf, 1, 1, 3) > 0);
	assert_true(btf__add_struct(btf, "task_struct", 56) > 0);
	assert_int_equal(btf__add_field(btf, "first", 1, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, NULL, inner, 128, 0), 0);
	return btf;
}

static void test_nested_and_cut(void **state)
{
	struct btf *btf = make_types();
	u32 len;
	const u8 *data = btf__raw_data(btf, &len);
	struct task_types *types;
	struct pending_fields pending;
	struct task_fields task;
	const char *path;

	(void)state;
	path = file_with(data, len);
	assert_int_equal(task_types_new(&types, path), 0);
	unlink(path);
	assert_int_equal(task_types_task(types, &task), 0);
	assert_int_equal(task.mm, 16);
	assert_int_equal(task.tgid, 48);
	assert_int_equal(task_types_pending(types, &pending), -ENOENT);
	task_types_free(types);
	/* No part of it does harm, and nothing else is a description. */
	for (u32 part = 0; part < len; part++) {
		path = file_with(data, part);
		assert_true(task_types_new(&types, path) < 0);
		assert_null(types);
		unlink(path);
	}
	assert_int_equal(task_types_new(&types, "/nowhere"), -ENOENT);
	assert_int_equal(task_types_task(NULL, &task), -ENOENT);
	btf__free(btf);
}

/* Any byte of it may be wrong. */
static void test_damaged(void **state)
{
	struct btf *btf = make_types();
	u32 len;
	const u8 *data = btf__raw_data(btf, &len);
	u8 *copy = malloc(len);

	(void)state;
	assert_non_null(copy);
	for (u32 i = 0; i < len * 8; i++) {
		struct task_types *types;
		struct task_fields task;
		const char *path;

		memcpy(copy, data, len);
		copy[i / 8] ^= (u8)(1 << i % 8);
		path = file_with(copy, len);
		if (!task_types_new(&types, path) && task_types_task(types, &task))
			assert_int_equal(task.mm, 0);
		task_types_free(types);
		unlink(path);
	}
	free(copy);
	btf__free(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_nested_and_cut),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
