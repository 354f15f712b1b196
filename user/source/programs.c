/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF programs, loaded. */
#include "user/source/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"

extern const char bpf_object_start[], bpf_object_end[];

/* linux/bpf.h of Debian 12 has no uprobe_multi yet; the value of Linux 6.6. */
enum { TRACE_UPROBE_MULTI = 48 };

static const char *const program_names[] = {
	[PROGRAM_ENTER_ALLOC] = "enter_alloc",
	[PROGRAM_LEAVE_CALL] = "leave_call",
	[PROGRAM_AT_RET] = "at_ret",
	[PROGRAM_ENTER_FREE] = "enter_free",
	[PROGRAM_INTERNAL_CALL] = "internal_call",
	[PROGRAM_MAPS_CHANGED] = "maps_changed",
	[PROGRAM_AT_NOTE] = "at_note",
	[PROGRAM_COUNT_CALL] = "count_call",
	[PROGRAM_BEFORE_PTRACE] = "before_ptrace",
	[PROGRAM_BEFORE_EXIT] = "before_exit",
	[PROGRAM_THREAD_EXIT] = "thread_exit",
	[PROGRAM_PROCESS_EXEC] = "process_exec",
	[PROGRAM_TASK_NEW] = "task_new",
	[PROGRAM_PREPARE_EXEC] = "prepare_exec",
	[PROGRAM_SIGNAL_DELIVER] = "signal_deliver",
	[PROGRAM_GROUP_EXIT] = "group_exit",
	[PROGRAM_SYSTEM_CALL] = "system_call",
	[PROGRAM_SYSTEM_CALL_DONE] = "system_call_done",
};
_Static_assert(ARRAY_SIZE(program_names) == NR_PROGRAMS, "a name for each program");

/* Log messages of libbpf line by line, only with -v, because those of the verifier are long. */
static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	auto_free char *text = NULL;
	char *line, *rest;

	if (level == LIBBPF_DEBUG || log_level() < LOG_DEBUG || vasprintf(&text, fmt, ap) < 0)
		return 0;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		debug("bpf: %s", line);
	return 0;
}

void programs_log_libbpf(void)
{
	libbpf_set_print(print_libbpf);
}

/* The size of a ring is a power of two and at least a page. */
static u32 ring_size(u64 bytes)
{
	u64 size = sysconf(_SC_PAGESIZE);

	while (size < bytes && size < 1U << 30)
		size *= 2;
	return size;
}

static struct bpf_map *find_map(const struct bpf_object *obj, const char *suffix)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj)
	{
		const char *name = bpf_map__name(map);
		size_t len = strlen(name), tail = strlen(suffix);

		if (len >= tail && !strcmp(name + len - tail, suffix))
			return map;
	}
	return NULL;
}

/* The settings have a section of their own, so that they are found without debug information. */
static int set_config(const struct bpf_object *obj, const struct source_config *config)
{
	struct bpf_map *map = find_map(obj, ".rodata.config");
	size_t size;
	void *data = map ? (void *)bpf_map__initial_value(map, &size) : NULL;

	if (!data || size < sizeof(*config))
		return -EINVAL;
	memcpy(data, config, sizeof(*config));
	return 0;
}

static int reuse_maps(const struct bpf_object *obj, const struct bpf_object *base)
{
	struct bpf_map *map, *other;
	int err = 0;

	bpf_object__for_each_map(map, obj)
	{
		const char *name = bpf_map__name(map);

		other = bpf_object__find_map_by_name(base, name);
		if (other && !strstr(name, ".rodata"))
			err = bpf_map__reuse_fd(map, bpf_map__fd(other));
		if (err)
			return err;
	}
	return 0;
}

enum { MOST_SAMPLED_EARLY = 65536 }; /* entries whose memory is reserved at the start */

/*
 * Allocate the memory of an entry when it is made, where the kernel has an allocator for BPF (6.1; uprobe_multi came
 * later). On older kernels memory is reserved at the start, so there is room for fewer threads.
 */
static int allocate_late(const struct bpf_object *obj)
{
	static const struct {
		const char *name;
		u32 max_entries; /* 0 = as it is */
	} maps[] = { { "threads", 65536 }, { "walks", 4096 }, { "processes", 0 },
		     { "sharers", 0 },	   { "paused", 0 },   { "slots", 0 },
		     { "stops", 0 },	   { "left", 0 },     { "sampled", 0 } };
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(maps) && !err; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(obj, maps[i].name);

		err = bpf_map__set_map_flags(map, BPF_F_NO_PREALLOC);
		if (!err && maps[i].max_entries)
			err = bpf_map__set_max_entries(map, maps[i].max_entries);
	}
	return err;
}

/*
 * Programs that walk stacks have two forms, one of them for kernels without bpf_loop(). The program on releases walks
 * only if the user wants stacks of releases.
 */
static const char *const alternatives[] = {
	"enter_alloc",	    "enter_alloc_unrolled",	 "enter_free",
	"enter_free_stack", "enter_free_stack_unrolled", "at_note",
	"at_note_unrolled", "system_call_done",		 "system_call_done_unrolled",
	"task_new",	    "task_new_sampled"
};

static const char *program_name(enum program i, const struct source_config *config, bool has_loop)
{
	if (i == PROGRAM_ENTER_ALLOC && !has_loop)
		return "enter_alloc_unrolled";
	if (i == PROGRAM_AT_NOTE && !has_loop)
		return "at_note_unrolled";
	if (i == PROGRAM_SYSTEM_CALL_DONE && !has_loop)
		return "system_call_done_unrolled";
	if (i == PROGRAM_TASK_NEW && config->max_sampled && config->max_followed && has_loop)
		return "task_new_sampled";
	if (i == PROGRAM_ENTER_FREE && config->has_free_stacks)
		return has_loop ? "enter_free_stack" : "enter_free_stack_unrolled";
	return program_names[i];
}

/* Choose the programs whose bits are in @wanted. */
static int choose_programs(struct programs *p, const struct source_config *config, u32 wanted, bool is_multi)
{
	int err = set_config(p->obj, config);

	for (size_t i = 0; i < ARRAY_SIZE(alternatives) && !err; i++)
		err = bpf_program__set_autoload(bpf_object__find_program_by_name(p->obj, alternatives[i]),
						false);
	for (int i = 0; i < NR_PROGRAMS && !err; i++) {
		p->prog[i] = bpf_object__find_program_by_name(p->obj, program_name(i, config, p->has_loop));
		if (!p->prog[i])
			return -ENOENT;
		err = bpf_program__set_autoload(p->prog[i], wanted >> i & 1);
		if (!err && is_multi && i < PROGRAM_THREAD_EXIT)
			err = bpf_program__set_expected_attach_type(p->prog[i],
								    (enum bpf_attach_type)TRACE_UPROBE_MULTI);
	}
	return err;
}

static int open_object(struct programs *p)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "heaptap");

	programs_log_libbpf();
	p->obj = bpf_object__open_mem(bpf_object_start, bpf_object_end - bpf_object_start, &opts);
	return p->obj ? 0 : -errno;
}

static int programs_give_up(struct programs *p, const char *what, int err)
{
	error("bpf: cannot %s the programs: %s", what, strerror(-err));
	bpf_object__close(p->obj);
	return err;
}

/* The programs' variables, shared with the kernel (BPF_F_MMAPABLE, Linux 5.5). */
static int map_state(struct programs *p)
{
	const struct bpf_map *map = find_map(p->obj, ".bss");
	void *mem = map ? mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED,
			       bpf_map__fd(map), 0)
			: MAP_FAILED;

	if (mem == MAP_FAILED)
		return map ? -errno : -ENOENT;
	p->state = mem;
	return 0;
}

void programs_find_pid_namespace(struct source_config *config)
{
	enum { FIRST_PID_NS = 0xEFFFFFFC }; /* inode: PROC_PID_INIT_INO of the kernel */
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino == FIRST_PID_NS)
		return;
	/* As the kernel encodes devices. */
	config->pid_ns_dev = (u64)major(st.st_dev) << 20 | minor(st.st_dev);
	config->pid_ns_ino = st.st_ino;
}

int programs_load(struct programs *out, const struct source_config *config, u64 ring_bytes, bool is_multi)
{
	u32 wanted = ~0U << PROGRAM_THREAD_EXIT;
	const u32 calls = 1U << PROGRAM_SYSTEM_CALL | 1U << PROGRAM_SYSTEM_CALL_DONE;
	struct programs p = { .has_loop = out->has_loop };
	int err = open_object(&p);

	if (err)
		return programs_give_up(&p, "open", err);
	if (!config->mapping.mmap_fn)
		wanted &= ~calls;
	/* With fixed cookies each place has a load of its own. */
	if (!config->is_cookie_fixed)
		wanted |= 1U << PROGRAM_MAPS_CHANGED | 1U << PROGRAM_BEFORE_PTRACE;
	if (!p.has_loop)
		p.has_loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL) == 1;
	if (!p.has_loop || !config->waits_at_end)
		wanted &= ~(1U << PROGRAM_GROUP_EXIT);
	err = choose_programs(&p, config, wanted, is_multi);
	if (!err && is_multi)
		err = allocate_late(p.obj);
	if (!err && config->max_sampled)
		err = bpf_map__set_max_entries(bpf_object__find_map_by_name(p.obj, "sampled"),
					       is_multi ? config->max_sampled : MOST_SAMPLED_EARLY);
	if (!err)
		err = bpf_map__set_max_entries(bpf_object__find_map_by_name(p.obj, "ring"),
					       ring_size(ring_bytes));
	if (!err)
		err = bpf_map__set_max_entries(bpf_object__find_map_by_name(p.obj, "stacks_seen"),
					       config->seen_sets);
	if (!err)
		err = bpf_object__load(p.obj);
	if (err)
		return programs_give_up(&p, "load", err);
	err = map_state(&p);
	if (err)
		return programs_give_up(&p, "share memory with", err);
	p.ring_fd = bpf_object__find_map_fd_by_name(p.obj, "ring");
	p.processes_fd = bpf_object__find_map_fd_by_name(p.obj, "processes");
	p.watched_codes_fd = bpf_object__find_map_fd_by_name(p.obj, "watched_codes");
	p.paused_fd = bpf_object__find_map_fd_by_name(p.obj, "paused");
	p.threads_fd = bpf_object__find_map_fd_by_name(p.obj, "threads");
	p.probes_fd = bpf_object__find_map_fd_by_name(p.obj, "probes");
	p.notes_fd = bpf_object__find_map_fd_by_name(p.obj, "notes");
	p.shards_fd = bpf_object__find_map_fd_by_name(p.obj, "shards");
	p.slabs_fd = bpf_object__find_map_fd_by_name(p.obj, "slabs");
	p.slots_fd = bpf_object__find_map_fd_by_name(p.obj, "slots");
	p.stacks_seen_fd = bpf_object__find_map_fd_by_name(p.obj, "stacks_seen");
	p.stops_fd = bpf_object__find_map_fd_by_name(p.obj, "stops");
	p.task_copies_fd = bpf_object__find_map_fd_by_name(p.obj, "task_copies");
	p.sequences_fd = bpf_object__find_map_fd_by_name(p.obj, "sequences");
	p.sampled_fd = bpf_object__find_map_fd_by_name(p.obj, "sampled");
	p.chosen_fd = bpf_object__find_map_fd_by_name(p.obj, "chosen");
	*out = p;
	return 0;
}

int programs_load_one(struct programs *out, enum program which, const struct source_config *config,
		      bool is_multi, const struct programs *base)
{
	struct programs p = { .has_loop = base->has_loop };
	int err = open_object(&p);

	if (err)
		return programs_give_up(&p, "open", err);
	err = choose_programs(&p, config, 1U << which, is_multi);
	if (!err)
		err = reuse_maps(p.obj, base->obj);
	if (!err)
		err = bpf_object__load(p.obj);
	if (!err) {
		/* The object has a descriptor for each map, too. */
		p.one = which;
		p.one_fd = fcntl(bpf_program__fd(p.prog[which]), F_DUPFD_CLOEXEC, 3);
		err = p.one_fd < 0 ? -errno : 0;
	}
	if (err)
		return programs_give_up(&p, "load", err);
	bpf_object__close(p.obj);
	p.obj = NULL;
	*out = p;
	return 0;
}

void programs_unload(struct programs *p)
{
	if (p->state)
		munmap(p->state, sysconf(_SC_PAGESIZE));
	bpf_object__close(p->obj);
	if (p->one_fd)
		close(p->one_fd);
	memset(p, 0, sizeof(*p));
}

int programs_fd(const struct programs *p, enum program which)
{
	if (p->one_fd)
		return which == p->one ? p->one_fd : -ENOENT;
	return bpf_program__fd(p->prog[which]);
}

int programs_measure(int *fd)
{
	int got = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (got < 0)
		return got;
	*fd = got;
	return 0;
}

int programs_add_runs(const struct programs *p, struct probe_runs *runs)
{
	for (int i = 0; i < NR_PROGRAMS; i++) {
		struct bpf_prog_info info = { 0 };
		u32 len = sizeof(info);
		int fd = programs_fd(p, (enum program)i);

		/* A program that this kernel does not need is not loaded. */
		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &len))
			return -errno;
		runs->time_ns += info.run_time_ns;
		if (i == PROGRAM_LEAVE_CALL)
			runs->nr_returns += info.run_cnt;
		else if (i == PROGRAM_AT_RET)
			runs->nr_stepped += info.run_cnt;
		else if (i < PROGRAM_THREAD_EXIT)
			runs->nr_entries += info.run_cnt;
	}
	return 0;
}

void programs_pause(const struct programs *p, pid_t pid, bool is_paused)
{
	u32 key = pid;
	u8 yes = 1;

	if (is_paused && !bpf_map_update_elem(p->paused_fd, &key, &yes, BPF_NOEXIST))
		p->state->nr_paused++;
	else if (!is_paused && !bpf_map_delete_elem(p->paused_fd, &key))
		p->state->nr_paused--;
}

void programs_forget_stacks(const struct programs *p, const struct source_config *config)
{
	size_t size = config->seen_sets * sizeof(struct seen_set);
	void *sets = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, p->stacks_seen_fd, 0);

	if (sets == MAP_FAILED)
		return;
	memset(sets, 0, size);
	munmap(sets, size);
}

void programs_drop_calls(const struct programs *p, pid_t pid)
{
	auto_free pid_t *tids = NULL;
	size_t nr = 0;

	if (proc_threads(pid, &tids, &nr))
		return;
	for (size_t i = 0; i < nr; i++)
		bpf_map_delete_elem(p->threads_fd, &tids[i]);
}

void programs_drop_process(const struct programs *p, pid_t pid)
{
	struct process_state process;
	u32 key = pid;

	if (!bpf_map_lookup_elem(p->processes_fd, &key, &process) && process.is_followed)
		__sync_fetch_and_sub(&p->state->nr_followed, 1);
	bpf_map_delete_elem(p->processes_fd, &key);
	bpf_map_delete_elem(p->watched_codes_fd, &key);
	/* Another process may get the PID. */
	programs_pause(p, pid, false);
}
