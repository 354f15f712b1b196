/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turn lines of text into the records of a recording: books and reports are tested with lists, without root or target.
 *
 * One record per line, words apart by spaces or tabs; an empty line or one that begins with # says nothing.
 * Numbers are decimal, 0x hexadecimal or 0 octal. FN is the ELF symbol of a row of the allocator table. In texts
 * \xNN is a byte and \\ a backslash; "-" is an empty one.
 *
 *	sample BYTES				first of all: blocks are sampled, one in about so many bytes
 *	process PID COMM EXE [started]		first of all about PID; started: by run, not attached to
 *	map PID START END BIAS PATH [BUILD_ID]	an executable mapping; "-" as PATH: in no file
 *	stack ID PID END [ADDR...]		return addresses, innermost first; ID from 2 on; END one of complete
 *						depth no-unwind-info unsupported unreadable not-growing unmapped limit
 *						frame-pointers stale-mappings
 *	alloc PID TID FN ADDR SIZE STACK [TIME] [retry] [align=N] [distance=N]	ADDR 0: the call failed
 *	free PID TID FN ADDR STACK [TIME] [temporary] [size=N] [align=N]	what a delete says
 *	realloc-begin PID TID FN OLD_ADDR SIZE STACK [TIME]
 *	realloc-end PID TID FN OLD_ADDR ADDR SIZE STACK [TIME] [unsampled] [distance=N]
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
 * TIME is in ns; without it a record comes 1 ns after the one before. STACK 0: none, 1: lost. Distance: of a sampled
 * block, as in STREAM_EVENT.
 */
#include "user/stream/event_list_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "user/target/allocator.h"
#include "user/lib/array.h"
#include "user/heap/heap_sample.h"
#include "user/heap/stacks.h"

enum {
	MAX_LINE = 16382,
	MAX_WORDS = STACK_MAX_FRAMES + 4,
	MAX_PROCESSES = 4096,
	MAX_MAPS = 65536,
	FREE_FLAGS = EVENT_TEMPORARY | EVENT_WITHIN,
};

/* A process of the list. */
struct listed_process {
	u32 pid;
	u8 flags; /* of STREAM_PROCESS */
	struct losses losses;
	struct stream_mapping *maps; /* owned; by address */
	size_t nr_maps;
	bool has_new_maps; /* their records are not out yet */
};

struct listed_module {
	char *path; /* owned */
	u8 build_id[STREAM_BUILD_ID_MAX];
	u8 build_id_len;
};

enum heap_words {
	HAS_OLD = 1,
	HAS_ADDR = 2,
	HAS_SIZE = 4,
	SAYS_SIZE = 8,
	SAYS_ALIGNMENT = 16,
	SAYS_DISTANCE = 32
};

/* A kind of line with a heap event. */
struct heap_line {
	u8 kind, flags; /* of the event */
	u8 allowed;	/* flags that a last word can set */
	u8 words;	/* enum heap_words */
};

/* One kind of line; numbers of words without the first. */
struct line_kind {
	const char *word;
	u8 min_words, max_words;
	void (*parse)(struct event_list_reader *r);
	struct heap_line heap;
};

struct event_list_reader {
	struct stream_handler handler;
	struct alloc_table *fns; /* owned; a row number is the number of the function in the records */
	bool has_fn[ALLOC_MAX_FNS];
	struct listed_process *processes; /* owned */
	struct listed_module *modules;	  /* owned; by number - 1 */
	size_t nr_processes, nr_modules, max_processes, max_modules;
	char line[MAX_LINE + 1];
	size_t len; /* of the line that has not come to its end */
	u64 nr_lines;
	char *words[MAX_WORDS];
	size_t nr_words;
	const struct line_kind *kind;
	struct listed_process *process; /* the one that the line is about */
	u64 time_ns;
	int err; /* 0 = no error yet */
	char why[192];
};

static void __printf(3, 4) list_fail(struct event_list_reader *r, int err, const char *fmt, ...)
{
	int used;
	va_list ap;

	if (r->err)
		return;
	r->err = err;
	used = snprintf(r->why, sizeof(r->why), "line %llu: ", (unsigned long long)r->nr_lines);
	va_start(ap, fmt);
	vsnprintf(r->why + used, sizeof(r->why) - (size_t)used, fmt, ap);
	va_end(ap);
}

static void list_fail_memory(struct event_list_reader *r)
{
	list_fail(r, -ENOMEM, "%s", strerror(ENOMEM));
}

/* A record of the line at hand, which has nothing wrong so far. */
static void list_put(struct event_list_reader *r, enum stream_kind kind, const void *rec)
{
	int err = r->err ? 0 : r->handler.record(r->handler.ctx, kind, rec);

	if (err)
		list_fail(r, err, "%s", strerror(-err));
}

/* Word @i as a number up to @max; 0 after list_fail(). */
static u64 list_number(struct event_list_reader *r, size_t i, u64 max)
{
	const char *word = r->words[i];
	char *end;
	u64 value;

	errno = 0;
	value = strtoull(word, &end, 0);
	if (errno || *end || word[0] < '0' || word[0] > '9')
		list_fail(r, -EINVAL, "'%.40s' is not a number", word);
	else if (value > max)
		list_fail(r, -EINVAL, "%.40s is too large", word);
	return r->err ? 0 : value;
}

static struct listed_process *list_find(struct event_list_reader *r, u32 pid)
{
	for (size_t i = 0; i < r->nr_processes; i++)
		if (r->processes[i].pid == pid)
			return &r->processes[i];
	return NULL;
}

/* Word @i as the pid of a process introduced before. */
static u32 list_known_pid(struct event_list_reader *r, size_t i)
{
	u32 pid = (u32)list_number(r, i, INT32_MAX);

	r->process = list_find(r, pid);
	if (!r->process)
		list_fail(r, -EINVAL, "no process line for pid %u before", pid);
	return pid;
}

static int hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Word @i as a text, in place. */
static const char *list_text(struct event_list_reader *r, size_t i)
{
	char *out = r->words[i];

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
	return r->words[i];
}

/* The program of @p, in the words from @i on. */
static void put_process(struct event_list_reader *r, const struct listed_process *p, size_t i)
{
	const struct stream_process rec = { .pid = p->pid,
					    .flags = p->flags,
					    .word_size = 8,
					    .comm = list_text(r, i),
					    .exe = list_text(r, i + 1) };

	list_put(r, STREAM_PROCESS, &rec);
}

static void parse_process(struct event_list_reader *r)
{
	u32 pid = (u32)list_number(r, 1, INT32_MAX);
	struct listed_process *p;

	if (list_find(r, pid))
		list_fail(r, -EINVAL, "pid %u has a process line already", pid);
	if (r->nr_words == 5 && strcmp(r->words[4], "started"))
		list_fail(r, -EINVAL, "'%.40s' instead of 'started'", r->words[4]);
	if (r->nr_processes == MAX_PROCESSES)
		list_fail(r, -EINVAL, "more than %d processes", MAX_PROCESSES);
	if (r->err)
		return;
	if (array_reserve(r->processes, r->max_processes, r->nr_processes + 1)) {
		list_fail_memory(r);
		return;
	}
	p = &r->processes[r->nr_processes++];
	*p = (struct listed_process){ .pid = pid, .flags = r->nr_words == 5 ? STREAM_STARTED : 0 };
	put_process(r, p, 2);
}

static u8 hex_digit(struct event_list_reader *r, char c)
{
	int value = hex_value(c);

	if (value < 0)
		list_fail(r, -EINVAL, "a build ID is pairs of lower case hexadecimal digits");
	return value < 0 ? 0 : (u8)value;
}

/* The number of the module of the path and build ID in @rec. 0 if there is none. */
static u32 find_listed(const struct event_list_reader *r, const struct stream_module *rec)
{
	for (u32 i = 0; i < r->nr_modules; i++) {
		const struct listed_module *m = &r->modules[i];

		if (!strcmp(m->path, rec->path) && m->build_id_len == rec->build_id_len &&
		    !memcmp(m->build_id, rec->build_id, rec->build_id_len))
			return i + 1;
	}
	return 0;
}

/* Of a file without a build ID nothing is known: it is the one that has this name here. */
static void list_identify(struct stream_module *rec)
{
	struct stat st;

	if (rec->build_id_len || stat(rec->path, &st))
		return;
	rec->dev = st.st_dev;
	rec->ino = st.st_ino;
}

/* The module of words[5] and the build ID in words[6], shared between processes. */
static u32 list_module(struct event_list_reader *r)
{
	const char *hex = r->nr_words == 7 ? r->words[6] : "";
	struct stream_module rec = { .path = list_text(r, 5), .link = "" };
	size_t len = (strlen(hex) + 1) / 2;
	struct listed_module *m;
	u32 number;

	if (len > STREAM_BUILD_ID_MAX)
		list_fail(r, -EINVAL, "a build ID has at most %d bytes", STREAM_BUILD_ID_MAX);
	for (size_t i = 0; i < len && !r->err; i++)
		rec.build_id[i] = (u8)(hex_digit(r, hex[2 * i]) << 4 | hex_digit(r, hex[2 * i + 1]));
	if (r->err)
		return 0;
	rec.build_id_len = (u8)len;
	number = find_listed(r, &rec);
	if (number)
		return number;
	if (array_reserve(r->modules, r->max_modules, r->nr_modules + 1)) {
		list_fail_memory(r);
		return 0;
	}
	m = &r->modules[r->nr_modules];
	*m = (struct listed_module){ .path = strdup(rec.path), .build_id_len = rec.build_id_len };
	memcpy(m->build_id, rec.build_id, len);
	if (!m->path) {
		list_fail_memory(r);
		return 0;
	}
	rec.module = (u32)++r->nr_modules;
	list_identify(&rec);
	list_put(r, STREAM_MODULE, &rec);
	return rec.module;
}

/* Insert @m by address. */
static void list_add_mapping(struct event_list_reader *r, struct listed_process *p,
			     const struct stream_mapping *m)
{
	size_t i = p->nr_maps;

	while (i > 0 && p->maps[i - 1].start >= m->end)
		i--;
	if (m->start >= m->end)
		list_fail(r, -EINVAL, "the mapping ends before it starts");
	else if (i > 0 && p->maps[i - 1].end > m->start)
		list_fail(r, -EINVAL, "the mapping overlaps another one");
	else if (p->nr_maps == MAX_MAPS)
		list_fail(r, -EINVAL, "more than %d mappings", MAX_MAPS);
	if (r->err)
		return;
	if (array_extend(p->maps, p->nr_maps)) {
		list_fail_memory(r);
		return;
	}
	memmove(&p->maps[i + 1], &p->maps[i], (p->nr_maps - i) * sizeof(*m));
	p->maps[i] = *m;
	p->nr_maps++;
	p->has_new_maps = true;
}

static void parse_mapping(struct event_list_reader *r)
{
	struct stream_mapping m = { .start = list_number(r, 2, UINT64_MAX),
				    .end = list_number(r, 3, UINT64_MAX) };

	list_known_pid(r, 1);
	m.bias = list_number(r, 4, UINT64_MAX);
	m.file_offset = m.start - m.bias;
	if (!r->err && strcmp(r->words[5], "-"))
		m.module = list_module(r);
	if (!r->err)
		list_add_mapping(r, r->process, &m);
}

/* A recording has all mappings of a process at once: those of the lines before the one at hand. */
static void put_new_maps(struct event_list_reader *r)
{
	struct listed_process *p = r->process;
	const struct stream_maps rec = { .pid = p ? p->pid : 0, .epoch = 1, .nr = p ? (u32)p->nr_maps : 0 };

	if (r->err || !p || !p->has_new_maps)
		return;
	p->has_new_maps = false;
	list_put(r, STREAM_MAPS, &rec);
	for (size_t i = 0; i < p->nr_maps; i++)
		list_put(r, STREAM_MAPPING, &p->maps[i]);
}

static u8 stack_end_of(struct event_list_reader *r, const char *word)
{
	for (u32 end = 0; end < NR_STACK_ENDS; end++)
		if (!strcmp(stack_end_word(end), word))
			return (u8)end;
	list_fail(r, -EINVAL, "'%.40s' is not the end of a stack", word);
	return 0;
}

static void parse_stack(struct event_list_reader *r)
{
	struct stack_event ev = { .h.kind = EVENT_STACK, .epoch = 1 };

	ev.h.pid = ev.h.tid = list_known_pid(r, 2);
	ev.id = list_number(r, 1, UINT64_MAX);
	if (ev.id < STACK_FIRST_ID)
		list_fail(r, -EINVAL, "stack ids begin with %d", STACK_FIRST_ID);
	ev.end = stack_end_of(r, r->words[3]);
	ev.nr_frames = (u16)(r->nr_words - 4);
	for (u16 i = 0; i < ev.nr_frames; i++)
		ev.ips[i] = list_number(r, 4 + i, UINT64_MAX);
	put_new_maps(r);
	list_put(r, STREAM_STACK, &ev);
}

/* The last words of an event, from @i on: time and flags. */
static u8 parse_end(struct event_list_reader *r, size_t i, u8 allowed)
{
	static const struct {
		const char *word;
		u8 flag;
	} flags[] = { { "temporary", EVENT_TEMPORARY },
		      { "retry", EVENT_RETRY },
		      { "within", EVENT_WITHIN },
		      { "unsampled", EVENT_UNSAMPLED } };
	u8 found = 0;

	r->time_ns++;
	if (i < r->nr_words && r->words[i][0] >= '0' && r->words[i][0] <= '9')
		r->time_ns = list_number(r, i++, UINT64_MAX);
	if (i == r->nr_words)
		return 0;
	for (size_t k = 0; k < ARRAY_SIZE(flags); k++)
		if (!strcmp(r->words[i], flags[k].word))
			found = flags[k].flag & allowed;
	if (!found || i + 1 < r->nr_words)
		list_fail(r, -EINVAL, "'%.40s' does not belong here", r->words[r->nr_words - 1]);
	return found;
}

/* The first record of a function comes behind one that says what it is. */
static void introduce_function(struct event_list_reader *r, u16 number)
{
	const struct alloc_fn *fn = alloc_fn(r->fns, number);
	const struct stream_function rec = {
		.fn = number, .kind = fn->kind, .family = fn->family, .symbol = fn->symbol, .name = fn->name
	};

	if (r->err || r->has_fn[number])
		return;
	r->has_fn[number] = true;
	list_put(r, STREAM_FUNCTION, &rec);
}

/* The last word, if it comes after word @stack and is a number behind @key: take it off. False if it is none. */
static bool last_number(struct event_list_reader *r, size_t stack, const char *key, u64 *out)
{
	size_t last = r->nr_words - 1;

	if (last <= stack || strncmp(r->words[last], key, strlen(key)))
		return false;
	r->words[last] += strlen(key);
	*out = list_number(r, last, UINT64_MAX);
	r->nr_words--;
	return true;
}

/* The alignment that a call asks for or says, as in an event. */
static u64 last_alignment(struct event_list_reader *r, size_t stack)
{
	u64 alignment = 0;

	return last_number(r, stack, "align=", &alignment) && !alignment ? ALIGNMENT_ZERO : alignment;
}

/* The words KIND PID TID FN, then some of OLD_ADDR, ADDR, SIZE, then STACK, and what parse_end() reads. */
static void parse_heap(struct event_list_reader *r)
{
	const struct heap_line *line = &r->kind->heap;
	struct heap_event ev = { .h = { .kind = line->kind, .flags = line->flags } };
	u64 distance;
	size_t i = 4, stack = 4 + (size_t)__builtin_popcount(line->words & (HAS_OLD | HAS_ADDR | HAS_SIZE));

	ev.h.pid = list_known_pid(r, 1);
	ev.h.tid = (u32)list_number(r, 2, INT32_MAX);
	ev.h.fn = (u16)alloc_fn_find(r->fns, r->words[3]);
	if (!ev.h.fn)
		list_fail(r, -EINVAL, "'%.40s' is no allocator function", r->words[3]);
	if (line->words & SAYS_DISTANCE && last_number(r, stack, "distance=", &distance))
		ev.h.distance = distance < SAMPLE_MARKS_END ? (u32)distance : 0;
	if (line->words & SAYS_ALIGNMENT)
		ev.alignment = last_alignment(r, stack);
	if (line->words & SAYS_SIZE)
		last_number(r, stack, "size=", &ev.size);
	if (line->words & HAS_OLD)
		ev.old_addr = list_number(r, i++, UINT64_MAX);
	if (line->words & HAS_ADDR)
		ev.addr = list_number(r, i++, UINT64_MAX);
	if (line->words & HAS_SIZE)
		ev.size = list_number(r, i, UINT64_MAX);
	ev.stack = list_number(r, stack, UINT64_MAX);
	ev.h.flags |= parse_end(r, stack + 1, line->allowed);
	ev.time_ns = r->time_ns;
	introduce_function(r, ev.h.fn);
	put_new_maps(r);
	list_put(r, STREAM_EVENT, &ev);
}

/* A free may be among them, and results of calls: what that means for the books a recording says itself. */
static void parse_lost(struct event_list_reader *r)
{
	const struct losses more = { .allocs = list_number(r, 2, UINT32_MAX),
				     .frees = list_number(r, 3, UINT32_MAX),
				     .stacks = list_number(r, 4, UINT32_MAX),
				     .other = list_number(r, 5, UINT32_MAX) };
	u8 flags = (u8)((more.frees || more.other ? STREAM_TAINT : 0) | (more.allocs ? STREAM_GAPS : 0));
	struct stream_losses rec = { .pid = list_known_pid(r, 1), .flags = flags };

	if (r->err)
		return;
	losses_add(&r->process->losses, &more);
	rec.l = r->process->losses;
	list_put(r, STREAM_LOSSES, &rec);
}

static void parse_life(struct event_list_reader *r, enum stream_kind kind, struct process_event *ev,
		       size_t time)
{
	ev->h.pid = ev->h.tid = list_known_pid(r, 1);
	parse_end(r, time, 0);
	ev->time_ns = r->time_ns;
	put_new_maps(r);
	list_put(r, kind, ev);
}

static void parse_exec(struct event_list_reader *r)
{
	struct process_event ev = { .h.kind = EVENT_EXEC };
	bool has_names = r->nr_words > 3;

	parse_life(r, STREAM_EXEC, &ev, has_names ? 4 : 2);
	if (has_names && !r->err)
		put_process(r, r->process, 2);
}

static void parse_fork(struct event_list_reader *r)
{
	struct process_event ev = { .h.kind = EVENT_FORK, .child_pid = list_known_pid(r, 2) };

	put_new_maps(r);
	parse_life(r, STREAM_FORK, &ev, 3);
}

static void parse_exit(struct event_list_reader *r)
{
	struct process_event ev = { .h.kind = EVENT_EXIT, .exit_status = (u32)list_number(r, 2, UINT32_MAX) };

	parse_life(r, STREAM_EXIT, &ev, 3);
}

static void parse_allocator(struct event_list_reader *r)
{
	struct stream_allocator rec = { .pid = list_known_pid(r, 1), .kind = list_text(r, 2) };
	const char *path = list_text(r, 3);

	for (size_t i = 0; !r->err && i < r->process->nr_maps; i++) {
		u32 number = r->process->maps[i].module;

		if (number && !strcmp(r->modules[number - 1].path, path))
			rec.module = number;
	}
	if (!rec.module)
		list_fail(r, -EINVAL, "'%.40s' is in no map line before", path);
	put_new_maps(r);
	list_put(r, STREAM_ALLOCATOR, &rec);
}

static void parse_function(struct event_list_reader *r)
{
	const struct alloc_fn row = { .kind = (enum alloc_kind)list_number(r, 1, NR_ALLOC_KINDS - 1),
				      .family = (enum alloc_family)list_number(r, 2, NR_FAMILIES - 1),
				      .symbol = list_text(r, 3),
				      .name = list_text(r, 4) };
	int fn = r->err || alloc_fn_find(r->fns, row.symbol) ? 0 : alloc_fn_add(r->fns, &row);

	if (fn < 0)
		list_fail(r, fn == -ENOMEM ? fn : -EINVAL, "%s", strerror(-fn));
}

static void parse_sample(struct event_list_reader *r)
{
	const struct stream_hello hello = { .sample_bytes = list_number(r, 1, SAMPLE_MOST_BYTES) };

	if (r->nr_processes)
		list_fail(r, -EINVAL, "it must come before all processes");
	list_put(r, STREAM_HELLO, &hello);
}

static void parse_marker(struct event_list_reader *r)
{
	const struct stream_mark_record rec = { .time_ns = list_number(r, 1, UINT64_MAX),
						.what = STREAM_MARK_USER,
						.text = list_text(r, 2) };

	if (!r->nr_processes)
		list_fail(r, -EINVAL, "no process line before");
	list_put(r, STREAM_MARK, &rec);
}

static void parse_thread(struct event_list_reader *r)
{
	const struct stream_thread rec = { .pid = list_known_pid(r, 1),
					   .tid = (u32)list_number(r, 2, INT32_MAX),
					   .comm = list_text(r, 3) };

	list_put(r, STREAM_THREAD, &rec);
}

static const struct line_kind line_kinds[] = {
	{ "sample", 1, 1, parse_sample },
	{ "process", 3, 4, parse_process },
	{ "map", 5, 6, parse_mapping },
	{ "stack", 3, 3 + STACK_MAX_FRAMES, parse_stack },
	{ "alloc",
	  6,
	  10,
	  parse_heap,
	  { EVENT_ALLOC, 0, EVENT_RETRY, HAS_ADDR | HAS_SIZE | SAYS_ALIGNMENT | SAYS_DISTANCE } },
	{ "free", 5, 9, parse_heap, { EVENT_FREE, 0, FREE_FLAGS, HAS_ADDR | SAYS_SIZE | SAYS_ALIGNMENT } },
	{ "realloc-begin", 6, 7, parse_heap, { EVENT_REALLOC_BEGIN, 0, 0, HAS_OLD | HAS_SIZE } },
	{ "realloc-end",
	  7,
	  10,
	  parse_heap,
	  { EVENT_REALLOC_END, 0, EVENT_RETRY | EVENT_UNSAMPLED,
	    HAS_OLD | HAS_ADDR | HAS_SIZE | SAYS_DISTANCE } },
	{ "unmap", 6, 7, parse_heap, { EVENT_FREE, EVENT_UNMAP, 0, HAS_ADDR | HAS_SIZE } },
	{ "lost", 5, 5, parse_lost },
	{ "exec", 1, 4, parse_exec },
	{ "fork", 2, 3, parse_fork },
	{ "exit", 2, 3, parse_exit },
	{ "allocator", 3, 3, parse_allocator },
	{ "function", 4, 4, parse_function },
	{ "mark", 2, 2, parse_marker },
	{ "thread", 3, 3, parse_thread },
};

static void parse_words(struct event_list_reader *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(line_kinds); i++) {
		const struct line_kind *kind = &line_kinds[i];

		if (strcmp(kind->word, r->words[0]))
			continue;
		if (r->nr_words - 1 < kind->min_words || r->nr_words - 1 > kind->max_words)
			list_fail(r, -EINVAL, "%s takes %u to %u words, not %zu", kind->word, kind->min_words,
				  kind->max_words, r->nr_words - 1);
		r->kind = kind;
		if (!r->err)
			kind->parse(r);
		return;
	}
	if (r->nr_lines == 1 && (!strcmp(r->words[0], "leaks") || !strcmp(r->words[0], "no"))) {
		list_fail(
			r, -EINVAL,
			"this is the text of a report, and names come into its JSON (-o FILE.json) or a recording");
		return;
	}
	list_fail(r, -EINVAL,
		  "'%.40s' is no kind of record: 'heaptap report --events' prints a list of events",
		  r->words[0]);
}

/* The whole line in r->line. */
static void parse_line(struct event_list_reader *r)
{
	char *rest = r->line, *word;

	r->nr_lines++;
	r->line[r->len] = '\0';
	if (memchr(r->line, '\0', r->len))
		list_fail(r, -EINVAL, "a NUL");
	r->nr_words = r->len = 0;
	r->process = NULL;
	while (!r->err && (word = strsep(&rest, " \t\r"))) {
		if (!*word)
			continue;
		if (r->nr_words == MAX_WORDS)
			list_fail(r, -EINVAL, "more than %d words", MAX_WORDS);
		else
			r->words[r->nr_words++] = word;
	}
	if (!r->err && r->nr_words && r->words[0][0] != '#')
		parse_words(r);
}

int event_list_feed(struct event_list_reader *r, const char *data, size_t len)
{
	while (len && !r->err) {
		const char *end = memchr(data, '\n', len);
		size_t nr = end ? (size_t)(end - data) : len;

		if (nr > MAX_LINE - r->len) {
			r->nr_lines++;
			list_fail(r, -EINVAL, "longer than %d bytes", MAX_LINE);
			break;
		}
		memcpy(r->line + r->len, data, nr);
		r->len += nr;
		if (end)
			parse_line(r);
		nr += end != NULL;
		data += nr;
		len -= nr;
	}
	return r->err;
}

int event_list_end(struct event_list_reader *r)
{
	if (!r->err && r->len)
		parse_line(r);
	for (size_t i = 0; i < r->nr_processes; i++) {
		r->process = &r->processes[i];
		put_new_maps(r);
	}
	return r->err;
}

u64 event_list_lines(const struct event_list_reader *r)
{
	return r->nr_lines;
}

const char *event_list_why(const struct event_list_reader *r)
{
	return r->why;
}

int event_list_reader_new(struct event_list_reader **out, const struct stream_handler *handler)
{
	struct event_list_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	if (alloc_table_new(&r->fns)) {
		free(r);
		return -ENOMEM;
	}
	r->handler = *handler;
	*out = r;
	return 0;
}

void event_list_reader_free(struct event_list_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr_processes; i++)
		free(r->processes[i].maps);
	for (size_t i = 0; i < r->nr_modules; i++)
		free(r->modules[i].path);
	free(r->processes);
	free(r->modules);
	alloc_table_free(r->fns);
	free(r);
}
