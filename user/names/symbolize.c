/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names places in modules: finds the files, lets the reader open them, and asks it for each place once. */
#include "user/names/symbolize.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/lib/array.h"
#include "user/lib/hash.h"
#include "user/lib/hash_index.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/names/debug_file.h"
#include "user/names/perf_map.h"
#include "user/names/reader.h"
#include "user/names/symbol_server.h"

enum { BLOCK_SIZE = 64 << 10 };

#define COPY_BUDGET (2ULL << 30) /* bytes */

/* Of all files: bytes of unpacked debug sections, which are a part of the machine's memory; and CPU time. */
#define UNPACK_MIN (256ULL << 20)
#define UNPACK_MAX (1ULL << 30)
#define LOOK_UP_NS (60ULL * 1000 * 1000 * 1000)
enum { MEMORY_PARTS = 16 };

/* After one death of the reader the debug information of a file is left alone, after two the file. */
enum { FILE_DEATHS_MAX = 2, DEATHS_MAX = 32, NAMES_MAX = 64 };

/* Where the names of one module come from. */
struct module_names {
	bool is_absent; /* there is no file with names */
	u8 nr_deaths;	/* of the reader, by this file */
	u32 opened_in;	/* the reader that has the file open; 0 = none */
};

/* A place, and the names that were found for it. */
struct named_place {
	struct code_ref ref;
	struct symbol *symbols;
	size_t nr;
};

/* Memory for names, which are freed together at the end. */
struct memory_block {
	struct memory_block *next;
	size_t used, size;
	char bytes[];
};

/* The names of compiled code of one process. */
struct process_map {
	pid_t pid;
	struct perf_map *map; /* owned */
};

struct symbolizer {
	const struct module_table *modules; /* borrowed */
	struct debug_search search;
	char *sysroot, *debug_path; /* owned; NULL = none */
	struct module_names *names; /* owned; by module id - 1 */
	size_t nr_names, max_names;
	struct named_place *places; /* owned; every place that was looked up */
	size_t nr_places, max_places;
	struct hash_index places_index;
	struct memory_block *blocks; /* owned */
	size_t nr_stale, nr_unread;
	struct names_reader *reader; /* owned */
	struct process_map *maps;    /* owned */
	size_t nr_maps;
	bool has_given_up; /* no more names are looked up, which was logged */
};

static const struct symbol unknown;

static u64 unpack_budget(void)
{
	u64 part = (u64)sysconf(_SC_PHYS_PAGES) * (u64)sysconf(_SC_PAGESIZE) / MEMORY_PARTS;

	return part < UNPACK_MIN ? UNPACK_MIN : part > UNPACK_MAX ? UNPACK_MAX : part;
}

int symbolizer_new(struct symbolizer **out, const struct module_table *modules,
		   const struct symbolizer_options *options)
{
	struct symbolizer *s = calloc(1, sizeof(*s));
	struct symbol_server *server = NULL;

	if (!s)
		return -ENOMEM;
	s->modules = modules;
	if (options && options->sysroot)
		s->sysroot = strdup(options->sysroot);
	if (options && options->debug_path)
		s->debug_path = strdup(options->debug_path);
	if (options && ((options->sysroot && !s->sysroot) || (options->debug_path && !s->debug_path))) {
		symbolizer_free(s);
		return -ENOMEM;
	}
	if (reader_new(&s->reader, LOOK_UP_NS) ||
	    (options && options->asks_server && symbol_server_new(&server) == -ENOMEM)) {
		symbolizer_free(s);
		return -ENOMEM;
	}
	s->search = (struct debug_search){ .server = server,
					   .reader = s->reader,
					   .sysroot = s->sysroot,
					   .debug_path = s->debug_path,
					   .is_remote = module_table_is_remote(modules),
					   .copy_budget = COPY_BUDGET,
					   .unpack_budget = unpack_budget() };
	*out = s;
	return 0;
}

/* Free all names that were found, and where they come from. */
static void symbolize_forget(struct symbolizer *s)
{
	free(s->names);
	free(s->places);
	s->names = NULL;
	s->places = NULL;
	s->nr_names = s->max_names = s->nr_places = s->max_places = 0;
	hash_index_fini(&s->places_index);
	while (s->blocks) {
		struct memory_block *b = s->blocks;

		s->blocks = b->next;
		free(b);
	}
}

void symbolizer_renew(struct symbolizer *s, const u32 *pids, size_t nr_pids)
{
	struct names_reader *reader;
	size_t nr = 0;

	symbolize_forget(s);
	for (size_t i = 0; i < s->nr_maps; i++) {
		u32 pid = (u32)s->maps[i].pid;
		size_t at = array_search(k, 0, nr_pids, pids[k] < pid);

		if (at < nr_pids && pids[at] == pid)
			s->maps[nr++] = s->maps[i];
		else
			perf_map_free(s->maps[i].map);
	}
	s->nr_maps = nr;
	/* The files that the old one has open have the ids of others soon, and its time is used up one day. */
	if (reader_new(&reader, LOOK_UP_NS)) {
		s->has_given_up = true;
		return;
	}
	reader_free(s->reader);
	s->search.reader = s->reader = reader;
	s->search.copy_budget = COPY_BUDGET;
	s->search.unpack_budget = unpack_budget();
	s->has_given_up = false;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	reader_free(s->reader);
	for (size_t i = 0; i < s->nr_maps; i++)
		perf_map_free(s->maps[i].map);
	free(s->maps);
	symbolize_forget(s);
	symbol_server_free(s->search.server);
	free(s->sysroot);
	free(s->debug_path);
	free(s);
}

bool symbolizer_asks_server(const struct symbolizer *s)
{
	return s->search.server;
}

size_t symbolizer_stale(const struct symbolizer *s)
{
	return s->nr_stale;
}

size_t symbolizer_unread(const struct symbolizer *s)
{
	return s->nr_unread;
}

static void *symbolize_keep(struct symbolizer *s, size_t size)
{
	struct memory_block *b = s->blocks;
	size_t wanted = (size + 7) & ~(size_t)7;

	if (!b || b->size - b->used < wanted) {
		size_t room = wanted > BLOCK_SIZE ? wanted : BLOCK_SIZE;

		b = malloc(sizeof(*b) + room);
		if (!b)
			return NULL;
		*b = (struct memory_block){ .next = s->blocks, .size = room };
		s->blocks = b;
	}
	b->used += wanted;
	return b->bytes + b->used - wanted;
}

static const char *keep_text(struct symbolizer *s, const char *text, size_t len)
{
	char *copy = symbolize_keep(s, len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

void symbolizer_open(struct symbolizer *s, struct module *m)
{
	int fd;

	if (m->fd < 0 && !s->has_given_up && !debug_file_open_main(&s->search, m, &fd))
		m->fd = fd;
}

/* The reader needs the separate file of @m, which it has described in @a: find it, and go on. */
static int pass_debug_file(struct symbolizer *s, const struct module *m, struct reader_answer *a)
{
	struct reader_request request = { .kind = READER_DEBUG_FILE };
	char link[NAME_MAX + 1] = "";
	int fd = -1, err;

	if (a->head.len < sizeof(link))
		memcpy(link, a->bytes, (size_t)a->head.len + 1);
	request.err = debug_file_open_debug(&s->search, m, link, (u32)a->head.values[0], &fd);
	err = reader_ask(s->reader, &request, NULL, fd, a);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Let the reader open the file @fd of @m. *@has_names: it can be read. */
static int open_in_reader(struct symbolizer *s, const struct module *m, int fd, bool is_plain,
			  bool *has_names)
{
	const struct reader_request request = { .kind = READER_OPEN,
						.file = m->id,
						.flags = is_plain ? READER_PLAIN : 0 };
	struct reader_answer a;
	int err = reader_ask(s->reader, &request, NULL, fd, &a);

	for (int i = 0; !err && a.head.kind == READER_WANTS_DEBUG && i < READER_WANTS_MAX; i++)
		err = pass_debug_file(s, m, &a);
	if (!err && a.head.kind != READER_DONE)
		err = reader_reject(s->reader);
	*has_names = !err && !a.head.err;
	return err;
}

/* 0, also without names; -EPIPE or -EAGAIN of reader_ask(); -ENOMEM. */
static int open_names(struct symbolizer *s, struct module_names *n, const struct module *m)
{
	bool is_too_big, has_names;
	int err, fd;

	s->search.is_too_big = false;
	err = debug_file_open_main(&s->search, m, &fd);
	if (err) {
		n->is_absent = err != -EPIPE && err != -EAGAIN && err != -ENOMEM;
		s->nr_stale += err == -ESTALE;
		if (err == -ESTALE)
			warn("symbol: %s: the file here is not the mapped one (%s differs): no names from it",
			     m->path, m->build_id_len ? "its build ID" : "its inode");
		if (n->is_absent && err != -ENOENT)
			debug("symbol: no names for %s: %s", m->path, strerror(-err));
		return n->is_absent ? 0 : err;
	}
	is_too_big = s->search.is_too_big;
	err = open_in_reader(s, m, fd, is_too_big || n->nr_deaths, &has_names);
	close(fd);
	n->is_absent = !err && !has_names;
	n->opened_in = has_names ? reader_generation(s->reader) : 0;
	if (n->is_absent)
		debug("symbol: no names for %s: it cannot be read", m->path);
	/* Of this file, or of a separate one. */
	if (is_too_big || s->search.is_too_big)
		warn("symbol: %s: its compressed debug information is too big: names without it", m->path);
	return err;
}

/* The names of @m. The entry is made when it is first needed. NULL without memory for the table. */
static struct module_names *names_of(struct symbolizer *s, const struct module *m)
{
	if (m->id > s->nr_names) {
		size_t nr = module_count(s->modules);

		if (array_reserve(s->names, s->max_names, nr))
			return NULL;
		memset(s->names + s->nr_names, 0, (nr - s->nr_names) * sizeof(*s->names));
		s->nr_names = nr;
	}
	return &s->names[m->id - 1];
}

/* Take @len bytes of the @*left at *@bytes as a text: *@text, NULL = none. 0, -EPIPE if they are not there, -ENOMEM. */
static int symbolize_take_text(struct symbolizer *s, const char **bytes, size_t *left, size_t len,
			       const char **text)
{
	if (len > *left)
		return -EPIPE;
	*text = len ? keep_text(s, *bytes, len) : NULL;
	*bytes += len;
	*left -= len;
	return len && !*text ? -ENOMEM : 0;
}

static int take_symbol(struct symbolizer *s, const char **bytes, size_t *left, struct symbol *out)
{
	struct reader_symbol head;
	int err;

	if (*left < sizeof(head))
		return -EPIPE;
	memcpy(&head, *bytes, sizeof(head));
	*bytes += sizeof(head);
	*left -= sizeof(head);
	out->line = head.line;
	out->start_line = head.start_line;
	err = symbolize_take_text(s, bytes, left, head.function_len, &out->function);
	if (!err)
		err = symbolize_take_text(s, bytes, left, head.linked_len, &out->linked);
	if (!err)
		err = symbolize_take_text(s, bytes, left, head.file_len, &out->file);
	return err;
}

/* Name the address @addr of an open file. The address is inside of the call instruction. */
static int symbolize_look_up(struct symbolizer *s, const struct module *m, u64 addr,
			     struct named_place *found)
{
	const struct reader_request request = { .kind = READER_LOOK_UP, .file = m->id, .value = addr };
	struct reader_answer a;
	struct symbol *symbols;
	const char *bytes;
	size_t left;
	int err = reader_ask(s->reader, &request, NULL, -1, &a);

	if (err)
		return err;
	if (!a.head.nr || a.head.nr > NAMES_MAX)
		return reader_reject(s->reader);
	symbols = symbolize_keep(s, a.head.nr * sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	memset(symbols, 0, a.head.nr * sizeof(*symbols));
	bytes = a.bytes;
	left = a.head.len;
	for (u32 i = 0; i < a.head.nr; i++) {
		err = take_symbol(s, &bytes, &left, &symbols[i]);
		if (err)
			return err == -EPIPE ? reader_reject(s->reader) : err;
		symbols[i].is_inlined = i + 1 < a.head.nr;
	}
	found->symbols = symbols;
	found->nr = a.head.nr;
	return 0;
}

/* A question about a place: its names, or those of the variable there. */
struct name_wanted {
	u64 addr;
	bool is_data, is_tls;
	struct named_place *found; /* of code */
	const char *name;	   /* of data; NULL = unknown */
	u64 offset;
};

static int look_up_data(struct symbolizer *s, const struct module *m, struct name_wanted *w)
{
	const struct reader_request request = {
		.kind = READER_DATA, .file = m->id, .value = w->addr, .flags = w->is_tls ? READER_TLS : 0
	};
	struct reader_answer a;
	int err = reader_ask(s->reader, &request, NULL, -1, &a);

	if (err || !a.head.len)
		return err;
	w->name = keep_text(s, a.bytes, a.head.len);
	w->offset = a.head.values[0];
	return w->name ? 0 : -ENOMEM;
}

static int open_and_look_up(struct symbolizer *s, struct module_names *n, const struct module *m,
			    struct name_wanted *w)
{
	int err = 0;

	if (!n->opened_in || n->opened_in != reader_generation(s->reader))
		err = open_names(s, n, m);
	if (err || n->is_absent)
		return err;
	return w->is_data ? look_up_data(s, m, w) : symbolize_look_up(s, m, w->addr, w->found);
}

static void symbolize_give_up(struct symbolizer *s, const char *why)
{
	s->has_given_up = true;
	warn("symbol: %s: no more names are looked up", why);
}

/* The reader has died, most likely because it read @m. */
static void symbolize_blame(struct symbolizer *s, struct module_names *n, const struct module *m)
{
	/* The memory of all that was unpacked is free again. */
	s->search.copy_budget = COPY_BUDGET;
	s->search.unpack_budget = unpack_budget();
	if (reader_is_out_of_time(s->reader) || reader_has_died_idle(s->reader))
		return;
	s->nr_unread += !n->nr_deaths;
	n->nr_deaths++;
	warn("symbol: %s: the reader of its names %s: %s", m->path, reader_last_death(s->reader),
	     n->nr_deaths < FILE_DEATHS_MAX ? "names without its debug information" : "no names of it");
}

/* Like open_and_look_up(), as long as there is time, and not in files by which the reader dies. Else without names. */
static int look_up_safely(struct symbolizer *s, const struct module *m, struct name_wanted *w)
{
	struct module_names *n = names_of(s, m);
	bool has_died = true;
	int err = 0;

	if (!n)
		return -ENOMEM;
	while (has_died && !s->has_given_up && !n->is_absent && n->nr_deaths < FILE_DEATHS_MAX) {
		u32 nr_deaths = reader_nr_deaths(s->reader);

		err = open_and_look_up(s, n, m, w);
		has_died = reader_nr_deaths(s->reader) != nr_deaths;
		if (has_died)
			symbolize_blame(s, n, m);
		if (reader_is_out_of_time(s->reader))
			symbolize_give_up(s, "a minute of CPU time was used for names");
		else if (err == -EAGAIN)
			symbolize_give_up(s, "the process that reads debug information cannot be started");
		else if (reader_nr_deaths(s->reader) >= DEATHS_MAX)
			symbolize_give_up(s, "too many files are damaged");
	}
	return err == -ENOMEM ? err : 0;
}

static u64 symbolize_hash_of(struct code_ref ref)
{
	u64 key[2] = { ref.module, ref.offset };

	return hash_bytes(key, sizeof(key), 0);
}

static const struct named_place *symbolize_find_place(const struct symbolizer *s, struct code_ref ref)
{
	u64 hash = symbolize_hash_of(ref);
	u32 item, at = 0;

	while ((item = hash_index_next(&s->places_index, hash, &at)) != HASH_NO_ITEM)
		if (s->places[item].ref.module == ref.module && s->places[item].ref.offset == ref.offset)
			return &s->places[item];
	return NULL;
}

static int symbolize_add_place(struct symbolizer *s, const struct named_place *found)
{
	if (s->nr_places >= HASH_NO_ITEM || array_reserve(s->places, s->max_places, s->nr_places + 1) ||
	    hash_index_add(&s->places_index, symbolize_hash_of(found->ref), (u32)s->nr_places))
		return -ENOMEM;
	s->places[s->nr_places++] = *found;
	return 0;
}

void symbolizer_read_perf_map(struct symbolizer *s, pid_t pid)
{
	struct perf_map *map;
	size_t i = 0;

	if (module_table_is_remote(s->modules) || perf_map_read(&map, pid))
		return;
	while (i < s->nr_maps && s->maps[i].pid != pid)
		i++;
	if (i == s->nr_maps && array_extend(s->maps, s->nr_maps)) {
		perf_map_free(map);
		return;
	}
	if (i == s->nr_maps)
		s->maps[s->nr_maps++] = (struct process_map){ .pid = pid };
	if (perf_map_left_out(map) && !(s->maps[i].map && perf_map_left_out(s->maps[i].map)))
		warn("names: PID %d: /tmp/perf-PID.map has too many names: the last %s of it were not read",
		     pid, human_bytes(perf_map_left_out(map)).text);
	perf_map_free(s->maps[i].map);
	s->maps[i].map = map;
}

/* Name the address @addr, which is in no file, by the one map that has it. */
static int look_up_compiled(struct symbolizer *s, u64 addr, struct named_place *found)
{
	struct perf_name name, other;
	bool is_found = false;
	struct symbol *symbol;

	for (size_t i = 0; i < s->nr_maps; i++) {
		if (!perf_map_find(s->maps[i].map, addr, &other))
			continue;
		if (is_found)
			return 0;
		is_found = true;
		name = other;
	}
	if (!is_found)
		return 0;
	symbol = symbolize_keep(s, sizeof(*symbol));
	if (!symbol)
		return -ENOMEM;
	*symbol = (struct symbol){ .function = keep_text(s, name.function, name.function_len),
				   .line = name.line,
				   .language = name.language };
	if (name.file)
		symbol->file = keep_text(s, name.file, name.file_len);
	if (!symbol->function || (name.file && !symbol->file))
		return -ENOMEM;
	found->symbols = symbol;
	found->nr = 1;
	return 0;
}

int symbolize(struct symbolizer *s, struct code_ref ref, const struct symbol **symbols, size_t *nr)
{
	const struct module *m = module_get(s->modules, ref.module);
	const struct named_place *known = symbolize_find_place(s, ref);
	struct named_place found = { .ref = ref };
	int err = 0;

	if (known) {
		found = *known;
	} else {
		/* One byte back: a return address may belong to the next line, or to the next function. */
		struct name_wanted w = { .addr = ref.offset - 1, .found = &found };

		err = m ? look_up_safely(s, m, &w) : look_up_compiled(s, ref.offset - 1, &found);
		/* Code in no file may be named later. */
		if (!err && !m && !found.symbols) {
			*symbols = &unknown;
			*nr = 1;
			return 0;
		}
		if (!err && !found.symbols) {
			found.symbols = (struct symbol *)&unknown;
			found.nr = 1;
		}
		if (!err)
			err = symbolize_add_place(s, &found);
		if (err)
			return err;
	}
	*symbols = found.symbols;
	*nr = found.nr;
	return 0;
}

int symbolize_data(struct symbolizer *s, struct code_ref ref, bool is_tls, const char **name, u64 *offset)
{
	const struct module *m = module_get(s->modules, ref.module);
	struct name_wanted w = { .addr = ref.offset, .is_data = true, .is_tls = is_tls };
	int err = m ? look_up_safely(s, m, &w) : 0;

	*name = w.name;
	if (w.name)
		*offset = w.offset;
	return err;
}

void symbolizer_demangle(struct symbolizer *s, char *text, size_t size, const char *symbol)
{
	const struct reader_request request = { .kind = READER_DEMANGLE, .len = (u32)strlen(symbol) };
	struct reader_answer a = { .bytes = symbol };

	if (s->has_given_up || request.len > READER_REQUEST_MAX ||
	    reader_ask(s->reader, &request, symbol, -1, &a))
		a.bytes = symbol;
	snprintf(text, size, "%s", a.bytes);
}
