/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The source whose events come from a text file in the format of user/session/source_replay_read.c. */
#include "user/session/source_replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/session/session_fill.h"
#include "user/lib/log.h"
#include "user/session/source_replay_private.h"

enum { POLL_RECORDS = 4096 };

void source_replay_free(struct source *source)
{
	struct replay_source *s = replay_self(source);

	if (!s)
		return;
	for (size_t i = 0; i < s->nr_processes; i++) {
		free(s->processes[i]->target.exe);
		mapping_list_fini(&s->processes[i]->target.maps);
		free(s->processes[i]->target.allocators);
		free(s->processes[i]);
	}
	for (size_t i = 0; i < s->nr_images; i++) {
		free(s->images[i].comm);
		free(s->images[i].exe);
	}
	kind_list_fini(&s->kinds);
	free(s->images);
	free(s->processes);
	free(s->stream);
	free(s);
}

struct target *source_replay_target(struct source *source, size_t i)
{
	struct replay_source *s = replay_self(source);

	return i < s->nr_processes ? &s->processes[i]->target : NULL;
}

bool source_replay_is_done(const struct source *source)
{
	const struct replay_source *s = replay_self(source);

	return s->next == s->nr_words;
}

static struct listed_process *source_replay_find_process(struct replay_source *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->processes[i]->target.pid == pid)
			return s->processes[i];
	return NULL;
}

static int source_replay_attach(struct source *source, struct target *t)
{
	struct replay_source *s = replay_self(source);

	return source_replay_find_process(s, t->pid) ? 0 : -ESRCH;
}

static bool is_heap_event(const struct event_header *h)
{
	return h->kind >= EVENT_ALLOC && h->kind <= EVENT_REALLOC_END;
}

/* Deliver the record of one entry. Number of records, or -errno of the sink. */
static int source_replay_deliver(struct replay_source *s, struct listed_process *process,
				 const struct event_header *rec, u32 bytes, const struct sink *sink)
{
	const struct mark_record *mark = (const struct mark_record *)rec;
	const struct lost_record *lost = (const struct lost_record *)rec;
	int err;

	if (!rec->kind && rec->flags == MARK_RECORD) {
		if (s->on_mark)
			s->on_mark(s->mark_ctx, mark->time_ns, mark->name);
		return 0;
	}
	if (!rec->kind) {
		process->losses.allocs += lost->losses.allocs;
		process->losses.frees += lost->losses.frees;
		process->losses.stacks += lost->losses.stacks;
		process->losses.other += lost->losses.other;
		return 0;
	}
	if (process->is_paused && is_heap_event(rec))
		return 0;
	if (rec->kind == EVENT_EXEC)
		process->image = ((const struct process_event *)rec)->child_pid;
	err = sink->record(sink->ctx, rec, bytes);
	return err ? err : 1;
}

static int source_replay_poll_records(struct source *source, const struct sink *sink)
{
	struct replay_source *s = replay_self(source);
	int nr = 0;

	while (nr < POLL_RECORDS && s->next < s->nr_words) {
		const struct entry *entry = (const struct entry *)&s->stream[s->next];
		const struct event_header *rec = (const struct event_header *)(entry + 1);
		int ret = source_replay_deliver(s, s->processes[entry->process], rec, entry->bytes, sink);

		s->next += 1 + (entry->bytes + sizeof(u64) - 1) / sizeof(u64);
		if (ret < 0)
			return ret;
		nr += ret;
	}
	return nr;
}

static void source_replay_set_paused(struct replay_source *s, pid_t pid, bool is_paused)
{
	struct listed_process *p = source_replay_find_process(s, pid);

	if (p)
		p->is_paused = is_paused;
}

static void source_replay_pause_process(struct source *source, pid_t pid)
{
	struct replay_source *s = replay_self(source);

	source_replay_set_paused(s, pid, true);
}

static void resume_process(struct source *source, pid_t pid)
{
	struct replay_source *s = replay_self(source);

	source_replay_set_paused(s, pid, false);
}

static struct losses source_replay_losses_of(struct source *source, pid_t pid)
{
	struct replay_source *s = replay_self(source);
	struct listed_process *p = source_replay_find_process(s, pid);

	return p ? p->losses : (struct losses){ 0 };
}

static int name_image(struct source *source, struct target *t)
{
	struct replay_source *s = replay_self(source);
	const struct listed_process *p = source_replay_find_process(s, t->pid);
	const struct replay_image *image;
	char *exe;

	if (!p || !p->image)
		return 0;
	image = &s->images[p->image - 1];
	exe = image->exe ? strdup(image->exe) : NULL;
	if (!exe || !image->comm) {
		free(exe);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->target.nr_allocators; i++)
		if (target_add_allocator(t, p->target.allocators[i].module, p->target.allocators[i].kind))
			debug("replay: no memory for an allocator");
	free(t->exe);
	t->exe = exe;
	snprintf(t->comm, sizeof(t->comm), "%s", image->comm);
	return 0;
}

void source_replay_set_marker(struct source *source, source_replay_mark_fn on_mark, void *ctx)
{
	struct replay_source *s = replay_self(source);

	s->on_mark = on_mark;
	s->mark_ctx = ctx;
}

static void source_replay_detach(struct source *source)
{
	(void)source;
}

const struct source_ops source_replay = {
	.name = "replay",
	.attach = source_replay_attach,
	.update = session_fill_update,
	.wait_fd = session_fill_wait_fd,
	.poll = source_replay_poll_records,
	.pause = source_replay_pause_process,
	.resume = resume_process,
	.losses = source_replay_losses_of,
	.image = name_image,
	.detach = source_replay_detach,
	.free = source_replay_free,
};
