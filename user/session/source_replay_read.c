/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists of events as text files, read and checked: books and reports are tested with them, without root or target.
 *
 * One record per line, words apart by spaces or tabs; an empty line or one that begins with # says nothing.
 * Numbers are decimal, 0x hexadecimal or 0 octal. FN is the ELF symbol of a row of the allocator table. In texts
 * \xNN is a byte and \\ a backslash; "-" is an empty one.
 *
 *	process PID COMM EXE [started]		first of all about PID; started: by run, not attached to
 *	map PID START END BIAS PATH [BUILD_ID]	an executable mapping; "-" as PATH: in no file
 *	stack ID PID END [ADDR...]		return addresses, innermost first; ID from 2 on; END one of complete
 *						depth no-unwind-info unsupported unreadable not-growing unmapped limit
 *						frame-pointers stale-mappings
 *	alloc PID TID FN ADDR SIZE STACK [TIME] [retry] [align=N]	ADDR 0: the call failed
 *	free PID TID FN ADDR STACK [TIME] [temporary] [size=N] [align=N]	what a delete says
 *	realloc-begin PID TID FN OLD_ADDR SIZE STACK [TIME]
 *	realloc-end PID TID FN OLD_ADDR ADDR SIZE STACK [TIME]
 *	unmap PID TID FN ADDR SIZE STACK [TIME]
 *	lost PID ALLOCS FREES STACKS OTHER	from here on the source's losses are that much more
 *	exec PID [TIME]
 *	exec PID COMM EXE [TIME]		the same, of a program of this name
 *	fork PID CHILD_PID [TIME]
 *	exit PID STATUS [TIME]			STATUS as wait(2) gives it
 *	allocator PID KIND PATH			an allocator found in a file of its maps
 *	function KIND FAMILY FN NAME		numbers of user/target/allocator.h: a new row of the table
 *	mark TIME NAME				a marker
 *	thread PID TID NAME
 *
 * TIME is in ns; without it a record comes 1 ns after the one before. STACK 0: none, 1: lost.
 */
#include "user/session/source_replay.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/target/allocator.h"
#include "user/lib/array.h"
#include "user/lib/cleanup.h"
#include "user/lib/log.h"
#include "user/session/source_replay_private.h"
#include "user/heap/stacks.h"

enum {
	MAX_LINE = 16384,
	MAX_WORDS = STACK_MAX_FRAMES + 4,
	MAX_PROCESSES = 4096,
	MAX_MAPS = 65536,
	MAX_STREAM = 1 << 30, /* bytes */
};

struct parser {
	struct replay_source *source;
	struct module_table *modules;
	struct alloc_table *fns;
	char *words[MAX_WORDS];
	size_t nr_words;
	u32 process; /* index of the one that the line is about */
	u64 time_ns;
	char why[128]; /* "" = no error yet */
};

static void __printf(2, 3) source_replay_read_fail(struct parser *p, const char *fmt, ...)
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
		source_replay_read_fail(p, "%s", strerror(-err));
}

/* Word @i as a number up to @max; 0 after source_replay_read_fail(). */
static u64 source_replay_read_number(struct parser *p, size_t i, u64 max)
{
	const char *word = p->words[i];
	char *end;
	u64 value;

	errno = 0;
	value = strtoull(word, &end, 0);
	if (errno || *end || word[0] < '0' || word[0] > '9')
		source_replay_read_fail(p, "'%.40s' is not a number", word);
	else if (value > max)
		source_replay_read_fail(p, "%.40s is too large", word);
	return p->why[0] ? 0 : value;
}

/* Word @i as the pid of a process introduced before. */
static u32 known_pid(struct parser *p, size_t i)
{
	u32 pid = source_replay_read_number(p, i, INT32_MAX);

	for (size_t k = 0; k < p->source->nr_processes; k++)
		if (p->source->processes[k]->target.pid == (pid_t)pid) {
			p->process = k;
			return pid;
		}
	source_replay_read_fail(p, "no process line for pid %u before", pid);
	return 0;
}

static int hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Word @i as a text, in place. */
static const char *source_replay_read_text(struct parser *p, size_t i)
{
	char *out = p->words[i];

	if (!strcmp(out, "-"))
		return "";
	for (const char *s = out; *s; s++) {
		if (*s == '\\' && s[1] == '\\') {
			s++;
		} else if (*s == '\\' && s[1] == 'x' && hex_value(s[2]) >= 0 && hex_value(s[3]) >= 0) {
			*out++ = (char)(hex_value(s[2]) * 16 + hex_value(s[3]));
			s += 3;
			continue;
		}
		*out++ = *s;
	}
	*out = '\0';
	return p->words[i];
}

static void source_replay_read_append(struct parser *p, const void *rec, u32 bytes)
{
	struct replay_source *s = p->source;
	struct entry entry = { .bytes = bytes, .process = p->process };
	size_t nr = 1 + (bytes + sizeof(u64) - 1) / sizeof(u64);

	if (p->why[0])
		return;
	if ((s->nr_words + nr) * sizeof(u64) > MAX_STREAM ||
	    array_reserve(s->stream, s->max_words, s->nr_words + nr)) {
		fail_errno(p, -ENOMEM);
		return;
	}
	s->stream[s->nr_words + nr - 1] = 0;
	memcpy(&s->stream[s->nr_words], &entry, sizeof(entry));
	memcpy(&s->stream[s->nr_words + 1], rec, bytes);
	s->nr_words += nr;
}

static void parse_process(struct parser *p)
{
	struct replay_source *s = p->source;
	pid_t pid = source_replay_read_number(p, 1, INT32_MAX);
	struct listed_process *new;

	for (size_t i = 0; i < s->nr_processes; i++)
		if (s->processes[i]->target.pid == pid)
			source_replay_read_fail(p, "pid %d has a process line already", pid);
	if (p->nr_words == 5 && strcmp(p->words[4], "started"))
		source_replay_read_fail(p, "'%.40s' instead of 'started'", p->words[4]);
	if (s->nr_processes == MAX_PROCESSES)
		source_replay_read_fail(p, "more than %d processes", MAX_PROCESSES);
	if (p->why[0])
		return;
	new = array_extend(s->processes, s->nr_processes) ? NULL : calloc(1, sizeof(*new));
	if (!new) {
		fail_errno(p, -ENOMEM);
		return;
	}
	s->processes[s->nr_processes++] = new;
	new->target = (struct target){
		.pid = pid, .pidfd = -1, .exit_status = -1, .exe = strdup(source_replay_read_text(p, 3))
	};
	new->target.is_started = p->nr_words == 5;
	snprintf(new->target.comm, sizeof(new->target.comm), "%s", source_replay_read_text(p, 2));
	if (!new->target.exe)
		fail_errno(p, -ENOMEM);
}

static u8 hex_digit(struct parser *p, char c)
{
	int value = hex_value(c);

	if (value < 0)
		source_replay_read_fail(p, "a build ID is pairs of lower case hexadecimal digits");
	return value < 0 ? 0 : (u8)value;
}

/* The module of @path and the build ID in words[6], shared between processes. */
static struct module *source_replay_read_module_of(struct parser *p, const char *path)
{
	const char *hex = p->nr_words == 7 ? p->words[6] : "";
	size_t len = (strlen(hex) + 1) / 2;
	u8 build_id[BUILD_ID_MAX];
	struct module *module = NULL;

	if (len > BUILD_ID_MAX)
		source_replay_read_fail(p, "a build ID has at most %d bytes", BUILD_ID_MAX);
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
static void source_replay_read_add_mapping(struct parser *p, struct mapping_list *list,
					   const struct mapping *m)
{
	size_t i = list->nr;

	while (i > 0 && list->maps[i - 1].start >= m->end)
		i--;
	if (m->start >= m->end)
		source_replay_read_fail(p, "the mapping ends before it starts");
	else if (i > 0 && list->maps[i - 1].end > m->start)
		source_replay_read_fail(p, "the mapping overlaps another one");
	else if (list->nr == MAX_MAPS)
		source_replay_read_fail(p, "more than %d mappings", MAX_MAPS);
	if (p->why[0])
		return;
	if (array_extend(list->maps, list->nr)) {
		fail_errno(p, -ENOMEM);
		return;
	}
	memmove(&list->maps[i + 1], &list->maps[i], (list->nr - i) * sizeof(*m));
	list->maps[i] = *m;
	list->nr++;
	list->epoch = 1;
}

static void source_replay_read_parse_map(struct parser *p)
{
	struct mapping m = { .start = source_replay_read_number(p, 2, UINT64_MAX),
			     .end = source_replay_read_number(p, 3, UINT64_MAX) };

	known_pid(p, 1);
	m.bias = source_replay_read_number(p, 4, UINT64_MAX);
	m.file_offset = m.start - m.bias;
	if (strcmp(p->words[5], "-"))
		m.module = source_replay_read_module_of(p, source_replay_read_text(p, 5));
	if (!p->why[0])
		source_replay_read_add_mapping(p, &p->source->processes[p->process]->target.maps, &m);
}

static u8 stack_end_of(struct parser *p, const char *word)
{
	for (u32 end = 0; end < NR_STACK_ENDS; end++)
		if (!strcmp(stack_end_word(end), word))
			return (u8)end;
	source_replay_read_fail(p, "'%.40s' is not the end of a stack", word);
	return 0;
}

static void parse_stack(struct parser *p)
{
	struct stack_event ev = { .h.kind = EVENT_STACK, .epoch = 1 };

	ev.h.pid = ev.h.tid = known_pid(p, 2);
	ev.id = source_replay_read_number(p, 1, UINT64_MAX);
	if (ev.id < STACK_FIRST_ID)
		source_replay_read_fail(p, "stack ids begin with %d", STACK_FIRST_ID);
	ev.end = stack_end_of(p, p->words[3]);
	ev.nr_frames = p->nr_words - 4;
	for (u16 i = 0; i < ev.nr_frames; i++)
		ev.ips[i] = source_replay_read_number(p, 4 + i, UINT64_MAX);
	source_replay_read_append(p, &ev, offsetof(struct stack_event, ips) + ev.nr_frames * sizeof(u64));
}

/* The last words of an event, from @i on: time and flags. */
static u8 parse_end(struct parser *p, size_t i, u8 allowed)
{
	static const struct {
		const char *word;
		u8 flag;
	} flags[] = { { "temporary", EVENT_TEMPORARY },
		      { "retry", EVENT_RETRY },
		      { "within", EVENT_WITHIN } };
	u8 found = 0;

	p->time_ns++;
	if (i < p->nr_words && p->words[i][0] >= '0' && p->words[i][0] <= '9')
		p->time_ns = source_replay_read_number(p, i++, UINT64_MAX);
	if (i == p->nr_words)
		return 0;
	for (size_t k = 0; k < ARRAY_SIZE(flags); k++)
		if (!strcmp(p->words[i], flags[k].word))
			found = flags[k].flag & allowed;
	if (!found || i + 1 < p->nr_words)
		source_replay_read_fail(p, "'%.40s' does not belong here", p->words[p->nr_words - 1]);
	return found;
}

/* The words that all heap events begin with: kind PID TID FN. */
static struct heap_event begin_event(struct parser *p, enum event_kind kind)
{
	struct heap_event ev = { .h.kind = kind };

	ev.h.pid = known_pid(p, 1);
	ev.h.tid = source_replay_read_number(p, 2, INT32_MAX);
	ev.h.fn = alloc_fn_find(p->fns, p->words[3]);
	if (!ev.h.fn)
		source_replay_read_fail(p, "'%.40s' is no allocator function", p->words[3]);
	return ev;
}

static void end_event(struct parser *p, struct heap_event *ev, size_t stack, u8 allowed)
{
	ev->stack = source_replay_read_number(p, stack, UINT64_MAX);
	ev->h.flags |= parse_end(p, stack + 1, allowed);
	ev->time_ns = p->time_ns;
	source_replay_read_append(p, ev, sizeof(*ev));
}

/* The last word, if it comes after word @stack and is a number behind @key: take it off. False if it is none. */
static bool last_number(struct parser *p, size_t stack, const char *key, u64 *out)
{
	size_t last = p->nr_words - 1;

	if (last <= stack || strncmp(p->words[last], key, strlen(key)))
		return false;
	p->words[last] += strlen(key);
	*out = source_replay_read_number(p, last, UINT64_MAX);
	p->nr_words--;
	return true;
}

/* The alignment that a call asks for or says, as in an event. */
static u64 last_alignment(struct parser *p, size_t stack)
{
	u64 alignment = 0;

	return last_number(p, stack, "align=", &alignment) && !alignment ? ALIGNMENT_ZERO : alignment;
}

static void parse_alloc(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_ALLOC);

	ev.alignment = last_alignment(p, 6);
	ev.addr = source_replay_read_number(p, 4, UINT64_MAX);
	ev.size = source_replay_read_number(p, 5, UINT64_MAX);
	end_event(p, &ev, 6, EVENT_RETRY);
}

static void parse_free(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_FREE);

	ev.addr = source_replay_read_number(p, 4, UINT64_MAX);
	ev.alignment = last_alignment(p, 5);
	last_number(p, 5, "size=", &ev.size);
	end_event(p, &ev, 5, EVENT_TEMPORARY | EVENT_WITHIN);
}

static void parse_realloc_begin(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_REALLOC_BEGIN);

	ev.old_addr = source_replay_read_number(p, 4, UINT64_MAX);
	ev.size = source_replay_read_number(p, 5, UINT64_MAX);
	end_event(p, &ev, 6, 0);
}

static void parse_realloc_end(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_REALLOC_END);

	ev.old_addr = source_replay_read_number(p, 4, UINT64_MAX);
	ev.addr = source_replay_read_number(p, 5, UINT64_MAX);
	ev.size = source_replay_read_number(p, 6, UINT64_MAX);
	end_event(p, &ev, 7, EVENT_RETRY);
}

static void parse_unmap(struct parser *p)
{
	struct heap_event ev = begin_event(p, EVENT_FREE);

	ev.h.flags = EVENT_UNMAP;
	ev.addr = source_replay_read_number(p, 4, UINT64_MAX);
	ev.size = source_replay_read_number(p, 5, UINT64_MAX);
	end_event(p, &ev, 6, 0);
}

static void parse_lost(struct parser *p)
{
	struct lost_record rec = { 0 };

	known_pid(p, 1);
	rec.losses.allocs = source_replay_read_number(p, 2, UINT32_MAX);
	rec.losses.frees = source_replay_read_number(p, 3, UINT32_MAX);
	rec.losses.stacks = source_replay_read_number(p, 4, UINT32_MAX);
	rec.losses.other = source_replay_read_number(p, 5, UINT32_MAX);
	source_replay_read_append(p, &rec, sizeof(rec));
}

static void parse_life(struct parser *p, struct process_event *ev, size_t time)
{
	ev->h.pid = ev->h.tid = known_pid(p, 1);
	parse_end(p, time, 0);
	ev->time_ns = p->time_ns;
	source_replay_read_append(p, ev, sizeof(*ev));
}

static void parse_exec(struct parser *p)
{
	struct process_event ev = { .h.kind = EVENT_EXEC };
	bool has_names = p->nr_words > 3;
	struct replay_source *s = p->source;

	if (has_names) {
		if (array_extend(s->images, s->nr_images)) {
			fail_errno(p, -ENOMEM);
			return;
		}
		s->images[s->nr_images++] = (struct replay_image){ strdup(source_replay_read_text(p, 2)),
								   strdup(source_replay_read_text(p, 3)) };
		ev.child_pid = (u32)s->nr_images;
	}
	parse_life(p, &ev, has_names ? 4 : 2);
}

static void parse_fork(struct parser *p)
{
	struct process_event ev = { .h.kind = EVENT_FORK, .child_pid = known_pid(p, 2) };

	parse_life(p, &ev, 3);
}

static void parse_exit(struct parser *p)
{
	struct process_event ev = { .h.kind = EVENT_EXIT,
				    .exit_status = source_replay_read_number(p, 2, UINT32_MAX) };

	parse_life(p, &ev, 3);
}

static void parse_allocator(struct parser *p)
{
	struct replay_source *s = p->source;
	const char *kind = kind_list_keep(&s->kinds, source_replay_read_text(p, 2));
	const struct mapping_list *maps;
	const char *path = source_replay_read_text(p, 3);
	const struct module *module = NULL;

	if (!kind) {
		fail_errno(p, -ENOMEM);
		return;
	}
	known_pid(p, 1);
	if (p->why[0])
		return;
	maps = &s->processes[p->process]->target.maps;
	for (size_t i = 0; i < maps->nr; i++)
		if (maps->maps[i].module && !strcmp(maps->maps[i].module->path, path))
			module = maps->maps[i].module;
	if (!module)
		source_replay_read_fail(p, "'%.40s' is in no map line before", path);
	else
		fail_errno(p, target_add_allocator(&s->processes[p->process]->target, module, kind));
}

static void parse_function(struct parser *p)
{
	const struct alloc_fn row = {
		.kind = (enum alloc_kind)source_replay_read_number(p, 1, NR_ALLOC_KINDS - 1),
		.family = (enum alloc_family)source_replay_read_number(p, 2, NR_FAMILIES - 1),
		.symbol = source_replay_read_text(p, 3),
		.name = source_replay_read_text(p, 4)
	};
	int fn = p->why[0] || alloc_fn_find(p->fns, row.symbol) ? 0 : alloc_fn_add(p->fns, &row);

	fail_errno(p, fn < 0 ? fn : 0);
}

static void source_replay_read_parse_mark(struct parser *p)
{
	struct mark_record rec = { .h.flags = MARK_RECORD,
				   .time_ns = source_replay_read_number(p, 1, UINT64_MAX) };

	snprintf(rec.name, sizeof(rec.name), "%s", source_replay_read_text(p, 2));
	if (!p->source->nr_processes)
		source_replay_read_fail(p, "no process line before");
	source_replay_read_append(p, &rec, sizeof(rec));
}

static void parse_thread(struct parser *p)
{
	struct note_event ev = { .h = { .kind = EVENT_NOTE, .pid = known_pid(p, 1) }, .what = NOTE_THREAD };

	ev.h.tid = (u32)source_replay_read_number(p, 2, INT32_MAX);
	snprintf(ev.name, sizeof(ev.name), "%s", source_replay_read_text(p, 3));
	source_replay_read_append(p, &ev, sizeof(ev));
}

/* One kind of line; numbers of words without the first. */
static const struct line_kind {
	const char *word;
	u8 min_words, max_words;
	void (*parse)(struct parser *p);
} line_kinds[] = {
	{ "process", 3, 4, parse_process },
	{ "map", 5, 6, source_replay_read_parse_map },
	{ "stack", 3, 3 + STACK_MAX_FRAMES, parse_stack },
	{ "alloc", 6, 9, parse_alloc },
	{ "free", 5, 9, parse_free },
	{ "realloc-begin", 6, 7, parse_realloc_begin },
	{ "realloc-end", 7, 9, parse_realloc_end },
	{ "unmap", 6, 7, parse_unmap },
	{ "lost", 5, 5, parse_lost },
	{ "exec", 1, 4, parse_exec },
	{ "fork", 2, 3, parse_fork },
	{ "exit", 2, 3, parse_exit },
	{ "allocator", 3, 3, parse_allocator },
	{ "function", 4, 4, parse_function },
	{ "mark", 2, 2, source_replay_read_parse_mark },
	{ "thread", 3, 3, parse_thread },
};

static void parse_words(struct parser *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(line_kinds); i++) {
		const struct line_kind *kind = &line_kinds[i];

		if (strcmp(kind->word, p->words[0]))
			continue;
		if (p->nr_words - 1 < kind->min_words || p->nr_words - 1 > kind->max_words)
			source_replay_read_fail(p, "%s takes %u to %u words, not %zu", kind->word,
						kind->min_words, kind->max_words, p->nr_words - 1);
		else
			kind->parse(p);
		return;
	}
	source_replay_read_fail(
		p, "'%.40s' is no kind of record: 'heaptap report --events' prints a list of events",
		p->words[0]);
}

static void source_replay_read_parse_line(struct parser *p, char *line)
{
	char *rest = line;
	char *word;

	p->nr_words = 0;
	while ((word = strsep(&rest, " \t\r\n"))) {
		if (!*word)
			continue;
		if (p->nr_words == MAX_WORDS) {
			source_replay_read_fail(p, "more than %d words", MAX_WORDS);
			return;
		}
		p->words[p->nr_words++] = word;
	}
	if (p->nr_words && p->words[0][0] != '#')
		parse_words(p);
}

/* Returns 0, or -EINVAL or -errno, logged. */
static int source_replay_read_lines(struct parser *p, FILE *in, const char *path)
{
	char line[MAX_LINE];
	u64 nr = 0;

	while (fgets(line, sizeof(line), in)) {
		nr++;
		/* A NUL makes a line look short and without its end. */
		if (!strchr(line, '\n') && !feof(in))
			source_replay_read_fail(p, "a NUL, or longer than %d bytes", MAX_LINE - 2);
		else
			source_replay_read_parse_line(p, line);
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

int source_replay_open(struct source **out, const char *path, struct module_table *modules,
		       struct alloc_table *fns)
{
	auto_fclose FILE *in = fopen(path, "re");
	int err = -errno;

	if (!in) {
		error("replay: %s: %s", path, strerror(-err));
		return err;
	}
	return source_replay_read(out, in, path, modules, fns);
}

int source_replay_read(struct source **out, FILE *in, const char *path, struct module_table *modules,
		       struct alloc_table *fns)
{
	auto_free struct parser *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->source = calloc(1, sizeof(*p->source));
	if (!p->source)
		return -ENOMEM;
	p->modules = modules;
	p->fns = fns;
	err = source_replay_read_lines(p, in, path);
	if (err)
		source_replay_free((struct source *)p->source);
	else
		*out = (struct source *)p->source;
	return err;
}
