/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turn records into lines of text. user/stream/event_list_read.c reads them, and describes the format. */
#include "user/stream/event_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "user/target/allocator.h"
#include "user/lib/array.h"
#include "user/lib/escape.h"
#include "user/lib/flush.h"
#include "user/source/source.h"
#include "user/heap/stacks.h"
#include "user/target/target.h"

/*
 * Mappings come and go, and executing a program changes all of them: the list gives each file one range of addresses
 * of its own, the same in all processes, so that one line each is enough, and lists of two runs can be compared.
 */
static const u64 FILES_AT = 1ULL << 62, FILE_ROOM = 1ULL << 40;

/* A process of the list. */
struct listed {
	u32 pid;
	char *comm, *exe; /* owned; the present names */
	u8 *has_module;	  /* owned; by id: the map line of the module is written */
	u32 max_modules;
	struct mapping *maps; /* owned */
	size_t nr_maps;
	struct losses losses;
	size_t nr_allocators;
	bool is_started;
	bool is_image; /* the process has executed a program; the exec line is not written yet */
	u64 exec_ns;
};

struct event_list {
	FILE *out;
	struct listed *processes; /* owned */
	size_t nr, max;
	size_t latest;
	const struct alloc_table *fns; /* borrowed */
	bool has_fn[ALLOC_MAX_FNS];
	int err;
};

int event_list_new(struct event_list **list, FILE *out, const struct alloc_table *fns)
{
	struct event_list *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->out = out;
	l->fns = fns;
	fputs("# Events in the order in which they were entered; times in ns. Frames in files are addresses "
	      "in the\n"
	      "# ranges that the map lines give these files here, not where they were mapped.\n",
	      out);
	*list = l;
	return 0;
}

void event_list_free(struct event_list *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->nr; i++) {
		free(l->processes[i].comm);
		free(l->processes[i].exe);
		free(l->processes[i].has_module);
		free(l->processes[i].maps);
	}
	free(l->processes);
	free(l);
}

/* Write a word. Escape a text that the reader would take for two words, or for none. */
static void event_list_put_word(struct event_list *l, const char *text)
{
	putc(' ', l->out);
	if (!*text)
		putc('-', l->out);
	for (const char *s = text; *s; s++) {
		char unit[2] = { *s, '\0' };

		if (*s == ' ' || *s == '#' || (*s == '-' && s == text) || (*s & 0x80))
			fprintf(l->out, "\\x%02x", (u8)*s);
		else
			escape_text(l->out, unit);
	}
}

static struct listed *event_list_find(struct event_list *l, u32 pid)
{
	if (l->latest < l->nr && l->processes[l->latest].pid == pid)
		return &l->processes[l->latest];
	for (size_t i = 0; i < l->nr; i++)
		if (l->processes[i].pid == pid) {
			l->latest = i;
			return &l->processes[i];
		}
	return NULL;
}

/* Write the exec line that is still missing. */
static void settle_exec(struct event_list *l, struct listed *p)
{
	if (!p->is_image)
		return;
	p->is_image = false;
	fprintf(l->out, "exec %u", p->pid);
	event_list_put_word(l, p->comm);
	event_list_put_word(l, p->exe);
	fprintf(l->out, " %" PRIu64 "\n", p->exec_ns);
}

static struct listed *event_list_add(struct event_list *l, u32 pid, const char *comm, const char *exe,
				     bool is_started)
{
	struct listed *p;

	if (array_reserve(l->processes, l->max, l->nr + 1)) {
		l->err = -ENOMEM;
		return NULL;
	}
	p = &l->processes[l->nr++];
	*p = (struct listed){
		.pid = pid, .comm = strdup(comm), .exe = strdup(exe), .is_started = is_started
	};
	if (!p->comm || !p->exe) {
		free(p->comm);
		free(p->exe);
		l->nr--;
		l->err = -ENOMEM;
		return NULL;
	}
	fprintf(l->out, "process %u", pid);
	event_list_put_word(l, comm);
	event_list_put_word(l, exe);
	fputs(is_started ? " started\n" : "\n", l->out);
	return p;
}

static void put_map(struct event_list *l, struct listed *p, const struct module *m)
{
	u64 start = FILES_AT + m->id * FILE_ROOM;
	u32 had = p->max_modules;

	if (array_reserve(p->has_module, p->max_modules, m->id + 1)) {
		l->err = -ENOMEM;
		return;
	}
	if (p->max_modules > had)
		memset(p->has_module + had, 0, p->max_modules - had);
	if (p->has_module[m->id])
		return;
	p->has_module[m->id] = 1;
	fprintf(l->out, "map %u %#" PRIx64 " %#" PRIx64 " %#" PRIx64, p->pid, start, start + FILE_ROOM,
		start);
	event_list_put_word(l, module_name(m));
	putc(m->build_id_len ? ' ' : '\n', l->out);
	for (u32 i = 0; i < m->build_id_len; i++)
		fprintf(l->out, "%02x%s", m->build_id[i], i + 1 == m->build_id_len ? "\n" : "");
}

static void put_maps(struct event_list *l, struct listed *p, const struct mapping_list *list)
{
	struct mapping *maps = reallocarray(NULL, list->nr + 1, sizeof(*maps));

	if (!maps) {
		l->err = -ENOMEM;
		return;
	}
	if (list->nr)
		memcpy(maps, list->maps, list->nr * sizeof(*maps));
	free(p->maps);
	p->maps = maps;
	p->nr_maps = list->nr;
	for (size_t i = 0; i < list->nr; i++)
		if (maps[i].module)
			put_map(l, p, maps[i].module);
}

/* Remember the present names of a process. */
static void rename_to(struct event_list *l, struct listed *p, const struct target *t)
{
	char *comm = strdup(t->comm), *exe = strdup(t->exe ? t->exe : "");

	if (!comm || !exe)
		l->err = -ENOMEM;
	if (comm) {
		free(p->comm);
		p->comm = comm;
	}
	if (exe) {
		free(p->exe);
		p->exe = exe;
	}
}

void event_list_sample(struct event_list *l, u64 bytes)
{
	if (bytes)
		fprintf(l->out, "sample %" PRIu64 "\n", bytes);
}

void event_list_process(struct event_list *l, const struct target *t)
{
	struct listed *p = event_list_find(l, (u32)t->pid);
	const char *exe = t->exe ? t->exe : "";

	if (!p)
		p = event_list_add(l, (u32)t->pid, t->comm, exe, t->is_started);
	else if (strcmp(p->comm, t->comm) != 0 || strcmp(p->exe, exe) != 0)
		rename_to(l, p, t);
	if (!p)
		return;
	put_maps(l, p, &t->maps);
	for (; p->nr_allocators < t->nr_allocators; p->nr_allocators++) {
		const struct target_allocator *a = &t->allocators[p->nr_allocators];

		fprintf(l->out, "allocator %u", p->pid);
		event_list_put_word(l, a->kind);
		event_list_put_word(l, module_name(a->module));
		putc('\n', l->out);
	}
}

/* The address that the list uses for @ip of @p. */
static u64 event_list_place_of(const struct listed *p, u64 ip)
{
	const struct mapping_list list = { .maps = p->maps, .nr = p->nr_maps };
	const struct mapping *m = mapping_find(&list, ip);
	u64 offset;

	if (!m || !m->module)
		return ip;
	offset = ip - m->bias;
	return offset < FILE_ROOM ? FILES_AT + m->module->id * FILE_ROOM + offset : ip;
}

static void event_list_put_stack(struct event_list *l, const struct listed *p, const struct event_header *rec)
{
	const struct stack_event *ev = (const struct stack_event *)rec;
	u16 nr = ev->nr_frames < STACK_MAX_FRAMES ? ev->nr_frames : STACK_MAX_FRAMES;

	fprintf(l->out, "stack %" PRIu64 " %u %s", ev->id, p->pid, stack_end_word(ev->end));
	for (u16 i = 0; i < nr; i++)
		fprintf(l->out, " %#" PRIx64, event_list_place_of(p, ev->ips[i]));
	putc('\n', l->out);
}

/* Write a line for a function that the reader does not know. */
static void event_list_put_function(struct event_list *l, u16 fn)
{
	const struct alloc_fn *row = alloc_fn(l->fns, fn);

	if (fn < alloc_fn_count(NULL) || l->has_fn[fn % ALLOC_MAX_FNS])
		return;
	l->has_fn[fn % ALLOC_MAX_FNS] = true;
	fprintf(l->out, "function %u %u", row->kind, row->family);
	event_list_put_word(l, row->symbol);
	event_list_put_word(l, row->name);
	putc('\n', l->out);
}

static void put_heap(struct event_list *l, const struct listed *p, const struct event_header *rec)
{
	const struct heap_event *ev = (const struct heap_event *)rec;
	bool is_unmap = rec->kind == EVENT_FREE && rec->flags & EVENT_UNMAP;
	static const char *const words[] = { [EVENT_ALLOC] = "alloc",
					     [EVENT_FREE] = "free",
					     [EVENT_REALLOC_BEGIN] = "realloc-begin",
					     [EVENT_REALLOC_END] = "realloc-end" };

	event_list_put_function(l, rec->fn);
	fprintf(l->out, "%s %u %u", is_unmap ? "unmap" : words[rec->kind], p->pid, rec->tid);
	event_list_put_word(l, alloc_fn(l->fns, rec->fn)->symbol);
	if (rec->kind == EVENT_REALLOC_BEGIN || rec->kind == EVENT_REALLOC_END)
		fprintf(l->out, " %#" PRIx64, ev->old_addr);
	if (rec->kind != EVENT_REALLOC_BEGIN)
		fprintf(l->out, " %#" PRIx64, ev->addr);
	if (rec->kind != EVENT_FREE || is_unmap)
		fprintf(l->out, " %" PRIu64, ev->size);
	fprintf(l->out, " %" PRIu64 " %" PRIu64, ev->stack, ev->time_ns);
	if (rec->kind == EVENT_FREE && rec->flags & EVENT_TEMPORARY)
		fputs(" temporary", l->out);
	else if (rec->kind == EVENT_FREE && rec->flags & EVENT_WITHIN)
		fputs(" within", l->out);
	else if (rec->kind != EVENT_FREE && rec->flags & EVENT_RETRY)
		fputs(" retry", l->out);
	else if (!IS_AGENT && rec->kind == EVENT_REALLOC_END && rec->flags & EVENT_UNSAMPLED)
		fputs(" unsampled", l->out);
	if (rec->kind == EVENT_FREE && !is_unmap && ev->size)
		fprintf(l->out, " size=%" PRIu64, ev->size);
	if ((rec->kind == EVENT_ALLOC || (rec->kind == EVENT_FREE && !is_unmap)) && ev->alignment)
		fprintf(l->out, " align=%" PRIu64, ev->alignment == ALIGNMENT_ZERO ? 0 : ev->alignment);
	if (!IS_AGENT && rec->distance)
		fprintf(l->out, " distance=%u", rec->distance);
	putc('\n', l->out);
}

/* A child begins as a copy of its parent; later records say what changes. */
static void put_fork(struct event_list *l, struct listed *parent, const struct process_event *ev)
{
	size_t at = (size_t)(parent - l->processes);
	const struct listed *child = event_list_find(l, ev->child_pid);

	if (!child && !event_list_add(l, ev->child_pid, parent->comm, parent->exe, parent->is_started))
		return;
	fprintf(l->out, "fork %u %u %" PRIu64 "\n", l->processes[at].pid, ev->child_pid, ev->time_ns);
}

static void put_life(struct event_list *l, struct listed *p, const struct event_header *rec)
{
	const struct process_event *ev = (const struct process_event *)rec;

	if (rec->kind == EVENT_EXEC) {
		p->is_image = true;
		p->nr_allocators = 0;
		p->exec_ns = ev->time_ns;
	} else if (rec->kind == EVENT_FORK) {
		put_fork(l, p, ev);
	} else {
		fprintf(l->out, "exit %u %u %" PRIu64 "\n", p->pid, ev->exit_status, ev->time_ns);
	}
}

void event_list_event(struct event_list *l, const struct event_header *rec)
{
	struct listed *p = event_list_find(l, rec->pid);

	if (!p)
		return;
	settle_exec(l, p);
	if (rec->kind == EVENT_STACK)
		event_list_put_stack(l, p, rec);
	else if (rec->kind <= EVENT_REALLOC_END)
		put_heap(l, p, rec);
	else if (rec->kind == EVENT_EXEC || rec->kind == EVENT_FORK || rec->kind == EVENT_EXIT)
		put_life(l, p, rec);
}

void event_list_losses(struct event_list *l, pid_t pid, const struct losses *total)
{
	struct listed *p = event_list_find(l, (u32)pid);
	struct losses more = *total;

	if (!p)
		return;
	settle_exec(l, p);
	losses_sub(&more, &p->losses);
	p->losses = *total;
	if (more.allocs || more.frees || more.stacks || more.other)
		fprintf(l->out, "lost %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", p->pid,
			more.allocs, more.frees, more.stacks, more.other);
}

void event_list_mark(struct event_list *l, u64 time_ns, const char *text)
{
	fprintf(l->out, "mark %" PRIu64, time_ns);
	event_list_put_word(l, text);
	putc('\n', l->out);
}

void event_list_thread(struct event_list *l, pid_t pid, pid_t tid, const char *name)
{
	if (!event_list_find(l, (u32)pid))
		return;
	fprintf(l->out, "thread %d %d", (int)pid, (int)tid);
	event_list_put_word(l, name);
	putc('\n', l->out);
}

void event_list_show(struct event_list *l)
{
	if (!l->err && fflush(l->out))
		l->err = -errno;
}

int event_list_finish(struct event_list *l)
{
	int err = l->err;

	for (size_t i = 0; i < l->nr; i++)
		settle_exec(l, &l->processes[i]);
	return err ? err : flush_stream(l->out);
}
