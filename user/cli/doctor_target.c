/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap doctor: what can be traced in a process, and which names its libraries have. */
#include "user/cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/census/census.h"
#include "user/lib/cleanup.h"
#include "user/lib/digits.h"
#include "user/lib/elf.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/lib/proc.h"
#include "user/lib/proc_memory.h"
#include "user/probe/probe.h"
#include "user/target/target.h"

void doctor_object_fini(struct doctor_object *o)
{
	free(o->path);
	free(o->debug_file);
	*o = (struct doctor_object){ 0 };
}

/* glibc, musl, uClibc: "libc.so.6", "libc-2.31.so", "ld-musl-x86_64.so.1", "libuClibc-1.0.so". */
static bool is_libc(const char *path)
{
	static const char *const prefixes[] = { "libc.so", "libc-2.", "ld-musl-", "libuClibc" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(path_name(path), prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* Where packages put the debug file of a build ID; NULL if it is not there. */
static char *find_debug_file(const char *build_id)
{
	char path[PATH_MAX];

	if (strlen(build_id) < 4)
		return NULL;
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
	return access(path, R_OK) == 0 ? strdup(path) : NULL;
}

static void fill_object(struct doctor_object *o, struct elf *elf)
{
	u8 id[(sizeof(o->build_id) - 1) / 2];
	size_t len = elf_build_id(elf, id, sizeof(id));

	digits_bytes(o->build_id, id, len);
	o->has_symbols = elf_section(elf, ".symtab") != NULL;
	o->debug_file = find_debug_file(o->build_id);
}

static void advise_debug_files(struct doctor *d, const struct doctor_object *o)
{
	if (!o->path || o->debug_file || o->has_symbols)
		return;
	if (is_libc(o->path))
		doctor_add_help(
			d,
			"install the debug files of %s: apt install libc6-dbg, or dnf debuginfo-install glibc",
			path_name(o->path));
	else
		doctor_add_help(d, "install the debug files of %s: its package's -dbg, -dbgsym or -debuginfo",
				path_name(o->path));
}

/* ---- heaptap's own C library ---- */

static int find_libc(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct doctor_object *o = ctx;

	(void)size;
	if (!is_libc(info->dlpi_name))
		return 0;
	o->path = strdup(info->dlpi_name);
	return 1;
}

void doctor_examine_libc(struct doctor *d)
{
	auto_close int fd = -1;
	struct elf *elf = NULL;

	dl_iterate_phdr(find_libc, &d->libc);
	if (!d->libc.path)
		return;
	fd = open(d->libc.path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || elf_open(&elf, fd) != 0)
		return;
	fill_object(&d->libc, elf);
	elf_close(elf);
	advise_debug_files(d, &d->libc);
}

/* ---- a target ---- */

/* Look for allocators in the file behind @m; keep it if there are some, or if it is a C library. */
static int examine_module(struct doctor_target *dt, const struct module *m)
{
	/* The agent finds no ends of calls on some CPUs, and does without. */
	struct probe_options options = { .want_cpp = true, .has_return_places = IS_AGENT };
	struct doctor_object o = { 0 };
	struct probe_list list = { 0 };
	struct elf *elf = NULL;
	int err;

	if (m->fd < 0 || dt->nr_objects == DOCTOR_MAX_OBJECTS || elf_open(&elf, m->fd) != 0)
		return 0;
	err = probe_list_init(&list, elf, path_name(m->path), &options);
	if (!err && (list.nr || is_libc(m->path))) {
		o.path = strdup(m->path);
		o.kind = list.nr ? list.kind : NULL;
		o.nr_functions = list.nr;
		fill_object(&o, elf);
		if (o.path)
			dt->objects[dt->nr_objects++] = o;
		else
			err = -ENOMEM;
	}
	if (!err)
		probe_list_fini(&list);
	elf_close(elf);
	return err == -ENOMEM ? err : 0;
}

static int examine_modules(struct doctor_target *dt, struct target *t)
{
	struct module_table *modules = NULL;
	int err = module_table_new(&modules);

	if (err)
		return err;
	err = target_read_maps(t, modules);
	dt->is_readable = err >= 0;
	for (u32 id = 1; err >= 0 && id <= module_count(modules); id++)
		err = examine_module(dt, module_get(modules, id));
	/* The mappings point into the table. */
	mapping_list_fini(&t->maps);
	t->maps = (struct mapping_list){ 0 };
	module_table_free(modules);
	return err == -ENOMEM || err == -ESRCH ? err : 0;
}

/* Reading memory asks for the right that attaching needs; nothing is read. */
static bool can_open_memory(pid_t pid)
{
	struct proc_memory memory;
	int err = proc_memory_open(&memory, pid);

	proc_memory_close(&memory);
	return !err;
}

static void fill_status(struct doctor_target *dt)
{
	struct proc_status status;
	struct proc_stat tracer;

	if (proc_read_status(&status, dt->pid) != 0)
		return;
	dt->uid = status.euid;
	dt->seccomp = status.seccomp;
	dt->ns_depth = status.ns_depth;
	dt->nr_threads = status.nr_threads;
	dt->tracer_pid = status.tracer_pid;
	if (status.tracer_pid && proc_read_stat(&tracer, status.tracer_pid) == 0)
		snprintf(dt->tracer_comm, sizeof(dt->tracer_comm), "%s", tracer.comm);
}

int doctor_examine_target(struct doctor *d, pid_t pid)
{
	struct doctor_target *dt = &d->targets[d->nr_targets];
	struct target *t = NULL;
	int err = target_new(&t, pid);

	if (err)
		return err;
	*dt = (struct doctor_target){ .pid = pid, .is_32bit = t->is_32bit };
	memcpy(dt->comm, t->comm, sizeof(dt->comm));
	d->nr_targets++;
	fill_status(dt);
	err = examine_modules(dt, t);
	dt->exe = take_ptr(t->exe);
	dt->is_readable = dt->is_readable && can_open_memory(pid);
	if (!IS_AGENT && dt->is_readable)
		dt->left = inject_find_left(pid, &dt->left_owner);
	if (dt->left == INJECT_LEFT_BEHIND)
		doctor_add_help(d, "heaptap attach --backend inline -t 1s %d (takes out what is left in it)",
				pid);
	if (!IS_AGENT && dt->is_readable && census_look(&dt->census, pid, dt->is_32bit ? 4 : 8)) {
		dt->stranger = dt->census;
		dt->census = NULL;
	}
	if (err == -ESRCH)
		error("doctor: PID %d (%s): has ended", pid, t->comm);
	for (size_t i = 0; i < dt->nr_objects; i++)
		advise_debug_files(d, &dt->objects[i]);
	target_free(t);
	if (!dt->is_readable && d->caps.env.ptrace_scope == 3)
		doctor_add_help(d, "reboot with kernel.yama.ptrace_scope below 3");
	else if (!dt->is_readable && !d->caps.env.is_root)
		doctor_add_help(d, "sudo heaptap ...");
	return err;
}
