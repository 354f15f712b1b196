/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turn lines of text into a recording: books and reports are tested with lists, without root or target.
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
 * TIME is in ns, and is never less than that of the event before; without it a record comes 1 ns after the one before.
 * STACK 0: none, 1: lost. Distance: of a sampled block, as in STREAM_EVENT.
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
#include "user/lib/digits.h"
#include "user/lib/parse.h"
#include "user/heap/heap_sample.h"
#include "user/heap/stacks.h"
#include "user/stream/stream_record.h"
#include "user/stream/stream_write.h"

enum {
	MAX_LINE = 16382,
	MAX_WORDS = STACK_MAX_FRAMES + 4,
	MAX_PROCESSES = 4096,
	MAX_MAPS = 65536,
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

/* Words that the line of an event can end with, in this order. */
enum { RETRY = 1, TEMPORARY = 2, WITHIN = 4, UNSAMPLED = 8, SIZE = 16, ALIGN = 32, DISTANCE = 64 };

static const struct list_ending {
	const char *word;
	u8 flag;     /* of the event */
	char letter; /* of the value that the word has */
} list_endings[] = { { "retry", EVENT_RETRY, 0 },   { "temporary", EVENT_TEMPORARY, 0 },
		     { "within", EVENT_WITHIN, 0 }, { "unsampled", EVENT_UNSAMPLED, 0 },
		     { "size=", 0, 's' },	    { "align=", 0, 'g' },
		     { "distance=", 0, 'd' } };

/*
 * A kind of line. Each letter of values is one word: p, q a process introduced before, i another PID or TID, f a
 * function, t a text, - what only put() can read, and others a number.
 */
struct line_kind {
	const char *word, *values;
	u8 more; /* words that may follow */
	void (*put)(struct event_list_reader *r);
	u8 event, flags, endings; /* of an event */
};

/* Most that a value can be, by letter; 0: any number. */
static const u64 list_most[26] = {
	['p' - 'a'] = INT32_MAX,	  ['q' - 'a'] = INT32_MAX,	 ['i' - 'a'] = INT32_MAX,
	['e' - 'a'] = UINT32_MAX,	  ['w' - 'a'] = UINT32_MAX,	 ['x' - 'a'] = UINT32_MAX,
	['y' - 'a'] = UINT32_MAX,	  ['z' - 'a'] = UINT32_MAX,	 ['m' - 'a'] = SAMPLE_MOST_BYTES,
	['h' - 'a'] = NR_ALLOC_KINDS - 1, ['j' - 'a'] = NR_FAMILIES - 1,
};

struct event_list_reader {
	struct event_list_sink sink;
	struct stream_writer *writer;	  /* owned */
	struct alloc_table *fns;	  /* owned */
	struct listed_process *processes; /* owned */
	struct stream_module *modules;	  /* owned, and each path; by number - 1 */
	size_t nr_processes, nr_modules, max_processes, max_modules;
	u64 sample_bytes;
	u64 time_ns, last_ns; /* of the last event; of the last event or marker */
	bool has_begun;	      /* STREAM_HELLO is out */
	bool has_news;	      /* the line at hand made a record that a reader may refuse */
	char line[MAX_LINE + 1];
	size_t len; /* of the line that has not come to its end */
	u64 nr_lines;
	char *words[MAX_WORDS];
	size_t nr_words;
	const struct line_kind *kind;
	struct listed_process *process; /* the one that the line is about */
	u64 values[26];			/* by letter */
	int err;			/* 0 = no error yet */
	char why[192];
};

static u64 *list_value(struct event_list_reader *r, char letter)
{
	return &r->values[letter - 'a'];
}

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

/* A function has returned @err: after an error nothing more is read. */
static bool list_failed(struct event_list_reader *r, int err)
{
	if (err)
		list_fail(r, err, "%s", strerror(-err));
	return r->err;
}

static int list_send(void *ctx, const void *data, size_t len)
{
	struct event_list_reader *r = ctx;
	int err = r->sink.write(r->sink.ctx, data, len);

	/* The sink knows why it refuses a line, which came before one that is bad. */
	if (err) {
		r->err = err;
		r->why[0] = '\0';
	}
	return err;
}

/* A record of the line at hand, which has nothing wrong so far. */
static void list_put(struct event_list_reader *r, enum stream_kind kind, const void *rec)
{
	if (!r->err)
		list_failed(r, stream_write(r->writer, kind, rec));
	r->has_news = true;
}

static void list_put_event(struct event_list_reader *r, const struct event_header *rec, size_t len)
{
	if (!r->err)
		list_failed(r, stream_write_event(r->writer, rec, len));
}

static void list_begin(struct event_list_reader *r)
{
	const struct stream_hello hello = { .sample_bytes = r->sample_bytes };

	if (!r->has_begun)
		list_put(r, STREAM_HELLO, &hello);
	r->has_begun = true;
}

/* @word as a number up to @max, which is 0 for any; 0 after list_fail(). */
static u64 list_number(struct event_list_reader *r, const char *word, u64 max)
{
	u64 value = 0;

	if (parse_number(word, &value))
		list_fail(r, -EINVAL, "'%.40s' is not a number", word);
	else if (max && value > max)
		list_fail(r, -EINVAL, "%.40s is too large", word);
	return r->err ? 0 : value;
}

static struct listed_process *list_find(struct event_list_reader *r, u64 pid)
{
	for (size_t i = 0; i < r->nr_processes; i++)
		if (r->processes[i].pid == pid)
			return &r->processes[i];
	return NULL;
}

static bool list_get_byte(const char *hex, u64 *byte)
{
	return digits_get_bare_hex(hex, hex + 2, byte) == hex + 2;
}

/* Turn @word into the text that it stands for. */
static void list_unescape(char *word)
{
	char *out = word;
	u64 byte;

	if (!strcmp(word, "-"))
		*word = '\0';
	for (const char *s = word; *s; s++) {
		bool is_byte = s[0] == '\\' && s[1] == 'x' && list_get_byte(s + 2, &byte);

		s += s[0] == '\\' && s[1] == '\\';
		*out++ = is_byte ? (char)byte : *s;
		s += is_byte ? 3 : 0;
	}
	*out = '\0';
}

/* The number of the module of words[5] and the build ID in words[6], shared between processes. */
static u32 list_module(struct event_list_reader *r)
{
	const char *hex = r->nr_words == 7 ? r->words[6] : "";
	struct stream_module rec = { .path = r->words[5], .build_id_len = (u8)((strlen(hex) + 1) / 2) };
	struct stat st;
	u64 byte;

	if (strlen(hex) > 2 * STREAM_BUILD_ID_MAX)
		list_fail(r, -EINVAL, "a build ID has at most %d bytes", STREAM_BUILD_ID_MAX);
	for (u32 i = 0; i < rec.build_id_len && !r->err; i++) {
		if (!list_get_byte(hex + 2 * i, &byte))
			list_fail(r, -EINVAL, "a build ID is pairs of lower case hexadecimal digits");
		rec.build_id[i] = (u8)byte;
	}
	for (u32 i = 0; i < r->nr_modules && !r->err; i++)
		if (!strcmp(r->modules[i].path, rec.path) && r->modules[i].build_id_len == rec.build_id_len &&
		    !memcmp(r->modules[i].build_id, rec.build_id, rec.build_id_len))
			return i + 1;
	if (r->err || list_failed(r, array_reserve(r->modules, r->max_modules, r->nr_modules + 1)))
		return 0;
	rec.path = strdup(rec.path);
	if (list_failed(r, rec.path ? 0 : -ENOMEM))
		return 0;
	/* Of a file without a build ID nothing is known: it is the one that has this name here. */
	if (!rec.build_id_len && !stat(rec.path, &st)) {
		rec.dev = st.st_dev;
		rec.ino = st.st_ino;
	}
	r->modules[r->nr_modules++] = rec;
	rec.module = (u32)r->nr_modules;
	list_put(r, STREAM_MODULE, &rec);
	return rec.module;
}

/* Insert a mapping by address. */
static void list_put_mapping(struct event_list_reader *r)
{
	struct listed_process *p = r->process;
	const u64 start = *list_value(r, 'a'), bias = *list_value(r, 'c');
	const struct stream_mapping m = { .start = start,
					  .end = *list_value(r, 'b'),
					  .file_offset = start - bias,
					  .bias = bias,
					  .module = *r->words[5] ? list_module(r) : 0 };
	size_t i = p->nr_maps;

	while (i > 0 && p->maps[i - 1].start >= m.end)
		i--;
	if (m.start >= m.end)
		list_fail(r, -EINVAL, "the mapping ends before it starts");
	else if (i > 0 && p->maps[i - 1].end > m.start)
		list_fail(r, -EINVAL, "the mapping overlaps another one");
	else if (p->nr_maps == MAX_MAPS)
		list_fail(r, -EINVAL, "more than %d mappings", MAX_MAPS);
	if (r->err || list_failed(r, array_extend(p->maps, p->nr_maps)))
		return;
	memmove(&p->maps[i + 1], &p->maps[i], (p->nr_maps - i) * sizeof(m));
	p->maps[i] = m;
	p->nr_maps++;
	p->has_new_maps = true;
}

/* A recording has all mappings of a process at once: those of the lines before the one at hand. */
static void list_put_maps(struct event_list_reader *r, struct listed_process *p)
{
	const struct stream_maps rec = { .pid = p->pid, .epoch = 1, .nr = (u32)p->nr_maps };

	if (!p->has_new_maps)
		return;
	p->has_new_maps = false;
	list_put(r, STREAM_MAPS, &rec);
	for (size_t i = 0; i < p->nr_maps; i++)
		list_put(r, STREAM_MAPPING, &p->maps[i]);
}

/* Read word @i as the value @letter. */
static void list_read_value(struct event_list_reader *r, size_t i, char letter)
{
	char *word = r->words[i];
	u64 *value = list_value(r, letter);

	if (letter == 't') {
		list_unescape(word);
	} else if (letter == 'f') {
		*value = (u64)alloc_fn_find(r->fns, word);
		if (!*value)
			list_fail(r, -EINVAL, "'%.40s' is no allocator function", word);
	} else {
		*value = list_number(r, word, list_most[letter - 'a']);
	}
	if (letter != 'p' && letter != 'q')
		return;
	r->process = list_find(r, *value);
	if (!r->process)
		list_fail(r, -EINVAL, "no process line for pid %u before", (u32)*value);
	else if (r->kind->put != list_put_mapping)
		list_put_maps(r, r->process);
}

/* The last words of an event, from @i on: time and flags. */
static void list_read_end(struct event_list_reader *r, size_t i)
{
	r->time_ns++;
	if (i < r->nr_words && r->words[i][0] >= '0' && r->words[i][0] <= '9')
		r->time_ns = list_number(r, r->words[i++], 0);
	r->last_ns = r->time_ns;
	for (size_t k = 0; k < ARRAY_SIZE(list_endings) && i < r->nr_words; k++) {
		const struct list_ending *e = &list_endings[k];
		size_t len = strlen(e->word);

		if (!(r->kind->endings >> k & 1) || (e->flag && *list_value(r, 'l')) ||
		    strncmp(r->words[i], e->word, e->letter ? len : len + 1))
			continue;
		if (e->letter)
			*list_value(r, e->letter) = list_number(r, r->words[i] + len, 0);
		if (e->letter == 'g' && !*list_value(r, 'g'))
			*list_value(r, 'g') = ALIGNMENT_ZERO;
		*list_value(r, 'l') |= e->flag;
		i++;
	}
	if (i < r->nr_words)
		list_fail(r, -EINVAL, "'%.40s' does not belong here", r->words[i]);
}

/* The program of the process, in the words from @i on. */
static void list_put_program(struct event_list_reader *r, size_t i)
{
	const struct stream_process rec = { .pid = r->process->pid,
					    .flags = r->process->flags,
					    .word_size = 8,
					    .comm = r->words[i],
					    .exe = r->words[i + 1] };

	list_put(r, STREAM_PROCESS, &rec);
}

static void list_put_process(struct event_list_reader *r)
{
	u32 pid = (u32)*list_value(r, 'i');

	if (list_find(r, pid))
		list_fail(r, -EINVAL, "pid %u has a process line already", pid);
	if (r->nr_words == 5 && strcmp(r->words[4], "started"))
		list_fail(r, -EINVAL, "'%.40s' instead of 'started'", r->words[4]);
	if (r->nr_processes == MAX_PROCESSES)
		list_fail(r, -EINVAL, "more than %d processes", MAX_PROCESSES);
	if (r->err || list_failed(r, array_reserve(r->processes, r->max_processes, r->nr_processes + 1)))
		return;
	r->process = &r->processes[r->nr_processes++];
	*r->process = (struct listed_process){ .pid = pid, .flags = r->nr_words == 5 ? STREAM_STARTED : 0 };
	list_begin(r);
	list_put_program(r, 2);
}

static void list_put_stack(struct event_list_reader *r)
{
	struct stack_event ev = { .h = { .kind = EVENT_STACK, .pid = r->process->pid },
				  .id = *list_value(r, 'n'),
				  .epoch = 1,
				  .nr_frames = (u16)(r->nr_words - 4) };

	if (ev.id < STACK_FIRST_ID)
		list_fail(r, -EINVAL, "stack ids begin with %d", STACK_FIRST_ID);
	while (ev.end < NR_STACK_ENDS && strcmp(stack_end_word(ev.end), r->words[3]))
		ev.end++;
	if (ev.end == NR_STACK_ENDS)
		list_fail(r, -EINVAL, "'%.40s' is not the end of a stack", r->words[3]);
	for (u16 i = 0; i < ev.nr_frames; i++)
		ev.ips[i] = list_number(r, r->words[4 + i], 0);
	list_put_event(r, &ev.h, sizeof(ev));
	if (stream_written(r->writer).nr_dropped_stacks)
		list_fail(r, -EINVAL, "more than %d stacks", STREAM_MAX_STACKS);
}

static void list_put_heap(struct event_list_reader *r)
{
	struct heap_event ev = { .h = { .kind = r->kind->event,
					.fn = (u16)*list_value(r, 'f'),
					.pid = r->process->pid,
					.tid = (u32)*list_value(r, 'i') },
				 .addr = *list_value(r, 'a'),
				 .stack = *list_value(r, 'k') };

	list_read_end(r, strlen(r->kind->values) + 1);
	ev.h.flags = r->kind->flags | (u8)*list_value(r, 'l');
	ev.h.distance = *list_value(r, 'd') < SAMPLE_MARKS_END ? (u32)*list_value(r, 'd') : 0;
	ev.old_addr = *list_value(r, 'o') | *list_value(r, 'g');
	ev.size = *list_value(r, 's');
	ev.time_ns = r->time_ns;
	list_put_event(r, &ev.h, sizeof(ev));
}

/* A free may be among them, and results of calls: what that means for the books a recording says itself. */
static void list_put_losses(struct event_list_reader *r)
{
	const struct losses more = { .allocs = *list_value(r, 'w'),
				     .frees = *list_value(r, 'x'),
				     .stacks = *list_value(r, 'y'),
				     .other = *list_value(r, 'z') };
	struct stream_losses rec = { .pid = r->process->pid };

	rec.flags = (more.frees || more.other ? STREAM_TAINT : 0) | (more.allocs ? STREAM_GAPS : 0);
	losses_add(&r->process->losses, &more);
	rec.l = r->process->losses;
	list_put(r, STREAM_LOSSES, &rec);
}

static void list_put_life(struct event_list_reader *r)
{
	bool has_names = r->kind->event == EVENT_EXEC && r->nr_words > 3;
	struct process_event ev = { .h.kind = r->kind->event,
				    .child_pid = (u32)*list_value(r, 'q'),
				    .exit_status = (u32)*list_value(r, 'e') };

	ev.h.pid = ev.h.tid = (u32)*list_value(r, 'p');
	list_read_end(r, has_names ? 4 : strlen(r->kind->values) + 1);
	ev.time_ns = r->time_ns;
	list_put_event(r, &ev.h, sizeof(ev));
	r->has_news = true;
	if (!has_names)
		return;
	list_unescape(r->words[2]);
	list_unescape(r->words[3]);
	list_put_program(r, 2);
}

static void list_put_allocator(struct event_list_reader *r)
{
	struct stream_allocator rec = { .pid = r->process->pid, .kind = r->words[2] };

	for (size_t i = 0; i < r->process->nr_maps; i++) {
		u32 number = r->process->maps[i].module;

		if (number && !strcmp(r->modules[number - 1].path, r->words[3]))
			rec.module = number;
	}
	if (!rec.module)
		list_fail(r, -EINVAL, "'%.40s' is in no map line before", r->words[3]);
	list_put(r, STREAM_ALLOCATOR, &rec);
}

static void list_add_function(struct event_list_reader *r)
{
	const struct alloc_fn row = { .kind = (enum alloc_kind) * list_value(r, 'h'),
				      .family = (enum alloc_family) * list_value(r, 'j'),
				      .symbol = r->words[3],
				      .name = r->words[4] };
	int fn = alloc_fn_find(r->fns, row.symbol) ? 0 : alloc_fn_add(r->fns, &row);

	if (fn < 0)
		list_fail(r, fn == -ENOMEM ? fn : -EINVAL, "%s", strerror(-fn));
}

static void list_set_sample(struct event_list_reader *r)
{
	if (r->nr_processes)
		list_fail(r, -EINVAL, "it must come before all processes");
	r->sample_bytes = *list_value(r, 'm');
}

static void list_put_mark(struct event_list_reader *r)
{
	const struct stream_mark_record rec = { .time_ns = *list_value(r, 'n'),
						.what = STREAM_MARK_USER,
						.text = r->words[2] };

	if (!r->nr_processes)
		list_fail(r, -EINVAL, "no process line before");
	r->last_ns = rec.time_ns;
	list_put(r, STREAM_MARK, &rec);
}

static void list_put_thread(struct event_list_reader *r)
{
	const struct stream_thread rec = { .pid = r->process->pid,
					   .tid = (u32)*list_value(r, 'i'),
					   .comm = r->words[3] };

	list_put(r, STREAM_THREAD, &rec);
}

static const struct line_kind line_kinds[] = {
	{ "alloc", "pifask", 4, list_put_heap, EVENT_ALLOC, 0, RETRY | ALIGN | DISTANCE },
	{ "free", "pifak", 4, list_put_heap, EVENT_FREE, 0, TEMPORARY | WITHIN | SIZE | ALIGN },
	{ "sample", "m", 0, list_set_sample },
	{ "process", "itt", 1, list_put_process },
	{ "map", "pabct", 1, list_put_mapping },
	{ "stack", "np-", STACK_MAX_FRAMES, list_put_stack },
	{ "realloc-begin", "pifosk", 1, list_put_heap, EVENT_REALLOC_BEGIN, 0, 0 },
	{ "realloc-end", "pifoask", 3, list_put_heap, EVENT_REALLOC_END, 0, RETRY | UNSAMPLED | DISTANCE },
	{ "unmap", "pifask", 1, list_put_heap, EVENT_FREE, EVENT_UNMAP, 0 },
	{ "lost", "pwxyz", 0, list_put_losses },
	{ "exec", "p", 3, list_put_life, EVENT_EXEC },
	{ "fork", "pq", 1, list_put_life, EVENT_FORK },
	{ "exit", "pe", 1, list_put_life, EVENT_EXIT },
	{ "allocator", "ptt", 0, list_put_allocator },
	{ "function", "hjtt", 0, list_add_function },
	{ "mark", "nt", 0, list_put_mark },
	{ "thread", "pit", 0, list_put_thread },
};

static void list_read_words(struct event_list_reader *r)
{
	const struct line_kind *kind = line_kinds, *end = line_kinds + ARRAY_SIZE(line_kinds);
	const char *first = r->words[0];
	size_t nr;

	while (kind < end && strcmp(kind->word, first))
		kind++;
	if (kind == end && r->nr_lines == 1 && (!strcmp(first, "leaks") || !strcmp(first, "no")))
		list_fail(
			r, -EINVAL,
			"this is the text of a report, and names come into its JSON (-o FILE.json) or a recording");
	else if (kind == end)
		list_fail(r, -EINVAL,
			  "'%.40s' is no kind of record: 'heaptap report --events' prints a list of events",
			  first);
	if (r->err)
		return;
	nr = strlen(kind->values);
	if (r->nr_words - 1 < nr || r->nr_words - 1 > nr + kind->more)
		list_fail(r, -EINVAL, "%s takes %zu to %zu words, not %zu", first, nr, nr + kind->more,
			  r->nr_words - 1);
	r->kind = kind;
	memset(r->values, 0, sizeof(r->values));
	for (size_t i = 0; i < nr && !r->err; i++)
		if (kind->values[i] != '-')
			list_read_value(r, i + 1, kind->values[i]);
	if (!r->err)
		kind->put(r);
}

/* The end of a word: most characters are greater than any of these. */
static bool list_is_end(char c)
{
	return (u8)c <= ' ' && (c == ' ' || c == '\t' || c == '\r' || !c);
}

/* The whole line in r->line. A record that can be refused goes out with its line, events gather. */
static void list_read_line(struct event_list_reader *r)
{
	char *at = r->line, *end = at + r->len;

	r->nr_lines++;
	*end = '\0';
	r->nr_words = r->len = 0;
	while (at < end && !r->err) {
		char *word = at;

		while (!list_is_end(*at))
			at++;
		if (!*at && at < end)
			list_fail(r, -EINVAL, "a NUL");
		else if (at > word && r->nr_words == MAX_WORDS)
			list_fail(r, -EINVAL, "more than %d words", MAX_WORDS);
		else if (at > word)
			r->words[r->nr_words++] = word;
		*at++ = '\0';
	}
	if (!r->err && r->nr_words && r->words[0][0] != '#')
		list_read_words(r);
	if (r->has_news && !r->err)
		list_failed(r, stream_flush(r->writer));
	r->has_news = false;
}

int event_list_feed(struct event_list_reader *r, const char *data, size_t len)
{
	int err;

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
			list_read_line(r);
		nr += end != NULL;
		data += nr;
		len -= nr;
	}
	err = stream_flush(r->writer);
	return r->err ? r->err : err;
}

int event_list_end(struct event_list_reader *r)
{
	struct stream_end rec = { .reason = STREAM_END_DONE };

	if (!r->err && r->len)
		list_read_line(r);
	list_begin(r);
	for (size_t i = 0; i < r->nr_processes; i++)
		list_put_maps(r, &r->processes[i]);
	rec.time_ns = r->last_ns;
	list_put(r, STREAM_END, &rec);
	return event_list_feed(r, "", 0);
}

const u64 *event_list_line(const struct event_list_reader *r)
{
	return &r->nr_lines;
}

const char *event_list_why(const struct event_list_reader *r)
{
	return r->why;
}

int event_list_reader_new(struct event_list_reader **out, const struct event_list_sink *sink)
{
	struct event_list_reader *r = calloc(1, sizeof(*r));
	struct stream_writer_options o = { .ctx = r, .write = list_send, .repeats_stacks = true };

	if (!r)
		return -ENOMEM;
	r->sink = *sink;
	if (!alloc_table_new(&r->fns)) {
		o.fns = r->fns;
		*out = r;
		if (!stream_writer_new(&r->writer, &o))
			return 0;
	}
	event_list_reader_free(r);
	return -ENOMEM;
}

void event_list_reader_free(struct event_list_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr_processes; i++)
		free(r->processes[i].maps);
	for (size_t i = 0; i < r->nr_modules; i++)
		free((char *)r->modules[i].path);
	free(r->processes);
	free(r->modules);
	stream_writer_free(r->writer);
	alloc_table_free(r->fns);
	free(r);
}
