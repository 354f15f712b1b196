/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap doctor: breakpoints that a killed heaptap has left behind in processes, and the command that removes them. */
#include "user/cli/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/elf.h"
#include "user/lib/escape.h"
#include "user/lib/log.h"
#include "user/lib/path.h"
#include "user/lib/proc.h"
#include "user/lib/proc_memory.h"
#include "user/probe/probe.h"
#include "user/source/changed_code.h"
#include "user/source/link_keeper.h"
#include "user/target/module.h"

/* A file, searched once for all processes. */
struct searched_file {
	bool is_searched;
	struct elf *elf; /* owned; NULL = nothing in it is probed */
	struct probe_list list;
};

struct searched {
	struct module_table *modules; /* owned */
	struct searched_file *files;  /* owned; by module id */
	size_t nr, max;
};

static int search_file(struct searched_file *f, const struct module *m)
{
	const struct probe_options options = { .want_cpp = true,
					       .want_mmap = true,
					       .has_return_places = IS_AGENT };
	const enum log_level level = log_level();
	struct elf *elf = NULL;
	int err;

	f->is_searched = true;
	if (m->fd < 0 || elf_open(&elf, m->fd))
		return 0;
	/* The file of any process: nobody asked about it. */
	log_set_level(level == LOG_DEBUG ? LOG_DEBUG : LOG_ERROR);
	err = probe_list_init(&f->list, elf, path_name(m->path), &options);
	log_set_level(level);
	if (!err && (f->list.nr || f->list.linker_hook)) {
		f->elf = elf;
		return 0;
	}
	if (!err)
		probe_list_fini(&f->list);
	elf_close(elf);
	return err == -ENOMEM ? err : 0;
}

/* *@out = the file behind @map; NULL if nothing in it is probed. */
static int get_file(struct searched *s, const struct mapping *map, struct searched_file **out)
{
	const size_t id = map->module ? map->module->id : 0;
	int err = 0;

	*out = NULL;
	if (!id)
		return 0;
	if (id >= s->nr) {
		err = array_reserve(s->files, s->max, id + 1);
		if (err)
			return err;
		memset(s->files + s->nr, 0, (id + 1 - s->nr) * sizeof(*s->files));
		s->nr = id + 1;
	}
	if (!s->files[id].is_searched)
		err = search_file(&s->files[id], map->module);
	*out = s->files[id].elf ? &s->files[id] : NULL;
	return err;
}

static void searched_fini(struct searched *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		if (!s->files[i].elf)
			continue;
		probe_list_fini(&s->files[i].list);
		elf_close(s->files[i].elf);
	}
	free(s->files);
	module_table_free(s->modules);
}

static int search_mappings(struct searched *s, const struct mapping_list *maps, const struct proc_memory *mem,
			   struct doctor_left *left)
{
	int err = 0;

	for (size_t i = 0; !err && i < maps->nr; i++) {
		const struct mapping *map = &maps->maps[i];
		struct searched_file *f;
		const char *function;
		size_t nr;

		err = get_file(s, map, &f);
		nr = err || !f ? 0 : changed_code_breakpoints(mem, map, &f->list, f->elf, &function);
		if (nr && !left->nr) {
			left->function = function;
			left->path = strdup(map->module->path);
			err = left->path ? 0 : -ENOMEM;
		}
		left->nr += nr;
	}
	return err;
}

/* Keep @left, whose path moves. */
static int doctor_breakpoints_keep(struct doctor_breakpoints *b, const struct doctor_left *left)
{
	int err = array_extend(b->left, b->nr);

	if (err) {
		free(left->path);
		return err;
	}
	b->left[b->nr++] = *left;
	return 0;
}

/* A process that has ended, or is not ours to read, is no error. */
static int search_process(struct doctor_breakpoints *b, struct searched *s, pid_t pid)
{
	struct doctor_left left = { .pid = pid };
	struct mapping_list maps = { 0 };
	struct proc_status status;
	struct proc_memory mem;
	struct proc_stat stat;
	int err;

	if (proc_read_stat(&stat, pid) || stat.is_kernel_thread ||
	    proc_read_status(&status, proc_reader(pid)) || !status.has_memory)
		return 0;
	if (proc_memory_open(&mem, pid)) {
		b->nr_unread++;
		return 0;
	}
	snprintf(left.comm, sizeof(left.comm), "%s", stat.comm);
	left.tracer_pid = status.tracer_pid;
	err = mapping_list_read(&maps, s->modules, pid);
	if (err < 0) {
		b->nr_unread += err == -EACCES || err == -EPERM;
		err = err == -ENOMEM ? err : 0;
	} else {
		b->nr_read++;
		err = search_mappings(s, &maps, &mem, &left);
	}
	mapping_list_fini(&maps);
	proc_memory_close(&mem);
	if (!err && left.nr)
		return doctor_breakpoints_keep(b, &left);
	free(left.path);
	return err;
}

/* A heaptap that traces by BPF now: the parent of the process that holds its links. 0 = none. */
static pid_t find_tracing_heaptap(void)
{
	auto_free pid_t *pids = NULL;
	struct proc_stat stat;
	size_t nr = 0;

	if (proc_all(&pids, &nr))
		return 0;
	for (size_t i = 0; i < nr; i++)
		if (!proc_read_stat(&stat, pids[i]) && link_keeper_is(stat.comm))
			return stat.ppid > 1 ? stat.ppid : pids[i];
	return 0;
}

static bool is_left_behind(const struct doctor_breakpoints *b, const struct doctor_left *left)
{
	return !b->heaptap && !left->tracer_pid;
}

int doctor_find_breakpoints(struct doctor *d, const pid_t *pids, size_t nr)
{
	struct doctor_breakpoints *b = &d->breakpoints;
	auto_free pid_t *all = NULL;
	struct searched s = { 0 };
	int err = 0;

	if (!pids) {
		err = proc_all(&all, &nr);
		pids = all;
	}
	if (!err)
		err = module_table_new(&s.modules);
	if (err)
		return err == -ENOMEM ? err : 0;
	b->heaptap = find_tracing_heaptap();
	for (size_t i = 0; !err && i < nr; i++)
		if (pids[i] != getpid())
			err = search_process(b, &s, pids[i]);
	searched_fini(&s);
	/* One that has begun meanwhile. */
	if (!b->heaptap)
		b->heaptap = find_tracing_heaptap();
	/* The kernel puts the file's code back when the last probe at a place ends. */
	for (size_t i = 0; i < b->nr; i++)
		if (is_left_behind(b, &b->left[i]))
			doctor_add_help(d, "heaptap attach --mmap --no-scan -t 1s %d", b->left[i].pid);
	return err;
}

void doctor_breakpoints_fini(struct doctor_breakpoints *b)
{
	for (size_t i = 0; i < b->nr; i++)
		free(b->left[i].path);
	free(b->left);
}

/* Are the breakpoints in both processes the same, and from the same? */
static bool doctor_breakpoints_alike(const struct doctor_left *a, const struct doctor_left *b)
{
	return a->nr == b->nr && a->tracer_pid == b->tracer_pid && !strcmp(a->function, b->function) &&
	       !strcmp(a->path, b->path);
}

/* How many processes are like @i, which is the first of them; 0 if it is not. */
static size_t doctor_breakpoints_count(const struct doctor_breakpoints *b, size_t i)
{
	size_t nr = 0;

	for (size_t k = 0; k < b->nr; k++) {
		if (!doctor_breakpoints_alike(&b->left[k], &b->left[i]))
			continue;
		if (k < i)
			return 0;
		nr++;
	}
	return nr;
}

void doctor_print_breakpoints(FILE *out, const struct doctor_breakpoints *b)
{
	fprintf(out, "\nBreakpoints in allocator functions\n");
	if (!b->nr)
		fprintf(out, "  none");
	for (size_t i = 0; i < b->nr; i++) {
		const struct doctor_left *left = &b->left[i];
		size_t nr = doctor_breakpoints_count(b, i);

		if (!nr)
			continue;
		fprintf(out, "  process %d (", left->pid);
		escape_text(out, left->comm);
		fputc(')', out);
		if (nr > 1)
			fprintf(out, " and %zu more", nr - 1);
		fprintf(out, ": %zu, the first in %s of ", left->nr, left->function);
		escape_text(out, left->path);
		if (left->tracer_pid)
			fprintf(out, ": process %d, which traces it, may have put them there\n",
				left->tracer_pid);
		else if (b->heaptap)
			fprintf(out, ": may be probes of heaptap (process %d): ask again when it has ended\n",
				b->heaptap);
		else
			fprintf(out, ": left behind, unless another tool (bpftrace, perf) probes it\n");
	}
	fprintf(out, "%s%zu processes read, %zu not ours to read\n", b->nr ? "  " : " in ", b->nr_read,
		b->nr_unread);
}

void doctor_json_breakpoints(FILE *out, const struct doctor_breakpoints *b)
{
	fprintf(out,
		"  \"breakpoints\": { \"processes_read\": %zu, \"processes_unread\": %zu, \"heaptap_pid\": ",
		b->nr_read, b->nr_unread);
	if (b->heaptap)
		fprintf(out, "%d", b->heaptap);
	else
		fprintf(out, "null");
	fprintf(out, ", \"processes\": [");
	for (size_t i = 0; i < b->nr; i++) {
		const struct doctor_left *left = &b->left[i];

		fprintf(out, "%s\n    { \"pid\": %d, \"comm\": ", i ? "," : "", left->pid);
		escape_json(out, left->comm);
		fprintf(out, ", \"count\": %zu, \"function\": ", left->nr);
		escape_json(out, left->function);
		fprintf(out, ", \"path\": ");
		escape_json(out, left->path);
		fprintf(out, ", \"left_behind\": %s }", is_left_behind(b, left) ? "true" : "false");
	}
	fprintf(out, "] },\n");
}
