/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The source whose events come from a text file: books and reports are tested without root or target.
 *
 * One record per line, words apart by spaces or tabs; an empty line or one that begins with # says nothing.
 * Numbers are decimal, 0x hexadecimal or 0 octal. FN is the ELF symbol of a row of the allocator table.
 *
 *	process PID COMM EXE [started]		first of all about PID; started: by run, not attached to
 *	map PID START END BIAS PATH [BUILD_ID]	an executable mapping; "-" as PATH: in no file
 *	stack ID PID END [ADDR...]		return addresses, innermost first; ID from 2 on; END one of complete
 *						depth no-unwind-info unsupported unreadable not-growing unmapped limit
 *						frame-pointers stale-mappings
 *	alloc PID TID FN ADDR SIZE STACK [TIME] [retry]		ADDR 0: the call failed
 *	free PID TID FN ADDR STACK [TIME] [temporary]
 *	realloc-begin PID TID FN OLD_ADDR SIZE STACK [TIME]
 *	realloc-end PID TID FN OLD_ADDR ADDR SIZE STACK [TIME]
 *	unmap PID TID FN ADDR SIZE STACK [TIME]
 *	lost PID ALLOCS FREES STACKS OTHER	from here on the source's losses are that much more
 *	exec PID [TIME]
 *	fork PID CHILD_PID [TIME]
 *	exit PID STATUS [TIME]			STATUS as wait(2) gives it
 *
 * TIME is in ns; without it a record comes 1 ns after the one before. STACK 0: none, 1: lost.
 */
#include "user/source_replay.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/allocator.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"

enum {
	MAX_LINE = 4096,
	MAX_WORDS = STACK_MAX_FRAMES + 4,
	MAX_PROCESSES = 4096,
	MAX_MAPS = 65536,
	MAX_STREAM = 1 << 30, /* bytes */
	POLL_RECORDS = 4096,
};

struct process {
	struct target target;
	struct losses losses;
	bool is_paused;
};

/* What stands before each record of the stream; then @bytes of the record, rounded up to 8. */
struct entry {
	u32 bytes;
	u32 process; /* index */
};

/* A record of the stream that is not delivered; its kind is no event's. */
struct lost_record {
	struct event_header h;
	struct losses losses;
};

struct source {
	struct process **processes; /* owned, each too */
	size_t nr_processes;
	u64 *stream; /* owned; entries, each with its record */
	size_t nr_words, max_words;
	size_t next; /* word of the entry to deliver next */
};

struct parser {
	struct source *source;
	struct module_table *modules;
	char *words[MAX_WORDS];
	size_t nr_words;
	u32 process; /* index of the one that the line is about */
	u64 time_ns;
	char why[128]; /* "" = no error yet */
};

static void __printf(2, 3) fail(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	if (p->why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, ap);
	va_end(ap);
}

static void fail_errno(struct parser *p, int err)
{
	if (err)
		fail(p, "%s", strerror(-err));
}

/* Word @i as a number up to @max; 0 after fail(). */
static u64 number(struct parser *p, size_t i, u64 max)
{
	const char *word = p->words[i];
	char *end;
	u64 value;

	errno = 0;
	value = strtoull(word, &end, 0);
	if (errno || *end || word[0] < '0' || word[0] > '9')
		fail(p, "'%.40s' is not a number", word);
	else if (value > max)
		fail(p, "%.40s is too large", word);
	return p->why[0] ? 0 : value;
}

/* Word @i as the pid of a process introduced before. */
static u32 known_pid(struct parser *p, size_t i)
{
	u32 pid = number(p, i, INT32_MAX);

	for (size_t k = 0; k < p->source->nr_processes; k++)
		if (p->source->processes[k]->target.pid == (pid_t)pid) {
			p->process = k;
			return pid;
		}
	fail(p, "no process line for pid %u before", pid);
	return 0;
}

static void append(struct parser *p, const void *rec, u32 bytes)
{
	struct source *s = p->source;
	struct entry entry = { .bytes = bytes, .process = p->process };
	size_t nr = 1 + (bytes + sizeof(u64) - 1) / sizeof(u64);

	if (p->why[0])
		return;
	if (s->max_words - s->nr_words < nr) {
		size_t max = s->max_words * 2 + 1024;
		u64 *stream = max * sizeof(u64) <= MAX_STREAM ? realloc(s->stream, max * sizeof(u64)) : NULL;

		if (!stream) {
			fail_errno(p, -ENOMEM);
			return;
		}
		s->stream = stream;
		s->max_words = max;
	}
	s->stream[s->nr_words + nr - 1] = 0;
	memcpy(&s->stream[s->nr_words], &entry, sizeof(entry));
	memcpy(&s->stream[s->nr_words + 1], rec, bytes);
	s->nr_words += nr;
}

static void parse_process(struct parser *p)
{
	struct source *s = p->source;
	pid_t pid = number(p, 1, INT32_MAX);
	struct process *new;
	struct process **all;

	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->processes[i]->target.pid == pid)
			fail(p, "pid %d has a process line already", pid);
	if (p->nr_words == 5 && strcmp(p->words[4], "started"))
		fail(p, "'%.40s' instead of 'started'", p->words[4]);
	if (s->nr_processes == MAX_PROCESSES)
		fail(p, "more than %d processes", MAX_PROCESSES);
	if (p->why[0])
		return;
	all = realloc(s->processes, (s->nr_processes + 1) * sizeof(struct process *));
	if (!all) {
		fail_errno(p, -ENOMEM);
		return;
	}
	s->processes = all;
	new = calloc(1, sizeof(*new));
	if (!new) {
		fail_errno(p, -ENOMEM);
		return;
	}
	s->processes[s->nr_processes++] = new;
	new->target =
		(struct target){ .pid = pid, .pidfd = -1, .exit_status = -1, .exe = strdup(p->words[3]) };
	new->target.is_started = p->nr_words == 5;
	snprintf(new->target.comm, sizeof(new->target.comm), "%s", p->words[2]);
	if (!new->target.exe)
		fail_errno(p, -ENOMEM);
}

static u8 hex_digit(struct parser *p, char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	if (!at)
		fail(p, "a build ID is pairs of lower case hexadecimal digits");
	return at ? at - digits : 0;
}

/* The module of @path and the build ID in words[6], shared between processes. */
static struct module *module_of(struct parser *p, const char *path)
{
	const char *hex = p->nr_words == 7 ? p->words[6] : "";
	size_t len = (strlen(hex) + 1) / 2;
	u8 build_id[BUILD_ID_MAX];
	struct module *module = NULL;

	if (len > BUILD_ID_MAX)
		fail(p, "a build ID has at most %d bytes", BUILD_ID_MAX);
	for (size_t i = 0; i < len && !p->why[0]; i++)
		build_id[i] = hex_digit(p, hex[2 * i]) << 4 | hex_digit(p, hex[2 * i + 1]);
	if (p->why[0])
		return NULL;
	for (u32 id = 1; id <= module_count(p->modules); id++) {
		module = module_get(p->modules, id);
		if (module && !strcmp(module->path, path) && module->build_id_len == len &&
		    !memcmp(module->build_id, build_id, len))
			return module;
	}
	fail_errno(p, module_add(p->modules, path, build_id, len, &module));
	return module;
}

/* Insert @m by address. */
static void add_mapping(struct parser *p, struct mapping_list *list, const struct mapping *m)
{
	size_t i = list->nr;
	struct mapping *maps;

	while (i > 0 && list->maps[i - 1].start >= m->end)
		i--;
	if (m->start >= m->end)
		fail(p, "the mapping ends before it starts");
	else if (i > 0 && list->maps[i - 1].end > m->start)
		fail(p, "the mapping overlaps another one");
	else if (list->nr == MAX_MAPS)
		fail(p, "more than %d mappings", MAX_MAPS);
	if (p->why[0])
		return;
	maps = realloc(list->maps, (list->nr + 1) * sizeof(*maps));
	if (!maps) {
		fail_errno(p, -ENOMEM);
		return;
	}
	list->maps = maps;
	memmove(&maps[i + 1], &maps[i], (list->nr - i) * sizeof(*maps));
	maps[i] = *m;
	list->nr++;
	list->epoch = 1;
}

static void parse_map(struct parser *p)
{
	struct mapping m = { .start = number(p, 2, UINT64_MAX), .end = number(p, 3, UINT64_MAX) };

	known_pid(p, 1);
	m.bias = number(p, 4, UINT64_MAX);
	m.file_offset = m.start - m.bias;
	if (strcmp(p->words[5], "-"))
		m.module = module_of(p, p->words[5]);
	if (!p->why[0])
		add_mapping(p, &p->source->processes[p->process]->target.maps, &m);
}

static u8 stack_end_of(struct parser *p, const char *word)
{
	static const char *const words[] = {
		[STACK_COMPLETE] = "complete",	    [STACK_DEPTH] = "depth",
		[STACK_NO_INFO] = "no-unwind-info", [STACK_UNSUPPORTED] = "unsupported",
		[STACK_UNREADABLE] = "unreadable",  [STACK_NOT_GROWING] = "not-growing",
		[STACK_UNMAPPED] = "unmapped",	    [STACK_LIMIT] = "limit",
		[STACK_GUESSED] = "frame-pointers", [STACK_STALE] = "stale-mappings",
	};
	_Static_assert(ARRAY_SIZE(words) == NR_STACK_ENDS, "a word for each end");

	for (u8 end = 0; end < NR_STACK_ENDS; end++)
		if (!strcmp(words[end], word))
			return end;
	fail(p, "'%.40s' is not the end of a stack", word);
	return 0;
}

static void parse_stack(struct parser *p)
{
	struct stack_event ev = { .h.kind = EVENT_STACK, .epoch = 1 };

	ev.h.pid = ev.h.tid = known_pid(p, 2);
	ev.id = number(p, 1, UINT64_MAX);
	if (ev.id < STACK_FIRST_ID)
		fail(p, "stack ids begin with %d", STACK_FIRST_ID);
	ev.end = stack_end_of(p, p->words[3]);
	ev.nr_frames = p->nr_words - 4;
	for (u16 i = 0; i < ev.nr_frames; i++)
		ev.ips[i] = number(p, 4 + i, UINT64_MAX);
	append(p, &ev, offsetof(struct stack_event, ips) + ev.nr_frames * sizeof(u64));
}

/* The last words of an event, from @i on: time and flags. */
static u8 parse_end(struct parser *p, size_t i, u8 allowed)
{
	static const struct {
		const char *word;
		u8 flag;
	} flags[] = { { "temporary", EVENT_TEMPORARY }, { "retry", EVENT_RETRY } };
	u8 found = 0;

	p->time_ns++;
	if (i < p->nr_words && p->words[i][0] >= '0' && p->words[i][0] <= '9')
		p->time_ns = number(p, i++, UINT64_MAX);
	if (i == p->nr_words)
		return 0;
	for (size_t k = 0; k < ARRAY_SIZE(flags); k++)
		if (!strcmp(p->words[i], flags[k].word))
			found = flags[k].flag & allowed;
	if (!found || i + 1 < p->nr_words)
		fail(p, "'%.40s' does not belong here", p->words[p->nr_words - 1]);
	return found;
}

/* The words that all heap events begin with: kind PID TID FN. */
static struct heap_event begin_event(struct parser *p, enum event_kind kind)
{
	struct heap_event ev = { .h.kind = kind };

	ev.h.pid = known_pid(p, 1);
	ev.h.tid = number(p, 2, INT32_MAX);
	ev.h.fn = alloc_fn_find(p->words[3]);
	if (!ev.h.fn)
		fail(p, "'%.40s' is no allocator function", p->words[3]);
	return ev;
}

static void end_event(struct parser *p, struct heap_event *ev, size_t stack, u8 allowed)
{
	ev->stack = number(p, stack, UINT64_MAX);
	ev->h.flags |= parse_end(p, stack + 1, allowed);
	ev->time_ns = p->time_ns;
	append(p, ev, sizeof(*ev));
}

static void parse_alloc(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_ALLOC);

	ev.addr = number(p, 4, UINT64_MAX);
	ev.size = number(p, 5, UINT64_MAX);
	end_event(p, &ev, 6, EVENT_RETRY);
}

static void parse_free(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_FREE);

	ev.addr = number(p, 4, UINT64_MAX);
	end_event(p, &ev, 5, EVENT_TEMPORARY);
}

static void parse_realloc_begin(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_REALLOC_BEGIN);

	ev.old_addr = number(p, 4, UINT64_MAX);
	ev.size = number(p, 5, UINT64_MAX);
	end_event(p, &ev, 6, 0);
}

static void parse_realloc_end(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_REALLOC_END);

	ev.old_addr = number(p, 4, UINT64_MAX);
	ev.addr = number(p, 5, UINT64_MAX);
	ev.size = number(p, 6, UINT64_MAX);
	end_event(p, &ev, 7, 0);
}

static void parse_unmap(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_FREE);

	ev.h.flags = EVENT_UNMAP;
	ev.addr = number(p, 4, UINT64_MAX);
	ev.size = number(p, 5, UINT64_MAX);
	end_event(p, &ev, 6, 0);
}

static void parse_lost(struct parser *p)
{
	struct lost_record rec = { 0 };

	known_pid(p, 1);
	rec.losses.allocs = number(p, 2, UINT32_MAX);
	rec.losses.frees = number(p, 3, UINT32_MAX);
	rec.losses.stacks = number(p, 4, UINT32_MAX);
	rec.losses.other = number(p, 5, UINT32_MAX);
	append(p, &rec, sizeof(rec));
}

static void parse_life(struct parser *p, struct process_event *ev, size_t time)
{
	ev->h.pid = ev->h.tid = known_pid(p, 1);
	parse_end(p, time, 0);
	ev->time_ns = p->time_ns;
	append(p, ev, sizeof(*ev));
}

static void parse_exec(struct parser *p)
{
	struct process_event ev = { .h.kind = EVENT_EXEC };

	parse_life(p, &ev, 2);
}

static void parse_fork(struct parser *p)
{
	struct process_event ev = { .h.kind = EVENT_FORK, .child_pid = known_pid(p, 2) };

	parse_life(p, &ev, 3);
}

static void parse_exit(struct parser *p)
{
	struct process_event ev = { .h.kind = EVENT_EXIT, .exit_status = number(p, 2, UINT32_MAX) };

	parse_life(p, &ev, 3);
}

/* One kind of line; numbers of words without the first. */
static const struct line_kind {
	const char *word;
	u8 min_words, max_words;
	void (*parse)(struct parser *p);
} line_kinds[] = {
	{ "process", 3, 4, parse_process },
	{ "map", 5, 6, parse_map },
	{ "stack", 3, 3 + STACK_MAX_FRAMES, parse_stack },
	{ "alloc", 6, 8, parse_alloc },
	{ "free", 5, 7, parse_free },
	{ "realloc-begin", 6, 7, parse_realloc_begin },
	{ "realloc-end", 7, 8, parse_realloc_end },
	{ "unmap", 6, 7, parse_unmap },
	{ "lost", 5, 5, parse_lost },
	{ "exec", 1, 2, parse_exec },
	{ "fork", 2, 3, parse_fork },
	{ "exit", 2, 3, parse_exit },
};

static void parse_words(struct parser *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(line_kinds); i++) {
		const struct line_kind *kind = &line_kinds[i];

		if (strcmp(kind->word, p->words[0]))
			continue;
		if (p->nr_words - 1 < kind->min_words || p->nr_words - 1 > kind->max_words)
			fail(p, "%s takes %u to %u words, not %zu", kind->word, kind->min_words,
			     kind->max_words, p->nr_words - 1);
		else
			kind->parse(p);
		return;
	}
	fail(p, "'%.40s' is no kind of record", p->words[0]);
}

static void parse_line(struct parser *p, char *line)
{
	char *rest = line;
	char *word;

	p->nr_words = 0;
	while ((word = strsep(&rest, " \t\r\n"))) {
		if (!*word)
			continue;
		if (p->nr_words == MAX_WORDS) {
			fail(p, "more than %d words", MAX_WORDS);
			return;
		}
		p->words[p->nr_words++] = word;
	}
	if (p->nr_words && p->words[0][0] != '#')
		parse_words(p);
}

static void free_source(struct source *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_processes; i++) {
		free(s->processes[i]->target.exe);
		mapping_list_fini(&s->processes[i]->target.maps);
		free(s->processes[i]);
	}
	free(s->processes);
	free(s->stream);
	free(s);
}

/* Returns 0, or -EINVAL or -errno, logged. */
static int read_lines(struct parser *p, FILE *in, const char *path)
{
	char line[MAX_LINE];
	u64 nr = 0;

	while (fgets(line, sizeof(line), in)) {
		nr++;
		/* A NUL makes a line look short and without its end. */
		if (!strchr(line, '\n') && !feof(in))
			fail(p, "a NUL, or longer than %d bytes", MAX_LINE - 2);
		else
			parse_line(p, line);
		if (p->why[0]) {
			error("replay: %s:%llu: %s", path, (unsigned long long)nr, p->why);
			return -EINVAL;
		}
	}
	if (ferror(in)) {
		int err = errno ? -errno : -EIO;

		error("replay: %s: %s", path, strerror(-err));
		return err;
	}
	return 0;
}

int source_replay_open(struct source **out, const char *path, struct module_table *modules)
{
	auto_fclose FILE *in = fopen(path, "re");
	int err = -errno;

	if (!in) {
		error("replay: %s: %s", path, strerror(-err));
		return err;
	}
	return source_replay_read(out, in, path, modules);
}

int source_replay_read(struct source **out, FILE *in, const char *path, struct module_table *modules)
{
	auto_free struct parser *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->source = calloc(1, sizeof(*p->source));
	if (!p->source)
		return -ENOMEM;
	p->modules = modules;
	err = read_lines(p, in, path);
	if (err)
		free_source(p->source);
	else
		*out = p->source;
	return err;
}

struct target *source_replay_target(struct source *s, size_t i)
{
	return i < s->nr_processes ? &s->processes[i]->target : NULL;
}

bool source_replay_is_done(const struct source *s)
{
	return s->next == s->nr_words;
}

static struct process *find_process(struct source *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->processes[i]->target.pid == pid)
			return s->processes[i];
	return NULL;
}

static int attach(struct source *s, struct target *t)
{
	return find_process(s, t->pid) ? 0 : -ESRCH;
}

static int update(struct source *s, struct target *t)
{
	(void)s;
	(void)t;
	return 0;
}

static int wait_fd(struct source *s)
{
	(void)s;
	return -1;
}

static bool is_heap_event(const struct event_header *h)
{
	return h->kind >= EVENT_ALLOC && h->kind <= EVENT_REALLOC_END;
}

/* Deliver the record of one entry. Number of records, or -errno of the sink. */
static int deliver(struct process *process, const struct event_header *rec, u32 bytes,
		   const struct sink *sink)
{
	const struct lost_record *lost = (const struct lost_record *)rec;
	int err;

	if (!rec->kind) {
		process->losses.allocs += lost->losses.allocs;
		process->losses.frees += lost->losses.frees;
		process->losses.stacks += lost->losses.stacks;
		process->losses.other += lost->losses.other;
		return 0;
	}
	if (process->is_paused && is_heap_event(rec))
		return 0;
	err = sink->record(sink->ctx, rec, bytes);
	return err ? err : 1;
}

static int poll_records(struct source *s, const struct sink *sink)
{
	int nr = 0;

	while (nr < POLL_RECORDS && s->next < s->nr_words) {
		const struct entry *entry = (const struct entry *)&s->stream[s->next];
		const struct event_header *rec = (const struct event_header *)(entry + 1);
		int ret = deliver(s->processes[entry->process], rec, entry->bytes, sink);

		s->next += 1 + (entry->bytes + sizeof(u64) - 1) / sizeof(u64);
		if (ret < 0)
			return ret;
		nr += ret;
	}
	return nr;
}

static void set_paused(struct source *s, pid_t pid, bool is_paused)
{
	struct process *p = find_process(s, pid);

	if (p)
		p->is_paused = is_paused;
}

static void pause_process(struct source *s, pid_t pid)
{
	set_paused(s, pid, true);
}

static void resume_process(struct source *s, pid_t pid)
{
	set_paused(s, pid, false);
}

static struct losses losses_of(struct source *s, pid_t pid)
{
	struct process *p = find_process(s, pid);

	return p ? p->losses : (struct losses){ 0 };
}

static void detach(struct source *s)
{
	(void)s;
}

const struct source_ops source_replay = {
	.name = "replay",
	.attach = attach,
	.update = update,
	.wait_fd = wait_fd,
	.poll = poll_records,
	.pause = pause_process,
	.resume = resume_process,
	.losses = losses_of,
	.detach = detach,
	.free = free_source,
};
